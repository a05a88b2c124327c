/// \file
/// A preconditioner at work: z = M^-1 r by tasks, (Q1) to (Q3).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "../../../codelets/sparse/preconditioner.hpp"
#include "../linear_system.hpp"

namespace asterism::sparse {

/// @tparam V the type of its numbers
template <class T, class V>
class AppliedPreconditioner {
 public:
  AppliedPreconditioner() = default;
  /// @param system has to live as long. With several ranks: collective.
  AppliedPreconditioner(const LinearSystem<T>& system, const PreparedPreconditioner<T>& prepared);

  using VectorOf = typename LinearSystem<T>::VectorOf;
  /// Submits z = M^-1 r by tasks of others. @param r a block's own elements @param z as OuterPreconditioner::apply
  using Users = std::function<void(const VectorOf& r, const VectorOf& z)>;
  /// Tasks of others. @param system has to live as long
  AppliedPreconditioner(const LinearSystem<T>& system, Users users);
  /// The same one for vectors that are under way beside others; all but vectors is shared. With several ranks:
  /// collective.
  [[nodiscard]] AppliedPreconditioner another() const;
  /// The same for other values, once the system has them. With several ranks: collective.
  void refresh(const PreparedPreconditioner<T>& prepared);

  [[nodiscard]] PreconditionerKind kind() const { return kind_; }
  /// Whether apply() makes a z; a diagonal is applied by those who have r in hand.
  [[nodiscard]] bool has_z() const {
    return kind_ != PreconditionerKind::none && kind_ != PreconditionerKind::diagonal;
  }
  /// D^-1 on a block; nullptr: there is none.
  [[nodiscard]] const Tile<V>* inverse_diagonal(Index block) const;

  /// Tasks of its own that apply() submits for each block.
  [[nodiscard]] Index tasks() const;
  /// Submits z = M^-1 r. @param r a block's own elements @return where z is: vectors with what blocks have entries in
  void apply(const typename LinearSystem<T>::VectorOf& r);
  [[nodiscard]] const Tile<T>& z(Index block) const { return tiles_[static_cast<std::size_t>(block)].z; }

  /// All of it, for a task that applies it to a matrix that is a single block.
  [[nodiscard]] PreconditionerShape shape() const;
  [[nodiscard]] PreconditionerPorts<AsTiles, T, V> ports() const;

 private:
  /// Of every block of this rank, the elements of others that it needs.
  using Wanted = std::vector<std::vector<Index>>;
  /// What has been set up, for any number of vectors.
  struct SetUp {
    std::vector<PolynomialStep> polynomial;
    BlockMatrix<V> left, right;
    std::vector<Wanted> forward, backward;  // of each stage
    // of each block:
    std::vector<Stages> stages;
    std::vector<Tile<std::int32_t>> stages_tiles;
    std::vector<Tile<V>> inverse_diagonal;
  };
  struct BlockTiles {
    Tile<T> z, next, s;
  };

  void make_matrices(const PreparedPreconditioner<T>& prepared);
  void make_stages(const PreparedPreconditioner<T>& prepared);
  void make_diagonal();
  void load_diagonal(const PreparedPreconditioner<T>& prepared);
  [[nodiscard]] std::vector<Wanted> wanted_by_stage(const Csr<T>& factor,
                                                    const PreparedPreconditioner<T>& prepared) const;
  void make_vectors();
  [[nodiscard]] BlockPorts<AsTiles, V> left(Index block) const;
  [[nodiscard]] const BlockShape& left_shape(Index block) const;
  void apply_polynomial(const typename LinearSystem<T>::VectorOf& r);
  void apply_triangular(const typename LinearSystem<T>::VectorOf& r);
  void submit_stage(Half half, Index stage, Index block, const Tile<T>& r, const Exchange<T>* arriving,
                    const Exchange<T>& departing);

  const LinearSystem<T>* system_ = nullptr;
  PreconditionerKind kind_ = PreconditionerKind::none;
  bool sequential_ = false;
  Users users_;
  std::shared_ptr<SetUp> set_up_ = std::make_shared<SetUp>();
  Exchange<T> exchange_z_[2];
  std::vector<Exchange<T>> forward_, backward_;  // of each stage
  std::vector<BlockTiles> tiles_;
};

}  // namespace asterism::sparse
