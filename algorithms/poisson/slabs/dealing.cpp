#include "dealing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "../../../runtime/collectives.hpp"

namespace asterism::poisson {
namespace {

/// Below it a solve takes no longer than measuring the workers.
constexpr Index unknowns_worth_measuring = Index{1} << 22;

/// Whether this rank has room for what it gets: its planes in main memory or, where there is one, on the disk that takes
/// what does not fit, and each GPU's in its own memory, where they stay there.
bool has_room(const Runtime& runtime, const Grid& grid, const Layout& layout, const Partition& slabs,
              std::size_t element_bytes) {
  const Machine machine = runtime.machine();
  const Index plane = grid.columns() * static_cast<Index>(element_bytes);
  const std::size_t disk = machine.capacity(MemoryKind::disk), limit = runtime.options().cpu_memory;
  const auto room = static_cast<Index>(disk > 0 ? disk : limit > 0 ? limit : physical_memory());
  if (slabs.elements_of(runtime.rank()).count() * plane > room) return false;
  if (layout.where != Where::cuda || layout.mode == Mode::streaming) return true;
  std::vector<Index> planes(static_cast<std::size_t>(layout.lanes), 0);
  const Partition::Range mine = slabs.parts_of(runtime.rank());
  for (Index part = mine.first; part < mine.end; ++part)
    planes[static_cast<std::size_t>(slabs[part].worker)] += slabs[part].size;
  return stays_in(*std::max_element(planes.begin(), planes.end()) * plane,
                  static_cast<Index>(machine.capacity(MemoryKind::gpu)));
}

/// Slabs to lanes. @param workers get speeds where they are measured
Partition deal_to_lanes(const Runtime& runtime, const Grid& grid, const Layout& layout,
                        const Settings& settings, std::size_t element_bytes, const MeasureSlabs& measure,
                        std::vector<Candidate>& workers) {
  const auto dealt = [&](const std::vector<Candidate>& lanes, const std::vector<double>& of_ranks) {
    return partition_of_slabs(grid, layout, lanes, weights_of_lanes(lanes, of_ranks, runtime.ranks()));
  };
  std::vector<Candidate> lanes = lanes_of(workers);
  if (!settings.weights.empty()) return dealt(lanes, settings.weights);
  if (measure && settings.balance == Balance::measured && lanes.size() > 1 &&
      grid.total_planes() * grid.columns() >= unknowns_worth_measuring) {
    measure(layout, workers);
    lanes = lanes_of(workers);
  }
  std::vector<double> speeds;
  speeds.reserve(lanes.size());
  for (const Candidate& lane : lanes) speeds.push_back(lane.speed);
  const Partition slabs = partition_of_slabs(grid, layout, lanes, speeds);
  const bool fit = !any(runtime, !has_room(runtime, grid, layout, slabs, element_bytes));
  return fit ? slabs : dealt(lanes, std::vector<double>(static_cast<std::size_t>(runtime.ranks()), 1));
}

}  // namespace

std::vector<Candidate> slab_workers(const std::vector<Candidate>& all) {
  const auto has_gpu = [&](int rank) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Candidate& w) { return w.rank == rank && w.where == Where::cuda; });
  };
  std::vector<Candidate> workers;
  std::copy_if(all.begin(), all.end(), std::back_inserter(workers),
               [&](const Candidate& w) { return w.where == Where::cuda || !has_gpu(w.rank); });
  return workers;
}

std::vector<Candidate> lanes_of(const std::vector<Candidate>& slab_workers) {
  std::vector<Candidate> lanes;
  for (const Candidate& worker : slab_workers) {
    const bool joins = worker.where == Where::cpu && !lanes.empty() && lanes.back().rank == worker.rank;
    if (joins) {
      lanes.back().speed += speed_of(worker);
      continue;
    }
    Candidate& lane = lanes.emplace_back(worker);
    lane.speed = speed_of(worker);
    if (worker.where == Where::cpu) lane.worker = -1;
  }
  return lanes;
}

std::vector<double> weights_of_lanes(const std::vector<Candidate>& lanes, const std::vector<double>& of_ranks,
                                     int ranks) {
  if (of_ranks.size() != static_cast<std::size_t>(ranks))
    throw Error(fmt::format("{} weights for {} rank{}: give each rank one, or none at all", of_ranks.size(),
                            ranks, ranks == 1 ? "" : "s"));
  std::vector<double> together(of_ranks.size(), 0), weights;
  for (const Candidate& lane : lanes) together[static_cast<std::size_t>(lane.rank)] += lane.speed;
  for (const Candidate& lane : lanes) {
    const auto rank = static_cast<std::size_t>(lane.rank);
    weights.push_back(of_ranks[rank] * lane.speed / together[rank]);
  }
  return weights;
}

Partition partition_of_slabs(const Grid& grid, const Layout& layout, const std::vector<Candidate>& lanes,
                             const std::vector<double>& weights) {
  std::vector<Index> planes;
  for (Index problem = 0; problem < grid.batch; ++problem)
    for (Index place = 0; place < layout.slabs; ++place)
      planes.push_back(std::min(layout.slab_planes, grid.planes - place * layout.slab_planes));
  return deal_parts(planes, lanes, weights, layout.dealing);
}

Partition on_cores_of_their_own(const Partition& slabs, Index slabs_per_problem,
                                const std::vector<Candidate>& workers) {
  std::map<int, std::vector<int>> cores;  // of each rank
  for (const Candidate& worker : workers)
    if (worker.where == Where::cpu) cores[worker.rank].push_back(worker.worker);
  std::vector<Part> parts = slabs.parts();
  for (auto first = parts.begin(); first != parts.end();) {
    const auto end_of_problem = first + (slabs_per_problem - (first - parts.begin()) % slabs_per_problem);
    const auto end =
        std::find_if(first, end_of_problem, [&](const Part& s) { return s.rank != first->rank; });
    const std::vector<int>& its = cores[first->rank];
    const auto count = static_cast<std::size_t>(end - first);
    if (first->where == Where::cpu && count > 1 && count <= its.size())
      for (std::size_t k = 0; k < count; ++k) first[static_cast<std::ptrdiff_t>(k)].worker = its[k];
    first = end;
  }
  return Partition(std::move(parts));
}

Partition deal_slabs(const Runtime& runtime, const Grid& grid, const Layout& layout, const Settings& settings,
                     std::size_t element_bytes, const MeasureSlabs& measure) {
  std::vector<Candidate> workers = slab_workers(all_workers(runtime));
  const Partition slabs = deal_to_lanes(runtime, grid, layout, settings, element_bytes, measure, workers);
  return on_cores_of_their_own(slabs, layout.slabs, workers);
}

}  // namespace asterism::poisson
