// Changes by moves: the formulas against costs from scratch, and the tables that swaps bring up to date against the
// formulas.

#include <doctest/doctest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "algorithms/qap/move_form.hpp"
#include "codelets/qap/move_table.hpp"
#include "random_instances.hpp"

using namespace asterism;
using namespace asterism::qap;
using namespace asterism::test;

namespace {

/// Every change that the table has, against (M1), and its best moves against all of them.
template <class E>
void check_table(const Problem& problem, const MoveForm& form, cpu::MoveTable<E>& table,
                 const std::vector<Pair>& tabu) {
  const auto best = table.best(tabu);
  Move<E> free, forbidden;
  Index wrong = 0;
  for (Index r = 0; r < problem.n; ++r)
    for (Index s = r + 1; s < problem.n; ++s) {
      const Cost delta =
          swap_delta(problem.n, problem.d.data(), problem.f.data(), table.permutation().data(), r, s);
      if (delta != form.unit * Cost{table.delta(r, s)}) ++wrong;
      const bool is_tabu = std::ranges::any_of(tabu, [&](Pair pair) { return pair.r == r && pair.s == s; });
      const Move<E> move{static_cast<E>(delta / form.unit), static_cast<std::int32_t>(r),
                         static_cast<std::int32_t>(s)};
      Move<E>& least = is_tabu ? forbidden : free;
      if (is_better(move, least)) least = move;
    }
  CHECK(wrong == 0);
  for (const auto& [found, expected] : {std::pair(best.free, free), std::pair(best.tabu, forbidden)}) {
    CHECK(found.delta == expected.delta);
    CHECK(found.r == expected.r);
    CHECK(found.s == expected.s);
  }
}

template <class E>
void check_swaps(const Problem& problem, const MoveForm& form, int swaps) {
  const auto matrices = matrices_of<E>(problem, facts_of(problem), form);
  cpu::MoveTable<E> table({reinterpret_cast<const Unsigned<E>*>(matrices.data()), problem.n,
                           padded<E>(problem.n), form.terms, form.has_diagonals});
  table.begin(random_permutation(problem.n).data());
  check_table<E>(problem, form, table, {});
  if (problem.n < 2) return;
  std::mt19937 bits(3);
  std::vector<Pair> tabu;
  for (int i = 0; i < swaps; ++i) {
    const auto r = static_cast<std::int32_t>(bits() % static_cast<unsigned>(problem.n - 1));
    const auto s = static_cast<std::int32_t>(
        r + 1 + static_cast<std::int32_t>(bits() % static_cast<unsigned>(problem.n - 1 - r)));
    if (std::ranges::none_of(tabu, [&](Pair pair) { return pair.r == r && pair.s == s; }))
      tabu.push_back({r, s});
    table.swap(r, s);
    if (i % 3 == 0) {  // more than one swap between two looks
      table.best({});
      table.swap(0, static_cast<std::int32_t>(problem.n - 1));
    }
    check_table<E>(problem, form, table, tabu);
  }
}

void check_in_its_form(const Problem& problem, int bits, int swaps) {
  const MoveForm form = form_of(problem, facts_of(problem));
  REQUIRE(form.bits <= bits);
  if (bits == 16) check_swaps<std::int16_t>(problem, form, swaps);
  if (bits == 32) check_swaps<std::int32_t>(problem, form, swaps);
  if (bits == 64) check_swaps<std::int64_t>(problem, form, swaps);
}

}  // namespace

TEST_CASE("(M1) is the difference of costs from scratch") {
  for (const Kind kind : kinds)
    for (const Diagonals diagonal : diagonals)
      for (Index n = 2; n <= 12; ++n) {
        const Problem problem = random_problem(n, kind, diagonal, -50, 99);
        const Permutation p = random_permutation(n);
        for (Index r = 0; r < n; ++r)
          for (Index s = r + 1; s < n; ++s)
            CHECK(swap_delta(n, problem.d.data(), problem.f.data(), p.data(), r, s) ==
                  cost_of(problem, swapped(p, r, s)) - cost_of(problem, p));
      }
}

TEST_CASE("tables of moves of 1 to 64 locations: all changes after every swap, and the best moves") {
  std::vector<Index> sizes(34);  // all up to beyond the most changes of a vector, and those around multiples of it
  std::iota(sizes.begin(), sizes.end(), Index{1});
  sizes.insert(sizes.end(), {47, 48, 49, 63, 64});
  for (const Kind kind : kinds)
    for (const Diagonals diagonal : diagonals)
      for (const Index n : sizes) {
        if (left_out_when_sanitized(n % 6 != 1 && n != 64)) continue;
        CAPTURE(n);
        const int swaps = n <= 12 ? 8 : 3;
        check_in_its_form(random_problem(n, kind, diagonal, 0, 5), 16, swaps);
        check_in_its_form(random_problem(n, kind, diagonal, -1000, 1000), 32, swaps);
        check_in_its_form(random_problem(n, kind, diagonal, -1000000, 3000000), 64, swaps);
      }
}

