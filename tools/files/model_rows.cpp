#include "model_rows.hpp"

#include "../../algorithms/common/team.hpp"

namespace asterism::tools {
namespace {

grid::Axis dirichlet(Index n, double length) {
  using enum grid::Condition;
  return {n, length, dirichlet, dirichlet, grid::Centering::node};
}

}  // namespace

ModelRows::ModelRows(grid::Model model, std::uint64_t seed, const std::vector<Index>& shape,
                     const std::vector<double>& lengths)
    : problem_{model, seed, dirichlet(shape.front(), lengths.front()), {}} {
  const std::size_t axes = shape.size();
  problem_.a.x = axes > 1 ? dirichlet(shape.back(), lengths.back()) : grid::no_axis;
  problem_.a.y = axes > 2 ? dirichlet(shape[1], lengths[1]) : grid::no_axis;
  for (const grid::AxisRow& row : grid::axis_rows(problem_.slow))
    axis_.insert(axis_.end(), {row.before, row.after, row.width, row.position});
}

In<double> ModelRows::axis(Index first_row, Index rows) const {
  return {axis_.data() + first_row * grid::axis_columns, rows, grid::axis_columns, grid::axis_columns};
}

template <class T>
void ModelRows::fill(Index first_row, Index rows, T* f) const {
  const Index plane = problem_.a.plane();
  const auto of_part = [&](Index begin, Index end) {
    const Index count = end - begin;
    grid::cpu::model_rhs(problem_, first_row + begin, axis(first_row + begin, count),
                         Out<T>{f + begin * plane, count, plane, plane});
  };
  in_parts(rows, 0, of_part, 1);
}

template <class T>
ModelRows::Squares ModelRows::compare(Index first_row, Index rows, const T* u) const {
  const Index plane = problem_.a.plane();
  const std::vector<T> zeros(static_cast<std::size_t>(plane));
  const In<T> beside{zeros.data(), 1, plane, plane};
  const int parts = threads_for(rows, 0, 1);
  std::vector<sums::SquareSum> sums(static_cast<std::size_t>(grid::residual_sums * parts));
  // Of the residual's sums only those of the error are wanted: any f will do.
  in_team(parts, [&](int part) {
    const Index begin = rows * part / parts, count = rows * (part + 1) / parts - begin;
    const In<T> mine{u + begin * plane, count, plane, plane};
    grid::cpu::residual({problem_, first_row + begin, true}, mine, beside, beside, mine,
                        axis(first_row + begin, count),
                        Out<sums::SquareSum>{sums.data() + part * grid::residual_sums, 1, grid::residual_sums,
                                             grid::residual_sums});
  });
  Squares total{};
  for (std::size_t part = 0; part < static_cast<std::size_t>(parts); ++part) {
    total.error += sums[part * grid::residual_sums + grid::error2];
    total.known += sums[part * grid::residual_sums + grid::known2];
  }
  return total;
}

template void ModelRows::fill(Index, Index, float*) const;
template void ModelRows::fill(Index, Index, double*) const;
template ModelRows::Squares ModelRows::compare(Index, Index, const float*) const;
template ModelRows::Squares ModelRows::compare(Index, Index, const double*) const;

}  // namespace asterism::tools
