/// \file
/// The steps of pipelined conjugate gradients (codelets/sparse/krylov/one_reduction/pipelined.hpp) on all blocks.
#pragma once

#include <vector>

#include "../../../codelets/sparse/krylov/one_reduction/pipelined.hpp"
#include "../../../runtime/tile.hpp"
#include "../linear_system.hpp"

namespace asterism::sparse {

template <class T, class V>
class ConjugateGradients;

/// What a solver that is pipelined has besides. Its hat is m, which it multiplies, its q is A m.
template <class T, class V>
class PipelinedSteps {
 public:
  using VectorOf = typename LinearSystem<T>::VectorOf;

  /// @param cg has to live as long, in its place
  explicit PipelinedSteps(ConjugateGradients<T, V>& cg);

  /// Submits what comes before the first iteration: w = A u, the sums; m. u is in hat, and other blocks have it.
  void start();
  /// Submits what comes before the product of every iteration: nothing, or all that drifts is formed anew.
  void begin_iteration();
  /// Submits (P2), (P3) and (P1).
  void advance();

  /// Which M is applied to next, where its tasks do that.
  [[nodiscard]] const Tile<T>& w(Index block) const { return tiles_[block].w; }
  /// (m, A m), which nobody looks at.
  [[nodiscard]] const Tile<double>& sums_of_product(Index block) const { return tiles_[block].mn; }
  /// As PipelinedSum has them, of all blocks, with which an iteration begins.
  [[nodiscard]] const TileList<double>& sums(Index iteration) const { return all_sums_[side_of(iteration)]; }

 private:
  /// Of a block. q: where tasks of M's own make m.
  struct Tiles {
    Tile<T> u, w, p, s, z, q;
    Tile<double> sums[2];  // of every other iteration
    Tile<double> mn;
  };

  [[nodiscard]] VectorOf all(Tile<T> Tiles::*vector) const;
  void renew();
  void add_up();
  void submit(Index iteration, int next);
  void place_in_hat(const VectorOf& v);
  void precondition_into_hat(const VectorOf& v);
  void take_from_hat(const VectorOf& to);

  ConjugateGradients<T, V>* cg_;
  std::vector<Tiles> tiles_;
  TileList<double> all_sums_[2];
};

}  // namespace asterism::sparse
