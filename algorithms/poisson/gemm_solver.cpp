#include "gemm_solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "../../codelets/poisson/slabs.hpp"
#include "../../runtime/collectives.hpp"
#include "../common/set.hpp"

namespace asterism::poisson {
namespace {

Index workers(const Machine& machine) {
  const int gpus = machine.count(WorkerKind::cuda);
  return gpus > 0 ? gpus : machine.count(WorkerKind::cpu);
}

/// One block of modes for each element, or none for some where there are fewer modes; more where their tiles
/// would have more elements than tiles may have.
Index count_blocks(const Grid& grid, Index elements) {
  const Index n = grid.a.x.n, longest = std::max(n, grid.planes);
  constexpr Index most = std::numeric_limits<std::uint32_t>::max();
  Index count = std::min(n, elements);
  while (count < n && parts(n, count) > most / longest) count = std::min(n, count + elements);
  return count;
}

/// Equal blocks of modes, dealt to the elements.
Partition partition_of_modes(Index modes, Index count, const std::vector<Candidate>& elements) {
  const std::vector<double> equal(static_cast<std::size_t>(count), 1);
  const std::vector<Index> bounds = bounds_by_weight(modes, equal, {.rounding = Rounding::down});
  std::vector<Index> sizes;
  for (std::size_t p = 0; p + 1 < bounds.size(); ++p) sizes.push_back(bounds[p + 1] - bounds[p]);
  return deal_parts(sizes, elements, std::vector<double>(elements.size(), 1), Dealing::blocks);
}

/// @throw Error when what a solve works on is not in the memories at once.
template <class T>
void require_room(const Machine& machine, const Grid& grid, Index elements) {
  const bool on_gpus = machine.count(WorkerKind::cuda) > 0;
  const auto n = static_cast<double>(grid.a.x.n), rows = static_cast<double>(grid.total_planes());
  // The modes of a GPU, or of all cores of the rank.
  const double here = on_gpus ? 1 : static_cast<double>(workers(machine));
  const double modes = std::min(n, std::ceil(n / static_cast<double>(elements)) * here);
  // f of all ranks; modes, and as many that come of others or go there; their columns of the one matrix; the
  // other.
  const double bytes = sizeof(T) * (rows * n + 2 * rows * modes + n * modes + n * n);
  const auto room = static_cast<double>(machine.capacity(on_gpus ? MemoryKind::gpu : MemoryKind::main));
  if (bytes > room)
    throw Error(
        fmt::format(
            "--method gemm keeps grid, modes and the transform's matrices in {}: for {} x {} unknowns they "
            "take {}, there are {}; use --method fft, or allow more memory",
            on_gpus ? "each GPU's memory" : "main memory", grid.total_planes(), grid.a.x.n,
            human_bytes(bytes), human_bytes(room)),
        Blame::machine);
}

template <class T>
Layout choose_gemm_layout(const Runtime& runtime, const Machine& machine, const Problem& problem,
                          const Grid& grid, const Settings& settings) {
  if (problem.shape.size() != 2)
    throw Error(fmt::format("--method gemm solves in two dimensions, the grid is {}: use --method fft",
                            to_string(problem.shape)));
  if (settings.mode == Mode::streaming)
    throw Error("--method gemm needs all of the grid at once and cannot stream it: use --method fft");
  if (settings.slab_planes < 0)
    throw Error(fmt::format("slabs of {} rows: a slab needs at least 1", settings.slab_planes));
  const std::vector<Index> workers_of_ranks = gather(runtime, workers(machine));
  const Index elements = std::accumulate(workers_of_ranks.begin(), workers_of_ranks.end(), Index{0});
  require_room<T>(machine, grid, elements);

  // A few slabs for every worker, so that products and exchange overlap, but not so small that products are
  // slow.
  constexpr Index slabs_each = 4, fewest_rows = 32;
  const auto share = [&](Index slabs) { return parts(grid.total_planes(), slabs); };
  const Index wanted = std::max(share(slabs_each * elements), fewest_rows);
  Layout layout;
  layout.mode = Mode::incore;
  layout.where = machine.count(WorkerKind::cuda) > 0 ? Where::cuda : Where::cpu;
  layout.slab_planes =
      std::min({settings.slab_planes > 0 ? settings.slab_planes : wanted, share(machine.ranks), grid.planes});
  layout.slabs = parts(grid.planes, layout.slab_planes);
  layout.planes_at_once = layout.slab_planes;
  layout.slabs_in_flight = 2 * workers(machine);
  layout.lanes = layout.where == Where::cuda ? workers(machine) : 1;
  return layout;
}

}  // namespace

template <class T>
GemmSolver<T>::GemmSolver(Runtime& runtime, const Problem& problem, const Settings& settings)
    : Base(runtime, problem, settings,
           [&](const Machine& machine, const RankedMachine& /*all*/, const Grid& grid,
               const Settings& agreed) {
             return choose_gemm_layout<T>(runtime, machine, problem, grid, agreed);
           }),
      kind_(grid::transform_to_modes(grid_.a.x)),
      scale_(1 / round_trip(kind_, grid_.a.x.n)) {
  if constexpr (built_with_cuda)
    if (layout_.where == Where::cuda) runtime.on_each_worker(WorkerKind::cuda, [] { cuda::plan_multiply(); });
  make_blocks();
  make_places();
  make_modes();
  axis_ = {runtime, grid_.planes, grid::axis_columns};
  for (const Tile<double>& tile : axis_) set_axis_rows(runtime, tile, grid_, 0);
  const Index most_modes = parts(grid_.a.x.n, block_count());
  work_ = {runtime, 1, codelets::columns_scratch(layout_.where, grid_.planes, most_modes, grid_.interface())};
  if (grid_.slow.periodic())
    for (Block& b : blocks_)
      codelets::respond({.axis = axis_[b.rank], .mu = b.systems.mu, .response = b.response},
                        hints_at(b.worker));
  runtime.wait();
}

template <class T>
Hints GemmSolver<T>::hints_at(int worker) const {
  return {.where = layout_.where, .worker = worker};
}

template <class T>
Hints GemmSolver<T>::product_hints(int worker, Slab s, std::size_t p) const {
  Hints hints = hints_at(worker);
  hints.flops = 2 * static_cast<double>(slabs_.planes_of(s.place)) * static_cast<double>(grid_.a.x.n) *
                static_cast<double>(blocks_[p].modes);
  hints.label = fmt::format("slab {}, modes {}", s.number, p);
  return hints;
}

/// Every worker gets as many modes, give or take one.
template <class T>
void GemmSolver<T>::make_blocks() {
  const std::vector<Candidate> elements = slab_workers(all_workers(*runtime_));
  const Index n = grid_.a.x.n, count = count_blocks(grid_, static_cast<Index>(elements.size()));
  const Partition modes = partition_of_modes(n, count, elements);
  const std::vector<double> mu = mode_eigenvalues(grid_);
  for (Index p = 0; p < count; ++p) {
    const Part& part = modes[p];
    // Cores of a rank are as good as each other: StarPU chooses.
    const int worker = part.where == Where::cuda ? modes.hints(p).worker : -1;
    Block b{part.first, part.size, part.rank, worker, {}, {}, {}};
    b.forward = Tile<T>(*runtime_, n, b.modes, b.rank);
    codelets::transform_matrix<T>({kind_, n, 0, b.first_mode}, b.forward, hints_at(worker));
    b.systems = mode_tiles(*runtime_, grid_, b.rank, mu, b.first_mode, b.modes);
    if (grid_.slow.periodic())
      b.response = Tile<double>(*runtime_, grid_.interface().response, b.modes, b.rank);
    blocks_.push_back(std::move(b));
  }
}

/// The inverse's matrix, once in every memory that has slabs.
template <class T>
void GemmSolver<T>::make_places() {
  for (const Candidate& lane : lanes_of(slab_workers(all_workers(*runtime_))))
    places_.push_back({lane.rank, lane.alone ? -1 : lane.worker, {}});
  for (Index number = 0; number < slab_count(); ++number) {
    Place& place = places_[place_of(slabs_[number])];
    if (!place.inverse.empty()) continue;
    for (const Block& b : blocks_) {
      Tile<T>& matrix = place.inverse.emplace_back(*runtime_, b.modes, grid_.a.x.n, place.rank);
      codelets::transform_matrix<T>({inverse(kind_), grid_.a.x.n, b.first_mode, 0}, matrix,
                                    hints_at(place.worker));
    }
  }
}

template <class T>
std::size_t GemmSolver<T>::place_of(Slab s) const {
  const Hints hints = slabs_.hints(s);
  // A rank's cores have one memory, whichever of them a slab is on.
  const int rank = slabs_.owner(s.number), worker = hints.where == Where::cuda ? hints.worker : -1;
  const auto found = std::find_if(places_.begin(), places_.end(), [&](const Place& place) {
    return place.rank == rank && place.worker == worker;
  });
  return static_cast<std::size_t>(found - places_.begin());
}

template <class T>
void GemmSolver<T>::make_modes() {
  for (Index problem = 0; problem < grid_.batch; ++problem)
    for (const Block& b : blocks_) modes_.emplace_back(*runtime_, grid_.planes, b.modes, b.rank);
  for (Index number = 0; number < slab_count(); ++number)
    for (const Block& b : blocks_)
      parts_.push_back(is_at(places_[place_of(slabs_[number])], b)
                           ? Tile<T>()
                           : Tile<T>(*runtime_, slabs_.planes_of(slabs_[number].place), b.modes, b.rank));
  if (grid_.has_constants())
    for (Index problem = 0; problem < grid_.batch; ++problem)
      means_.emplace_back(*runtime_, grid_.planes, 1, blocks_[0].rank);
}

/// (D1)
template <class T>
void GemmSolver<T>::transform(Index problem, Tiles<T>& f) {
  for (Index place = 0; place < layout_.slabs; ++place) {
    const Slab s = slabs_.slab(problem, place);
    const Index rows = slabs_.planes_of(place);
    const Product product{.rows = rows, .to = place * layout_.slab_planes};
    for (std::size_t p = 0; p < blocks_.size(); ++p) {
      const Block& b = blocks_[p];
      const Tile<T>& v = modes(problem, p);
      const Hints hints = product_hints(b.worker, s, p);
      if (place == 0)
        codelets::multiply_anew<T>(product, {.a = f[s.number], .b = b.forward, .c = v}, hints);
      else
        codelets::multiply<T>(product, {.a = f[s.number], .b = b.forward, .c = v}, hints);
    }
  }
}

/// (D2)
template <class T>
void GemmSolver<T>::solve_modes(Index problem) {
  for (std::size_t p = 0; p < blocks_.size(); ++p) {
    const Block& b = blocks_[p];
    const Tile<T>& v = modes(problem, p);
    const Tile<double>&axis = axis_[b.rank], &work = work_[b.rank];
    const Hints hints = hints_at(b.worker);
    if (grid_.slow.periodic())
      codelets::solve_ring_columns<T>(
          scale_, {.columns = v, .axis = axis, .mu = b.systems.mu, .response = b.response, .work = work},
          hints);
    else
      codelets::solve_columns<T>(scale_,
                                 {.columns = v,
                                  .axis = axis,
                                  .mu = b.systems.mu,
                                  .before = b.systems.before_axis,
                                  .after = b.systems.after_axis,
                                  .work = work},
                                 hints);
  }
}

/// Mode 0 is the rows' mean.
template <class T>
void GemmSolver<T>::set_means(Index problem) {
  const Tile<T>& mean_of_row = means_[static_cast<std::size_t>(problem)];
  const double* const means = solution_means(problem);
  set(*runtime_, mean_of_row, [&](Index i, Index) { return means[i]; });
  codelets::set_first_column<T>({}, mean_of_row, modes(problem, 0), hints_at(blocks_[0].worker));
}

/// (D3)
template <class T>
void GemmSolver<T>::transform_back(Index problem, Tiles<T>& u) {
  for (Index place = 0; place < layout_.slabs; ++place) {
    const Slab s = slabs_.slab(problem, place);
    const Place& at = places_[place_of(s)];
    for (std::size_t p = 0; p < blocks_.size(); ++p)
      if (!is_at(at, blocks_[p]))
        copy_rows(modes(problem, p), place * layout_.slab_planes, part(s, p), hints_at(blocks_[p].worker));
  }
  for (Index place = 0; place < layout_.slabs; ++place) {
    const Slab s = slabs_.slab(problem, place);
    const Place& at = places_[place_of(s)];
    const Index rows = slabs_.planes_of(place);
    // What is here first, while the rest is on its way.
    const auto found =
        std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return is_at(at, b); });
    const auto first = static_cast<std::size_t>(found - blocks_.begin());
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::size_t p = (first + i) % blocks_.size();
      const bool here = is_at(at, blocks_[p]);
      Product product{.rows = rows, .from = here ? place * layout_.slab_planes : 0};
      if (i > 0) product.result = Result::adds;
      const Tile<T>& v = here ? modes(problem, p) : part(s, p);
      const Hints hints = product_hints(at.worker, s, p);
      if (i == 0)
        codelets::multiply_anew<T>(product, {.a = v, .b = at.inverse[p], .c = u[s.number]}, hints);
      else
        codelets::multiply<T>(product, {.a = v, .b = at.inverse[p], .c = u[s.number]}, hints);
    }
    if (settings_.fetch_result) u[s.number].fetch();
  }
}

template <class T>
Report GemmSolver<T>::solve(Tiles<T>& f) {
  require_slabs(f);
  const Begun begun = begin();
  lift(f);
  if (grid_.has_constants()) take_means(f);
  for (Index problem = 0; problem < grid_.batch; ++problem) {
    transform(problem, f);
    solve_modes(problem);
    if (grid_.has_constants()) set_means(problem);
    transform_back(problem, f);
  }
  return finish(begun, f);
}

template class GemmSolver<float>;
template class GemmSolver<double>;

}  // namespace asterism::poisson
