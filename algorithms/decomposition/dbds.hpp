/// \file
/// The distributed block direct solver (DBDS), [Czapinski 2014] algorithms 7.2 and 7.3.
#pragma once

#include <memory>
#include <optional>

#include "../sparse/krylov/solver.hpp"
#include "residual_looks.hpp"
#include "schwarz.hpp"

namespace asterism::decomposition {

/// Block relaxation: with the subdomains' factors,
///
///     (Z4)  r = b - A x, x += M^-1 r.
///
/// This is algorithm 7.3. With factors in the precision of x the iterates are those of algorithm 7.2, L_p x_p = b_p -
/// H_p x^: L_p^-1 (r_p + L_p x_p) = x_p + L_p^-1 r_p, also where subdomains overlap and each gives back its own rows; the
/// residual comes with it. With factors in f32, x and r in f64, it is the mixed one.
template <class T>
class Dbds : public sparse::KrylovSolver<T> {
 public:
  /// @param schwarz of this solver only. With several ranks: collective. @throw Error: as KrylovSolver
  Dbds(Runtime& runtime, const sparse::Csr<T>& mine, const sparse::LinearSettings& settings,
       std::shared_ptr<sparse::OuterPreconditioner<T>> schwarz);

  /// rho(I - M^-1 A), by which an iteration reduces the error in the end: by power iteration, until two estimates, each the
  /// mean of two iterations (as eigenvalues may come in pairs of opposite signs), differ by less than `accuracy` of what
  /// is missing to 1 or most_iterations are made. @param start this rank's rows of the first error, say random numbers
  /// With several ranks: collective.
  double spectral_radius(const T* start, double accuracy, Index most_iterations);

 private:
  using Base = sparse::KrylovSolver<T>;
  using typename Base::Seen;

  explicit Dbds(const typename Base::Beside& beside) : Base(beside), looks_(this->runtime()) {}

  void begin(Index) override { iteration_ = 0; }
  void iterate_all(const typename Base::Solvers& going) override;
  [[nodiscard]] std::unique_ptr<Base> another(Index number) const override;
  void submit_look(Index number) override;
  [[nodiscard]] std::optional<Seen> look(Index number) override;
  void correct();
  [[nodiscard]] double residual_norm(Index number);

  ResidualLooks looks_;
  Index iteration_ = 0;
};

}  // namespace asterism::decomposition
