#include "residual_sums.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "../../runtime/collectives.hpp"
#include "../../runtime/per_rank.hpp"
#include "../common/speeds.hpp"

namespace asterism::relaxation {

using sums::Scaled;
using sums::SquareSum;

ResidualSums::ResidualSums(Runtime& runtime, const std::vector<Part>& stripes)
    : runtime_(&runtime), stripes_(stripes), work_(runtime, 1, residual_scratch) {
  for (const Part& stripe : stripes)
    for (std::vector<Tile<SquareSum>>& sums : sums_)
      sums.emplace_back(runtime, 1, residual_parts, stripe.rank);
}

const Tile<SquareSum>& ResidualSums::sums(std::size_t s, Index number) const { return sums_[number % 2][s]; }

const Tile<SquareSum>& ResidualSums::work(std::size_t s) const { return work_[stripes_[s].rank]; }

std::optional<Norms> ResidualSums::norms(Index number, double diagonal, const Scaled& lifted) const {
  constexpr std::size_t parts = residual_parts;
  std::vector<SquareSum> all(stripes_.size() * parts);
  for (std::size_t s = 0; s < stripes_.size(); ++s) {
    const Tile<SquareSum>& tile = sums(s, number);
    if (tile.owner() != runtime_->rank()) continue;
    tile.wait();
    if (runtime_->task_has_failed())
      break;  // a view may throw it, and the other ranks would wait for this one
    const HostView<SquareSum> view(tile, HostView<SquareSum>::Access::read);
    std::copy_n(view.row(0), parts, &all[s * parts]);
  }
  if (any(*runtime_, runtime_->task_has_failed())) return {};
  sum_over_ranks(*runtime_, all);
  std::array<SquareSum, parts> total{};
  for (std::size_t i = 0; i < all.size(); ++i) total[i % parts] += all[i];
  const Scaled source = total[source_squares].total() + lifted;
  return Norms{diagonal * total[residual_squares].root(), total[solution_squares].root(),
               diagonal * (source < 0 ? 0 : sqrt(source))};
}

double ResidualSums::spread(Index number) const {
  std::map<std::pair<Where, int>, std::vector<const detail::TileBase*>> tiles_of;  // this rank's workers
  for (std::size_t s = 0; s < stripes_.size(); ++s)
    if (stripes_[s].rank == runtime_->rank())
      tiles_of[{stripes_[s].where, stripes_[s].worker}].push_back(&sums(s, number));
  if (tiles_of.empty()) return 0;
  std::vector<std::vector<const detail::TileBase*>> tiles;
  for (const auto& [worker, its_tiles] : tiles_of) tiles.push_back(its_tiles);
  const std::vector<double> finished = seconds_until_done(tiles);
  const auto [first, last] = std::minmax_element(finished.begin(), finished.end());
  return *last - *first;
}

}  // namespace asterism::relaxation
