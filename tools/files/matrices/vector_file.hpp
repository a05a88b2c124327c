/// \file
/// Vectors, one or several, in files, NumPy's .npy or Matrix Market's arrays: right-hand sides, guesses, solutions.
#pragma once

#include <filesystem>
#include <vector>

#include "../../../runtime/ports.hpp"
#include "../output_file.hpp"

namespace asterism::tools {

/// `cols` vectors of `rows` numbers, row-major: number i of vector k is values[i * cols + k].
struct Vectors {
  Index rows = 0;
  Index cols = 0;
  std::vector<double> values;
};

/// Reads a .npy file, whose first bytes say so, of the shape (rows,) or (rows, cols), or a Matrix Market array of
/// rows x cols, whose numbers are real or integer. Numbers are finite.
/// @throw Error with file, line (or byte) and token
Vectors read_vectors(const std::filesystem::path& path);

/// A file that vectors will be written to. Made before a long computation, it finds early whatever is wrong with the
/// target; an old file stays as it is until write() is done.
class VectorFile {
 public:
  /// @param target  ends in .npy or .mtx @throw Error: neither, or it cannot be written
  explicit VectorFile(const std::filesystem::path& target);

  /// Writes the file, once. A .npy file is one of float64, and of a single vector has the shape (rows,); an .mtx file
  /// is an array of real numbers, as short as they can be without being others.
  /// @throw Error: the disk refuses; in an .mtx file a number that is not finite
  void write(const Vectors& vectors);

 private:
  std::filesystem::path target_;
  OutputFile file_;
};

}  // namespace asterism::tools
