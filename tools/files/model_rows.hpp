/// \file
/// Model problems on rows of a grid that lie in main memory, zero on the border, without any task.
#pragma once

#include <vector>

#include "../../codelets/grid/laplacian.hpp"

namespace asterism::tools {

/// A model on a node-centred grid of one to three dimensions, of which some rows are held here: the first
/// axis counts them.
class ModelRows {
 public:
  /// @param lengths of the axes
  ModelRows(grid::Model model, std::uint64_t seed, const std::vector<Index>& shape,
            const std::vector<double>& lengths);

  /// The right-hand side in `rows` rows from `first_row` on.
  template <class T>
  void fill(Index first_row, Index rows, T* f) const;

  /// Sums of squares over those rows.
  struct Squares {
    sums::SquareSum error;  ///< of u less the known solution
    sums::SquareSum known;  ///< of the known solution
  };
  template <class T>
  [[nodiscard]] Squares compare(Index first_row, Index rows, const T* u) const;

 private:
  [[nodiscard]] In<double> axis(Index first_row, Index rows) const;

  grid::ModelProblem problem_;
  std::vector<double> axis_;  // the nodes of the first axis as (A2) has them, a row each
};

}  // namespace asterism::tools
