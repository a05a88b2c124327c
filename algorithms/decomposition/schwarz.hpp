/// \file
/// The blocks of subdomains as a preconditioner: additive Schwarz methods (Z1), with a coarse space (Z2) if wanted.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "../../codelets/decomposition/schwarz.hpp"
#include "../sparse/preconditioners/outer_preconditioner.hpp"
#include "cut/subdomains.hpp"
#include "factors/local_factors.hpp"
#include "transfer.hpp"

namespace asterism::decomposition {

/// What a subdomain gives back of its solution.
enum class Combination {
  restricted,  ///< its own rows: fewer iterations, but no symmetric preconditioner
  symmetric,  ///< all its rows, which are added to those of others, weighed by weigh(): for conjugate gradients
};

struct SchwarzSettings {
  SubdomainSettings subdomains = {};
  Combination combination = Combination::restricted;
  Index patches = 0;  ///< of each subdomain, as far as it has rows; 0: no coarse space
  FactorSettings factors = {};
};

struct SchwarzFacts {
  std::vector<Index> own_rows, rows;  ///< of each subdomain; with its overlap
  std::vector<int> owners;
  FactorFacts factors;
  Index coarse_rows = 0;
  std::optional<FactorFacts> coarse = {};
  double seconds_partition = 0;
  Index bytes_between_ranks = 0;  ///< for each time that it is applied
};

/// z = M^-1 r, of a matrix whose rows keep their natural order. Without a coarse space (Z1), which shall be S here; with
/// one, r_1 = r - A Q r, z_1 = S r_1:
///
///     (Z3)  restricted: z = Q r + z_1; symmetric: z = Q r + z_1 + Q (r_1 - A z_1) - the balanced form, [Mandel 1993].
///
/// @tparam V the type of the local factors
template <class T, class V = T>
class Schwarz : public sparse::OuterPreconditioner<T> {
 public:
  using VectorOf = typename sparse::OuterPreconditioner<T>::VectorOf;

  /// Cuts A into subdomains, and factorises their blocks. @param mine this rank's rows of A; every rank gets all of them
  /// while it sets up. With several ranks: collective. @throw Error: as cut_into_subdomains, LocalFactors, or settle() does
  Schwarz(Runtime& runtime, const sparse::Csr<T>& mine, const SchwarzSettings& settings);

  [[nodiscard]] const SchwarzFacts& facts() const { return facts_; }

  void attach(const sparse::LinearSystem<T>& system) override;
  [[nodiscard]] Index most_together(Index wanted) const override;
  void make_room(Index vectors) override;
  void apply(const std::vector<VectorOf>& r, const std::vector<VectorOf>& z) override;
  void settle() override;

 private:
  /// Of a group of subdomains, one behind the other; own rows with a coarse space only.
  struct GroupTiles {
    Tile<T> y;  ///< a row for each vector
    Tile<T> coarse_work;
    Tile<std::int32_t> patches, members, member_begins;
  };
  /// What blocks and groups give each other.
  struct Ways {
    Transfer<T> there, back;
    [[nodiscard]] Ways another(Runtime& runtime) const {
      return {there.another(runtime), back.another(runtime)};
    }
  };
  /// Of a vector that it is applied to, of those together.
  struct Column {
    Ways local = {};
    // With a coarse space:
    Ways coarse = {};
    sparse::Exchange<T> exchange = {};
    std::vector<Tile<T>> r = {};            // of blocks
    std::vector<Tile<double>> rr = {};      // likewise
    std::vector<Tile<T>> coarse_y = {};     // of groups
    std::vector<Tile<double>> sums = {};    // likewise
    std::vector<Tile<double>> values = {};  // of patches, on each rank
  };

  void make_coarse(const sparse::Csr<T>& whole);
  [[nodiscard]] std::vector<Subdomain> all_patches() const;
  void make_tiles();
  void make_y(Index group, Index vectors, Index rows);
  void set_patches(Index group, const GroupTiles& tiles) const;
  [[nodiscard]] const Partition& groups() const { return factors_.groups(); }
  [[nodiscard]] Index count() const { return static_cast<Index>(subdomains_.size()); }
  [[nodiscard]] Index patches_of(Index group) const;
  [[nodiscard]] Hints hints(Index group, std::size_t vectors = 1) const;
  void send(const VectorOf& r, const Transfer<T>& there) const;
  void assemble(const Transfer<T>& back, const VectorOf& z, bool anew) const;
  void add_column(Column column);
  void add_local(const std::vector<VectorOf>& r, const std::vector<VectorOf>& z, bool anew);
  void solve_locally(Index group, std::size_t vectors);
  void add_coarse(const Column& column, const VectorOf& r, const VectorOf& z, bool anew);
  void submit_residual(const Column& column, const VectorOf& r, const VectorOf& z);

  Runtime* runtime_;
  SchwarzSettings settings_;
  SchwarzFacts facts_;
  std::vector<Subdomain> subdomains_;
  LocalFactors<V> factors_;
  std::vector<GroupTiles> tiles_;

  // With a coarse space:
  std::vector<std::vector<std::int32_t>> patch_of_;  // of each subdomain's own rows, counted from its first
  std::vector<Index> first_patch_;                   // of each subdomain, and in the end all
  std::vector<LocalFactors<double>> coarse_;         // on each rank, the same

  const sparse::LinearSystem<T>* system_ = nullptr;
  std::vector<Index> memory_;  // bytes of main memory of each rank
  std::vector<Column> columns_;
};

}  // namespace asterism::decomposition
