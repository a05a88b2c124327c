#include "separable_oracle.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "../support/worst.hpp"

namespace asterism::test {
namespace {

using poisson::Centering;
using poisson::Condition;
using poisson::Problem;

constexpr char letters_of_conditions[] = {'d', 'n', 'p'};

OracleAxis::Modes decompose(const OracleAxis& axis) {
  using Square = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
  const auto n = static_cast<Eigen::Index>(axis.size());
  const auto root = [&](Eigen::Index i) { return std::sqrt(axis.width[static_cast<std::size_t>(i)]); };
  Square d = Square::Zero(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    axis.for_weights(static_cast<std::size_t>(i), [&](std::size_t k, Real weight) {
      const auto j = static_cast<Eigen::Index>(k);
      d(i, j) += weight * root(i) / root(j);  // symmetric: a link is the same from both its ends
    });
  const Eigen::SelfAdjointEigenSolver<Square> solver(d);
  OracleAxis::Modes modes;
  for (Eigen::Index k = 0; k < n; ++k) modes.eigenvalues.push_back(solver.eigenvalues()(k));
  if (axis.ends.find('d') == std::string::npos) modes.eigenvalues.back() = 0;
  for (Eigen::Index k = 0; k < n; ++k)
    for (Eigen::Index j = 0; j < n; ++j) {
      modes.forward.push_back(solver.eigenvectors()(j, k) * root(j));
      modes.backward.push_back(solver.eigenvectors()(k, j) / root(k));
    }
  return modes;
}

}  // namespace

OracleAxis::OracleAxis(const Problem& problem, std::size_t a) {
  const auto n = static_cast<std::size_t>(problem.shape[a]);
  const poisson::Ends given = problem.ends.empty() ? poisson::Ends{} : problem.ends[a];
  for (const Condition condition : {given.lower.condition, given.upper.condition})
    ends += letters_of_conditions[static_cast<int>(condition)];
  const bool cells = problem.centering == Centering::cell, periodic = ends == "pp";
  const bool equal_spacings = a > 0 || problem.coordinates.empty();

  // Cells between faces, or nodes one step apart, from one end of the axis to the other.
  Reals points(equal_spacings ? 0 : problem.coordinates.size());
  if (equal_spacings) {
    const std::size_t steps =
        cells || periodic ? n : n + 1 - static_cast<std::size_t>(std::count(ends.begin(), ends.end(), 'n'));
    const Real length = problem.lengths.empty() ? 1 : static_cast<Real>(problem.lengths[a]);
    for (std::size_t i = 0; i <= steps; ++i) points.push_back(static_cast<Real>(i));
    unit = length / static_cast<Real>(steps);
  } else {
    std::copy(problem.coordinates.begin(), problem.coordinates.end(), points.begin());
  }

  Reals nodes;
  for (std::size_t i = 0; i < n; ++i)
    nodes.push_back(cells ? (points[i] + points[i + 1]) / 2 : points[i + (ends[0] == 'd' ? 1 : 0)]);
  distance.resize(n + 1);
  std::adjacent_difference(nodes.begin(), nodes.end(), distance.begin());
  distance.front() = nodes.front() - points.front();
  distance.back() = points.back() - nodes.back();
  if (periodic) distance.front() = distance.back() = distance.front() + distance.back();
  for (std::size_t i = 0; i < n; ++i)
    width.push_back(cells ? points[i + 1] - points[i] : (distance[i] + distance[i + 1]) / 2);

  Reals steps(points.size());
  std::adjacent_difference(points.begin(), points.end(), steps.begin());
  largest_step = *std::max_element(steps.begin() + 1, steps.end()) * unit;

  if (equal_spacings) {
    static std::map<std::tuple<std::size_t, std::string, bool>, std::shared_ptr<const Modes>> known;
    std::shared_ptr<const Modes>& entry = known[{n, ends, cells}];
    if (!entry) entry = std::make_shared<Modes>(decompose(*this));
    modes = entry;
    for (Real& d : distance) d *= unit;
    for (Real& w : width) w *= unit;
  } else {
    modes = std::make_shared<Modes>(decompose(*this));
  }
}

Real OracleAxis::given_weight(std::size_t end) const {
  const std::size_t node = end == 0 ? 0 : size() - 1;
  if (ends[end] == 'd') return 1 / (distance[node + end] * width[node]);
  return (end == 0 ? -1 : 1) / width[node];
}

Oracle::Oracle(const Problem& problem) : problem_(problem), eigenvalues_{0}, volume_{1} {
  for (std::size_t a = 0; a < problem.shape.size(); ++a) {
    const OracleAxis& axis = axes_.emplace_back(problem, a);
    floats_ = floats_ && axis.ends.find('d') == std::string::npos;
    Reals eigenvalues, volume;
    for (std::size_t i = 0; i < eigenvalues_.size(); ++i)
      for (std::size_t k = 0; k < axis.size(); ++k) {
        eigenvalues.push_back(eigenvalues_[i] + axis.eigenvalue(k));
        volume.push_back(volume_[i] * axis.width[k]);
      }
    eigenvalues_.swap(eigenvalues);
    volume_.swap(volume);
  }
}

Real Oracle::norm() const {
  Real norm = std::abs(static_cast<Real>(problem_.lambda));
  for (const OracleAxis& axis : axes_) {
    Worst largest;
    for (std::size_t i = 0; i < axis.size(); ++i) {
      Real off = 0, on = 0;
      axis.for_weights(i, [&](std::size_t, Real weight) { (weight < 0 ? on : off) += weight; });
      largest.take_in(off - on);
    }
    norm += largest.value();
  }
  return norm;
}

Real Oracle::smallest_eigenvalue() const {
  Real smallest = INFINITY;
  for (const Real mu : eigenvalues_)
    if (!singular() || mu < 0) smallest = std::min(smallest, std::abs(mu + problem_.lambda));
  return smallest;
}

Real Oracle::condition() const {
  Worst largest;
  for (const Real mu : eigenvalues_) largest.take_in(mu);
  // Where the mean is all there is, no eigenvalue is left to divide by.
  const Real ratio = (largest.value() + std::abs(static_cast<Real>(problem_.lambda))) / smallest_eigenvalue();
  return ratio < 1 ? 1 : ratio;  // of NaN NaN
}

Oracle::Lines Oracle::lines(std::size_t a) const {
  Lines lines{static_cast<std::size_t>(problem_.batch), axes_[a].size(), 1};
  for (std::size_t b = 0; b < axes_.size(); ++b)
    if (b != a) (b < a ? lines.outer : lines.inner) *= axes_[b].size();
  return lines;
}

Reals Oracle::lifted(Reals f) const {
  for (std::size_t a = 0; a < problem_.ends.size(); ++a) {
    const Lines l = lines(a);
    const std::size_t outer = l.outer / static_cast<std::size_t>(problem_.batch);  // of one problem
    for (const std::size_t end : {0, 1}) {
      const poisson::End& given = end == 0 ? problem_.ends[a].lower : problem_.ends[a].upper;
      if (given.condition == Condition::periodic) continue;
      const Real weight = axes_[a].given_weight(end);
      for (std::size_t o = 0; o < l.outer; ++o)
        for (std::size_t c = 0; c < l.inner; ++c) {
          const Real value = given.values.empty() ? given.value : given.values[o % outer * l.inner + c];
          f[(o * l.n + (end == 0 ? 0 : l.n - 1)) * l.inner + c] -= weight * value;
        }
    }
  }
  return f;
}

Reals Oracle::projected(Reals f) const {
  if (!singular()) return f;
  const Real total = std::accumulate(volume_.begin(), volume_.end(), Real{0});
  for (auto first = f.begin(); first != f.end(); first += static_cast<std::ptrdiff_t>(unknowns())) {
    const auto end = first + static_cast<std::ptrdiff_t>(unknowns());
    const Real mean = std::inner_product(first, end, volume_.begin(), Real{0}) / total;
    std::for_each(first, end, [&](Real& value) { value -= mean; });
  }
  return f;
}

Reals Oracle::apply(const Reals& u) const {
  Reals f(u.size());
  for (std::size_t i = 0; i < u.size(); ++i) f[i] = static_cast<Real>(problem_.lambda) * u[i];
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Lines l = lines(a);
    for (std::size_t o = 0; o < l.outer; ++o)
      for (std::size_t i = 0; i < l.n; ++i)
        axes_[a].for_weights(i, [&](std::size_t k, Real weight) {
          for (std::size_t c = 0; c < l.inner; ++c)
            f[(o * l.n + i) * l.inner + c] += weight * u[(o * l.n + k) * l.inner + c];
        });
  }
  return f;
}

Reals Oracle::transformed(Reals values, bool forward) const {
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Lines l = lines(a);
    const Reals& matrix = forward ? axes_[a].modes->forward : axes_[a].modes->backward;
    Reals result(values.size());
    for (std::size_t o = 0; o < l.outer; ++o)
      for (std::size_t k = 0; k < l.n; ++k)
        for (std::size_t j = 0; j < l.n; ++j) {
          const Real entry = matrix[k * l.n + j];
          for (std::size_t c = 0; c < l.inner; ++c)
            result[(o * l.n + k) * l.inner + c] += entry * values[(o * l.n + j) * l.inner + c];
        }
    values.swap(result);
  }
  return values;
}

Reals Oracle::solve(const Reals& f) const {
  Reals modes = transformed(f, true);
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const Real mu = eigenvalues_[i % unknowns()];
    modes[i] = singular() && mu == 0 ? 0 : modes[i] / (mu + static_cast<Real>(problem_.lambda));
  }
  return transformed(std::move(modes), false);
}

Real norm2(const Reals& a) { return std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), Real{0})); }

Reals difference(Reals a, const Reals& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::minus<>());
  return a;
}

}  // namespace asterism::test
