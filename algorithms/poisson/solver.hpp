/// \file
/// Fast Poisson solver in 2D and 3D, streaming in two passes; after [Czapinski 2014], chapters 9 to 11.
///
/// Solves (P1), problem.hpp, by second-order differences (codelets/grid/laplacian.hpp (L1)). The real transform of every
/// plane along x (and y) that belongs to its conditions leaves one tridiagonal system across the planes for every mode;
/// these are solved, and transformed back. The grid is cut into slabs of consecutive planes, the tiles of the task graph;
/// the tridiagonal systems are cut with it (codelets/poisson/recurrences.hpp), so that every slab is needed only twice:
/// once to see what it shows to the others, once to be solved. Where the grid does not fit in a GPU, it crosses the link
/// twice upwards and once downwards, whatever the GPU's memory; between ranks only what the slabs show crosses.
///
/// In two dimensions a plane is a row of the array.
#pragma once

#include <vector>

#include "../../codelets/poisson/slabs.hpp"
#include "interface_systems.hpp"
#include "mode_systems.hpp"
#include "slabs/stream.hpp"
#include "slabbed_problem.hpp"

namespace asterism::poisson {

/// Plans once, solves any number of right-hand sides of one problem.
template <class T>
class Solver : public SlabbedProblem<T> {
  using Base = SlabbedProblem<T>;

 public:
  using Base::first_plane, Base::slab_count;

  /// With several ranks: collective. @throw Error: see discretise, choose_layout and deal_slabs. @throw TaskFailure,
  /// Stall: as measure_speeds.
  Solver(Runtime& runtime, const Problem& problem, const Settings& settings = {});

  /// u over f. With several ranks: collective. Where constants solve the homogeneous problem (no Dirichlet end, lambda = 0),
  /// the solution whose mean vanishes.
  /// @throw Error: tiles that are not cut as those of borrow() and own(); the mean of f, with the given derivatives, does
  /// not vanish to rounding there (see Mean), and f is as it was but for the given values lifted into it. TaskFailure, Stall.
  Report solve(Tiles<T>& f);

 private:
  using Base::begin, Base::finish, Base::lift, Base::take_means, Base::solution_means, typename Base::Begun;
  using Base::look_at_mean, Base::mean_system, Base::require_slabs;
  using Base::runtime_, Base::grid_, Base::settings_, Base::layout_, Base::slabs_, Base::axis_;

  /// Pass 1 and pass 2 of one slab.
  void transform_and_reduce(Slab s, const Tile<T>& f);
  void solve_and_transform_back(Slab s, const Tile<T>& f);
  void set_means(const std::vector<Slab>& slabs, const double* of_planes);
  /// Where the system of mode 0 is solved: nowhere alone, by the task that solves the rest, or before all tasks of the passes.
  enum class Means { nowhere, in_task, first };
  [[nodiscard]] Means means() const {
    if (!args_.sets_mean) return Means::nowhere;
    return grid_.batch == 1 && !interface_.exist() && runtime_->ranks() == 1 ? Means::in_task : Means::first;
  }

  SlabArgs args_;
  std::vector<ModeTiles> modes_;  // per rank
  SlabStream<T> stream_;
  Tiles<double> means_;  // per slab: those of u's planes, where they are found first
  InterfaceSystems interface_;
};

/// Solves with f in the caller's memory, an array of problem.shape (the batch before it), u over f. One rank.
template <class T>
Report solve(Runtime& runtime, const Problem& problem, T* f, const Settings& settings = {});

}  // namespace asterism::poisson
