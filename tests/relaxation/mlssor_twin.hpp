/// \file
/// Multi-layer SSOR by its definition, node by node on the whole grid.
#pragma once

#include <algorithm>
#include <array>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "codelets/relaxation/mlssor.hpp"

namespace asterism::test {

using relaxation::Direction;
using relaxation::FivePoint;
using relaxation::Part;

constexpr std::array<std::pair<Part, Part>, 4> kinds{{{Part::first, Part::first},
                                                      {Part::first, Part::second},
                                                      {Part::second, Part::first},
                                                      {Part::second, Part::second}}};

inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// A grid with its frame, and g.
template <class T>
struct Grid {
  Index m, n;
  std::vector<T> v, g;  // (m + 2) x (n + 2), node (i, j) at (i + 1, j + 1)

  Grid(Index rows, Index cols) : m(rows), n(cols), v(at((m + 2) * (n + 2))), g(v.size()) {}
  Grid(Index rows, Index cols, unsigned seed) : Grid(rows, cols) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (T& x : v) x = static_cast<T>(uniform(engine));
    for (T& x : g) x = static_cast<T>(uniform(engine));
  }
  [[nodiscard]] std::size_t place(Index i, Index j) const { return at((i + 1) * (n + 2) + j + 1); }
};

/// Which subdomain the position p along an axis belongs to in a layer, and which part of it: counted cut by
/// cut.
struct Belongs {
  Index subdomain = 0;
  Part part = Part::first;
  Belongs(Index p, Index k, Index extent, Index n) {
    const Index subdomains = (extent + n - 1) / n;
    for (Index s = 1; s < subdomains; ++s)
      if (p >= s * n + k) subdomain = s;
    if (p >= subdomain * n + n - 1 - k) part = Part::second;
  }
  bool operator==(const Belongs&) const = default;
};

/// A sweep by definition. Backward: the positions are counted from the grid's other end, that of its last
/// whole subdomain.
template <class T>
class MultiLayerTwin {
 public:
  MultiLayerTwin(Grid<T>& grid, Index n, Index layers, const FivePoint<T>& a, T omega)
      : grid_(&grid), n_(n), layers_(layers), a_(a), omega_(omega), relaxed_(grid.v.size()) {}

  /// The subdomains of a kind in an order drawn at random.
  void sweep(Direction direction, std::mt19937_64& engine) {
    const Index across = (grid_->m + n_ - 1) / n_, along = (grid_->n + n_ - 1) / n_;
    std::vector<std::pair<Index, Index>> subdomains;
    for (Index s = 0; s < across; ++s)
      for (Index t = 0; t < along; ++t) subdomains.emplace_back(s, t);
    for (const auto& [of_rows, of_columns] : kinds) {
      std::shuffle(subdomains.begin(), subdomains.end(), engine);
      for (const auto& [s, t] : subdomains) tile(direction, of_rows, of_columns, s, t);
    }
  }
  /// How often the nodes were relaxed.
  [[nodiscard]] bool all_relaxed(int times) const {
    for (Index i = 0; i < grid_->m; ++i)
      for (Index j = 0; j < grid_->n; ++j)
        if (relaxed_[grid_->place(i, j)] != times) return false;
    return true;
  }

 private:
  void tile(Direction direction, Part of_rows, Part of_columns, Index s, Index t) {
    const Index m = grid_->m, n = grid_->n;
    const auto belongs = [&](Index p, Index k, Index extent, Index subdomain, Part part) {
      const Belongs b(p, k, extent, n_);
      return b.subdomain == subdomain && b.part == part;
    };
    const auto node = [&](Index p, Index extent) {
      return direction == Direction::forward ? p : (extent + n_ - 1) / n_ * n_ - 1 - p;
    };
    // A subdomain ends with the second part of its last layer.
    const Index last_row = (s + 1) * n_ + layers_, last_column = (t + 1) * n_ + layers_;
    for (Index k = 0; k < layers_; ++k)
      for (Index p = s > 0 ? s * n_ : 0; p < last_row; ++p) {
        const Index i = node(p, m);
        if (i < 0 || i >= m || !belongs(p, k, m, s, of_rows)) continue;
        for (Index q = t > 0 ? t * n_ : 0; q < last_column; ++q) {
          const Index j = node(q, n);
          if (j >= 0 && j < n && belongs(q, k, n, t, of_columns)) relax(i, j);
        }
      }
  }

  void relax(Index i, Index j) {
    const auto& v = grid_->v;
    T& x = grid_->v[grid_->place(i, j)];
    const T sum = relaxation::balance(a_, v[grid_->place(i - 1, j)], v[grid_->place(i + 1, j)],
                                      v[grid_->place(i, j - 1)], v[grid_->place(i, j + 1)]) +
                  grid_->g[grid_->place(i, j)];
    x = relaxation::relaxed(omega_, x, sum);
    ++relaxed_[grid_->place(i, j)];
  }

  Grid<T>* grid_;
  Index n_, layers_;
  FivePoint<T> a_;
  T omega_;
  std::vector<int> relaxed_;
};

struct Case {
  Index m, n, subdomain, layers;
};

/// For messages.
inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "grid " << c.m << " x " << c.n << ", subdomains of " << c.subdomain << ", " << c.layers
             << " layers";
}

}  // namespace asterism::test
