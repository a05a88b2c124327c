/// \file
/// Arrays of any number of axes and (P1) on them, by its definition in words: what lies beyond an end is what
/// the condition there says.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tools/files/npy/npy.hpp"
#include "worst.hpp"

namespace asterism::test {

/// In C order.
struct Array {
  std::vector<Index> shape;
  std::vector<double> values;

  explicit Array(std::vector<Index> extents) : shape(std::move(extents)) {
    std::size_t count = 1;
    for (const Index extent : shape) count *= static_cast<std::size_t>(extent);
    values.resize(count);
  }

  Array& fill_random(unsigned seed) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (double& value : values) value = static_cast<float>(uniform(engine));  // the same in both precisions
    return *this;
  }

  /// Part `i` of the first axis.
  [[nodiscard]] Array part(Index i) const {
    Array a(std::vector<Index>(shape.begin() + 1, shape.end()));
    const auto size = static_cast<std::ptrdiff_t>(a.values.size());
    a.values.assign(values.begin() + i * size, values.begin() + (i + 1) * size);
    return a;
  }
};

template <class T = double>
void save(const std::filesystem::path& path, const Array& a) {
  tools::NpyWriter writer(path, tools::precision_of<T>, a.shape);
  const std::vector<T> values(a.values.begin(), a.values.end());
  writer.write_rows(0, writer.header().rows(), values.data(), writer.header().cols());
  writer.commit();
}

inline Array read_array(const std::filesystem::path& path) {
  const tools::NpyReader reader(path, {1, 4});
  Array a(reader.header().shape);
  reader.read_rows(0, reader.header().rows(), a.values.data(), reader.header().cols());
  return a;
}

/// One axis of a problem, with 'd', 'n' or 'p' for the conditions at its ends.
struct Ended {
  std::string ends = "dd";
  double length = 1;
  std::vector<double> lower = {}, upper = {};  ///< given values, one for each node of the side; empty: zero
  std::vector<double> coordinates = {};        ///< as for --coordinates; empty: equal spacings
};

struct Equation {
  std::vector<Ended> axes;  ///< slowest first
  bool cells = false;       ///< cell-centred
  double lambda = 0;
};

/// The nodes along an axis: what (A1) is made of there. In long double, so that it makes no difference to the
/// distances where the axis begins.
class Nodes {
 public:
  using Real = long double;

  Nodes(const Ended& axis, bool cells, Index n)
      : axis_(axis), cells_(cells), n_(n), faces_(axis.coordinates.begin(), axis.coordinates.end()) {
    const auto neumann = [&](std::size_t end) { return axis.ends[end] == 'n' ? 1 : 0; };
    const Index intervals = cells || axis.ends == "pp" ? n : n + 1 - neumann(0) - neumann(1);
    if (faces_.empty())
      for (Index i = 0; i <= intervals; ++i)
        faces_.push_back(static_cast<Real>(axis.length) * static_cast<Real>(i) /
                         static_cast<Real>(intervals));
  }

  /// Of node i; -1 and n: of the ends, or of a periodic axis' neighbours there.
  [[nodiscard]] Real position(Index i) const {
    const Real span = faces_.back() - faces_.front();
    if (axis_.ends == "pp" && i < 0) return position(i + n_) - span;
    if (axis_.ends == "pp" && i >= n_) return position(i - n_) + span;
    if (i < 0) return faces_.front();
    if (i >= n_) return faces_.back();
    const Index first = !cells_ && axis_.ends[0] == 'd' ? i + 1 : i;
    return cells_ ? (face(i) + face(i + 1)) / 2 : face(first);
  }

  /// Of the cell of node i.
  [[nodiscard]] Real width(Index i) const {
    if (cells_) return face(i + 1) - face(i);
    const bool first = i == 0 && axis_.ends[0] == 'n', last = i == n_ - 1 && axis_.ends[1] == 'n';
    return ((last ? position(i) : position(i + 1)) - (first ? position(i) : position(i - 1))) / 2;
  }

