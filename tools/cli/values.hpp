/// \file
/// How the values of options are written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../runtime/ports.hpp"

namespace asterism::tools {

/// "4G", "512M", "1.5GiB", "123" in bytes; K, M, G, T are powers of 1024. @throw Error
std::size_t parse_size(const std::string& text);

/// "4095x1023" or "255x511x127": the extents of a grid, slowest axis first: rows x columns, planes x rows x
/// columns.
/// @param least axes; 1: "4095" is one, too
/// @throw Error
std::vector<Index> parse_grid(const std::string& text, std::size_t least = 2);

/// "1x2.5" or "1x1x2.5": the lengths of a rectangle or box along the same axes. @throw Error
std::vector<double> parse_lengths(const std::string& text, std::size_t least = 2);

/// A number that is finite. @throw Error
double parse_real(const std::string& text);

/// A number between 0 and 1, both excluded. @param as the end of the message: "as relative residuals do" @throw Error
double parse_fraction(const std::string& text, const char* as);
/// A relative residual to end at. @throw Error: as parse_fraction
double parse_tolerance(const std::string& text);

/// A whole number that is at least `least`: an int, an Index or an unsigned 64-bit number. @throw Error
template <class T>
T parse_whole(const std::string& text, T least = 0);

/// How many, one at least. @throw Error
template <class T = Index>
T parse_count(const std::string& text) {
  return parse_whole<T>(text, 1);
}

/// "7" or "1,2,4": one at least of each. @throw Error
std::vector<Index> parse_counts(const std::string& text);

}  // namespace asterism::tools
