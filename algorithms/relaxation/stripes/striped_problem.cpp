#include "striped_problem.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "../../../runtime/error.hpp"
#include "../../../runtime/collectives.hpp"
#include "../../common/set.hpp"

namespace asterism::relaxation {

template <class T>
StripedProblem<T>::StripedProblem(Runtime& runtime, const Problem& problem, Partition stripes)
    : runtime_(&runtime),
      problem_(problem),
      grid_(discretise(problem)),
      stripes_(std::move(stripes)),
      mine_(stripes_.elements_of(runtime.rank())) {}

template <class T>
Stripe StripedProblem<T>::stripe(std::size_t s, Index halo) const {
  const auto number = static_cast<Index>(s);
  return {.rows = stripes_[number].size,
          .nodes = nodes(),
          .halo = halo,
          .first_row = stripes_[number].first,
          .first = !stripes_.before(number),
          .last = !stripes_.after(number)};
}

template <class T>
Tile<T> StripedProblem<T>::frame_rows(int rank) const {
  Tile<T> tile(*runtime_, 2, nodes() + 2, rank);
  set(*runtime_, tile, [&](Index side, Index c) {
    const bool corner = c == 0 || c == nodes() + 1;  // no node's neighbour
    return corner ? 0 : value_at(side == 0 ? problem_.y_lower : problem_.y_upper, c - 1);
  });
  return tile;
}

template <class T>
Tile<T> StripedProblem<T>::frame_columns(std::size_t s, Index halo) const {
  const Stripe shape = stripe(s, halo);
  Tile<T> tile(*runtime_, shape.tile_rows(), 2, stripes_.owner(static_cast<Index>(s)));
  set(*runtime_, tile, [&](Index r, Index side) {
    const Index row = shape.first_row - halo + r;
    const bool corner = row < 0 || row >= rows();
    return corner ? 0 : value_at(side == 0 ? problem_.x_lower : problem_.x_upper, row);
  });
  return tile;
}

template <class T>
Tile<T> StripedProblem<T>::borrow(T* rows, std::size_t s) const {
  const Part& part = stripes_[static_cast<Index>(s)];
  const bool mine = part.rank == runtime_->rank();
  return Tile<T>(*runtime_, mine ? rows + (part.first - first_row()) * nodes() : nullptr, part.size, nodes(), nodes(),
                 part.rank);
}

template <class T>
bool StripedProblem<T>::agree_on_source(const T* f) const {
  enum class Has { no_rows, no_source, source };
  const std::vector<Has> all =
      gather(*runtime_, row_count() == 0 ? Has::no_rows : f == nullptr ? Has::no_source : Has::source);
  const auto with = std::count(all.begin(), all.end(), Has::source);
  const auto without = std::count(all.begin(), all.end(), Has::no_source);
  if (with > 0 && without > 0)
    throw Error(fmt::format("f is given on {} of the {} ranks that have rows: give it on all of them, or on none", with,
                            with + without));
  return with > 0;
}

template <class T>
sums::Scaled StripedProblem<T>::lifted_squares(const T* f) const {
  const Index m = rows(), n = nodes();
  std::vector<sums::SquareSum> sums(2);  // of b / d and f / d at the nodes beside the frame
  const auto add = [&](Index i, Index j) {
    const double value = f != nullptr ? static_cast<double>(f[(i - first_row()) * n + j]) / grid_.diagonal : 0;
    double lift = 0;
    if (i == 0) lift -= grid_.along_y * value_at(problem_.y_lower, j);
    if (i == m - 1) lift -= grid_.along_y * value_at(problem_.y_upper, j);
    if (j == 0) lift -= grid_.along_x * value_at(problem_.x_lower, i);
    if (j == n - 1) lift -= grid_.along_x * value_at(problem_.x_upper, i);
    sums[0].add(value + lift);
    sums[1].add(value);
  };
  for (Index i = first_row(); i < first_row() + row_count(); ++i)
    if (i == 0 || i == m - 1) {
      for (Index j = 0; j < n; ++j) add(i, j);
    } else {
      add(i, 0);
      if (n > 1) add(i, n - 1);
    }
  sum_over_ranks(*runtime_, sums);
  return sums[0].total() - sums[1].total();
}

template class StripedProblem<float>;
template class StripedProblem<double>;

}  // namespace asterism::relaxation