  /// The largest sum of magnitudes in a row of the second difference's matrix.
  [[nodiscard]] double norm() const {
    Worst largest;
    for (Index i = 0; i < n_; ++i) {
      Real links = 0;
      if (i > 0 || end(0) != 'n') links += 1 / (position(i) - position(i - 1));
      if (i < n_ - 1 || end(1) != 'n') links += 1 / (position(i + 1) - position(i));
      largest.take_in(2 * links / width(i));
    }
    return static_cast<double>(largest.value());
  }

  [[nodiscard]] char end(std::size_t which) const { return axis_.ends[which]; }

 private:
  [[nodiscard]] Real face(Index i) const { return faces_[static_cast<std::size_t>(i)]; }

  const Ended& axis_;
  bool cells_;
  Index n_;
  std::vector<Real> faces_;
};

/// What a problem's residual and its mean are.
struct Residual {
  double scaled;  ///< ||f - A u||_2 / (||A|| ||u||_2 + ||f||_2)
  double mean_f;  ///< by the cells' sizes
  double mean_u;
};

/// Of f - shift and u, which have the same shape.
inline Residual residual_of(const Equation& equation, const Array& f, const Array& u, double shift = 0) {
  const std::size_t axes = f.shape.size();
  std::vector<Nodes> nodes;
  double norm = std::abs(equation.lambda);
  for (std::size_t a = 0; a < axes; ++a) {
    nodes.emplace_back(equation.axes[a], equation.cells, f.shape[a]);
    norm += nodes[a].norm();
  }
  double r2 = 0, u2 = 0, f2 = 0, sum_f = 0, sum_u = 0, volume = 0;
  std::vector<Index> at(axes);
  for (std::size_t k = 0; k < u.values.size(); ++k) {
    std::size_t rest = k;
    for (std::size_t a = axes; a-- > 0; rest /= static_cast<std::size_t>(f.shape[a]))
      at[a] = static_cast<Index>(rest % static_cast<std::size_t>(f.shape[a]));
    long double applied = equation.lambda * u.values[k], cell = 1;
    std::size_t stride = 1;
    for (std::size_t a = axes; a-- > 0; stride *= static_cast<std::size_t>(f.shape[a])) {
      const Index n = f.shape[a], i = at[a];
      const Nodes& line = nodes[a];
      std::size_t on_side = 0;
      for (std::size_t b = 0; b < axes; ++b)
        if (b != a)
          on_side = on_side * static_cast<std::size_t>(f.shape[b]) + static_cast<std::size_t>(at[b]);
      const auto other = [&](Index j) { return u.values[k + static_cast<std::size_t>(j - i) * stride]; };
      // The derivative half way to the neighbour, or at the end.
      const auto slope = [&](Index step) -> long double {
        const Index j = i + step;
        const std::size_t which = step < 0 ? 0 : 1;
        const std::vector<double>& given = step < 0 ? equation.axes[a].lower : equation.axes[a].upper;
        const double value = given.empty() ? 0 : given[on_side];
        const bool outside = j < 0 || j >= n;
        if (outside && line.end(which) == 'n') return value;
        const double beyond = !outside ? other(j) : line.end(which) == 'p' ? other((j + n) % n) : value;
        return (beyond - u.values[k]) / (line.position(j) - line.position(i));
      };
      applied += (slope(1) - slope(-1)) / line.width(i);
      cell *= line.width(i);
    }
    const double rhs = f.values[k] - shift;
    const double residual = static_cast<double>(rhs - applied), size = static_cast<double>(cell);
    r2 += residual * residual;
    u2 += u.values[k] * u.values[k];
    f2 += rhs * rhs;
    sum_f += size * f.values[k];
    sum_u += size * u.values[k];
    volume += size;
  }
  return {std::sqrt(r2) / (norm * std::sqrt(u2) + std::sqrt(f2)), sum_f / volume, sum_u / volume};
}

}  // namespace asterism::test
