#include "stage_order.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "../../../codelets/sparse/units.hpp"
#include "../graph/levels.hpp"
#include "../graph/rows.hpp"

namespace asterism::sparse {
namespace {

/// Most stages on cores: each takes a task for every block.
constexpr int few_stages = 32;

/// Stage 0 has the rows without entries in later grains, which therefore need none of any other grain; the others come
/// after all those before them, of other grains, that they have an entry in common with. None: they are too many.
std::optional<Colouring> by_grain(PatternView graph, Index grain) {
  constexpr Index most_between = 4;  // a quarter
  Array<int> stages(at(graph.rows()), 0);
  Index between = 0;
  int last = 0;
  for (Index i = 0; i < graph.rows(); ++i) {
    int& stage = stages[at(i)];
    const auto grain_of = [&](Index row) { return row / grain; };
    stage = std::ranges::any_of(graph.row(i), [&](Index j) { return grain_of(j) > grain_of(i); }) ? 1 : 0;
    if (stage == 0) continue;
    ++between;
    for (const Index j : graph.row(i))
      if (j < i && stages[at(j)] > 0)
        stage = std::max(stage, stages[at(j)] + (grain_of(j) < grain_of(i) ? 1 : 0));
    last = std::max(last, stage);
  }
  if (between > graph.rows() / most_between || last >= few_stages) return {};
  return Colouring{last + 1, std::move(stages)};
}

/// Of the natural order.
void set_stages(PatternView pattern, const Partition& blocks, int threads, StageOrder& order) {
  const Graph graph(pattern, threads);
  order.stages = by_level(graph.view());
  if (order.stages.count <= few_stages ||
      std::ranges::any_of(blocks.parts(), [](const Part& part) { return part.where == Where::cuda; }))
    return;
  if (auto stages = by_grain(graph.view(), grain_rows(pattern.rows()))) {
    order.stages = std::move(*stages);
    order.grains_in_order = true;
  } else {
    order.sequential = true;
  }
}

}  // namespace

Colouring by_level(PatternView graph) {
  const Levels levels = levels_of(graph, Triangle::lower);
  return {static_cast<int>(levels.count()), {levels.of_rows.begin(), levels.of_rows.end()}};
}

StageOrder stage_order(PatternView pattern, const PreconditionerChoice& choice, const Partition& blocks,
                       int threads) {
  using enum PreconditionerMethod;
  StageOrder order;
  if (choice.method == ic0 || choice.method == ilu0)
    set_stages(pattern, blocks, threads, order);
  else
    order.stages = colour(pattern, choice.method == mc_ilu ? choice.q : 1, threads);
  order.stage_of_row.assign(order.stages.of_rows.size(), 0);
  if (order.sequential) return order;
  order.numbering = number_by_colour(order.stages, grain_rows(pattern.rows()));
  for (const Numbering::Segment& segment : order.numbering.segments)
    std::fill(order.stage_of_row.begin() + segment.first, order.stage_of_row.begin() + segment.end,
              segment.colour);
  return order;
}

}  // namespace asterism::sparse
