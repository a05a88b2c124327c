/// \file
/// Preconditioned conjugate gradients, [Czapinski 2014] algorithm 6.2, for symmetric positive definite matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../../codelets/sparse/krylov/conjugate_gradients.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "../common/convergence.hpp"
#include "linear_solver.hpp"
#include "linear_system.hpp"
#include "preconditioners/applied_preconditioner.hpp"

namespace asterism::sparse {

/// Sets up once, solves any number of right-hand sides. A matrix that is a single block is iterated on by one task
/// for many iterations; one of several blocks by three tasks for each block and iteration, and those of the
/// preconditioner.
/// @tparam V the type of the preconditioner's numbers: T, or float in an iteration in double
template <class T, class V = T>
class ConjugateGradients {
 public:
  /// @param mine this rank's rows: whole grains (rows_of_rank), in the order of ranks; taken to be symmetric
  /// With several ranks: collective. @throw Error: a matrix that is not square, entries outside of it, ranks whose
  /// rows do not follow each other; settings that make no sense; as prepare()
  ConjugateGradients(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings);
  ConjugateGradients(const ConjugateGradients&) = delete;  // its parts know where it is
  ConjugateGradients& operator=(const ConjugateGradients&) = delete;

  [[nodiscard]] Index first_row() const { return range_.first; }
  [[nodiscard]] Index row_count() const { return range_.count(); }
  [[nodiscard]] const LinearFacts& facts() const { return facts_; }

  /// Other values in the same places, with LinearSettings::values refreshed: rows keep their colours and numbers,
  /// factors their fill. All that is solved after it has the same bits as with a solver that is set up anew.
  /// With several ranks: collective. @throw Error: entries in other places; values that were said to be fixed; a
  /// factorisation that broke down when all was set up; as prepare()
  void refresh(const Csr<T>& mine);

  /// @param b, x this rank's rows; x is the first guess, then the result
  /// @return reason: solved, iteration_limit, stagnation, divergence, not_finite; indefinite: the matrix, or the
  /// preconditioner, is not positive definite; zero_pivot: there is no preconditioner, as its factorisation broke down
  /// (facts().preconditioner.breakdown), and x is as it was; inaccurate: the true residual misses the tolerance after
  /// all. With several ranks: collective. @throw Error: b or x is not finite; as iterate()
  LinearReport solve(const T* b, T* x);

 private:
  /// The tiles of a block.
  struct BlockTiles {
    Tile<T> x, r, b, p, q;
    Tile<double> pq, rr, rz;
    Tile<CgState> state;
  };

  void make_tiles();
  void describe_matrix();
  [[nodiscard]] Index count() const { return blocks_.count(); }
  [[nodiscard]] CgArgs args(Index block) const;

  /// The largest magnitude in b, on all ranks. @throw Error: b or x is not finite
  [[nodiscard]] double largest_of(const T* b, const T* x) const;
  CgState iterate_from_x(LinearReport& report);
  void submit_true_residual();
  [[nodiscard]] double true_residual() const;
  [[nodiscard]] bool has_drifted(const CgState& last, LinearReport& report) const;
  void begin();
  void iterate_one_block(Index iterations);
  void iterate_blocks(Index iterations);
  void multiply();
  void descend();
  void precondition();
  void scale_by_diagonal();
  void turn(Index iteration);
  void submit_look(Index number);
  [[nodiscard]] std::optional<CgState> look(Index number) const;
  [[nodiscard]] Norms norms(const CgState& state, Index number) const;

  Runtime* runtime_;
  LinearSettings settings_;
  Partition blocks_;
  Partition::Range range_;
  LinearFacts facts_;
  LinearSystem<T> system_;
  AppliedPreconditioner<T, V> preconditioner_;
  std::shared_ptr<TriangularPlan> plan_;
  std::uint64_t pattern_ = 0;  // its fingerprint
  std::vector<BlockTiles> tiles_;
  TileList<double> all_pq_, all_rr_, all_rz_;
  std::vector<std::vector<Tile<CgState>>> looks_;  // one per rank, in turns
  std::vector<Index> look_iterations_;             // after which they were submitted
  double norm_b_ = 0, scale_ = 1;
  Index iteration_ = 0;
};

}  // namespace asterism::sparse
