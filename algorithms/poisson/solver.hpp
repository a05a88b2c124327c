/// \file
/// Fast Poisson solver in 2D and 3D, streaming in two passes; after [Czapinski 2014], chapters 9 to 11.
///
/// Solves (P1), problem.hpp, by second-order differences (codelets/grid/laplacian.hpp (L1)). The real transform of every
/// plane along x (and y) that belongs to its conditions leaves one tridiagonal system across the planes for every mode;
/// these are solved, and transformed back. The grid is cut into slabs of consecutive planes, the tiles of the task graph;
/// the tridiagonal systems are cut with it (codelets/poisson/tridiagonal.hpp), so that every slab is needed only twice:
/// once to see what it shows to the others, once to be solved. Where the grid does not fit in a GPU, it crosses the link
/// twice upwards and once downwards, whatever the GPU's memory; between ranks only what the slabs show crosses.
///
/// In two dimensions a plane is a row of the array.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "../../codelets/poisson/slabs.hpp"
#include "slabbed_problem.hpp"

namespace asterism::poisson {

/// Plans once, solves any number of right-hand sides of one problem.
template <class T>
class Solver : public SlabbedProblem<T> {
  using Base = SlabbedProblem<T>;

 public:
  using Base::first_plane, Base::slab_count;

  /// With several ranks: collective. @throw Error: see discretise and choose_layout.
  Solver(Runtime& runtime, const Problem& problem, const Settings& settings = {});

  /// u over f. With several ranks: collective. Where constants solve the homogeneous problem (no Dirichlet end, lambda = 0),
  /// the solution whose mean vanishes.
  /// @throw Error: tiles that are not cut as those of borrow() and own(); the mean of f, with the given derivatives, does
  /// not vanish to rounding there (see Mean), and f is as it was but for the given values lifted into it. TaskFailure, Stall.
  Report solve(Tiles<T>& f);

 private:
  using typename Base::Slab, typename Base::ModeTiles;
  using Base::slab, Base::slab_number, Base::heights, Base::owner, Base::hints, Base::per_slab, Base::mine;
  using Base::begin, Base::finish, Base::mode_eigenvalues, Base::lift, Base::solution_means, typename Base::Begun;
  using Base::require_slabs;
  using Base::runtime_, Base::grid_, Base::settings_, Base::layout_, Base::axis_, Base::front_, Base::back_;

  /// Whether slabs have anything to tell each other, or themselves.
  [[nodiscard]] bool has_interface() const { return layout_.slabs > 1 || grid_.slow.periodic(); }
  [[nodiscard]] Hints interface_hints(Slab s) const;
  [[nodiscard]] const ModeTiles& modes(Slab s) const { return modes_[static_cast<std::size_t>(owner(s.number))]; }
  [[nodiscard]] std::tuple<int, Index> kind_of(Slab s) const;
  [[nodiscard]] const Tile<double>& response(Slab s) const { return responses_.at(kind_of(s)); }

  /// One for every slab, where the interface systems are worked on.
  [[nodiscard]] Tiles<double> interface_tiles(Index rows) const;
  void make_tables();
  void make_responses();
  void set_means(const Tiles<T>& f);

  kernels::SlabArgs args_;
  bool equally_spaced_ = true;
  std::vector<ModeTiles> modes_;    // per rank,
  std::vector<Tile<double>> work_;  // and working memory
  // Per slab: the interface systems; means of u's planes, where they are found first.
  Tiles<double> shown_, prefix_, first_, before_, means_;
  std::map<std::tuple<int, Index>, Tile<double>> responses_;  // by rank and kind of slab
  Tiles<double> before_start_, after_end_;                    // per problem: beyond the ends of a periodic axis
};

/// Solves with f in the caller's memory, an array of problem.shape (the batch before it), u over f. One rank.
template <class T>
Report solve(Runtime& runtime, const Problem& problem, T* f, const Settings& settings = {});

}  // namespace asterism::poisson
