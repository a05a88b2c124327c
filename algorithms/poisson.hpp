/// \file
/// Fast Poisson solver in 2D, streaming in two passes.
///
///     u_xx + u_yy = f on a rectangle, u = 0 on its border,
///
/// by five-point differences (five_point.hpp (L1)) on m x n interior nodes. A discrete sine transform of every row
/// leaves one tridiagonal system down the rows for every mode; these are solved, and transformed back. The grid is cut
/// into slabs of consecutive rows, the tiles of the task graph; the tridiagonal systems are cut with it
/// (tridiagonal.hpp), so that every slab is needed only twice: once to see what it shows to the others, once to be
/// solved. Where the grid does not fit in a GPU, it crosses the link twice upwards and once downwards, whatever the
/// GPU's memory.
#pragma once

#include <functional>
#include <optional>

#include "../codelets/five_point.hpp"
#include "../codelets/poisson.hpp"
#include "../runtime/pinned_buffer.hpp"
#include "../runtime/runtime.hpp"
#include "../runtime/tile.hpp"

namespace asterism::poisson {

/// The interior nodes of a rectangle: m = rows along y, n = cols along x (contiguous in memory).
struct Grid {
  Index rows = 0, cols = 0;
  double length_y = 1, length_x = 1;

  [[nodiscard]] double hy() const { return length_y / (static_cast<double>(rows) + 1); }
  [[nodiscard]] double hx() const { return length_x / (static_cast<double>(cols) + 1); }
  [[nodiscard]] kernels::FivePoint weights() const { return {1 / (hx() * hx()), 1 / (hy() * hy())}; }
  /// ||A||_inf of (L1): the largest sum of magnitudes of a row of the matrix.
  [[nodiscard]] double operator_norm() const;
};

enum class Mode {
  automatic,  ///< in core where the grid fits in the memories of the workers, else streaming
  incore,     ///< slabs stay where they are between the passes, transformed once
  streaming,  ///< slabs pass through; they are transformed in both passes
};

struct Settings {
  Mode mode = Mode::automatic;
  Index slab_rows = 0;      ///< rows of a slab; 0: chosen from the memories
  bool fetch_result = true;  ///< bring the solution to main memory as it is made, rather than when somebody asks
};

/// How a grid is cut and where its slabs are worked on: the same on every rank.
struct Layout {
  Mode mode = Mode::incore;
  Where where = Where::cpu;
  Index slab_rows = 0, slabs = 0;
  Index lines_at_once = 0;    ///< lines that a kernel transforms together
  Index scratch = 0;          ///< float64 elements of working memory of a slab's task
  Index slabs_in_flight = 0;  ///< streaming: slabs that may be in the workers' memory at a time
};

/// How good a solution is.
struct Check {
  double scaled_residual = 0;   ///< ||f - A u||_2 / (||A||_inf ||u||_2 + ||f||_2)
  std::optional<double> error;  ///< ||u - known||_2 / ||known||_2
  double seconds = 0;
};

/// Plans once, solves any number of right-hand sides on one grid.
template <class T>
class Solver {
 public:
  /// @throw Error: an extent below 1, a length that is not positive and finite, a slab that cannot fit.
  Solver(Runtime& runtime, const Grid& grid, const Settings& settings = {});

  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }

  /// The rows of the grid that this rank holds: [first, first + count).
  [[nodiscard]] Index first_row() const;
  [[nodiscard]] Index row_count() const;

  /// The grid as slabs over memory of the caller: this rank's rows, contiguous.
  [[nodiscard]] Tiles<T> borrow(T* rows) const;
  /// The grid as slabs that the runtime owns, and can evict to a spill folder.
  [[nodiscard]] Tiles<T> own() const;

  /// u over f. With several ranks: collective. @throw TaskFailure, Stall.
  Report solve(Tiles<T>& f);

  /// Puts rows first_row ... of the right-hand side into a tile, from the host or by a task.
  using Source = std::function<void(Index first_row, Tile<T>& f)>;

  /// Residual of the last solve's u, slab by slab, against a right-hand side made again by `source`, and the error
  /// against a model's known solution. With several ranks: collective.
  Check check(Tiles<T>& u, const Source& source, const kernels::ModelProblem* known = nullptr);

 private:
  [[nodiscard]] Index first_row(Index slab) const { return slab * layout_.slab_rows; }
  [[nodiscard]] int owner(Index slab) const;
  [[nodiscard]] Tiles<double> per_slab(Index rows) const;

  Runtime* runtime_;
  Grid grid_;
  Layout layout_;
  kernels::SlabArgs args_;
  Where interface_where_;
  bool fetch_result_;
  std::vector<Tile<double>> excess_, work_;           // one of each per rank
  Tile<double> nothing_above_, nothing_below_;        // Dirichlet sides, as a prefix (2 x n) and as modes (1 x n)
  Tiles<double> boundary_, prefix_, first_, above_;   // the interface system, per slab
  Tiles<T> top_, bottom_;                             // first and last row of u, per slab
};

/// Solves with f in the caller's memory, rows x cols, u over f. One rank.
template <class T>
Report solve(Runtime& runtime, const Grid& grid, T* f, const Settings& settings = {});

}  // namespace asterism::poisson
