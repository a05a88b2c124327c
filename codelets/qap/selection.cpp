#include "selection.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <numeric>

#include "moves.hpp"
#include "starts.hpp"

namespace asterism::qap {
namespace cpu {
namespace {

/// A solution that may become an initial one.
struct Candidate {
  std::int64_t cost;
  std::vector<std::int32_t> p;

  auto operator<=>(const Candidate&) const = default;
};

/// Rows of several tiles, one after the other.
template <class Port>
class AllWalks {
 public:
  AllWalks(const SelectionArguments& a, const Many<Port>& batches) : a_(a) {
    for (const Port& batch : batches)
      for (Index i = 0; i < batch.rows; ++i) rows_.push_back(batch.row(i));
  }
  [[nodiscard]] Index count() const { return static_cast<Index>(rows_.size()); }
  [[nodiscard]] WalkView operator[](Index i) const {
    return {rows_[static_cast<std::size_t>(i)], a_.n, a_.capacity};
  }

 private:
  const SelectionArguments& a_;
  std::vector<unsigned char*> rows_;
};

/// An island between two generations.
template <class Port>
class Island {
 public:
  Island(const SelectionArguments& a, const In<Index>& costs, unsigned char* state, const Many<Port>& batches)
      : a_(a),
        n_(a.n),
        d_(costs.row(0)),
        f_(costs.row(a.n)),
        view_{state, a.n, a.initials},
        walks_(a, batches) {}

  [[nodiscard]] const AllWalks<Port>& walks() const { return walks_; }
  [[nodiscard]] IslandHead& head() const { return view_.head(); }

  void begin() { view_.head() = {a_.first_iterations, 0, 0, 0}; }

  std::int64_t cost(const std::int32_t* p) const { return cost_from_scratch(n_, d_, f_, p); }

  Candidate random_candidate() {
    Candidate candidate{0, std::vector<std::int32_t>(static_cast<std::size_t>(n_))};
    std::iota(candidate.p.begin(), candidate.p.end(), 0);
    RandomNumbers random = numbers();
    shuffle(random, n_, candidate.p.data());
    head().drawn = random.drawn();
    candidate.cost = cost(candidate.p.data());
    return candidate;
  }
  /// With a quarter to a half of it moved around.
  Candidate kicked(Candidate candidate) {
    RandomNumbers random = numbers();
    kick(random, 2 + n_ / 4 + random.below(n_ / 4 + 1), n_, candidate.p.data());
    head().drawn = random.drawn();
    candidate.cost = cost(candidate.p.data());
    return candidate;
  }
  bool toss() { return below(2) == 0; }
  std::int64_t below(std::int64_t count) {
    RandomNumbers random = numbers();
    const std::int64_t number = random.below(count);
    head().drawn = random.drawn();
    return number;
  }
  /// How much a random move changes, on average, at a permutation.
  double mean_change(const Candidate& candidate) {
    constexpr int moves = 256;
    double sum = 0;
    for (int i = 0; i < moves; ++i) {
      const std::int64_t r = below(n_), s = below(n_ - 1);
      sum += std::abs(static_cast<double>(swap_delta(n_, d_, f_, candidate.p.data(), r, s < r ? s : s + 1)));
    }
    return sum / moves;
  }

  void set_initial(Index i, const Candidate& candidate) {
    view_.costs()[i] = candidate.cost;
    std::copy(candidate.p.begin(), candidate.p.end(), view_.initial(i));
  }
  [[nodiscard]] std::int64_t initial_cost(Index i) const { return view_.costs()[i]; }

  /// A walk from each initial solution, each offset, each tenure.
  void start_multistart() {
    std::vector<std::int32_t> start(static_cast<std::size_t>(n_));
    Index walk = 0;
    for (Index i = 0; i < a_.initials; ++i)
      for (Index offset = 1; offset <= a_.offsets; ++offset) {
        diversify(static_cast<std::int32_t>(offset), n_, view_.initial(i), start.data());
        const std::int64_t its_cost = cost(start.data());
        for (const TenureRange& tenure : a_.tenures) start_walk(walk++, start.data(), its_cost, tenure);
      }
    head().left = head().iterations;
    go_on();
  }
  /// Plans what is left of the walks, as far as a generation goes. @return whether there is anything
  bool go_on() {
    const std::int64_t planned = std::min(head().left, a_.in_generation);
    head().left -= planned;
    for (Index i = 0; i < walks_.count() && planned > 0; ++i) walks_[i].head().planned = planned;
    return planned > 0;
  }
  void start_alone(Index walk, const Candidate& candidate) {
    start_walk(walk, candidate.p.data(), candidate.cost, a_.tenures.front());
  }

