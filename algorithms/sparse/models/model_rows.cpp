// The rows of the model matrices, one by one.

#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "../graph/rows.hpp"
#include "models.hpp"

namespace asterism::sparse {
namespace {

/// Uniform in [0, 1), from a number and what it is drawn for (splitmix64).
double noise(Index number, std::uint64_t purpose) {
  std::uint64_t z =
      static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15ULL + purpose * 0xd1342543de82ef95ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// To a multiple of 2^-24: sums of such conductances are exact, and their rows diagonally dominant to the last bit.
double rounded(double conductance) { return std::nearbyint(conductance * 0x1p24) * 0x1p-24; }

/// What keeps a network of conductances from being singular: 2^-20 to 2^-17. It is not the same for all nodes, else
/// ones would be an eigenvector, and as a right-hand side solved for at once.
double slight_ground(Index node) { return 0x1p-20 * (1 + std::floor(8 * noise(node, 7))); }

/// Of a row, of any model.
constexpr Index most_entries = 7;

/// A row under construction, to which entries are added in ascending order of their columns.
class NewRow {
 public:
  explicit NewRow(RowsInTheMaking<double>& rows) : rows_(&rows) {}

  void add(Index column, double value) { rows_->add(column, value); }
  /// Adds a conductance to a neighbour, which the diagonal has with the opposite sign.
  void connect(Index column, double conductance) {
    add(column, -conductance);
    sum_ += conductance;
  }
  /// Adds the diagonal, whose value set_diagonal gives when all neighbours are known.
  void add_diagonal(Index row) {
    diagonal_ = rows_->values.size();
    add(row, 0);
  }
  void set_diagonal(double ground) { rows_->values[diagonal_] = sum_ + ground; }

 private:
  RowsInTheMaking<double>* rows_;
  double sum_ = 0;
  std::size_t diagonal_ = 0;
};

void poisson_row(const MatrixModel& m, Index i, NewRow& row) {
  const Index x = i % m.nx, y = i / m.nx % m.ny, z = i / m.nx / m.ny;
  const Index plane = m.nx * m.ny;
  if (z > 0) row.add(i - plane, -1);
  if (y > 0) row.add(i - m.nx, -1);
  if (x > 0) row.add(i - 1, -1);
  row.add(i, m.family == ModelFamily::poisson3d ? 6 : 4);
  if (x + 1 < m.nx) row.add(i + 1, -1);
  if (y + 1 < m.ny) row.add(i + m.nx, -1);
  if (z + 1 < m.nz) row.add(i + plane, -1);
}

/// - lap u + (2, 1) . grad u, with a mesh width of 1 and differences against the flow.
void convection_row(const MatrixModel& m, Index i, NewRow& row) {
  const Index x = i % m.nx, y = i / m.nx;
  if (y > 0) row.add(i - m.nx, -2);
  if (x > 0) row.add(i - 1, -3);
  row.add(i, 7);
  if (x + 1 < m.nx) row.add(i + 1, -1);
  if (y + 1 < m.ny) row.add(i + m.nx, -1);
}

// Mass matrix plus time step times stiffness matrix of linear elements, over the square of the mesh width. A square of
// the mesh is cut by the diagonal from its lower left to its upper right node; the squares around the grid belong to
// it, with zeros on their outer nodes. The triangle below that diagonal has its right angle at the lower right, that
// above it at the upper left.
constexpr double diffusion_step =
    2e4;  // over the square of the mesh width: the condition is about eight times that

/// The diffusion coefficient of a triangle, 1 to 1.5. Squares are named by their lower left node, from -1 on.
double diffusion(const MatrixModel& m, Index x, Index y, bool above) {
  return 1 + 0.5 * noise(2 * ((y + 1) * (m.nx + 1) + x + 1) + (above ? 1 : 0), 1);
}

void triangulation_row(const MatrixModel& m, Index i, NewRow& row) {
  const Index x = i % m.nx, y = i / m.nx;
  const auto below = [&](Index dx, Index dy) { return diffusion(m, x + dx, y + dy, false); };
  const auto above = [&](Index dx, Index dy) { return diffusion(m, x + dx, y + dy, true); };
  // An edge has two triangles: each gives 1/24 of mass, and minus half its coefficient of stiffness to a leg.
  const auto leg = [](double one, double other) { return 1.0 / 12 - diffusion_step * 0.5 * (one + other); };
  const double hypotenuse = 1.0 / 12;
  if (x > 0 && y > 0) row.add(i - m.nx - 1, hypotenuse);
  if (y > 0) row.add(i - m.nx, leg(above(0, -1), below(-1, -1)));
  if (x > 0) row.add(i - 1, leg(below(-1, 0), above(-1, -1)));
  // The node is at the right angle of two triangles, whose coefficients count twice there, and at another of four.
  const double right_angles = below(-1, 0) + above(0, -1);
  const double others = below(0, 0) + above(0, 0) + below(-1, -1) + above(-1, -1);
  row.add(i, 0.5 + diffusion_step * (right_angles + 0.5 * others));
  if (x + 1 < m.nx) row.add(i + 1, leg(below(0, 0), above(0, -1)));
  if (y + 1 < m.ny) row.add(i + m.nx, leg(above(0, 0), below(-1, 0)));
  if (x + 1 < m.nx && y + 1 < m.ny) row.add(i + m.nx + 1, hypotenuse);
}

void ecology_row(const MatrixModel& m, Index i, NewRow& row) {
  // What a cell of the landscape conducts; between two of them it is their mean.
  const auto cell = [](Index k) { return std::pow(10.0, noise(k, 2)); };
  const auto between = [&](Index k) { return rounded(0.5 * (cell(i) + cell(k))); };
  const Index x = i % m.nx, y = i / m.nx;
  if (y > 0) row.connect(i - m.nx, between(i - m.nx));
  if (x > 0) row.connect(i - 1, between(i - 1));
  row.add_diagonal(i);
  if (x + 1 < m.nx) row.connect(i + 1, between(i + 1));
  if (y + 1 < m.ny) row.connect(i + m.nx, between(i + m.nx));
  row.set_diagonal(slight_ground(i));
}

/// A circuit's nodes in rows of a square, the last one filled as far as there are nodes. A node is joined to one of
/// those before it, so that all hang together, and by chance to others of them, before it in its row and the row
/// below.
class Circuit {
 public:
  explicit Circuit(Index nodes)
      : nodes_(nodes), width_(static_cast<Index>(std::sqrt(static_cast<double>(nodes)))) {
    if (width_ * width_ < nodes) ++width_;
    before_ = {width_ + 1, width_, 1};
  }

  void row(Index i, NewRow& row) const {
    for (std::size_t k = 0; k < before_.size(); ++k)
      if (joined(i, k)) row.connect(i - before_[k], conductance(i, k));
    row.add_diagonal(i);
    for (std::size_t k = before_.size(); k-- > 0;)
      if (const Index j = i + before_[k]; j < nodes_ && joined(j, k)) row.connect(j, conductance(j, k));
    // A few nodes are tied to ground, by conductances of 1 to 10,000.
    const bool tied = noise(i, 6) < 1.5e-4;
    row.set_diagonal(tied ? rounded(std::pow(10.0, 4 * noise(i, 8))) : slight_ground(i));
  }

 private:
  /// Whether node i is joined to its k-th neighbour of those before it.
  [[nodiscard]] bool joined(Index i, std::size_t k) const {
    if (!there(i, k)) return false;
    // The one that keeps the circuit together: that in the row below or in its own.
    const bool prefers_own_row = noise(i, 3) < 0.5;
    const std::size_t first = there(i, 2) && (prefers_own_row || !there(i, 1)) ? 2 : 1;
    return k == first || noise(3 * i + static_cast<Index>(k), 4) < extra_edges;
  }
  [[nodiscard]] bool there(Index i, std::size_t k) const {
    return i >= before_[k] && (k == 1 || i % width_ > 0);
  }
  /// 0.1 to 10, evenly on a logarithmic scale.
  static double conductance(Index i, std::size_t k) {
    return rounded(std::pow(10.0, 2 * noise(3 * i + static_cast<Index>(k), 5) - 1));
  }

  static constexpr double extra_edges = 0.458;  // gives 4.83 entries a row

  Index nodes_, width_;
  std::array<Index, 3> before_{};  ///< how far before a node its neighbours are
};

template <class Fill>
Csr<double> rows_by(const MatrixModel& model, Index first, Index end, const Fill& fill) {
  Csr<double> matrix;
  matrix.first_row = first;
  matrix.total_rows = matrix.cols = model.rows();
  make_rows(matrix, end - first, most_entries * (end - first),
            [&](Index from, Index to, RowsInTheMaking<double>& rows) {
              for (Index i = from; i < to; ++i) {
                NewRow row(rows);
                fill(first + i, row);
                rows.end_row();
              }
            });
  return matrix;
}

}  // namespace

Csr<double> model_rows(const MatrixModel& model, Index first, Index end) {
  if (first < 0 || first > end || end > model.rows())
    throw Error(
        fmt::format("rows {} to {} are asked for of a model matrix of {} rows: give 0 <= first <= end <= {}",
                    first, end, model.rows(), model.rows()));
  const auto of_model = [&](void (*row_of)(const MatrixModel&, Index, NewRow&)) {
    return rows_by(model, first, end, [&](Index i, NewRow& row) { row_of(model, i, row); });
  };
  switch (model.family) {
    case ModelFamily::convection2d:
      return of_model(convection_row);
    case ModelFamily::triangulation_like:
      return of_model(triangulation_row);
    case ModelFamily::ecology_like:
      return of_model(ecology_row);
    case ModelFamily::circuit_like: {
      const Circuit circuit(model.nx);
      return rows_by(model, first, end, [&](Index i, NewRow& row) { circuit.row(i, row); });
    }
    case ModelFamily::poisson2d:
    case ModelFamily::poisson3d:
      break;
  }
  return of_model(poisson_row);
}

}  // namespace asterism::sparse
