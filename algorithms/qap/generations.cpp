#include "generations.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "../../runtime/per_rank.hpp"
#include "../common/set.hpp"
#include "batches.hpp"
#include "speeds.hpp"

namespace asterism::qap {
namespace {

/// Of how many generations ago islands know each other's champions.
constexpr Index lag = 2;
/// Generations whose records are kept: more than are under way.
constexpr Index kept = 8;
static_assert(kept > Generations::ahead + lag);

/// An island's tiles.
struct Island {
  Tile<unsigned char> state;
  std::deque<Tile<unsigned char>> walks;  // a tile for each batch with some of them, which stays where it is
  Tile<Index> own;
  std::vector<Tile<Index>> found, champions;  // of the last generations
};

/// Walks of a task: those of a batch.
struct Walks {
  TileList<unsigned char> tiles;  // of one island or more
  Tile<unsigned char> room;
  int rank = 0;
  Hints hints;
};

template <class E>
class TypedGenerations final : public Generations {
 public:
  TypedGenerations(Runtime& runtime, const Problem& problem, const ProblemFacts& facts, const MoveForm& form,
                   const Plan& plan, const SearchSettings& settings)
      : runtime_(runtime),
        n_(problem.n),
        plan_(plan),
        matrices_(runtime, MatrixView<E>::rows(n_, form.terms), padded<E>(n_)),
        costs_(runtime, 2 * n_, n_),
        starts_(runtime, 1, n_) {
    walk_ = {.n = n_,
             .terms = form.terms,
             .has_diagonals = form.has_diagonals,
             .unit = form.unit,
             .capacity = plan.capacity,
             .target = settings.target.value_or(std::numeric_limits<Cost>::min()),
             .stop = stop_};
    fill(problem, matrices_of<E>(problem, facts, form), settings.start);
    for (const IslandPlan& island : plan.islands) add(island);
    const std::vector<Candidate> workers = all_workers(runtime);
    const std::vector<Candidate> walking =
        walking_workers<E>(runtime, workers, plan, walk_, {matrices_, costs_, starts_}, settings);
    Cores cores(workers, walking, runtime.machine().chooses_ahead);
    for (const Batch& batch : cut_walks(plan.islands, walking, bytes_of_walk<E>(n_, plan.capacity), cores))
      add(batch);
    for (const IslandPlan& island : plan.islands) {
      selecting_.push_back(cores.next(island.rank));
      selecting_.back().priority = 1;  // the island's walks wait for it, and those of others can wait
    }
    for (std::size_t i = 0; i < islands_.size(); ++i) start(i);
  }
  TypedGenerations(const TypedGenerations&) = delete;
  TypedGenerations& operator=(const TypedGenerations&) = delete;

  ~TypedGenerations() override { *stop_ = true; }

  void submit() override {
    for (const Walks& walks : walks_)
      walk_codelet<E>(plan_)(walk_, matrices_[walks.rank], walks.tiles, walks.room, walks.hints);
    for (std::size_t i = 0; i < islands_.size(); ++i) select(i);
    ++submitted_;
  }

  Found look(Index generation) override {
    Found all;
    for (const Island& island : islands_)
      if (const Tile<Index>& found = of_generation(island.found, generation);
          found.owner() == runtime_.rank())
        all.add(found_in(found));
    return all;
  }

  std::atomic<bool>& stop() override { return *stop_; }

  [[nodiscard]] Index batches() const override { return static_cast<Index>(walks_.size()); }

 private:
  void fill(const Problem& problem, const std::vector<E>& matrices, const Permutation& start) {
    const auto at = [](Index i, Index cols, Index j) { return static_cast<std::size_t>(i * cols + j); };
    set(runtime_, matrices_.mine(), [&](Index i, Index j) { return matrices[at(i, padded<E>(n_), j)]; });
    set(runtime_, costs_.mine(),
        [&](Index i, Index j) { return i < n_ ? problem.d[at(i, n_, j)] : problem.f[at(i - n_, n_, j)]; });
    set(runtime_, starts_.mine(),
        [&](Index, Index j) { return start.empty() ? -1 : start[static_cast<std::size_t>(j)]; });
  }

