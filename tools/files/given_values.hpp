/// \file
/// Values given on the sides of a rectangle or box, as the command line and its files state them.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "npy/npy.hpp"

namespace asterism::tools {

/// What is given at one end of an axis: a number, or, where `file` is not empty, the array there.
struct GivenValue {
  double number = 0;
  std::filesystem::path file = {};
};

struct GivenValues {
  GivenValue lower, upper;
};

/// "A,B" in its halves; what has no comma stands for both.
std::pair<std::string, std::string> lower_and_upper(const std::string& text);

/// "1.5", "side.npy" for both ends, or "LOWER,UPPER". @throw Error
GivenValues parse_values(const std::string& text);

/// All numbers of a file, which are finite. @throw Error
std::vector<double> read_array(const NpyReader& reader);

/// The array of a file of given values at an end of axis `a` of a grid; empty where there is only a number.
/// @param shape the grid's extents, two or three, the slowest first; the array has that shape without axis
/// `a`
/// @throw Error: a file that cannot be read, another shape
std::vector<double> read_side(const GivenValue& given, const std::vector<Index>& shape, std::size_t a);

/// "z", "y" or "x": axis `a` of a grid of so many dimensions, the slowest first.
const char* axis_name(std::size_t dimensions, std::size_t a);

}  // namespace asterism::tools
