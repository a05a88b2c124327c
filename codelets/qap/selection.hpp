/// \file
/// Selection: what the walks of an island found becomes what they start from next.
///
/// An island is a population that searches by itself, and hears of the best of others some generations later: from
/// which generation is fixed, so that the answer is the same whoever runs ahead.
#pragma once

#include <vector>

#include "../../runtime/codelet.hpp"
#include "walk.hpp"

namespace asterism::qap {

/// A permutation and its cost, with where it was found: a row of 6 + n numbers.
/// @tparam Number Index, or where it is only read const Index
template <class Number>
struct RecordView {
  Number* row;

  [[nodiscard]] Number& cost() const { return row[0]; }
  [[nodiscard]] Number& island() const { return row[1]; }
  [[nodiscard]] Number& iterations() const { return row[2]; }  ///< that its walks have made in a generation
  [[nodiscard]] Number& longest() const { return row[3]; }     ///< iterations of a walk from its start
  [[nodiscard]] Number& is_there() const { return row[4]; }    ///< 0: nothing was found yet
  [[nodiscard]] Number& moves() const { return row[5]; }       ///< that its walks have looked at in a generation
  [[nodiscard]] Number* permutation() const { return row + 6; }
};
constexpr Index record_numbers(Index n) { return 6 + n; }

/// How an island goes on.
enum class IslandKind : std::int32_t {
  multistart,  ///< PMTS: the best of all that improved their initial solution are the next initial solutions
  robust,      ///< walks go on, each until it stands still for long
  tempering,   ///< walks at fixed temperatures swap their permutations with their neighbours
};

/// What an island remembers: this, then the costs of its initial solutions, then these themselves.
struct IslandHead {
  std::int64_t iterations;  ///< of a walk from its start to the selection
  std::int64_t left;        ///< of these, after the generation that is planned
  std::uint64_t drawn;      ///< random numbers
  std::int64_t generation;  ///< from 0
};
struct IslandView {
  unsigned char* row;
  Index n, initials;

  [[nodiscard]] IslandHead& head() const { return *reinterpret_cast<IslandHead*>(row); }
  [[nodiscard]] std::int64_t* costs() const {
    return reinterpret_cast<std::int64_t*>(row + sizeof(IslandHead));
  }
  [[nodiscard]] std::int32_t* initial(Index i) const {
    return reinterpret_cast<std::int32_t*>(costs() + initials) + i * n;
  }
  static constexpr Index bytes(Index n, Index initials) {
    return static_cast<Index>(sizeof(IslandHead)) + 8 * initials + 4 * initials * n;
  }
};

struct SelectionArguments {
  Index n = 0;
  IslandKind kind = IslandKind::multistart;
  TabuRule rule = TabuRule::pair;
  Index island = 0;
  std::uint64_t stream = 0;  ///< of its random numbers
  Index initials = 1;        ///< initial solutions; of an island without multistart: walks
  Index offsets = 1;         ///< of diversification, 1 to this; 1 without multistart
  std::vector<TenureRange> tenures =
      {};              ///< of the multistart's tabu lists: a walk each; of a robust island one
  Index capacity = 0;  ///< see WalkView
  std::int64_t first_iterations = 1, most_iterations = 1;
  std::int64_t in_generation = 1;  ///< iterations at most: longer walks go on in the next one
  std::int64_t patience =
      0;  ///< of a robust island: iterations without a better cost before a walk starts anew
};

template <template <class> class As>
struct SelectionPorts {
  As<In<Index>> costs;                   ///< d, then f, below each other
  As<InOut<unsigned char>> island;       ///< IslandView
  As<Many<InOut<unsigned char>>> walks;  ///< batches of the island's walks, in order
  As<Many<In<Index>>> champions;         ///< of all islands, some generations ago: RecordView
  As<InOut<Index>> own;                  ///< this island's champion, of all its generations
  As<Out<Index>> champion;               ///< the same, for the others
  As<Out<Index>> found;                  ///< the best of the generation's walks, and what they have done
};

namespace cpu {
void found_island(const SelectionArguments& a, In<Index> costs, In<std::int32_t> start,
                  Out<unsigned char> island, Many<Out<unsigned char>> walks, Out<Index> own);
void select(const SelectionArguments& a, SelectionPorts<AsPorts> p);
}  // namespace cpu

namespace codelets {
/// Makes an island's initial solutions and walks. @param start the first one of island 0, where it has a number other
/// than -1 at its beginning; or else all are random
extern const Codelet<SelectionArguments, In<Index>, In<std::int32_t>, Out<unsigned char>,
                     Many<Out<unsigned char>>, Out<Index>>
    found_island;
/// The next generation.
extern const Codelet<SelectionArguments, SelectionPorts<AsPorts>> select;
}  // namespace codelets

}  // namespace asterism::qap
