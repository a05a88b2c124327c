/// \file
/// Grids whose sweeps are measured.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "../../../algorithms/common/partition.hpp"
#include "../../../codelets/grid/laplacian.hpp"
#include "../../../codelets/relaxation/sweeps.hpp"
#include "../measured_workers.hpp"

namespace asterism::tools {

template <class T, class Args>
using SweepCodelet = Codelet<Args, relaxation::SweepPorts<AsPorts, T>>;
template <class T>
using JacobiCodelet = SweepCodelet<T, relaxation::JacobiArgs>;
template <class T>
using ColourCodelet = SweepCodelet<T, relaxation::ColourArgs>;

/// A task's sweeps, each in a kernel of its own: what StarPU does between tasks does not count.
template <auto kernel, class T, class Args>
void one_by_one(Stream stream, const Args& args, relaxation::SweepPorts<AsPorts, T> ports) {
  Args one = args;
  one.sweeps = 1;
  for (Index sweep = 0; sweep < args.sweeps; ++sweep) {
    kernel(stream, one, ports);
    std::swap(ports.u, ports.other);
  }
}

/// A square grid of any numbers in stripes, one for each core or all on the first GPU; a task relaxes a
/// stripe as a whole.
template <class T>
class StripedGrid {
 public:
  /// @param halo what so many sweeps of a task consume
  StripedGrid(Runtime& runtime, const Measured& workers, Index n, relaxation::Arrangement arrangement,
              Index sweeps, Index halo, bool has_source)
      : runtime_(&runtime), rows_(equal_stripes(workers, n, sweeps, halo)), has_source_(has_source) {
    for (Index s = 0; s < rows_.count(); ++s) {
      stripes_.emplace_back().stripe = {.rows = rows_[s].size,
                                        .nodes = n,
                                        .halo = halo,
                                        .first_row = rows_[s].first,
                                        .first = !rows_.before(s),
                                        .last = !rows_.after(s),
                                        .arrangement = arrangement};
      make_tiles(s);
    }
    runtime.wait();
  }

  /// Seconds of a sweep: the best of several runs of tasks of `args.sweeps` sweeps.
  /// @param args all but its stripe
  template <class Codelet, class Args>
  double seconds_per_sweep(const Codelet& codelet, Args args, int repeats) {
    const auto run = [&](Index steps) {
      return seconds_of([&] {
        for (Index step = 0; step < steps; ++step) submit(codelet, args);
        runtime_->wait();
      });
    };
    constexpr double enough = 0.2;  // seconds: the clock and the start of the tasks do not count then
    run(1);                         // allocates, compiles, wakes the clocks
    const auto steps = static_cast<Index>(std::clamp(enough / run(2) * 2, 1.0, 2000.0));
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeats; ++i) best = std::min(best, run(steps));
    return best / static_cast<double>(steps * args.sweeps);
  }

 private:
  struct Piece {
    relaxation::Stripe stripe;
    Tile<T> u, other, g;
    Tile<T> top[2], bottom[2];
    Tile<T> frame;  // stands for the neighbour's rows at an end of the grid
  };

  static Partition equal_stripes(const Measured& workers, Index n, Index sweeps, Index halo) {
    const Index count = std::clamp<Index>(n / std::max<Index>(1, halo), 1, stripes_for(workers, n, sweeps));
    std::vector<Candidate> of_stripes;
    for (Index s = 0; s < count; ++s)
      of_stripes.push_back(
          {.where = workers.where, .worker = workers.where == Where::cuda ? 0 : static_cast<int>(s)});
    return cut_by_weight(n, of_stripes, std::vector<double>(of_stripes.size(), 1),
                         {.rounding = Rounding::down});
  }

  void make_tiles(Index s) {
    Piece& piece = stripes_[static_cast<std::size_t>(s)];
    const Index rows = piece.stripe.tile_rows(), cols = piece.stripe.tile_cols(), halo = piece.stripe.halo;
    piece.u = random_tile(s, rows, cols, 1);
    piece.other = random_tile(s, rows, cols, 2);
    piece.g = has_source_ ? random_tile(s, rows, cols, 3) : random_tile(s, 1, 1, 3);
    piece.frame = random_tile(s, halo, cols, 4);
    for (Tile<T>(*edges)[2] : {&piece.top, &piece.bottom})
      for (Tile<T>& edge : *edges) edge = random_tile(s, halo, cols, 5);
  }

  /// The random model's right-hand side with spacings of 1: numbers between -8 and 8, made where they are
  /// needed.
  Tile<T> random_tile(Index s, Index rows, Index cols, std::uint64_t seed) {
    const auto axis = [](Index n) {
      using enum grid::Condition;
      return grid::Axis{n, static_cast<double>(n + 1), dirichlet, dirichlet, grid::Centering::node};
    };
    Tile<double> axis_rows(*runtime_, rows, grid::axis_columns);
    {
      const HostView<double> view(axis_rows, HostView<double>::Access::write);
      for (Index i = 0; i < rows; ++i) view(i, 0) = view(i, 1) = view(i, 2) = 1, view(i, 3) = 0;
    }
    Tile<T> tile(*runtime_, rows, cols);
    grid::ModelProblem problem{grid::Model::random, seed, axis(rows), {}};
    problem.a.x = axis(cols);
    grid::codelets::model_rhs<T>({problem, 0}, axis_rows, tile, rows_.hints(s));
    return tile;
  }

  template <class Codelet, class Args>
  void submit(const Codelet& codelet, Args args) {
    const std::size_t last = stripes_.size() - 1;
    for (std::size_t s = 0; s <= last; ++s) {
      Piece& piece = stripes_[s];
      args.stripe = piece.stripe;
      codelet(args,
              {.u = piece.u,
               .other = piece.other,
               .g = piece.g,
               .above = s > 0 ? stripes_[s - 1].bottom[set_] : piece.frame,
               .below = s < last ? stripes_[s + 1].top[set_] : piece.frame,
               .top = piece.top[1 - set_],
               .bottom = piece.bottom[1 - set_]},
              rows_.hints(static_cast<Index>(s)));
      if (args.sweeps % 2 == 1) std::swap(piece.u, piece.other);
    }
    set_ = 1 - set_;
  }

  Runtime* runtime_;
  Partition rows_;
  bool has_source_;
  std::deque<Piece> stripes_;
  int set_ = 0;  // of top and bottom: which are of now
};

}  // namespace asterism::tools
