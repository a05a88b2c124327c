/// \file
/// Walks at a temperature: a task makes the planned proposals of a batch of walks, each a random move, which is made
/// with probability min(1, exp(-Delta / T)) (Metropolis et al. 1953). All workers make the same moves.
#pragma once

#include "moves.hpp"
#include "tabu_search.hpp"

namespace asterism::qap {

/// A proposed move, r < s, and -ln of a random number between 0 and 1.
struct Proposal {
  std::int32_t r, s;
  double minus_log;
};

/// Of 4096 random numbers between 0 and 1 that are evenly spaced: they are the same on all workers, whatever their
/// logarithm.
struct MinusLogs {
  static constexpr int count = 4096;
  double of[count];
};
const MinusLogs& minus_logs();

/// Every move is as likely as any other. @param n at least 2
ASTERISM_HOST_DEVICE inline Proposal proposal(std::uint64_t stream, std::int64_t number, Index n,
                                              const double* minus_logs) {
  const std::uint64_t bits = random_bits(stream, static_cast<std::uint64_t>(number));
  const auto first = static_cast<std::int32_t>(((bits >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  const auto rest =
      static_cast<std::int32_t>((((bits >> 12) & 0xfffff) * static_cast<std::uint64_t>(n - 1)) >> 20);
  const std::int32_t second = rest < first ? rest : rest + 1;
  return {first < second ? first : second, first < second ? second : first,
          minus_logs[bits & (MinusLogs::count - 1)]};
}

/// Whether a move is made. A product and a comparison: the same on all workers.
ASTERISM_HOST_DEVICE inline bool accepts(std::int64_t delta, double temperature, double minus_log) {
  return delta <= 0 || static_cast<double>(delta) <= temperature * minus_log;
}

namespace cpu {
/// As tabu_search.
template <class E>
void anneal(const TabuArguments& a, In<E> matrices, Many<InOut<unsigned char>> walks,
            Scratch<unsigned char> room);
}  // namespace cpu

namespace cuda {
template <class E>
void anneal(Stream stream, const TabuArguments& a, In<E> matrices, Many<InOut<unsigned char>> walks,
            Scratch<unsigned char> room);
}  // namespace cuda

namespace codelets {
/// "qap_anneal_i16", ...
template <class E>
const WalkCodelet<E>& anneal();
}  // namespace codelets

}  // namespace asterism::qap
