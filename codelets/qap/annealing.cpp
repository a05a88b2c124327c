#include "annealing.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "move_table.hpp"

namespace asterism::qap {

const MinusLogs& minus_logs() {
  static const MinusLogs logs = [] {
    MinusLogs all{};
    for (int i = 0; i < MinusLogs::count; ++i) all.of[i] = -std::log((i + 0.5) / MinusLogs::count);
    return all;
  }();
  return logs;
}

namespace cpu {
namespace {

template <class E>
void anneal_walk(const TabuArguments& a, MoveTable<E>& moves, const WalkView& walk) {
  const double* const logs = minus_logs().of;
  WalkHead& head = walk.head();
  moves.begin(walk.permutation());
  for (head.made = 0; head.made < head.planned && head.best_cost > a.target && !a.is_stopped(); ++head.made) {
    const Proposal move = proposal(head.stream, head.iterations++, a.n, logs);
    const std::int64_t delta = a.unit * std::int64_t{moves.delta(move.r, move.s)};
    if (!accepts(delta, head.temperature, move.minus_log)) continue;
    moves.swap(move.r, move.s);
    moves.best({});  // brings the changes up to date
    head.cost += delta;
    if (head.cost >= head.best_cost) continue;
    head.best_cost = head.cost;
    head.best_iteration = head.iterations;
    std::copy(moves.permutation().begin(), moves.permutation().end(), walk.best());
  }
  std::copy(moves.permutation().begin(), moves.permutation().end(), walk.permutation());
}

}  // namespace

template <class E>
void anneal(const TabuArguments& a, In<E> matrices, Many<InOut<unsigned char>> walks,
            Scratch<unsigned char>) {
  MoveTable<E> moves(
      {reinterpret_cast<const Unsigned<E>*>(matrices.data), a.n, matrices.ld, a.terms, a.has_diagonals});
  for (const InOut<unsigned char>& tile : walks)
    for (Index i = 0; i < tile.rows; ++i) anneal_walk<E>(a, moves, {tile.row(i), a.n, a.capacity});
}

template void anneal(const TabuArguments&, In<std::int16_t>, Many<InOut<unsigned char>>,
                     Scratch<unsigned char>);
template void anneal(const TabuArguments&, In<std::int32_t>, Many<InOut<unsigned char>>,
                     Scratch<unsigned char>);
template void anneal(const TabuArguments&, In<std::int64_t>, Many<InOut<unsigned char>>,
                     Scratch<unsigned char>);

}  // namespace cpu

namespace codelets {

template <class E>
const WalkCodelet<E>& anneal() {
  static const WalkCodelet<E> codelet{"qap_anneal_i" + std::to_string(8 * sizeof(E)), cpu::anneal<E>,
                                      ASTERISM_CUDA_KERNEL(cuda::anneal<E>)};
  return codelet;
}

template const WalkCodelet<std::int16_t>& anneal();
template const WalkCodelet<std::int32_t>& anneal();
template const WalkCodelet<std::int64_t>& anneal();

}  // namespace codelets
}  // namespace asterism::qap
