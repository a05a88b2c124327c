#include "../contents.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../cuda.hpp"
#endif

namespace asterism::detail {

#ifdef ASTERISM_WITH_CUDA
void copy_on_gpu(Stream stream, const void* from, Index from_ld, void* to, Index to_ld, Index rows,
                 Index cols, std::size_t element_bytes) {
  const auto bytes = [&](Index elements) { return static_cast<std::size_t>(elements) * element_bytes; };
  // Not DeviceToDevice: `from` may be read at home (Tile::kept_at_home).
  cuda::check(cudaMemcpy2DAsync(to, bytes(to_ld), from, bytes(from_ld), bytes(cols),
                                static_cast<std::size_t>(rows), cudaMemcpyDefault, cuda::native(stream)),
              "a copy of a tile");
}

void clear_on_gpu(Stream stream, void* data, Index ld, Index rows, Index cols, std::size_t element_bytes) {
  const auto bytes = [&](Index elements) { return static_cast<std::size_t>(elements) * element_bytes; };
  const bool together = rows == 1 || ld == cols;  // rows may lie no more than 2 GiB apart otherwise
  cuda::check(together ? cudaMemsetAsync(data, 0, bytes(rows * cols), cuda::native(stream))
                       : cudaMemset2DAsync(data, bytes(ld), 0, bytes(cols), static_cast<std::size_t>(rows),
                                           cuda::native(stream)),
              "clearing a tile");
}
#endif

}  // namespace asterism::detail
