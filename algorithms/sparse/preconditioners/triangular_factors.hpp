/// \file
/// What M = (I + L) D (I + U) is (Q3) for incomplete factorisations and symmetric relaxations, and in which order its
/// rows are worked on.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elimination.hpp"
#include "stage_order.hpp"

namespace asterism::sparse {

/// L, U and D of a rank's rows, which have the numbers of StageOrder, and so have columns.
template <class T>
struct TriangularFactors {
  Csr<T> lower, upper;
  Array<double> diagonal;
  double shift = 0;
  std::optional<Breakdown> breakdown = {};  ///< then there are no factors
};

/// What the pattern of a matrix decides of its factors: they are found for any values that it has.
class TriangularPlan {
 public:
  /// For the methods ic0, ilu0, mc_ssor and mc_ilu. With several ranks: collective; every rank gets the whole pattern
  /// for a while, and keeps that of the factors, but for mc_ssor.
  /// @param threads as colour() has it @param seconds to which the times of the parts are added
  template <class T>
  TriangularPlan(const Runtime& runtime, const Partition& blocks, const Csr<T>& mine,
                 const PreconditionerChoice& choice, int threads, std::map<std::string, double>& seconds);

  [[nodiscard]] const StageOrder& order() const { return order_; }

  /// With several ranks: collective. Of values each rank gets what the factors of its rows need: the diagonal for
  /// mc_ssor, for the others those of rows that they are eliminated with, and those that other ranks need, too.
  /// @param mine rows with the pattern that the plan is for, in the order of StageOrder for mc_ssor, else their own
  template <class T>
  [[nodiscard]] TriangularFactors<T> factors(const Runtime& runtime, const Csr<T>& mine, DiagonalShift shift,
                                             std::map<std::string, double>& seconds);

 private:
  template <class T>
  void split_lu(const Csr<double>& lu, TriangularFactors<T>& factors) const;
  template <class T>
  void split_cholesky(const Csr<double>& c, TriangularFactors<T>& factors) const;
  template <class T>
  TriangularFactors<T> relaxation(const Runtime& runtime, const Csr<T>& mine) const;
  template <class T, class Count, class Fill>
  Csr<T> rows_of_rank(const Count& count, const Fill& fill) const;

  PreconditionerChoice choice_;
  int threads_;
  Partition::Range mine_;
  StageOrder order_;
  std::optional<Elimination> elimination_;
  // Between the order of elimination and that of stages: of this rank's rows, of all columns.
  std::vector<Index> eliminated_of_mine_, final_of_eliminated_;
};

}  // namespace asterism::sparse
