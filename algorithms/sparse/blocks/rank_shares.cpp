#include "rank_shares.hpp"

#include <algorithm>
#include <numeric>

#include "../../../codelets/sparse/krylov/residual.hpp"
#include "../../common/set.hpp"
#include "../../common/speeds.hpp"

namespace asterism::sparse {
namespace {

/// Speeds of ranks that differ by less are noise, or not worth it that a rank has more rows than another.
constexpr double alike = 1.35;
/// Ranks that are slower than the fastest by more get no rows.
constexpr double too_slow = 20;

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

RankShares measure_rank_shares(Runtime& runtime, Workers workers) {
  RankShares shares(static_cast<std::size_t>(runtime.ranks()), 0);
  if (runtime.ranks() == 1) return {1};
  std::vector<Candidate> chosen = chosen_workers(all_workers(runtime), workers);
  {
    std::vector<TrialProducts> products;
    products.reserve(chosen.size());
    for (const Candidate& worker : chosen) products.emplace_back(runtime, worker);
    std::vector<Trial> trials;
    for (const TrialProducts& of_worker : products) trials.push_back(of_worker.trial());
    measure_speeds(runtime, chosen, trials);
  }
  for (const Candidate& worker : chosen) shares[static_cast<std::size_t>(worker.rank)] += worker.speed;
  const auto [least, most] = std::ranges::minmax(shares);
  if (most <= alike * least) return RankShares(shares.size(), 1);
  std::ranges::replace_if(
      shares, [&](double share) { return share * too_slow < most; }, 0);
  return shares;
}

std::pair<Index, Index> rows_of_rank(Index n, int rank, const RankShares& shares) {
  const Index grain = grain_rows(n), grains = units_of(n, grain);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  const auto bound = [&](int r) {
    const double before = std::accumulate(shares.begin(), shares.begin() + r, 0.0);
    return std::min(n, static_cast<Index>(static_cast<double>(grains) * before / all) * grain);
  };
  return {bound(rank), bound(rank + 1)};
}

}  // namespace asterism::sparse
