/// \file
/// Solves of Poisson problems, by any of the solvers, as their tests want them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "../support/skip.hpp"
#include "algorithms/poisson/solver.hpp"
#include "poisson_problems.hpp"

namespace asterism::test {

template <class T>
constexpr double eps = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

template <class T>
using Known = typename poisson::SlabbedProblem<T>::Known;

/// Puts a right-hand side into the tile of a slab.
template <class T>
using Source = std::function<void(const poisson::SlabbedProblem<T>& solver, Index slab, Tile<T>& f)>;

/// What a solve leaves: u of this rank's planes (all of them on one rank) and how good it is.
template <class T>
struct Solved {
  poisson::Check check;
  Report report;
  poisson::Layout layout;
  Index first_plane = 0;
  std::vector<T> u;
};

/// f by its value at (plane of the whole batch, column).
template <class T>
auto from_values(const std::function<double(Index, Index)>& value) {
  return [value](const poisson::SlabbedProblem<T>& solver, Index c, Tile<T>& f) {
    const HostView<T> view(f, HostView<T>::Access::write);
    for (Index i = 0; i < view.rows(); ++i)
      for (Index j = 0; j < view.cols(); ++j) view(i, j) = static_cast<T>(value(solver.first_plane(c) + i, j));
  };
}

/// ||a - b||_2 / ||b||_2, where a holds numbers of b from `first` on.
template <class A, class B>
double distance(const std::vector<A>& a, const std::vector<B>& b, Index first = 0) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double other = b[static_cast<std::size_t>(first) + i];
    difference += (static_cast<double>(a[i]) - other) * (static_cast<double>(a[i]) - other);
    norm += other * other;
  }
  return a.empty() ? 0 : std::sqrt(difference / norm);
}

/// Calls body(slab, its tile, its place in this rank's planes) for this rank's slabs.
template <class T, class Body>
void each_slab(const Runtime& runtime, const poisson::SlabbedProblem<T>& solver, Tiles<T>& slabs, Body body) {
  for (Index c = 0; c < slabs.count(); ++c)
    if (slabs[c].owner() == runtime.rank())
      body(c, slabs[c], (solver.first_plane(c) - solver.first_plane()) * solver.grid().columns());
}

/// Solves with right-hand sides from `source`, in memory that the runtime owns, as with a disk, or else in
/// the caller's.
template <class T, template <class> class Solver = poisson::Solver>
Solved<T> solve_from(Runtime& runtime, const poisson::Problem& problem, const poisson::Settings& settings,
                     const Source<T>& source, const std::optional<Known<T>>& known = {}) {
  Solver<T> solver(runtime, problem, settings);
  Solved<T> result;
  result.layout = solver.layout();
  result.first_plane = solver.first_plane();
  result.u.assign(static_cast<std::size_t>(solver.plane_count() * solver.grid().columns()),
                  std::numeric_limits<T>::quiet_NaN());
  const auto fill = [&](Index c, Tile<T>& f) { source(solver, c, f); };
  {
    Tiles<T> slabs = shape_is("disk") ? solver.own() : solver.borrow(result.u.data());
    each_slab(runtime, solver, slabs, [&](Index c, Tile<T>& slab, Index) { fill(c, slab); });
    result.report = solver.solve(slabs);
    result.check = solver.check(slabs, fill, known);
    if (shape_is("disk"))
      each_slab(runtime, solver, slabs, [&](Index, Tile<T>& slab, Index place) {
        const HostView<T> view(slab, HostView<T>::Access::read);
        for (Index i = 0; i < view.rows(); ++i)
          std::copy_n(view.row(i), view.cols(), result.u.data() + place + i * view.cols());
      });
  }
  return result;
}

template <class T, template <class> class Solver = poisson::Solver>
Solved<T> solve_model(Runtime& runtime, const poisson::Problem& problem, grid::Model model,
                      const poisson::Settings& settings = {}) {
  const Known<T> known{model, 7};
  return solve_from<T, Solver>(
      runtime, problem, settings,
      [&](const poisson::SlabbedProblem<T>& solver, Index c, Tile<T>& f) { solver.fill(c, f, known); },
      known);
}

/// Tiles that are not those of the solver's own cut: said what is given and what is wanted, before any task.
template <template <class> class Solver>
void check_tiles_of_another_cut() {
  Runtime runtime;
  if (runtime.ranks() > 2) return;  // two slabs have no more owners
  Solver<double> solver(runtime, {.shape = {16, 127}}, {.slab_planes = 8});
  const auto says = [](const auto& action, const char* message) {
    CHECK_THROWS_WITH_AS(action(), doctest::Contains(message), Error);
  };
  const auto owner = [&](Index number, Index) { return static_cast<int>(number * runtime.ranks() / 2); };
  const auto refused = [&](Tiles<double> f, const char* message) {
    says([&] { solver.solve(f); }, message);
    says([&] { solver.check(f, [](Index, Tile<double>&) {}); }, message);
  };
  refused(Tiles<double>(runtime, 8, 127, 4, 127, owner), "the tile of slab 0 has 4 x 127 elements");
  refused(Tiles<double>(runtime, 16, 126, 8, 126, owner), "8 x 127 of rank 0 are wanted");
  refused(Tiles<double>(runtime, 16, 127, 16, 127), "1 tiles are given, the problem is cut into 2 slabs");
  refused(Tiles<double>(), "0 tiles are given");
  Tiles<double> own = solver.own();
  const Tiles<double> elsewhere = std::move(own);
  says([&] { solver.solve(own); }, "0 tiles are given");
  if (runtime.ranks() > 1)
    refused(Tiles<double>(runtime, 16, 127, 8, 127),
            "the tile of slab 1 has 8 x 127 elements and belongs to rank 0");
  const Tile<double> tile(runtime, 7, 127);
  says([&] { solver.fill(0, tile, {}); },
       "the tile of slab 0 has 7 x 127 elements and belongs to rank 0; 8 x 127");
  says([&] { solver.fill(2, tile, {}); }, "there is no slab 2: the problem is cut into 2, counted from 0");
}

