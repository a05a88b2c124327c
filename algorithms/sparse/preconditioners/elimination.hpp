/// \file
/// Incomplete factorisations over ranks: what a pattern decides once, and the factors of any values on it.
#pragma once

#include <map>
#include <string>

#include "../../common/stopwatch.hpp"
#include "stage_order.hpp"

namespace asterism::sparse {

/// The pattern of all rows, on every rank. Of a single rank it stays where it is.
class WholePattern {
 public:
  /// With several ranks: collective. @param mine has to live as long, with a single rank
  template <class T>
  WholePattern(const Runtime& runtime, const Csr<T>& mine)
      : gathered_(runtime.ranks() > 1 ? gathered(runtime, mine.row_begin, mine.columns, mine.cols)
                                      : Pattern{}),
        view_(runtime.ranks() > 1 ? PatternView(gathered_) : PatternView(mine)) {}
  WholePattern(const WholePattern&) = delete;  // the view is of what was gathered
  WholePattern& operator=(const WholePattern&) = delete;

  [[nodiscard]] PatternView view() const { return view_; }

 private:
  static Pattern gathered(const Runtime& runtime, const Array<Index>& row_begin, const Array<Index>& columns,
                          Index cols);

  Pattern gathered_;
  PatternView view_;
};

/// Factors of a matrix for one rank: its own rows, and those that they need.
class Elimination {
 public:
  /// @param whole the pattern of all rows @param mine the rows of this rank
  /// @param seconds to which the times of the parts are added
  Elimination(PatternView whole, const StageOrder& order, Partition::Range mine,
              const PreconditionerChoice& choice, int threads, std::map<std::string, double>& seconds);

  /// Takes the values of this rank's rows, in their natural order, and those of the rows of others that it needs.
  /// With several ranks: collective.
  template <class T>
  void load(const Runtime& runtime, const Csr<T>& mine);
  /// With several ranks: collective; the shift and the breakdown, whose row has its natural number, are everybody's.
  [[nodiscard]] Factorisation factorise(const Runtime& runtime, DiagonalShift shift) const;

  /// The order of the factors' rows: by stage alone; empty where it is the natural one.
  [[nodiscard]] const Numbering& numbering() const { return numbering_; }
  /// Of a factor; it has all rows, of which those that this rank does not need are not factorised.
  [[nodiscard]] PatternView pattern() const {
    return choice_.p > 0 ? PatternView(fill_) : PatternView(matrix_);
  }

 private:
  void make_turns(const Numbering& by_turn, bool in_order);
  void mark_needed(Partition::Range mine, PatternView whole);
  template <class T>
  void set_row(Index row, const Index* columns, const T* values, Index count);
  template <class T>
  void load_from_others(const Runtime& runtime, const Csr<T>& mine);

  PreconditionerChoice choice_;
  int threads_;
  Numbering numbering_;
  Csr<double> matrix_;        // all rows, in the order of elimination; values of those that are needed
  Pattern fill_;              // of the factor, where it is not that of the matrix
  std::vector<char> needed_;  // of each row in that order; empty: all
  Turns turns_;
};

}  // namespace asterism::sparse
