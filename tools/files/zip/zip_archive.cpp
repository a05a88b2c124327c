#include "zip_archive.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <utility>

#include "../../../runtime/error.hpp"
#include "../file_bytes.hpp"

namespace asterism::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_of(const fs::path& path, const char* what, zip_error_t* error) {
  const std::string reason = zip_error_strerror(error);
  throw Error(fmt::format("{}: {}: {}", path.string(), what, reason));
}

zip_t* open_archive(const fs::path& path) {
  size_to_read(open_to_read(path).number(), path, "a .npz file");
  int code = 0;
  zip_t* const archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  fail_of(path, "cannot be read as a zip archive", &error);
}

}  // namespace

void ZipMember::Close::operator()(zip_file* member) const { zip_fclose(member); }

void ZipMember::damaged() const {
  fail_of(path_, fmt::format("byte {}: cannot be read", read_).c_str(), zip_file_get_error(member_.get()));
}

void ZipMember::read(void* into, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    constexpr std::size_t most = std::size_t{1} << 30;
    const auto got = zip_fread(member_.get(), static_cast<char*>(into) + done, std::min(bytes - done, most));
    if (got < 0) damaged();
    if (got == 0)
      throw Error(fmt::format("{}: byte {}: the member ends here, {} bytes more are needed", path_.string(),
                              read_, bytes - done));
    done += static_cast<std::size_t>(got);
    read_ += static_cast<std::size_t>(got);
  }
}

void ZipMember::require_end() {
  char one = 0;
  const auto got = zip_fread(member_.get(), &one, 1);  // libzip compares the checksum when it meets the end
  if (got < 0) damaged();
  if (got > 0)
    throw Error(fmt::format("{}: byte {}: the member has more bytes than its shape", path_.string(), read_));
}

void ZipArchive::Close::operator()(zip* archive) const { zip_discard(archive); }

ZipArchive::ZipArchive(fs::path path) : path_(std::move(path)), archive_(open_archive(path_)) {}

ZipMember ZipArchive::open(const std::string& name) const {
  ZipMember member;
  member.path_ = path_.string() + ": " + name;
  zip_stat_t stat;
  if (zip_stat(archive_.get(), name.c_str(), 0, &stat) != 0)
    fail_of(path_, fmt::format("the member {}", name).c_str(), zip_get_error(archive_.get()));
  member.member_.reset(zip_fopen(archive_.get(), name.c_str(), 0));
  if (!member.member_) fail_of(member.path_, "cannot be opened", zip_get_error(archive_.get()));
  if ((stat.valid & ZIP_STAT_SIZE) == 0)
    throw Error(fmt::format("{}: its size is unknown", member.path_.string()));
  member.size_ = stat.size;
  return member;
}

}  // namespace asterism::tools
