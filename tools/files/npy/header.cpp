#include "header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "../../../runtime/error.hpp"
#include "../file_bytes.hpp"

namespace asterism::tools {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t alignment = 64;          // of the first number in the file, as NumPy writes it
constexpr std::size_t longest_header = 65535;  // the room of version 1: plenty for an array of plain numbers

/// The product of the extents and a size, or nothing when it is beyond Index.
std::optional<Index> checked_product(Index size, const std::vector<Index>& extents) {
  for (const Index extent : extents)
    if (__builtin_mul_overflow(size, extent, &size)) return std::nullopt;
  return size;
}

/// Checks the file's size against its shape.
void require_size(const fs::path& path, const NpyHeader& header, std::size_t literal_offset,
                  std::size_t size) {
  const auto bytes = checked_product(static_cast<Index>(bytes_of(header.precision)), header.shape);
  if (!bytes || *bytes > std::numeric_limits<Index>::max() - static_cast<Index>(header.data_offset))
    throw Error(fmt::format("{}: byte {}: the shape {} has more numbers than can be counted", path.string(),
                            literal_offset, shape_text(header.shape)));
  const auto there = size - header.data_offset;
  if (there < static_cast<std::size_t>(*bytes))
    throw Error(
        fmt::format("{}: byte {}: the file ends here: {} bytes of numbers are there, the shape {} needs {}",
                    path.string(), size, there, shape_text(header.shape), *bytes));
  if (there > static_cast<std::size_t>(*bytes))
    throw Error(
        fmt::format("{}: byte {}: {} bytes too many: the shape {} needs {} bytes of numbers, {} are there",
                    path.string(), header.file_bytes(), there - static_cast<std::size_t>(*bytes),
                    shape_text(header.shape), *bytes, there));
}

}  // namespace

std::string quoted(std::string_view bytes) {
  std::string text = "'";
  for (const char c : bytes) {
    if (c >= ' ' && c <= '~')
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + "'";
}

std::string shape_text(const std::vector<Index>& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

Index NpyHeader::rows() const {
  Index rows = 1;
  for (std::size_t i = 0; i < leading; ++i) rows *= shape[i];
  return rows;
}

Index NpyHeader::cols() const {
  Index cols = 1;
  for (std::size_t i = leading; i < shape.size(); ++i) cols *= shape[i];
  return cols;
}

std::size_t NpyHeader::file_bytes() const {
  return data_offset + static_cast<std::size_t>(rows() * cols()) * bytes_of(precision);
}

/// Magic, version (2 bytes), length of the header (2 or 4 bytes).
LiteralPlace find_literal(const fs::path& path, std::string_view text, std::size_t size) {
  if (!text.starts_with(magic.substr(0, std::min(text.size(), magic.size()))))
    throw Error(fmt::format("{}: byte 0: not a .npy file: it begins with {}, not with {}", path.string(),
                            quoted(text.substr(0, magic.size())), quoted(magic)));
  std::array<unsigned char, bytes_before_literal> start{};
  std::copy_n(text.begin(), std::min(text.size(), start.size()), start.begin());
  const auto require = [&](std::size_t needed) {
    if (size < needed)
      throw Error(fmt::format("{}: byte {}: the file ends inside its header, which needs {} bytes",
                              path.string(), size, needed));
  };
  require(8);
  const unsigned version = start[6];
  if (version < 1 || version > 3 || start[7] != 0)
    throw Error(fmt::format("{}: byte 6: version {}.{} of the format is unknown: 1.0, 2.0 and 3.0 are known",
                            path.string(), version, start[7]));
  const std::size_t offset = version == 1 ? 10 : 12;
  require(offset);
  std::size_t length = start[8] + (std::size_t{start[9]} << 8);
  if (version > 1) length += (std::size_t{start[10]} << 16) + (std::size_t{start[11]} << 24);
  if (length > longest_header)
    throw Error(fmt::format("{}: byte 8: a header of {} bytes: an array of plain numbers has at most {}",
                            path.string(), length, longest_header));
  require(offset + length);
  return {offset, length};
}

NpyHeader read_header(int file, const fs::path& path) {
  const std::size_t size = size_to_read(file, path, "a .npy file");
  std::array<char, bytes_before_literal> start{};
  const std::size_t got = read_up_to(file, path, start.data(), start.size(), 0);
  const LiteralPlace literal = find_literal(path, {start.data(), got}, size);
  std::string text(literal.length, '\0');
  read_all(file, path, text.data(), literal.length, literal.offset);
  NpyHeader header = parse_header(path, text, literal.offset);
  header.data_offset = literal.offset + literal.length;
  require_size(path, header, literal.offset, size);
  return header;
}

std::string header_text(const NpyHeader& header) {
  std::string literal = fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': {}, }}",
                                    bytes_of(header.precision), shape_text(header.shape));
  const std::size_t before = magic.size() + 4;
  const std::size_t total = (before + literal.size() + 1 + alignment - 1) / alignment * alignment;
  literal.append(total - before - literal.size() - 1, ' ');
  literal += '\n';
  const auto length = literal.size();
  return std::string(magic) +
         std::string{'\1', '\0', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)} + literal;
}

}  // namespace asterism::tools
