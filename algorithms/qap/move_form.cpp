#include "move_form.hpp"

#include <algorithm>
#include <limits>

namespace asterism::qap {
namespace {

using U = std::uint64_t;

U at(const std::vector<Cost>& a, Index n, Index i, Index j) {
  return static_cast<U>(a[static_cast<std::size_t>(i * n + j)]);
}

/// Differences along the diagonal, which are all that counts of it.
std::vector<U> diagonal_differences(const std::vector<Cost>& a, Index n) {
  std::vector<U> all;
  for (Index i = 0; i < n; ++i) all.push_back(at(a, n, i, i) - at(a, n, 0, 0));
  return all;
}

bool all_even(const std::vector<U>& numbers) {
  return std::ranges::all_of(numbers, [](U number) { return number % 2 == 0; });
}

/// Halves them, keeping their signs.
void halve(std::vector<U>& numbers) {
  for (U& number : numbers) number = static_cast<U>(static_cast<Cost>(number) / 2);
}

bool is_symmetric(const std::vector<Cost>& a, Index n) {
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < i; ++j)
      if (at(a, n, i, j) != at(a, n, j, i)) return false;
  return true;
}

/// What is in row i and column j of the first plane of a matrix off the diagonal. With one term the sum over ordered
/// pairs becomes one over the matrix plus its transpose: of d, or of f where d is symmetric and f is not. Twice the
/// cost is that of the sum where the unit is 1, and the cost itself where it is 2.
class Planes {
 public:
  Planes(const Problem& problem, const MoveForm& form)
      : problem_(problem),
        d_is_added_(form.terms == 1 && form.unit == 1 &&
                    (!is_symmetric(problem.d, problem.n) || is_symmetric(problem.f, problem.n))),
        f_is_added_(form.terms == 1 && form.unit == 1 && !d_is_added_) {}

  [[nodiscard]] U d(int term, Index i, Index j) const { return value(problem_.d, term, i, j, d_is_added_); }
  [[nodiscard]] U f(int term, Index i, Index j) const { return value(problem_.f, term, i, j, f_is_added_); }

 private:
  [[nodiscard]] U value(const std::vector<Cost>& a, int term, Index i, Index j, bool added) const {
    if (i == j) return 0;
    const U own = at(a, problem_.n, i, j), other = at(a, problem_.n, j, i);
    if (added) return own + other;
    return term == 0 ? own : other;
  }

  const Problem& problem_;
  bool d_is_added_, f_is_added_;
};

}  // namespace

MoveForm form_of(const Problem& problem, const ProblemFacts& facts) {
  MoveForm form;
  form.terms = facts.symmetry == Symmetry::none ? 2 : 1;
  form.has_diagonals = facts.has_diagonals;
  const bool even = !facts.has_diagonals || all_even(diagonal_differences(problem.d, problem.n)) ||
                    all_even(diagonal_differences(problem.f, problem.n));
  form.unit = facts.symmetry == Symmetry::both && even ? 2 : 1;
  const Cost largest = facts.largest_delta / form.unit;
  form.bits = largest < std::numeric_limits<std::int16_t>::max()   ? 16
              : largest < std::numeric_limits<std::int32_t>::max() ? 32
                                                                   : 64;
  return form;
}

template <class E>
std::vector<E> matrices_of(const Problem& problem, const ProblemFacts& facts, const MoveForm& form) {
  const Index n = problem.n, ld = padded<E>(n);
  std::vector<E> all(static_cast<std::size_t>(MatrixView<E>::rows(n, form.terms) * ld));
  const Planes planes(problem, form);
  E* row = all.data();
  const auto fill = [&](const auto& value) {
    for (Index j = 0; j < n; ++j) row[j] = static_cast<E>(static_cast<Unsigned<E>>(value(j)));
    row += ld;
  };
  for (int t = 0; t < form.terms; ++t)
    for (Index i = 0; i < n; ++i) fill([&](Index j) { return planes.d(t, i, j); });
  for (int t = 0; t < form.terms; ++t)
    for (Index i = 0; i < n; ++i) fill([&](Index j) { return planes.f(t, i, j); });
  if (!facts.has_diagonals) return all;
  std::vector<U> of_d = diagonal_differences(problem.d, n), of_f = diagonal_differences(problem.f, n);
  if (form.unit == 2) halve(all_even(of_d) ? of_d : of_f);
  fill([&](Index j) { return of_d[static_cast<std::size_t>(j)]; });
  fill([&](Index j) { return of_f[static_cast<std::size_t>(j)]; });
  return all;
}

template std::vector<std::int16_t> matrices_of(const Problem&, const ProblemFacts&, const MoveForm&);
template std::vector<std::int32_t> matrices_of(const Problem&, const ProblemFacts&, const MoveForm&);
template std::vector<std::int64_t> matrices_of(const Problem&, const ProblemFacts&, const MoveForm&);

}  // namespace asterism::qap
