/// \file
/// NumPy's .npy files: float32 or float64, little-endian, C order, versions 1, 2 and 3 of the format.
///
/// Rows are read into and written from the caller's own (page-locked) memory by several threads, with no copy
/// between; only where rows are short and strided, or the precision changes, do they pass through a small
/// buffer.
#pragma once

#include <filesystem>
#include <vector>

#include "../output_file.hpp"
#include "header.hpp"

namespace asterism::tools {

/// Whether numbers that are read may be NaN or infinite.
enum class Values { any, finite };

/// Reads rows of a .npy file, in any order, from any thread.
class NpyReader {
 public:
  /// Opens the file and checks its header, and its size against its shape.
  /// \param dimensions  how many axes the caller wants.
  /// \param threads     how many read at a time; 0: as many as there are cores, at most 8.
  /// @throw Error that names the file, the byte and what stands there.
  explicit NpyReader(std::filesystem::path path, Dimensions dimensions = 2, int threads = 0);

  /// From now on the first `leading` axes count rows: at first only one does.
  void set_leading(std::size_t leading) { header_.leading = leading; }

  [[nodiscard]] const NpyHeader& header() const { return header_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Reads `count` rows from `first_row` on; row i goes to into + i * ld. The file's precision need not be
  /// that of T. With Values::finite the numbers are checked while they are still in the cache.
  /// @throw Error when the file cannot be read any more, or at the first number that is not finite.
  template <class T>
  void read_rows(Index first_row, Index count, T* into, Index ld, Values values = Values::any) const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  NpyHeader header_;
  int threads_;
};

/// Writes the rows of a .npy file, in any order, from any thread. The file is an OutputFile: an old one of
/// that name stays as it was until commit(), and a writer that ends without it leaves nothing behind.
class NpyWriter {
 public:
  /// Creates the file and reserves its room on the disk, so that whatever can be wrong with the target is
  /// found before there is something to write.
  /// @throw Error when the target is a folder, lies in none, may not be written, or the disk is too small.
  NpyWriter(const std::filesystem::path& target, Precision precision, std::vector<Index> shape,
            int threads = 0);

  /// Joins a file that another process created, to write some of its rows; `temporary` is the creator's
  /// temporary(). This writer has to end before the creator commits.
  static NpyWriter attach(const std::filesystem::path& temporary, int threads = 0);

  /// As NpyReader::set_leading.
  void set_leading(std::size_t leading) { header_.leading = leading; }

  [[nodiscard]] const NpyHeader& header() const { return header_; }
  [[nodiscard]] const std::filesystem::path& temporary() const { return file_.temporary(); }

  /// Writes `count` rows from `first_row` on; row i comes from from + i * ld.
  /// @throw Error when the disk refuses, or T is not the file's precision.
  template <class T>
  void write_rows(Index first_row, Index count, const T* from, Index ld) const;

  void commit() { file_.commit(); }

 private:
  NpyWriter(OutputFile file, NpyHeader header, int threads);

  OutputFile file_;
  NpyHeader header_;
  int threads_;
};

}  // namespace asterism::tools
