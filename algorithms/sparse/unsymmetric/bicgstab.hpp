/// \file
/// BiCGStab, [van der Vorst 1992], for matrices that need not be symmetric, preconditioned from the right.
#pragma once

#include <optional>
#include <vector>

#include "../../../codelets/sparse/unsymmetric/bicgstab.hpp"
#include "../krylov/looks.hpp"
#include "../krylov/solver.hpp"

namespace asterism::sparse {

/// An iteration multiplies with A and with M^-1 twice. solve() also ends with Reason::breakdown: there was nothing to
/// divide by, and other shadow residuals did not help.
template <class T, class V = T>
class BiCgStab : public KrylovSolver<T, V> {
 public:
  /// @throw Error: as KrylovSolver. With several ranks: collective.
  BiCgStab(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings,
           typename KrylovSolver<T, V>::Outer outer = {});

 private:
  using Base = KrylovSolver<T, V>;
  using Base::blocks, Base::count, Base::hat, Base::inverse_diagonal, Base::system, Base::tiles;
  using typename Base::Seen;

  /// The tiles of a block. rr_half: (r, r) between the two halves of an iteration.
  struct BicgTiles {
    Tile<T> shadow, p, q, t;
    Tile<double> qa, qq, rr_half, rho;
    Tile<BicgState> state;
  };

  explicit BiCgStab(const typename Base::Beside& beside);

  void begin(Index attempt) override;
  void iterate_all(const typename Base::Solvers& going) override;
  [[nodiscard]] std::unique_ptr<Base> another(Index number) const override;
  [[nodiscard]] Index vectors() const override { return 16; }
  [[nodiscard]] Index most_between_looks() const override { return 30; }
  void submit_look(Index number) override;
  [[nodiscard]] std::optional<Seen> look(Index number) override;

  void make_tiles();
  [[nodiscard]] BicgArgs args(Index block) const;
  void multiply(const typename Base::VectorOf& with, Tile<T> BicgTiles::*result);
  void half_step();
  void full_step();
  void turn();

  std::vector<BicgTiles> bicg_;
  TileList<double> all_qa_, all_qq_, all_rr_half_, all_rho_;
  KrylovLooks<BicgState> looks_;
  Index iteration_ = 0;
};

}  // namespace asterism::sparse
