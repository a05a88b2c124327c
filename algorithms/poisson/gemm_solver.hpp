/// \file
/// The distributed fast Poisson solver whose transforms are matrix products, in two dimensions.
///
/// As solver.hpp it transforms the rows of f, solves one tridiagonal system for each of n modes, and
/// transforms back; but by products with the transform's matrix (codelets/poisson/gemm_transform.hpp), of which
/// each of P processing elements (workers) has the columns of n / P modes. With f in slabs of rows F_c, spread
/// over the ranks, and V_p the modes of element p in all rows,
///
///     V_p[rows of c] = F_c T_p          for every p and c: every rank needs all of f         (D1)
///     solve the tridiagonal systems of V_p, each of them whole                               (D2)
///     U_c = sum_p V_p[rows of c] T'_p   for every c, whose rank needs its rows of every V_p  (D3)
///
/// Over the network go F, to every other rank, and then V, to the ranks of its rows: of m x n unknowns,
/// evenly spread, each rank receives
///
///     (1 - 1/ranks) m n  +  (1 - 1/ranks) m n / ranks   numbers.                             (D4)
///
/// (With whole transforms of each rank's rows it would be twice the second term; but then no transform is
/// ready for (D2) before all of it has been exchanged, while F is there to be sent at once.)
///
/// The matrices are made where they are used. 4 m n^2 operations, shared by P workers, stand against the
/// m n log n of fast transforms: this is for small n, or for workers that multiply matrices faster than they
/// stream.
#pragma once

#include <vector>

#include "../../codelets/poisson/gemm_transform.hpp"
#include "../../runtime/report.hpp"
#include "mode_systems.hpp"
#include "slabbed_problem.hpp"

namespace asterism::poisson {

/// Makes the matrices once, solves any number of right-hand sides of one problem.
template <class T>
class GemmSolver : public SlabbedProblem<T> {
  using Base = SlabbedProblem<T>;

 public:
  using Base::first_plane, Base::slab_count;

  /// With several ranks: collective. @throw Error: see discretise; the problem is not two-dimensional; it
  /// does not fit in the memories, or is to be streamed.
  GemmSolver(Runtime& runtime, const Problem& problem, const Settings& settings = {});

  /// u over f: see Solver::solve.
  Report solve(Tiles<T>& f);

  /// Blocks that the modes are cut into: one for each processing element, but never more than there are
  /// modes.
  [[nodiscard]] Index block_count() const { return static_cast<Index>(blocks_.size()); }

 private:
  using Base::begin, Base::finish, Base::lift, Base::take_means, Base::solution_means, typename Base::Begun;
  using Base::require_slabs;
  using Base::runtime_, Base::grid_, Base::settings_, Base::layout_, Base::slabs_;

  /// A memory that the modes of slabs come back from: a GPU, or a rank's main memory.
  struct Place {
    int rank;
    int worker;  ///< the GPU's number among those of its rank; -1: any of the rank's workers
    std::vector<Tile<T>> inverse;  ///< T'_p of every block, where slabs are
  };

  /// Consecutive modes, of all problems of the batch, and the worker that they belong to.
  struct Block {
    Index first_mode, modes;
    int rank, worker;  ///< as in Place
    Tile<T> forward;   ///< T_p
    ModeTiles systems;
    Tile<double> response;  // on a periodic axis: of whole columns (codelets/poisson/recurrences.hpp)
  };

  [[nodiscard]] Hints hints_at(int worker) const;
  [[nodiscard]] Hints product_hints(int worker, Slab s, std::size_t p) const;
  [[nodiscard]] std::size_t place_of(Slab s) const;
  /// Whether a block of modes lies where slabs at this place can see it.
  [[nodiscard]] static bool is_at(const Place& place, const Block& b) {
    return place.rank == b.rank && place.worker == b.worker;
  }
  /// A block of modes of one problem.
  [[nodiscard]] Tile<T>& modes(Index problem, std::size_t p) {
    return modes_[static_cast<std::size_t>(problem) * blocks_.size() + p];
  }
  [[nodiscard]] Tile<T>& part(Slab s, std::size_t p) {
    return parts_[static_cast<std::size_t>(s.number) * blocks_.size() + p];
  }

  void make_places();
  void make_blocks();
  void make_modes();
  void transform(Index problem, Tiles<T>& f);
  void solve_modes(Index problem);
  void set_means(Index problem);
  void transform_back(Index problem, Tiles<T>& u);

  transforms::Transform kind_;
  double scale_;  // undoes the factors of the transforms there and back
  std::vector<Place> places_;
  std::vector<Block> blocks_;
  std::vector<Tile<T>> modes_;   // of every problem and block
  std::vector<Tile<T>> parts_;   // of those their rows, by slab and block, where these are apart
  std::vector<Tile<T>> means_;   // of every problem: u's rows' means, where they are found first
  PerRank<double> axis_, work_;  // all rows of the slowest axis; working memory
};

}  // namespace asterism::poisson
