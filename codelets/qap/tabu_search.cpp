#include "tabu_search.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "move_table.hpp"

namespace asterism::qap {
namespace cpu {
namespace {

/// A walk while it goes on.
template <class E>
class Walker {
 public:
  Walker(const TabuArguments& a, const MatrixView<E>& matrices)
      : a_(a),
        moves_(matrices),
        stamps_(static_cast<std::size_t>(a.n * a.n)),
        inverse_(static_cast<std::size_t>(a.n)) {}

  void walk(const WalkView& w) {
    begin(w);
    WalkHead& head = w.head();
    for (head.made = 0; head.made < head.planned && head.best_cost > a_.target && !a_.is_stopped();
         ++head.made) {
      list_forbidden(head.iterations);
      const auto [free, tabu] = moves_.best(forbidden_);
      const bool aspires = is_better(tabu, free) && head.cost + a_.unit * tabu.delta < head.best_cost;
      make(aspires ? tabu : free, w);
    }
    std::copy(moves_.permutation().begin(), moves_.permutation().end(), w.permutation());
  }

 private:
  void begin(const WalkView& w) {
    const WalkHead& head = w.head();
    moves_.begin(w.permutation());
    for (Index r = 0; r < a_.n; ++r) inverse_[at(w.permutation()[r])] = static_cast<std::int32_t>(r);
    std::fill(stamps_.begin(), stamps_.end(), Stamp{});
    list_ = {head.rule, a_.n, w.list(), stamps_.data()};
    for (Index i = std::max<Index>(0, head.iterations - head.most_tenure); i < head.iterations; ++i) {
      const auto place = static_cast<std::int32_t>(i % head.most_tenure);
      list_.add(TabuEntry(list_.entries[place]), place);
    }
    length_ = static_cast<std::int32_t>(std::min(head.iterations, head.most_tenure));
    next_ = head.most_tenure > 0 ? static_cast<std::int32_t>(head.iterations % head.most_tenure) : 0;
  }

  void list_forbidden(std::int64_t now) {
    forbidden_.clear();
    for (std::int32_t place = 0; place < length_; ++place)
      for (int about = 0; about < (list_.rule == TabuRule::pair ? 1 : 2); ++about)
        if (const Pair pair =
                list_.forbidden(place, about, now, moves_.permutation().data(), inverse_.data());
            pair.r >= 0)
          forbidden_.push_back(pair);
  }

  void make(const Move<E>& move, const WalkView& w) {
    WalkHead& head = w.head();
    const std::int32_t p_r = moves_.permutation()[at(move.r)], p_s = moves_.permutation()[at(move.s)];
    if (head.most_tenure > 0) {
      list_.add(entry_of(head, head.iterations, move.r, move.s, p_r, p_s), next_);
      next_ = next_ + 1 == head.most_tenure ? 0 : next_ + 1;
      length_ = std::max(length_, next_ == 0 ? static_cast<std::int32_t>(head.most_tenure) : next_);
    }
    moves_.swap(move.r, move.s);
    std::swap(inverse_[at(p_r)], inverse_[at(p_s)]);
    head.cost += a_.unit * move.delta;
    ++head.iterations;
    if (head.cost >= head.best_cost) return;
    head.best_cost = head.cost;
    head.best_iteration = head.iterations;
    std::copy(moves_.permutation().begin(), moves_.permutation().end(), w.best());
  }

  static std::size_t at(std::int32_t position) { return static_cast<std::size_t>(position); }

  const TabuArguments a_;
  MoveTable<E> moves_;
  std::vector<Stamp> stamps_;
  std::vector<std::int32_t> inverse_;
  std::vector<Pair> forbidden_;
  TabuList list_{};
  std::int32_t length_ = 0, next_ = 0;  // of the list
};

}  // namespace

template <class E>
void tabu_search(const TabuArguments& a, In<E> matrices, Many<InOut<unsigned char>> walks,
                 Scratch<unsigned char>) {
  Walker<E> walker(
      a, {reinterpret_cast<const Unsigned<E>*>(matrices.data), a.n, matrices.ld, a.terms, a.has_diagonals});
  for (const InOut<unsigned char>& tile : walks)
    for (Index i = 0; i < tile.rows; ++i) walker.walk({tile.row(i), a.n, a.capacity});
}

template void tabu_search(const TabuArguments&, In<std::int16_t>, Many<InOut<unsigned char>>,
                          Scratch<unsigned char>);
template void tabu_search(const TabuArguments&, In<std::int32_t>, Many<InOut<unsigned char>>,
                          Scratch<unsigned char>);
template void tabu_search(const TabuArguments&, In<std::int64_t>, Many<InOut<unsigned char>>,
                          Scratch<unsigned char>);

}  // namespace cpu

namespace codelets {

template <class E>
const WalkCodelet<E>& tabu_search() {
  static const WalkCodelet<E> codelet{"qap_tabu_search_i" + std::to_string(8 * sizeof(E)),
                                      cpu::tabu_search<E>, ASTERISM_CUDA_KERNEL(cuda::tabu_search<E>)};
  return codelet;
}

template const WalkCodelet<std::int16_t>& tabu_search();
template const WalkCodelet<std::int32_t>& tabu_search();
template const WalkCodelet<std::int64_t>& tabu_search();

}  // namespace codelets
}  // namespace asterism::qap
