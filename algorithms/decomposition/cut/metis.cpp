#include "metis.hpp"

#include <fmt/format.h>
#include <metis.h>

#include <algorithm>
#include <csignal>
#include <numeric>
#include <random>

#include "../../../runtime/error.hpp"
#include "../../common/team.hpp"

static_assert(sizeof(idx_t) == sizeof(std::int32_t), "METIS with 32-bit numbers, as Debian has it");

namespace {

thread_local std::mt19937 random_numbers;
thread_local bool has_begun = false;

}  // namespace

// METIS draws by these functions of its own, which use the C library's rand(): threads would take numbers from each other, and
// results be others in each run. A shared METIS takes them from here, with numbers for each thread that it begins anew in
// each call; a static one keeps its own.
extern "C" {
#define ASTERISM_INSTEAD [[gnu::weak, gnu::visibility("default")]]
ASTERISM_INSTEAD void gk_randinit(std::uint64_t seed);
ASTERISM_INSTEAD std::uint32_t gk_randint32();
ASTERISM_INSTEAD std::uint64_t gk_randint64();
#undef ASTERISM_INSTEAD

void gk_randinit(std::uint64_t seed) {
  random_numbers.seed(static_cast<std::mt19937::result_type>(seed));
  has_begun = true;
}
std::uint32_t gk_randint32() { return static_cast<std::uint32_t>(random_numbers() >> 1); }  // as rand()
std::uint64_t gk_randint64() { return std::uint64_t{gk_randint32()} << 32 | gk_randint32(); }
}

namespace asterism::decomposition {
namespace {

struct Options {
  idx_t values[METIS_NOPTIONS];

  Options() {
    METIS_SetDefaultOptions(values);
    values[METIS_OPTION_SEED] = 1;
  }
};

/// METIS has handlers of its own while it works, and gives back those that it found: of two threads' the last to end may have
/// found the other's.
class KeptHandlers {
 public:
  KeptHandlers() {
    sigaction(SIGABRT, nullptr, &abort_);
    sigaction(SIGTERM, nullptr, &terminate_);
  }
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;
  ~KeptHandlers() {
    sigaction(SIGABRT, &abort_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction abort_ = {}, terminate_ = {};
};

/// Whether METIS draws from the numbers that each thread has here.
bool draws_by_threads() {
  static const bool draws = [] {
    has_begun = false;
    nested_dissection({.begins = {0, 1, 2}, .neighbours = {1, 0}});
    return has_begun;
  }();
  return draws;
}

}  // namespace

std::vector<std::int32_t> cut_graph(const Adjacency& graph, std::int32_t parts) {
  const std::int32_t n = graph.nodes();
  std::vector<std::int32_t> part_of(static_cast<std::size_t>(n));
  if (parts >= n) {  // METIS may leave parts empty where they are that small
    std::iota(part_of.begin(), part_of.end(), 0);
    return part_of;
  }
  if (parts == 1) return part_of;
  Options options;
  idx_t nodes = n, constraints = 1, count = parts, cut = 0;
  Adjacency g = graph;  // METIS takes no constants
  if (METIS_PartGraphKway(&nodes, &constraints, g.begins.data(), g.neighbours.data(), nullptr, nullptr,
                          nullptr, &count, nullptr, nullptr, options.values, &cut,
                          part_of.data()) != METIS_OK)
    throw Error(fmt::format("METIS cannot cut a graph of {} nodes into {} parts", n, parts));
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(parts));
  for (const std::int32_t part : part_of) ++sizes[static_cast<std::size_t>(part)];
  for (std::size_t empty = 0; empty < sizes.size(); ++empty) {
    if (sizes[empty] > 0) continue;  // else it gets a node of the largest part
    const auto largest = static_cast<std::int32_t>(std::ranges::max_element(sizes) - sizes.begin());
    *std::ranges::find(part_of, largest) = static_cast<std::int32_t>(empty);
    --sizes[static_cast<std::size_t>(largest)];
    ++sizes[empty];
  }
  return part_of;
}

std::vector<std::int32_t> nested_dissection(const Adjacency& graph) {
  idx_t n = graph.nodes();
  std::vector<std::int32_t> old_of_new(static_cast<std::size_t>(n)), new_of_old(old_of_new.size());
  Options options;
  Adjacency g = graph;  // METIS takes no constants
  if (METIS_NodeND(&n, g.begins.data(), g.neighbours.data(), nullptr, options.values, old_of_new.data(),
                   new_of_old.data()) != METIS_OK)
    throw Error(fmt::format("METIS cannot order a graph of {} nodes", graph.nodes()));
  return old_of_new;
}

void one_by_one_with_metis(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  const KeptHandlers handlers;
  one_by_one(count, draws_by_threads() ? threads : 1, body);
}

}  // namespace asterism::decomposition
