/// \file
/// Where `asterism linear -o` writes x.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "../../algorithms/common/array.hpp"
#include "../../runtime/runtime.hpp"
#include "../files/matrices/vector_file.hpp"
#include "../files/npy/npy.hpp"

namespace asterism::tools {

/// A Matrix Market array where the name ends in .mtx, which rank 0 writes all of, as its lines are of any length; else a
/// NumPy file, of which every rank writes its rows. Whatever is wrong with the target is found when it is made; an old
/// file stays as it is until write() is done.
class SolutionFile {
 public:
  /// @param target empty: nothing is written @param shape {n}, or {n, columns}
  /// Collective. @throw Error: as NpyWriter and VectorFile
  SolutionFile(const Runtime& runtime, const std::filesystem::path& target, std::vector<Index> shape,
               Precision precision);

  [[nodiscard]] bool is_wanted() const { return wanted_; }

  /// Writes all rows, once. @param x this rank's, row-major. Collective. @throw Error: the disk refuses
  template <class T>
  void write(Index first_row, const Array<T>& x);

 private:
  const Runtime& runtime_;
  std::vector<Index> shape_;
  bool wanted_ = false;
  std::optional<NpyWriter> npy_;
  std::optional<VectorFile> text_;  // of rank 0
};

}  // namespace asterism::tools
