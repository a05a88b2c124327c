/// \file
/// The distributive conjugate gradients (DCG), [Czapinski 2014] algorithm 7.1.
#pragma once

#include <optional>
#include <vector>

#include "../../codelets/decomposition/dcg.hpp"
#include "../sparse/krylov/solver.hpp"
#include "cut/subdomains.hpp"
#include "residual_looks.hpp"
#include "transfer.hpp"

namespace asterism::decomposition {

/// (Y1), (Y2): a task each for each subdomain and iteration; what its neighbours need of x travels in between. The residual
/// that is judged is the true one, b - A x, of the subdomains' own rows. It rises and falls, and need not converge.
template <class T>
class Dcg : public sparse::KrylovSolver<T> {
 public:
  /// @param mine taken to be symmetric and positive definite. With several ranks: collective.
  /// @throw Error: as KrylovSolver, cut_into_subdomains
  Dcg(Runtime& runtime, const sparse::Csr<T>& mine, const sparse::LinearSettings& settings,
      const SubdomainSettings& subdomains);

  /// Bytes that cross from rank to rank in each iteration.
  [[nodiscard]] Index bytes_between_ranks() const { return neighbours_.bytes_between_ranks(); }

 private:
  using Base = sparse::KrylovSolver<T>;
  using typename Base::Seen;

  /// Rows of a subdomain; a part of their columns.
  struct RowTiles {
    Tile<std::int32_t> begins, columns;
    Tile<T> values;
    [[nodiscard]] RowPorts<AsTiles, T> ports() const;
  };
  struct SubdomainTiles {
    RowTiles inside, between;  // L and H
    Tile<T> x, r, p, outside, work;
  };

  void begin(Index) override;
  void iterate_all(const typename Base::Solvers& going) override;
  void finish() override { bring_x(); }
  void submit_look(Index number) override;
  [[nodiscard]] std::optional<Seen> look(Index number) override;

  void iterate_once();
  void make_tiles(const sparse::Csr<T>& whole, Index subdomain, int owner);
  void make_transfers(const std::vector<int>& owners);
  void bring_x();
  [[nodiscard]] Index subdomain_count() const { return static_cast<Index>(subdomains_.size()); }

  std::vector<Subdomain> subdomains_;
  std::vector<std::vector<Index>> outside_;  // of each subdomain: the rows that H has entries in, ascending
  std::vector<SubdomainTiles> of_subdomains_;
  Transfer<T> x_there_, r_there_, outside_there_;  // from blocks
  Transfer<T> back_;                               // own rows, to blocks
  Transfer<T> neighbours_;                         // from subdomains to what is outside of others
  ResidualLooks looks_;
  Index iteration_ = 0;
};

}  // namespace asterism::decomposition