/// A solver plans once: many right-hand sides are solved alike, u is linear in f, and zero for zero.
template <template <class> class Solver>
void check_many_right_hand_sides(const poisson::Problem& problem) {
  Runtime runtime;
  Solver<double> solver(runtime, problem, {.slab_planes = 7});
  const auto solve = [&](double factor) {
    std::vector<double> u(static_cast<std::size_t>(solver.plane_count() * solver.grid().columns()));
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = factor * std::sin(static_cast<double>(i % 97));
    Tiles<double> slabs = solver.borrow(u.data());
    const Report report = solver.solve(slabs);
    CHECK(report.reason == Reason::solved);
    CHECK(report.seconds.at("solve") > 0);
    slabs = {};
    return u;
  };
  const std::vector<double> once = solve(1), thrice = solve(3), none = solve(0);
  for (std::size_t i = 0; i < once.size(); ++i) {
    CHECK(thrice[i] == doctest::Approx(3 * once[i]).epsilon(1e-12));
    CHECK(none[i] == 0);
  }
}

/// The same u, bit for bit but for the factor, and the same residual, for f and for 2^power f.
template <class T, template <class> class Solver>
void check_scaling(const std::vector<int>& powers) {
  Runtime runtime;
  for (const poisson::Ends& ends : {all_ends[0], all_ends[4]}) {
    const poisson::Problem problem{.shape = {31, 17}, .ends = {ends, all_ends[0]}};
    const auto solve = [&](int power) {
      return solve_from<T, Solver>(
          runtime, problem, {.slab_planes = 6},
          [&](const poisson::SlabbedProblem<T>& solver, Index c, Tile<T>& f) {
            const HostView<T> view(f, HostView<T>::Access::write);
            for (Index i = 0; i < view.rows(); ++i)
              for (Index j = 0; j < view.cols(); ++j)
                view(i, j) = static_cast<T>(
                    std::ldexp(std::sin(static_cast<double>(17 * (solver.first_plane(c) + i) + j)), power));
          });
    };
    const Solved<T> once = solve(0);
    CHECK(once.check.scaled_residual > 0);
    CHECK(once.check.reason == Reason::solved);
    for (const int power : powers) {
      CAPTURE(power);
      const Solved<T> scaled = solve(power);
      CHECK(scaled.check.scaled_residual == doctest::Approx(once.check.scaled_residual).epsilon(1e-14));
      CHECK(scaled.check.reason == Reason::solved);
      std::vector<T> expected = once.u;
      for (T& value : expected) value = std::ldexp(value, power);
      CHECK(scaled.u == expected);
    }
  }
}

/// A solution that somebody changed, or broke, is no longer called solved.
template <class T, template <class> class Solver>
void check_judgement() {
  Runtime runtime;
  Solver<T> solver(runtime, {.shape = {40, 30}}, {.slab_planes = 8});
  std::vector<T> u(static_cast<std::size_t>(solver.plane_count() * solver.grid().columns()));
  Tiles<T> slabs = solver.borrow(u.data());
  const auto fill = [&](Index c, Tile<T>& f) { solver.fill(c, f, {grid::Model::random, 3}); };
  each_slab(runtime, solver, slabs, [&](Index c, Tile<T>& slab, Index) { fill(c, slab); });
  solver.solve(slabs);
  CHECK(solver.check(slabs, fill).reason == Reason::solved);
  const auto changed = [&](T factor) {
    if (slabs[2].owner() == runtime.rank()) {
      const HostView<T> view(slabs[2], HostView<T>::Access::read_write);
      view(3, 7) *= factor;
    }
    return solver.check(slabs, fill);
  };
  const poisson::Check inaccurate = changed(static_cast<T>(1 + 1e6 * eps<T>));
  CHECK(inaccurate.reason == Reason::inaccurate);
  CHECK(inaccurate.scaled_residual > 64 * eps<T>);
  const poisson::Check broken = changed(-std::numeric_limits<T>::quiet_NaN());
  CHECK(broken.reason == Reason::not_finite);
  CHECK(std::isnan(broken.scaled_residual));
  CHECK(!std::signbit(broken.scaled_residual));  // prints as "nan"
}

}  // namespace asterism::test
