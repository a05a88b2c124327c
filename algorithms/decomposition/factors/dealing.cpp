#include "dealing.hpp"

#include <algorithm>
#include <limits>

namespace asterism::decomposition {
namespace {

/// Bytes per second that factors are read at, of a GPU and of a core beside others.
constexpr double gpu_bandwidth = 1e12, core_bandwidth = 4e9;
/// Seconds from a supernode on a GPU to the one that waits for it, and from a row; until a task has begun there.
constexpr double gpu_step = 4e-6, gpu_row_step = 1.5e-6, gpu_start = 50e-6;
/// Elements of a tile.
constexpr Index most_entries = std::numeric_limits<std::uint32_t>::max() / 2;

/// All subdomains of a rank.
struct Sums {
  double bytes = 0, largest = 0;
  Index depth = 0;
  bool supernodal = true;

  void add(const FactorSize& size) {
    bytes += static_cast<double>(size.bytes);
    largest = std::max(largest, static_cast<double>(size.bytes));
    depth = std::max(depth, size.depth);
    supernodal = supernodal && size.supernodal;
  }
};

/// One solution with all of them: both halves read all supernodes, or each its triangle, and go all the way along the
/// tree.
bool gpus_win(const Sums& sums, double gpus, double cores) {
  const double reads = sums.supernodal ? 2 : 1, step = sums.supernodal ? gpu_step : gpu_row_step;
  const double on_gpus =
      gpu_start + 2 * step * static_cast<double>(sums.depth) + reads * sums.bytes / (gpus * gpu_bandwidth);
  const double on_cores = reads * std::max(sums.largest, sums.bytes / cores) / core_bandwidth;
  return on_gpus < on_cores;
}

/// Some consecutive subdomains of a rank, dealt to its GPUs as far as these have room, and else to cores.
class Dealing {
 public:
  Dealing(const std::vector<FactorSize>& sizes, int rank) : sizes_(sizes), rank_(rank) {}

  [[nodiscard]] Index to_gpus(Index first, Index end, const std::vector<Candidate>& gpus, double bytes) {
    Index next = first;
    double before = 0;
    for (std::size_t k = 0; k < gpus.size() && next < end; ++k) {
      const double until = bytes * static_cast<double>(k + 1) / static_cast<double>(gpus.size());
      const double room = gpus[k].memory > 0 ? most_of_memory * gpus[k].memory : bytes;
      const Index begin = next;
      double taken = 0;
      Index entries = 0;
      for (; next < end; ++next) {
        const FactorSize& size = sizes_[static_cast<std::size_t>(next)];
        const auto its = static_cast<double>(size.bytes);
        // Up to the middle of a subdomain it belongs to the GPU before.
        if (k + 1 < gpus.size() && next > begin && before + its / 2 > until) break;
        if (taken + its > room || entries + size.entries > most_entries) break;
        taken += its;
        before += its;
        entries += size.entries;
      }
      if (next > begin)
        parts_.push_back({begin, next - begin, rank_, Where::cuda, gpus[k].worker, gpus[k].alone});
    }
    return next;
  }
  void to_cores(Index first, Index end) {
    for (Index p = first; p < end; ++p) parts_.push_back({p, 1, rank_, Where::cpu, -1, true});
  }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

 private:
  const std::vector<FactorSize>& sizes_;
  int rank_;
  std::vector<Part> parts_;
};

}  // namespace

Partition deal_subdomains(const std::vector<Candidate>& workers, const std::vector<FactorSize>& sizes,
                          const std::vector<int>& owners, SolveOn solve_on) {
  std::vector<Part> parts;
  const auto count = static_cast<Index>(sizes.size());
  for (Index first = 0, end = 0; first < count; first = end) {
    const int rank = owners[static_cast<std::size_t>(first)];
    std::vector<Candidate> gpus;
    double cores = 0;
    for (const Candidate& worker : workers) {
      if (worker.rank == rank && worker.where == Where::cuda) gpus.push_back(worker);
      if (worker.rank == rank && worker.where == Where::cpu) ++cores;
    }
    Sums sums;
    for (end = first; end < count && owners[static_cast<std::size_t>(end)] == rank; ++end)
      sums.add(sizes[static_cast<std::size_t>(end)]);
    const bool wanted =
        solve_on == SolveOn::gpus || cores == 0 || gpus_win(sums, static_cast<double>(gpus.size()), cores);
    const bool on_gpus = !gpus.empty() && solve_on != SolveOn::cores && wanted;
    Dealing dealing(sizes, rank);
    const Index dealt = on_gpus ? dealing.to_gpus(first, end, gpus, sums.bytes) : first;
    dealing.to_cores(dealt, end);
    parts.insert(parts.end(), dealing.parts().begin(), dealing.parts().end());
  }
  return Partition(std::move(parts));
}

}  // namespace asterism::decomposition
