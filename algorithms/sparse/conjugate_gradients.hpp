/// \file
/// Preconditioned conjugate gradients, [Czapinski 2014] algorithm 6.2, for symmetric positive definite matrices.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "../../codelets/sparse/krylov/conjugate_gradients.hpp"
#include "../../codelets/sparse/krylov/several/gpus.hpp"
#include "krylov/looks.hpp"
#include "krylov/pipelined_steps.hpp"
#include "krylov/solver.hpp"

namespace asterism::sparse {

/// A matrix that is a single block is iterated on by one task for many iterations, and so is one whose blocks are all on
/// GPUs of a rank that see each other's memory, where M is 1 or a diagonal; another one of several blocks by three tasks
/// for each block and iteration, or two with one reduction, and those of the preconditioner. solve() also ends with
/// Reason::indefinite: the matrix, or the preconditioner, is not positive definite.
template <class T, class V = T>
class ConjugateGradients : public KrylovSolver<T, V> {
 public:
  /// @param mine taken to be symmetric @param outer likewise, and positive definite
  /// @throw Error: as KrylovSolver. With several ranks: collective.
  ConjugateGradients(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings,
                     typename KrylovSolver<T, V>::Outer outer = {});
  /// Of an operator, symmetric and positive definite as its preconditioner is; products and preconditioner are its own
  /// tasks, all else is the same. @throw Error: as KrylovSolver. With several ranks: collective.
  ConjugateGradients(Runtime& runtime, LinearOperator<T> a, const LinearSettings& settings);

 private:
  using Base = KrylovSolver<T, V>;
  using Base::all_rr, Base::blocks, Base::count, Base::exchange, Base::has_operator, Base::is_ready,
      Base::limit, Base::preconditioner, Base::system, Base::tiles;
  using typename Base::BlockTiles;
  using typename Base::Seen;

  friend class PipelinedSteps<T, V>;

  /// With one reduction, of a block; hat is u, CgTiles::q is w.
  struct OneReductionTiles {
    Tile<T> p, s;
    Tile<double> next_rr, next_rz;  // of every other iteration
  };
  /// The tiles of a block; p is BlockTiles::v.
  struct CgTiles {
    Tile<T> q;
    Tile<double> pq, rz;
    Tile<CgState> state;
    OneReductionTiles one;
  };

  explicit ConjugateGradients(const typename Base::Beside& beside);

  void begin(Index attempt) override;
  void iterate_all(const typename Base::Solvers& going) override;
  void iterate(Index iterations) override;
  [[nodiscard]] std::unique_ptr<Base> another(Index number) const override;
  [[nodiscard]] bool shares_matrix() const override { return true; }
  [[nodiscard]] bool gains_on_gpus() const override;
  void iterate_several(const typename Base::Solvers& all, const std::vector<Index>& counts) override;
  void submit_look(Index number) override;
  [[nodiscard]] std::optional<Seen> look(Index number) override;
  [[nodiscard]] std::optional<SpectrumEstimate> spectrum() const override;

  void make_tiles();
  [[nodiscard]] CgArgs args(Index block) const;
  void iterate_one_block(Index iterations);
  void add_iterate(Index block, std::optional<int> home, IteratesPorts<AsTiles, T>& all) const;
  [[nodiscard]] bool is_one_on_gpu() const;
  [[nodiscard]] bool can_be_on_gpus() const;
  [[nodiscard]] bool blocks_are_alike() const;
  [[nodiscard]] CgOnGpusPorts<AsTiles, T, V> ports_on_gpus();
  void iterate_on_gpus(Index iterations);
  [[nodiscard]] const Tile<T>& direction(Index block) const;
  void multiply_all(const std::vector<ConjugateGradients*>& going) const;
  void multiply();
  void multiply_into(const typename Base::VectorOf& product);
  void multiply_by_operator();
  void take_step();
  void descend();
  void turn_to_next();
  void apply_preconditioner();
  void scale_by_diagonal(const typename Base::VectorOf& v,
                         const std::function<const Tile<double>&(Index)>& sums);
  void turn(Index iteration);
  [[nodiscard]] bool can_have_one_reduction() const;
  [[nodiscard]] bool is_pipelined() const;
  [[nodiscard]] bool has_one_reduction() const;
  void make_tiles_of_form();
  void choose_reductions();
  [[nodiscard]] Reductions fastest_reductions();
  [[nodiscard]] const Tile<double>& sums_of_product(Index block) const;
  void advance();
  void dot_with_z(Index iteration);
  [[nodiscard]] const Tile<double>& rr(Index block, Index iteration);
  [[nodiscard]] const Tile<double>& rz(Index block, Index iteration);
  [[nodiscard]] const TileList<double>& all_rr_of_iteration() const;
  [[nodiscard]] const TileList<double>& all_rz_of_iteration() const;

  std::vector<CgTiles> cg_;
  TileList<double> all_pq_, all_rz_;
  TileList<double> all_next_rr_, all_next_rz_;  // of every other iteration, with one reduction
  Reductions reductions_ = Reductions::two;
  std::optional<PipelinedSteps<T, V>> piped_;
  std::vector<Tile<ToldSum>> told_;  // of each block, where one task works on all of them
  Index on_gpus_ = 0;                // iterations, with these
  Tile<T> pipelined_;                // of a matrix that is a single block on a GPU
  Index attempt_ = 0;
  KrylovLooks<CgState> looks_;
  CgState last_ = {};
  Index iteration_ = 0;
};

}  // namespace asterism::sparse
