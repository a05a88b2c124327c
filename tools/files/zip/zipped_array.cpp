#include "zipped_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "../../../runtime/error.hpp"
#include "../npy/header.hpp"

namespace asterism::tools {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

template <class T>
void convert(const std::vector<char>& piece, Index count, double* into, const ZippedArray& array) {
  for (Index i = 0; i < count; ++i) {
    T number;
    std::memcpy(&number, piece.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    into[i] = static_cast<double>(number);
    if constexpr (std::numeric_limits<T>::digits > std::numeric_limits<double>::digits) {
      constexpr Index exact = Index{1} << 53;
      if (std::cmp_greater(number, exact) || std::cmp_less(number, -exact))
        throw Error(fmt::format("{}: the number at [{}] is {}, more than a double holds exactly",
                                array.path().string(), array.position() + i, number));
    }
  }
}

template <class T>
void convert(const std::vector<char>& piece, Index count, Index* into, const ZippedArray&) {
  for (Index i = 0; i < count; ++i) {
    T number;
    std::memcpy(&number, piece.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    // What is beyond it becomes negative, which no index is.
    into[i] = static_cast<Index>(number);  // NOLINT(bugprone-signed-char-misuse): these are numbers
  }
}

/// Converts by a whole number's type. @return whether it is one
template <class Number>
bool convert_whole(std::string_view type, const std::vector<char>& piece, Index count, Number* into,
                   const ZippedArray& array) {
  if (type == "i1") return convert<std::int8_t>(piece, count, into, array), true;
  if (type == "i2") return convert<std::int16_t>(piece, count, into, array), true;
  if (type == "i4") return convert<std::int32_t>(piece, count, into, array), true;
  if (type == "i8") return convert<std::int64_t>(piece, count, into, array), true;
  if (type == "u1" || type == "b1") return convert<std::uint8_t>(piece, count, into, array), true;
  if (type == "u2") return convert<std::uint16_t>(piece, count, into, array), true;
  if (type == "u4") return convert<std::uint32_t>(piece, count, into, array), true;
  if (type == "u8") return convert<std::uint64_t>(piece, count, into, array), true;
  return false;
}

bool convert_real(std::string_view type, const std::vector<char>& piece, Index count, double* into,
                  const ZippedArray& array) {
  if (type == "f4") return convert<float>(piece, count, into, array), true;
  if (type == "f8") return convert<double>(piece, count, into, array), true;
  return false;
}

/// "f8" of "<f8". @throw Error: numbers whose highest byte comes first
std::string type_of(const std::filesystem::path& path, const ArrayLiteral& array) {
  if (array.descr.size() >= 3 && (array.descr[0] == '<' || array.descr[0] == '|'))
    return array.descr.substr(1);
  throw Error(fmt::format("{}: byte {}: the type {} is not one of little-endian numbers", path.string(),
                          array.descr_at, tools::quoted(array.descr)));
}

/// Bytes of an element of a type like "f8", "S3" or, of four bytes a letter, "U3"; 0: that is no type.
std::size_t bytes_of(std::string_view type) {
  std::size_t bytes = 0;
  const auto [end, status] = std::from_chars(type.data() + 1, type.data() + type.size(), bytes);
  if (status != std::errc{} || end != type.data() + type.size() || bytes > piece_bytes) return 0;
  return type[0] == 'U' ? 4 * bytes : bytes;
}

}  // namespace

ZippedArray::ZippedArray(const ZipArchive& archive, const std::string& name)
    : member_(archive.open(name + ".npy")) {
  std::string start(std::min(member_.size(), bytes_before_literal), '\0');
  member_.read(start.data(), start.size());
  const LiteralPlace place = find_literal(path(), start, member_.size());
  std::string header(std::max(place.offset + place.length, start.size()), '\0');
  std::copy(start.begin(), start.end(), header.begin());
  member_.read(header.data() + start.size(), header.size() - start.size());
  const ArrayLiteral array = parse_array_literal(path(), header.substr(place.offset), place.offset);
  type_ = type_of(path(), array);
  shape_ = array.shape;
  const std::size_t number = bytes_of(type_);
  if (number == 0) wrong_type("numbers");
  number_bytes_ = number;
  const std::size_t there = member_.size() - header.size();
  for (const Index extent : shape_)
    if (__builtin_mul_overflow(size_, extent, &size_)) size_ = std::numeric_limits<Index>::max();
  if (there % number != 0 || there / number != static_cast<std::size_t>(size_))
    throw Error(fmt::format("{}: {} bytes of numbers are there, which is not what the shape {} of '{}' needs",
                            path().string(), there, shape_text(shape_), type_));
}

void ZippedArray::wrong_type(const char* wanted) const {
  throw Error(
      fmt::format("{}: holds elements of the type '{}', {} are wanted", path().string(), type_, wanted));
}

template <class Take>
void ZippedArray::for_numbers(Index count, const Take& take) {
  const auto most = static_cast<Index>(std::max<std::size_t>(piece_bytes / number_bytes_, 1));
  std::vector<char> piece(static_cast<std::size_t>(std::min(count, most)) * number_bytes_);
  for (Index done = 0; done < count;) {
    const Index now = std::min(most, count - done);
    member_.read(piece.data(), static_cast<std::size_t>(now) * number_bytes_);
    take(piece, done, now);
    done += now;
    position_ += now;
  }
}

void ZippedArray::read(Index* into, Index count) {
  for_numbers(count, [&](const std::vector<char>& piece, Index done, Index now) {
    if (!convert_whole(type_, piece, now, into + done, *this)) wrong_type("whole numbers");
  });
}

void ZippedArray::read(double* into, Index count) {
  for_numbers(count, [&](const std::vector<char>& piece, Index done, Index now) {
    if (!convert_real(type_, piece, now, into + done, *this) &&
        !convert_whole(type_, piece, now, into + done, *this))
      wrong_type("real or whole numbers");
  });
}

void ZippedArray::skip(Index count) {
  for_numbers(count, [](const std::vector<char>&, Index, Index) {});
}

std::string ZippedArray::read_text() {
  const bool wide = type_[0] == 'U';
  if ((!wide && type_[0] != 'S') || size_ != 1) wrong_type("one text alone");
  std::string letters;
  for_numbers(1, [&](const std::vector<char>& piece, Index, Index) {
    for (std::size_t i = 0; i < piece.size(); i += wide ? 4 : 1)
      if (piece[i] != '\0') letters += piece[i];
  });
  return letters;
}

Index require_line(const ZippedArray& array) {
  if (array.shape().size() != 1)
    throw Error(fmt::format("{}: its shape is {}; one dimension is wanted", array.path().string(),
                            shape_text(array.shape())));
  return array.size();
}

}  // namespace asterism::tools
