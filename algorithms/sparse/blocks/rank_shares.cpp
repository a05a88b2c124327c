#include "rank_shares.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "../../../codelets/sparse/krylov/residual.hpp"
#include "../../../runtime/collectives.hpp"
#include "../../common/set.hpp"
#include "../../common/speeds.hpp"

namespace asterism::sparse {
namespace {

/// Speeds of ranks that differ by less are noise, or not worth it that a rank has more rows than another.
constexpr double alike = 1.35;

/// An iteration of conjugate gradients takes about as long as so many of the products that speeds are measured with.
constexpr double products_of_iteration = 3;

/// Seconds that two ranks wait for each other in an iteration, and more ones by the depth of their tree: measured on one
/// node, from rank to rank and from GPU to GPU by way of main memory. Networks take longer.
constexpr double exchange_of_cores = 1e-4, exchange_of_gpus = 3e-4;

/// Residuals of a grid's five-point equations on a worker, in float64.
class TrialProducts {
 public:
  TrialProducts(Runtime& runtime, const Candidate& worker) : worker_(worker) {
    const bool on_gpu = worker.where == Where::cuda;
    constexpr Index line = 1024;
    const Index lines = on_gpu ? 4096 : 512;
    products_ = on_gpu ? 32 : 4;
    shape_ = {.format = Format::stencil, .rows = lines * line, .cols = lines * line};
    shape_.stencil = {.coefficients = {0, -1, -1, 4, -1, -1, 0}, .nx = line, .ny = lines, .nz = 1};
    unit_ = unit_rows(shape_.rows);
    v_ = Tile<double>(runtime, 1, shape_.rows, worker.rank);
    b_ = Tile<double>(runtime, 1, shape_.rows, worker.rank);
    r_ = Tile<double>(runtime, 1, shape_.rows, worker.rank);
    rr_ = Tile<double>(runtime, 1, units_of(shape_.rows, unit_), worker.rank);
    for (const Tile<double>* tile : {&v_, &b_}) set(runtime, *tile, [](Index, Index) { return 1; });
  }

  [[nodiscard]] Trial trial() const {
    return {
        .work = static_cast<double>(products_ * shape_.rows), .submit = [this] { submit(); }, .last = &rr_};
  }

 private:
  void submit() const {
    for (Index k = 0; k < products_; ++k)
      codelets::residual<double>({shape_, unit_},
                                 {.matrix = {}, .arrivals = {}, .v = v_, .b = b_, .r = r_, .rr = rr_},
                                 {.where = worker_.where, .label = "trial", .worker = worker_.worker});
  }

  Candidate worker_;
  BlockShape shape_;
  Index unit_ = 0, products_ = 0;
  Tile<double> v_, b_, r_, rr_;
};

}  // namespace

std::vector<RankSpeed> measure_rank_speeds(Runtime& runtime, Workers workers) {
  std::vector<RankSpeed> speeds(static_cast<std::size_t>(runtime.ranks()));
  if (runtime.ranks() == 1) return speeds;
  std::vector<Candidate> chosen = chosen_workers(all_workers(runtime), workers);
  {
    std::vector<TrialProducts> products;
    products.reserve(chosen.size());
    for (const Candidate& worker : chosen) products.emplace_back(runtime, worker);
    std::vector<Trial> trials;
    for (const TrialProducts& of_worker : products) trials.push_back(of_worker.trial());
    measure_speeds(runtime, chosen, trials);
  }
  for (RankSpeed& speed : speeds) speed.rows = 0;
  for (const Candidate& worker : chosen) {
    RankSpeed& speed = speeds[static_cast<std::size_t>(worker.rank)];
    speed.rows += worker.speed;
  }
  const std::vector<int> gpus_of = first_with_gpus(runtime);
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) speeds[rank].gpus_of = gpus_of[rank];
  const auto [least, most] = std::ranges::minmax(speeds, {}, &RankSpeed::rows);
  if (most.rows <= alike * least.rows)
    for (RankSpeed& speed : speeds) speed.rows = least.rows;
  return speeds;
}

std::vector<double> shares_of_ranks(Index n, const std::vector<RankSpeed>& speeds) {
  std::vector<double> shares;
  for (const RankSpeed& speed : speeds) {
    // Measured beside each other: alone each does what they do together.
    const int first = speed.gpus_of, rank = static_cast<int>(shares.size());
    shares.push_back(first < 0 || first == rank ? speed.rows : 0);
    if (first >= 0 && first < rank) shares[static_cast<std::size_t>(first)] += speed.rows;
  }
  std::vector<std::size_t> ranks(speeds.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, std::greater{}, [&](std::size_t rank) { return shares[rank]; });
  double together = 0, least_seconds = std::numeric_limits<double>::infinity();
  bool gpus = false;
  std::size_t taking_part = 0;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    together += shares[ranks[k]];
    gpus |= speeds[ranks[k]].gpus_of >= 0;
    const double exchange = (gpus ? exchange_of_gpus : exchange_of_cores) * std::log2(k + 1);
    const double seconds = products_of_iteration * static_cast<double>(n) / together + exchange;
    if (seconds >= least_seconds) continue;
    least_seconds = seconds;
    taking_part = k + 1;
  }
  for (std::size_t k = taking_part; k < ranks.size(); ++k) shares[ranks[k]] = 0;
  return shares;
}

}  // namespace asterism::sparse
