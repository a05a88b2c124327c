/// \file
/// What a .npy file says before its numbers.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "../../../runtime/ports.hpp"
#include "../precision.hpp"

namespace asterism::tools {

/// What stands before the numbers.
struct NpyHeader {
  Precision precision = Precision::f64;
  std::vector<Index> shape;     ///< extents, all at least 1; the last one is contiguous
  std::size_t data_offset = 0;  ///< bytes before the first number
  std::size_t leading = 1;      ///< so many axes, from the first on, count rows; the others make up a row

  /// The product of the leading extents.
  [[nodiscard]] Index rows() const;
  /// Numbers per row: the product of the other extents.
  [[nodiscard]] Index cols() const;
  [[nodiscard]] std::size_t file_bytes() const;
};

/// "(3, 5)": as Python writes it.
std::string shape_text(const std::vector<Index>& shape);

/// How many axes an array may have.
struct Dimensions {
  std::size_t least, most;
  // NOLINTNEXTLINE(google-explicit-constructor): a number is what is meant
  constexpr Dimensions(std::size_t exactly) : least(exactly), most(exactly) {}
  constexpr Dimensions(std::size_t at_least, std::size_t at_most) : least(at_least), most(at_most) {}
};

constexpr Dimensions any_dimensions{1, std::numeric_limits<std::size_t>::max()};

/// Checks everything that a file says before its numbers, and its size against that. @throw Error
NpyHeader read_header(int file, const std::filesystem::path& path);

/// What NumPy writes before the numbers: version 1, padded so that the numbers begin at a multiple of 64
/// bytes.
std::string header_text(const NpyHeader& header);

/// What the literal of any array says, and at which bytes of the file.
struct ArrayLiteral {
  std::string descr;         ///< the type of its elements: "<f8"
  std::vector<Index> shape;  ///< empty: a single number; extents may be 0
  std::size_t descr_at = 0, shape_at = 0;
  std::vector<std::size_t> extents_at;
};

/// The literal of an array of any type and shape, in C order. Parameters and errors as of parse_header.
ArrayLiteral parse_array_literal(const std::filesystem::path& path, std::string_view literal,
                                 std::size_t first_byte);

/// Where the literal lies in a file.
struct LiteralPlace {
  std::size_t offset, length;
};

constexpr std::size_t bytes_before_literal = 12;  ///< at most

/// @param start  the first bytes of the file: bytes_before_literal, or all
/// @param size   of the file
/// @throw Error: this is no .npy file
LiteralPlace find_literal(const std::filesystem::path& path, std::string_view start, std::size_t size);

/// Precision and shape of {'descr': '<f8', 'fortran_order': False, 'shape': (3, 5), }.
/// @param first_byte  where `literal` begins in the file
/// @throw Error that names the byte and what stands there
NpyHeader parse_header(const std::filesystem::path& path, std::string_view literal, std::size_t first_byte);

/// Bytes of a file for people: what cannot be printed becomes \xNN.
std::string quoted(std::string_view bytes);

}  // namespace asterism::tools