TEST_CASE("elements of 16 bits hold changes up to their largest") {
  // Two locations near each other and two far away: the change by the worst swap is what the bound says.
  const Problem problem{.n = 4,
                        .d = {0, 1, 90, 90, 1, 0, 90, 90, 90, 90, 0, 1, 90, 90, 1, 0},
                        .f = {0, 184, 0, 0, 184, 0, 0, 0, 0, 0, 0, 184, 0, 0, 184, 0}};
  const MoveForm form = form_of(problem, facts_of(problem));
  CHECK(form.unit == 2);
  CHECK(form.bits <= 32);
  check_in_its_form(problem, 32, 20);
  if (form.bits == 16) check_in_its_form(problem, 16, 20);
}

TEST_CASE("which form a problem gets") {
  const auto form = [](Kind kind, Diagonals diagonal, Cost most) {
    const Problem problem = random_problem(10, kind, diagonal, 0, most);
    return form_of(problem, facts_of(problem));
  };
  CHECK(form(Kind::symmetric, Diagonals::zero, 9).unit == 2);
  CHECK(form(Kind::symmetric, Diagonals::even, 9).unit == 2);
  CHECK(form(Kind::symmetric, Diagonals::any, 9).unit == 1);
  CHECK(form(Kind::symmetric, Diagonals::any, 9).terms == 1);
  CHECK(form(Kind::only_d_symmetric, Diagonals::zero, 9).terms == 1);
  CHECK(form(Kind::only_f_symmetric, Diagonals::zero, 9).terms == 1);
  CHECK(form(Kind::only_f_symmetric, Diagonals::zero, 9).unit == 1);
  CHECK(form(Kind::asymmetric, Diagonals::zero, 9).terms == 2);
  CHECK(form(Kind::symmetric, Diagonals::zero, 9).bits == 16);
  CHECK(form(Kind::symmetric, Diagonals::zero, 9999).bits == 32);
  CHECK(form(Kind::symmetric, Diagonals::zero, 99999999).bits == 64);
}

TEST_CASE("costs near 2^62 are exact; what might reach it is refused") {
  constexpr Cost large = (Cost{1} << 30) - 1;
  // The costs of 2 locations are d01 f01 + d10 f10 or d01 f10 + d10 f01: up to 2^61.
  const Problem problem{.n = 2, .d = {0, large, -large, 0}, .f = {0, large, -large, 0}};
  const Permutation same{0, 1}, other{1, 0};
  CHECK(cost_of(problem, same) == 2 * large * large);
  CHECK(cost_of(problem, other) == -2 * large * large);
  CHECK(swap_delta(2, problem.d.data(), problem.f.data(), same.data(), 0, 1) == -4 * large * large);
  CHECK(facts_of(problem).largest_cost == 2 * large * large);
  check_in_its_form(problem, 64, 4);

  const Problem near_limit{.n = 1, .d = {most_cost - 1}, .f = {1}};
  CHECK(cost_of(near_limit, Permutation{0}) == most_cost - 1);
  const Cost least = std::numeric_limits<Cost>::min();
  for (const Problem& too_large :
       {Problem{.n = 1, .d = {most_cost}, .f = {1}}, Problem{.n = 1, .d = {least}, .f = {least}},
        Problem{.n = 2, .d = {0, large, large, 0}, .f = {0, 2 * large + 8, 2 * large + 8, 0}},
        Problem{.n = 2, .d = {0, least, least, 0}, .f = {0, least, least, 0}}})
    message_has(message_of([&] { facts_of(too_large); }),
                {"may reach 2^62", "divide", "matrices by a common factor"});
}

TEST_CASE("problems and permutations that are none") {
  message_has(message_of([] { facts_of({.n = -1, .d = {}, .f = {}}); }), {"-1 locations", "0 to 16384"});
  message_has(message_of([] { facts_of({.n = 20000, .d = {}, .f = {}}); }), {"20000 locations"});
  message_has(message_of([] {
                facts_of({.n = 2, .d = {1, 2, 3, 4}, .f = {1, 2, 3}});
              }),
              {"the matrix f has 3 numbers", "2 x 2 = 4"});
  const Problem problem = random_problem(3, Kind::symmetric, Diagonals::zero, 0, 9);
  message_has(message_of([&] { cost_of(problem, Permutation{0, 1}); }), {"has 2 numbers", "3 locations"});
  message_has(message_of([&] { cost_of(problem, Permutation{0, 1, 3}); }), {"number 2 is 3", "0 to 2"});
  message_has(message_of([&] { cost_of(problem, Permutation{0, 1, 0}); }), {"number 2 is 0 again"});
  CHECK(cost_of({}, Permutation{}) == 0);
}
