#include "stage_order.hpp"

#include <algorithm>

#include "../../../codelets/sparse/units.hpp"
#include "../graph/levels.hpp"

namespace asterism::sparse {
namespace {

Colouring by_level(PatternView pattern, int threads) {
  const Graph graph(pattern, threads);
  const Levels levels = levels_of(graph.view(), Triangle::lower);
  return {static_cast<int>(levels.count()), {levels.of_rows.begin(), levels.of_rows.end()}};
}

/// Whether blocks had better follow each other: many stages, of which each takes a task, on cores alone.
bool is_sequential(const Partition& blocks, Index stages, PreconditionerMethod method) {
  constexpr Index few_stages = 32;
  return (method == PreconditionerMethod::ic0 || method == PreconditionerMethod::ilu0) &&
         stages > few_stages &&
         std::ranges::none_of(blocks.parts(), [](const Part& part) { return part.where == Where::cuda; });
}

}  // namespace

StageOrder stage_order(PatternView pattern, const PreconditionerChoice& choice, const Partition& blocks,
                       int threads) {
  using enum PreconditionerMethod;
  StageOrder order;
  if (choice.method == ic0 || choice.method == ilu0)
    order.stages = by_level(pattern, threads);
  else
    order.stages = colour(pattern, choice.method == mc_ilu ? choice.q : 1, threads);
  order.sequential = is_sequential(blocks, order.stages.count, choice.method);
  order.stage_of_row.assign(order.stages.of_rows.size(), 0);
  if (order.sequential) return order;
  order.numbering = number_by_colour(order.stages, grain_rows(pattern.rows()));
  for (const Numbering::Segment& segment : order.numbering.segments)
    std::fill(order.stage_of_row.begin() + segment.first, order.stage_of_row.begin() + segment.end,
              segment.colour);
  return order;
}

}  // namespace asterism::sparse