  void add(const IslandPlan& plan) {
    Island& island = islands_.emplace_back();
    island.state =
        Tile<unsigned char>(runtime_, 1, IslandView::bytes(n_, plan.arguments.initials), plan.rank);
    island.own = Tile<Index>(runtime_, 1, record_numbers(n_), plan.rank);
    for (std::vector<Tile<Index>>* const records : {&island.found, &island.champions})
      for (Index g = 0; g < kept; ++g) records->emplace_back(runtime_, 1, record_numbers(n_), plan.rank);
  }

  void add(const Batch& batch) {
    Walks& walks = walks_.emplace_back();
    walks.rank = batch.rank;
    walks.hints = batch.hints;
    Index count = 0;
    for (const Share& share : batch.shares) {
      walks.tiles.add(islands_[share.island].walks.emplace_back(
          runtime_, share.walks, WalkView::bytes(n_, plan_.capacity), batch.rank));
      count += share.walks;
    }
    walks.room = Tile<unsigned char>(runtime_, count, room_of_walk<E>(n_, batch.hints.where), batch.rank);
  }

  void start(std::size_t i) {
    const Island& island = islands_[i];
    codelets::found_island(plan_.islands[i].arguments, of_rank(costs_, i), of_rank(starts_, i), island.state,
                           island.walks, island.own);
  }

  void select(std::size_t i) {
    TileList<Index> others;
    if (submitted_ >= lag)
      for (const Island& other : islands_) others.add(of_generation(other.champions, submitted_ - lag));
    codelets::select(plan_.islands[i].arguments,
                     {.costs = of_rank(costs_, i),
                      .island = islands_[i].state,
                      .walks = islands_[i].walks,
                      .champions = others,
                      .own = islands_[i].own,
                      .champion = of_generation(islands_[i].champions, submitted_),
                      .found = of_generation(islands_[i].found, submitted_)},
                     selecting_[i]);
  }

  [[nodiscard]] Found found_in(const Tile<Index>& tile) const {
    const HostView<Index> view(tile, HostView<Index>::Access::read);
    const RecordView<const Index> record{view.row(0)};
    Found found{.is_there = record.is_there() != 0,
                .cost = record.cost(),
                .island = record.island(),
                .iterations = record.iterations(),
                .moves = record.moves(),
                .longest = record.longest(),
                .permutation = {}};
    if (found.is_there) found.permutation.assign(record.permutation(), record.permutation() + n_);
    return found;
  }

  static const Tile<Index>& of_generation(const std::vector<Tile<Index>>& tiles, Index generation) {
    return tiles[static_cast<std::size_t>(generation % kept)];
  }
  template <class T>
  [[nodiscard]] const Tile<T>& of_rank(const PerRank<T>& tiles, std::size_t island) const {
    return tiles[plan_.islands[island].rank];
  }

  Runtime& runtime_;
  const Index n_;
  const Plan& plan_;
  TabuArguments walk_;  // of every task
  const std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  PerRank<E> matrices_;
  PerRank<Index> costs_;  // d, below it f
  PerRank<std::int32_t> starts_;
  std::deque<Island> islands_;  // they stay where they are
  std::vector<Walks> walks_;
  std::vector<Hints> selecting_;  // for each island
  Index submitted_ = 0;
};

}  // namespace

bool Found::add(const Found& others) {
  iterations += others.iterations;
  moves += others.moves;
  longest = std::max(longest, others.longest);
  if (!others.is_there) return false;
  if (is_there && (cost < others.cost || (cost == others.cost && island < others.island))) return false;
  is_there = true;
  cost = others.cost;
  island = others.island;
  permutation = others.permutation;
  return true;
}

std::unique_ptr<Generations> make_generations(Runtime& runtime, const Problem& problem,
                                              const ProblemFacts& facts, const MoveForm& form,
                                              const Plan& plan, const SearchSettings& settings) {
  if (form.bits == 16)
    return std::make_unique<TypedGenerations<std::int16_t>>(runtime, problem, facts, form, plan, settings);
  if (form.bits == 32)
    return std::make_unique<TypedGenerations<std::int32_t>>(runtime, problem, facts, form, plan, settings);
  return std::make_unique<TypedGenerations<std::int64_t>>(runtime, problem, facts, form, plan, settings);
}

}  // namespace asterism::qap
