/// \file
/// (P1) in long double, slowly: the difference operator by its definition in words, and its inverse by the
/// eigenvectors of every axis, whose eigenvalues also tell the problem's condition. Nothing here is the
/// library's but the statement of the problem.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/poisson/problem/problem.hpp"

namespace asterism::test {

using Real = long double;
using Reals = std::vector<Real>;

/// The second difference along one axis: the difference of the slopes on either side of a node, over the
/// width of its cell. Slopes are between neighbours, or between a node and the value at a Dirichlet end; at a
/// Neumann end they are given.
struct OracleAxis {
  OracleAxis(const poisson::Problem& problem, std::size_t a);

  std::string ends;   // 'd', 'n' or 'p' for each
  Reals distance;     // [i]: from node i - 1, or from the end, to node i; one more than nodes; not used at
                      // Neumann ends
  Reals width;        // of every node's cell
  Real largest_step;  // between nodes or faces

  /// Eigenvectors of D in some unit of length, which all axes of equal spacings share with those of other
  /// lengths.
  struct Modes {
    Reals eigenvalues;        // none of them positive; the largest last
    Reals forward, backward;  // to coefficients, and back: n x n, in C order
  };
  std::shared_ptr<const Modes> modes;
  Real unit = 1;

  [[nodiscard]] std::size_t size() const { return width.size(); }
  [[nodiscard]] Real eigenvalue(std::size_t k) const { return modes->eigenvalues[k] / (unit * unit); }

  /// Calls add(k, weight) for the values that make D u at node i.
  template <class Add>
  void for_weights(std::size_t i, Add add) const {
    const std::size_t n = size();
    for (const std::size_t side : {0, 1}) {
      const bool outside = i == (side == 0 ? 0 : n - 1);
      // Neither beyond a Neumann end nor, on a periodic axis of one node, from this to itself is there a
      // slope.
      if (outside && (ends[side] == 'n' || (ends[side] == 'p' && n == 1))) continue;
      const Real weight = 1 / (distance[i + side] * width[i]);
      add(i, -weight);
      if (!outside || ends[side] == 'p') add((i + n + (side == 0 ? n - 1 : 1)) % n, weight);
    }
  }

  /// What a value of one, given at an end, adds to D u at the node next to it.
  [[nodiscard]] Real given_weight(std::size_t end) const;
};

/// A u = f. Numbers of the whole batch, in C order.
class Oracle {
 public:
  /// @param problem stays where it is; its lambda and given values may change
  explicit Oracle(const poisson::Problem& problem);

  [[nodiscard]] const std::vector<OracleAxis>& axes() const { return axes_; }
  /// Of one problem of the batch.
  [[nodiscard]] std::size_t unknowns() const { return eigenvalues_.size(); }
  /// Eigenvalues of A less lambda, none of them positive.
  [[nodiscard]] const Reals& laplacian_eigenvalues() const { return eigenvalues_; }
  /// Whether constants solve the homogeneous problem.
  [[nodiscard]] bool singular() const { return floats_ && problem_.lambda == 0; }
  /// ||D||_inf + |lambda|, D the discrete Laplacian
  [[nodiscard]] Real norm() const;
  /// The magnitude of the eigenvalue next to zero; of those that are not zero, where the problem is singular.
  [[nodiscard]] Real smallest_eigenvalue() const;
  /// How much relative errors grow: those of A's parts, which may cancel in lambda > 0, to those of u.
  [[nodiscard]] Real condition() const;

  /// f less what the given values add to A u.
  [[nodiscard]] Reals lifted(Reals f) const;
  /// f less its mean over each problem, by the cells' sizes, where the problem is singular.
  [[nodiscard]] Reals projected(Reals f) const;
  [[nodiscard]] Reals apply(const Reals& u) const;
  [[nodiscard]] Reals solve(const Reals& f) const;

 private:
  /// How the lines along an axis lie in the batch: node i of line (o, c) is number (o n + i) inner + c.
  struct Lines {
    std::size_t outer, n, inner;
  };
  [[nodiscard]] Lines lines(std::size_t a) const;
  [[nodiscard]] Reals transformed(Reals values, bool forward) const;

  const poisson::Problem& problem_;
  std::vector<OracleAxis> axes_;
  Reals eigenvalues_, volume_;
  bool floats_ = true;  // no Dirichlet end
};

/// ||a||_2
Real norm2(const Reals& a);
/// a - b
Reals difference(Reals a, const Reals& b);

}  // namespace asterism::test