 private:
  [[nodiscard]] RandomNumbers numbers() const { return RandomNumbers(a_.stream, head().drawn); }

  void start_walk(Index number, const std::int32_t* p, std::int64_t its_cost, const TenureRange& tenure) {
    const WalkView walk = walks_[number];
    RandomNumbers random = numbers();
    walk.head() = {its_cost,      its_cost,          0, 0, tenure.least, tenure.most,
                   random.bits(), head().iterations, 0, 0, a_.rule};
    head().drawn = random.drawn();
    std::copy_n(p, n_, walk.permutation());
    std::copy_n(p, n_, walk.best());
  }

  const SelectionArguments& a_;
  const Index n_;
  const Index *d_, *f_;
  const IslandView view_;
  const AllWalks<Port> walks_;
};

Candidate best_of(const WalkView& walk, Index n) {
  return {walk.head().best_cost, {walk.best(), walk.best() + n}};
}

/// Of what each initial solution and each tenure has come to, what is better than that initial solution, the best
/// first.
std::vector<Candidate> improved(const SelectionArguments& a, const Island<InOut<unsigned char>>& island) {
  const auto tenures = static_cast<Index>(a.tenures.size());
  std::vector<Candidate> found;
  for (Index i = 0; i < a.initials; ++i)
    for (Index t = 0; t < tenures; ++t) {
      const auto walk = [&](Index offset) { return island.walks()[(i * a.offsets + offset) * tenures + t]; };
      Index best = 0;
      for (Index offset = 1; offset < a.offsets; ++offset)
        if (walk(offset).head().best_cost < walk(best).head().best_cost) best = offset;
      if (walk(best).head().best_cost < island.initial_cost(i)) found.push_back(best_of(walk(best), a.n));
    }
  std::ranges::sort(found);
  const auto [first, last] = std::ranges::unique(found);
  found.erase(first, last);
  if (static_cast<Index>(found.size()) > a.initials) found.resize(static_cast<std::size_t>(a.initials));
  return found;
}

std::vector<Candidate> immigrants(const SelectionArguments& a, const Many<In<Index>>& champions) {
  std::vector<Candidate> all;
  for (const In<Index>& champion : champions) {
    const RecordView<const Index> record{champion.data};
    if (record.is_there() == 0 || record.island() == a.island) continue;
    all.push_back({record.cost(), {record.permutation(), record.permutation() + a.n}});
  }
  std::ranges::sort(all);
  return all;
}

void next_multistart(const SelectionArguments& a, Island<InOut<unsigned char>>& island,
                     const std::vector<Candidate>& others) {
  if (island.go_on()) return;
  std::vector<Candidate> next = improved(a, island);
  IslandHead& head = island.head();
  if (next.empty() && head.iterations < a.most_iterations) {
    const auto iterations = static_cast<double>(head.iterations);
    head.iterations =
        std::min(a.most_iterations, static_cast<std::int64_t>(std::ceil(iterations * std::sqrt(iterations))));
  } else {
    if (next.empty()) head.iterations = a.first_iterations;
    if (next.empty() && !others.empty()) next.push_back(island.kicked(others.front()));
    while (static_cast<Index>(next.size()) < a.initials) next.push_back(island.random_candidate());
    for (Index i = 0; i < a.initials; ++i) island.set_initial(i, next[static_cast<std::size_t>(i)]);
  }
  island.start_multistart();
}

/// Walks that stand still start anew: from the best of all islands, kicked, or anywhere.
void next_robust(const SelectionArguments& a, Island<InOut<unsigned char>>& island,
                 const std::vector<Candidate>& others, const RecordView<Index>& champion) {
  for (Index i = 0; i < a.initials; ++i) {
    const WalkHead& head = island.walks()[i].head();
    if (head.iterations - head.best_iteration <= a.patience) continue;
    if (!island.toss()) {
      island.start_alone(i, island.random_candidate());
    } else if (!others.empty() && island.toss()) {
      island.start_alone(i, island.kicked(others.front()));
    } else {
      island.start_alone(
          i, island.kicked({champion.cost(), {champion.permutation(), champion.permutation() + a.n}}));
    }
  }
}

/// From the coldest to the hottest, in proportion: as parts of what a random move changes at a random permutation.
constexpr double coldest = 0.004, hottest = 0.12;

template <class Walks>
void set_temperatures(const Walks& walks, double change) {
  for (Index i = 0; i < walks.count(); ++i) {
    const double step =
        walks.count() > 1 ? static_cast<double>(i) / static_cast<double>(walks.count() - 1) : 0;
    walks[i].head().temperature = std::max(change, 1.0) * coldest * std::pow(hottest / coldest, step);
  }
}

/// Neighbours swap their permutations with probability min(1, exp((1/T_a - 1/T_b)(C_a - C_b))) (Geyer 1991), every
/// second pair in a generation.
void next_tempering(const SelectionArguments& a, Island<InOut<unsigned char>>& island) {
  constexpr std::int64_t parts = std::int64_t{1} << 30;
  for (Index i = island.head().generation % 2; i + 1 < a.initials; i += 2) {
    const WalkView cold = island.walks()[i], hot = island.walks()[i + 1];
    const double exponent = (1 / cold.head().temperature - 1 / hot.head().temperature) *
                            (static_cast<double>(cold.head().cost) - static_cast<double>(hot.head().cost));
    const double random = static_cast<double>(island.below(parts)) / static_cast<double>(parts);
    if (random >= std::exp(std::min(exponent, 0.0))) continue;
    std::swap(cold.head().cost, hot.head().cost);
    std::swap_ranges(cold.permutation(), cold.permutation() + a.n, hot.permutation());
  }
}

/// Puts a walk's best into a record that has none so good.
void offer(const RecordView<Index>& record, const WalkView& walk, Index island, Index n) {
  const WalkHead& head = walk.head();
  if (record.is_there() != 0 && record.cost() <= head.best_cost) return;
  record.is_there() = 1;
  record.cost() = head.best_cost;
  record.island() = island;
  std::copy_n(walk.best(), n, record.permutation());
}

}  // namespace

void found_island(const SelectionArguments& a, In<Index> costs, In<std::int32_t> start,
                  Out<unsigned char> island_state, Many<Out<unsigned char>> walks, Out<Index> own) {
  Island island(a, costs, island_state.data, walks);
  island.begin();
  std::fill_n(own.data, own.cols, Index{0});
  for (Index i = 0; i < a.initials; ++i) {
    Candidate candidate = island.random_candidate();
    if (i == 0 && a.island == 0 && start.data[0] >= 0) {
      candidate.p.assign(start.data, start.data + a.n);
      candidate.cost = island.cost(start.data);
    }
    island.set_initial(i, candidate);
    if (a.kind != IslandKind::multistart) island.start_alone(i, candidate);
    if (a.kind == IslandKind::tempering && i + 1 == a.initials)
      set_temperatures(island.walks(), island.mean_change(candidate));
  }
  if (a.kind == IslandKind::multistart) island.start_multistart();
}

void select(const SelectionArguments& a, SelectionPorts<AsPorts> p) {
  Island island(a, p.costs, p.island.data, p.walks);
  const RecordView<Index> champion{p.own.data}, found{p.found.data};
  std::fill_n(p.found.data, p.found.cols, Index{0});
  for (Index i = 0; i < island.walks().count(); ++i) {
    const WalkView walk = island.walks()[i];
    offer(champion, walk, a.island, a.n);
    offer(found, walk, a.island, a.n);
    found.iterations() += walk.head().made;
    found.moves() += walk.head().made * (a.kind == IslandKind::tempering ? 1 : a.n * (a.n - 1) / 2);
    walk.head().made = 0;  // the next task may be stopped before it begins
  }
  std::copy_n(p.own.data, p.own.cols, p.champion.data);
  found.longest() = island.head().iterations;
  const std::vector<Candidate> others = immigrants(a, p.champions);
  if (a.kind == IslandKind::multistart)
    next_multistart(a, island, others);
  else if (a.kind == IslandKind::robust)
    next_robust(a, island, others, champion);
  else
    next_tempering(a, island);
  ++island.head().generation;
}

}  // namespace cpu

namespace codelets {

const Codelet<SelectionArguments, In<Index>, In<std::int32_t>, Out<unsigned char>, Many<Out<unsigned char>>,
              Out<Index>>
    found_island{"qap_found_island", cpu::found_island};
const Codelet<SelectionArguments, SelectionPorts<AsPorts>> select{"qap_select", cpu::select};

}  // namespace codelets
}  // namespace asterism::qap
