/// \file
/// GMRES(m), [Saad, Schultz 1986], for matrices that need not be symmetric, preconditioned from the right.
#pragma once

#include <optional>
#include <vector>

#include "../../../codelets/sparse/unsymmetric/gmres.hpp"
#include "../krylov/looks.hpp"
#include "../krylov/solver.hpp"

namespace asterism::sparse {

/// An iteration multiplies with A and with M^-1 once, and with all vectors of the basis, which begins anew after
/// LinearSettings::restart of them. solve() also ends with Reason::breakdown: A is singular, as far as b shows.
template <class T, class V = T>
class Gmres : public KrylovSolver<T, V> {
 public:
  /// @throw Error: a restart that makes no sense; as KrylovSolver. With several ranks: collective.
  Gmres(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings,
        typename KrylovSolver<T, V>::Outer outer = {});

 private:
  using Base = KrylovSolver<T, V>;
  using Base::blocks, Base::count, Base::hat, Base::inverse_diagonal, Base::system, Base::tiles;
  using typename Base::Seen;

  /// The tiles of a block.
  struct GmresTiles {
    std::vector<Tile<T>> basis;
    Tile<T> w;
    Tile<double> sums, more_sums, problem;
    Tile<GmresState> state;
  };

  explicit Gmres(const typename Base::Beside& beside);

  void begin(Index attempt) override;
  void iterate_all(const typename Base::Solvers& going) override;
  [[nodiscard]] std::unique_ptr<Base> another(Index number) const override;
  [[nodiscard]] Index vectors() const override { return m_ + 12; }
  void finish() override;
  [[nodiscard]] Index most_between_looks() const override { return 30; }
  void submit_look(Index number) override;
  [[nodiscard]] std::optional<Seen> look(Index number) override;

  void make_tiles();
  [[nodiscard]] GmresArgs args(Index block) const;
  [[nodiscard]] TileList<T> basis(Index block, Index vectors) const;
  void begin_basis(bool anew);
  void multiply();
  void project();
  void extend_basis();
  void correct();

  Index m_;
  std::vector<GmresTiles> gmres_;
  TileList<double> all_sums_, all_more_sums_;
  KrylovLooks<GmresState> looks_;
  Index step_ = 0, column_ = 0;
};

}  // namespace asterism::sparse
