// Linked into tests under the thread sanitizer only. StarPU asks the C library to read and write spilled tiles in the
// background. The threads for that begin inside the C library, where the sanitizer does not see them, and their first
// allocation ends the process; so it is done at once.
#include <aio.h>
#include <unistd.h>

#include <cerrno>

namespace {

int note(aiocb* request, ssize_t moved) {
  request->__error_code = moved < 0 ? errno : 0;
  request->__return_value = moved;
  return 0;
}

void* data(const aiocb* request) { return const_cast<void*>(request->aio_buf); }

}  // namespace

extern "C" {

int aio_read(aiocb* request) noexcept {
  return note(request, ::pread(request->aio_fildes, data(request), request->aio_nbytes, request->aio_offset));
}
int aio_write(aiocb* request) noexcept {
  return note(request,
              ::pwrite(request->aio_fildes, data(request), request->aio_nbytes, request->aio_offset));
}
int aio_error(const aiocb* request) noexcept { return request->__error_code; }
ssize_t aio_return(aiocb* request) noexcept { return request->__return_value; }
int aio_suspend(const aiocb* const* /*requests*/, int /*count*/, const timespec* /*patience*/) { return 0; }

}  // extern "C"
