/// \file
/// Random quadratic assignment problems and permutations, and their costs as they are defined.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "algorithms/qap/problem.hpp"

namespace asterism::test {

using qap::Cost;
using qap::Permutation;
using qap::Problem;

enum class Kind { symmetric, only_d_symmetric, only_f_symmetric, asymmetric };
enum class Diagonals { zero, even, any };

inline const std::initializer_list<Kind> kinds = {Kind::symmetric, Kind::only_d_symmetric,
                                                  Kind::only_f_symmetric, Kind::asymmetric};
inline const std::initializer_list<Diagonals> diagonals = {Diagonals::zero, Diagonals::even, Diagonals::any};

/// Numbers from `least` to `most`.
inline Problem random_problem(Index n, Kind kind, Diagonals diagonal, Cost least, Cost most,
                              unsigned seed = 1) {
  std::mt19937_64 bits(seed + 1000 * static_cast<std::uint64_t>(n));
  std::uniform_int_distribution<Cost> number(least, most);
  const auto matrix = [&](bool symmetric) {
    std::vector<Cost> a(static_cast<std::size_t>(n * n));
    const auto at = [&](Index i, Index j) -> Cost& { return a[static_cast<std::size_t>(i * n + j)]; };
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) {
        at(i, j) = symmetric && j < i ? at(j, i) : number(bits);
        if (i == j && diagonal != Diagonals::any)
          at(i, j) = diagonal == Diagonals::even ? at(i, j) / 2 * 2 : 0;
      }
    return a;
  };
  Problem problem{.n = n, .d = {}, .f = {}};
  problem.d = matrix(kind == Kind::symmetric || kind == Kind::only_d_symmetric);
  problem.f = matrix(kind == Kind::symmetric || kind == Kind::only_f_symmetric);
  return problem;
}

inline Permutation random_permutation(Index n, unsigned seed = 1) {
  Permutation p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  std::shuffle(p.begin(), p.end(), std::mt19937(seed));
  return p;
}

inline Permutation swapped(Permutation p, Index r, Index s) {
  std::swap(p[static_cast<std::size_t>(r)], p[static_cast<std::size_t>(s)]);
  return p;
}

}  // namespace asterism::test
