/// \file
/// Relaxation of the five-point equations in stripes of a grid: Jacobi, and successive over-relaxation (SOR)
/// by colours.
///
/// Node (i, j), i = 0 ... m-1 from row to row and j = 0 ... n-1 along a row, x, holds v_ij. Around the grid
/// lies a frame of given (Dirichlet) values: rows -1 and m, columns -1 and n. The second-order equations of
/// u_yy + u_xx = f, divided by their diagonal, are
///
///     v_ij = a_y (v_{i-1,j} + v_{i+1,j}) + a_x (v_{i,j-1} + v_{i,j+1}) + g_ij,                         (R1)
///
///     a_y = h_y^-2 / d,  a_x = h_x^-2 / d,  2 a_y + 2 a_x = 1,  g = -f / d,  d = 2 (h_y^-2 + h_x^-2),
///
/// [Czapinski 2014] (4.4) where h_y = h_x. A step of relaxation puts v + omega ((R1)'s right-hand side - v) in the
/// place of v, [Czapinski 2014] (4.12): with the old values of all neighbours at once (Jacobi, omega = 1), or by
/// colours: first the red nodes, i + j even, whose neighbours are all black, then the black ones with the new
/// values of the red.
///
/// A stripe is a tile of consecutive rows of the grid with everything around them that a task of several
/// sweeps needs: G ghost rows above and below, which hold copies of the neighbours' rows, or the frame's row
/// at an end of the grid, and the frame's columns. A task makes its passes over the stripe, each over all
/// nodes or over those of one colour. A pass consumes one ghost row at either side: pass h, from 0, is right
/// on all rows but the h + 1 outermost ones (and never changes the frame). So G >= reach, the number of
/// passes; a stripe that is the whole grid has no neighbours, and G >= 1 is enough.
#pragma once

#include "../../runtime/codelet.hpp"
#include "../sums/sums.hpp"

namespace asterism::relaxation {

/// The weights of (R1).
template <class T>
struct FivePoint {
  T y, x;
};

/// Those of a grid of m x n nodes on ly x lx, and the diagonal d that f is divided by.
struct Discretisation {
  double along_y, along_x, diagonal;
  /// The spectral radius of Jacobi's iteration: 2 a_y cos(pi / (m + 1)) + 2 a_x cos(pi / (n + 1)),
  /// [Czapinski 2014] (4.14).
  double jacobi_radius;

  template <class T>
  [[nodiscard]] FivePoint<T> weights() const {
    return {static_cast<T>(along_y), static_cast<T>(along_x)};
  }
  /// 2 / (1 + sqrt(1 - radius^2)): the omega for which SOR converges fastest; 2 / (1 + sin(pi h)) on a
  /// square.
  [[nodiscard]] double optimal_omega() const;
};
Discretisation discretise_five_point(Index m, Index n, double ly, double lx);

/// x y + z. On GPUs, whose compiler joins products and sums as it likes, in one instruction that rounds once:
/// all of their kernels get the same bits, whichever of them StarPU takes. CPUs, which need not have one, get
/// their own.
template <class T>
ASTERISM_HOST_DEVICE inline T product_and_sum(T x, T y, T z) {
#ifdef __CUDA_ARCH__
  return fma(x, y, z);
#else
  return x * y + z;
#endif
}

/// The right-hand side of (R1) but for g. All kernels compute balance(...) + g, in this order of operations.
template <class T>
ASTERISM_HOST_DEVICE inline T balance(const FivePoint<T>& a, T above, T below, T left, T right) {
  return product_and_sum(a.y, above + below, a.x * (left + right));
}

/// A step of relaxation, from v and the right-hand side of (R1).
template <class T>
ASTERISM_HOST_DEVICE inline T relaxed(T omega, T v, T balance) {
  return product_and_sum(omega, balance - v, v);
}

/// Where a stripe's tile keeps its nodes. Node j of a row is number c = j + 1 of the extended row, which the
/// frame's columns begin and end: n + 2 numbers. Jacobi's stripes are natural.
enum class Arrangement {
  natural,    ///< as they lie in the grid: number c in column c
  separated,  ///< red ones first, then black ones: number c in column c / 2 of its colour's half
};

enum class Colour { red, black };

/// What the kernels have to know of a stripe.
struct Stripe {
  Index rows = 0;                  ///< of the grid that it holds, at least G
  Index nodes = 0;                 ///< along a row: n
  Index halo = 0;                  ///< ghost rows above, and below: G
  Index first_row = 0;             ///< number of its first row in the grid
  bool first = true, last = true;  ///< whether the frame's row lies just above, just below
  Arrangement arrangement = Arrangement::natural;

  /// Rows and columns of the tile.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index tile_rows() const { return rows + 2 * halo; }
  [[nodiscard]] ASTERISM_HOST_DEVICE Index tile_cols() const {
    return arrangement == Arrangement::natural ? padded(nodes + 2) : 2 * half();
  }
  /// Where the black nodes' half of a row begins.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index half() const { return padded((nodes + 3) / 2); }
  /// 1 where the extended row of the tile's row `r` begins with a black number, so that the reds have odd
  /// numbers; else 0.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index parity(Index r) const { return (first_row - halo + r + 1) & 1; }
  /// The number, 0 or 1, of the first node of a colour in the extended row of the tile's row `r`; the others
  /// follow at a distance of 2. Where the arrangement is separated, column k of the colour's half holds
  /// number 2 k + s of this colour, its neighbours to the left and right lie in columns k - 1 + s and k + s
  /// of the other half, those above and below in column k of the other half.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index start(Colour colour, Index r) const {
    return colour == Colour::red ? parity(r) : 1 - parity(r);
  }
  /// Rows of the tile, [begin, end), that are right after `used` ghost rows on either side were consumed; the
  /// frame's row is never among them.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index begin(Index used) const { return first ? halo : used; }
  [[nodiscard]] ASTERISM_HOST_DEVICE Index end(Index used) const {
    return halo + rows + (last ? 0 : halo - used);
  }

 private:
  /// Whole cache lines of 64 bytes, in float32 and float64.
  [[nodiscard]] static ASTERISM_HOST_DEVICE Index padded(Index n) { return (n + 15) / 16 * 16; }
};

/// The order in which the colours' nodes are relaxed in a sweep.
enum class Sweep {
  red_black,  ///< SOR; with omega = 1: Gauss-Seidel
  symmetric,  ///< red, black, black, red: symmetric SOR
};

struct JacobiArgs {
  Stripe stripe;
  double along_y, along_x;
  Index sweeps;     ///< at least 1
  bool has_source;  ///< whether there is a g; without one its tile is 1 x 1 and not looked at
};

/// Passes alternate between the colours, red first: the second of two successive relaxations of one colour
/// finds all neighbours as the first found them, and is made in the same pass. `sweeps` symmetric ones are
/// red, 2 black, 2 red, ..., 2 black, red.
struct ColourArgs {
  Stripe stripe;
  double along_y, along_x, omega;
  Index sweeps;  ///< at least 1
  Sweep sweep;
  bool has_source;
  /// Whether the ghost rows stay as they came instead of being relaxed too, as if neighbours exchanged
  /// nothing between the colours: what [Czapinski 2014] 4.2 shows to go wrong. For experiments; all passes then go over
  /// the stripe's own rows, any G >= 1 will do, and both tiles need the ghost rows. Not for the border's
  /// kernels.
  bool stale_ghosts = false;

  [[nodiscard]] ASTERISM_HOST_DEVICE Index passes() const {
    return 2 * sweeps + (sweep == Sweep::symmetric ? 1 : 0);
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Colour colour(Index pass) const {
    return pass % 2 == 0 ? Colour::red : Colour::black;
  }
  /// How often a pass relaxes its nodes: 1 or 2.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index relaxations(Index pass) const {
    return sweep == Sweep::red_black || pass == 0 || pass == 2 * sweeps ? 1 : 2;
  }
  /// The rows of a pass, [begin, end).
  [[nodiscard]] ASTERISM_HOST_DEVICE Index begin(Index pass) const {
    return stale_ghosts ? stripe.halo : stripe.begin(pass + 1);
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Index end(Index pass) const {
    return stale_ghosts ? stripe.halo + stripe.rows : stripe.end(pass + 1);
  }
};

/// Ghost rows that a task consumes on either side.
constexpr Index jacobi_reach(Index sweeps) { return sweeps; }
constexpr Index reach(Sweep sweep, Index sweeps) { return 2 * sweeps + (sweep == Sweep::symmetric ? 1 : 0); }

/// The most sweeps of a pass of a GPU's kernel over a stripe, powers of 2: a source takes registers.
constexpr int deepest_jacobi_pass(bool has_source) { return has_source ? 4 : 8; }
constexpr int deepest_colour_pass(bool has_source) { return has_source ? 2 : 4; }

struct FillArgs {
  Stripe stripe;
  double diagonal;
  bool has_source;
};

struct ResidualArgs {
  Stripe stripe;
  double along_y, along_x;
  bool has_source;
};
enum ResidualPart : Index { residual_squares, solution_squares, source_squares, residual_parts };

/// Elements of working memory of the border's kernels, in one row: for each end a stripe of G rows, as two
/// tiles.
ASTERISM_HOST_DEVICE inline Index border_scratch(const Stripe& stripe) {
  return 12 * stripe.halo * stripe.tile_cols();
}

/// The same for stripe_residual: sets of partial sums (CUDA's thread blocks; CPUs use none).
constexpr Index residual_blocks = 1024;
constexpr Index residual_scratch = residual_blocks * residual_parts;

// Every stripe comes as two tiles of the same shape (tile_rows x tile_cols), `u` and `other`, because a sweep
// out of place moves less memory on GPUs, and Jacobi's cannot be done in place: where the number of sweeps is
// odd the result lies in `other`, else in `u`; what the other one then holds is undefined but for its frame,
// as are the ghost rows of both but for the frame's. Both tiles hold the frame from the beginning on
// (fill_stripe); no kernel changes it there.
//
// g, where there is one, is a third tile of this shape and arrangement; its ghost rows hold the neighbours' g
// (fill_ghosts) as far as G >= 2.
//
// `above` and `below` (G x tile_cols) are the neighbours' `bottom` and `top`, copies of rows of their tiles
// with the frame's columns, and are what belongs into the ghost rows. At an end of the grid they are not
// looked at. `top` and `bottom` (G x tile_cols) get the first and the last G of the stripe's own rows, at an
// end of the grid too.

/// Of the sweeps over a stripe, and what it shows of the result.
template <template <class> class As, class T>
struct SweepPorts {
  As<InOut<T>> u, other;
  As<In<T>> g, above, below;
  As<Out<T>> top, bottom;
};

/// Of the sweeps alone.
template <template <class> class As, class T>
struct InteriorPorts {
  As<InOut<T>> u, other;
  As<In<T>> g, above, below;
};

/// Of what it shows alone.
template <template <class> class As, class T>
struct BorderPorts {
  As<In<T>> u, g, above, below;
  As<Out<T>> top, bottom;
  As<Scratch<T>> work;  ///< 1 x border_scratch
};

template <template <class> class As, class T>
struct FillPorts {
  As<In<T>> f;              ///< rows x n, or 1 x 1 without a source
  As<In<T>> initial;        ///< rows x n, the first guess
  As<In<T>> frame_rows;     ///< 2 x (n + 2): above and below the grid, looked at only by stripes that lie there
  As<In<T>> frame_columns;  ///< (rows + 2 G) x 2: beside each of the tile's rows
  As<Out<T>> u, other, g;
};

/// Of a tile of u or g.
template <template <class> class As, class T>
struct EdgePorts {
  As<In<T>> tile;
  As<Out<T>> top, bottom;
};
template <template <class> class As, class T>
struct GhostPorts {
  As<InOut<T>> tile;
  As<In<T>> above, below;
};

template <template <class> class As, class T>
struct ResidualPorts {
  As<In<T>> u, g, above, below;        ///< above and below as the next sweep would get them
  As<Out<sums::SquareSum>> sums;       ///< 1 x residual_parts
  As<Scratch<sums::SquareSum>> work;   ///< 1 x residual_scratch
};

namespace cpu {

/// f and the first guess become a stripe: u with its frame, the other tile with the frame alone, and g = -f / d. All ghost rows
/// of an end of the grid get the frame's row; those beside a neighbour are zero between the frame's columns. g's frame and
/// ghost rows, and whatever pads a row, are zero. The nodes of the other tile stay as they are: no sweep reads them before one
/// has written them, and an even number of SOR sweeps on cores needs none of them.
template <class T>
void fill_stripe(const FillArgs& args, FillPorts<AsPorts, T> p);

/// A tile's `top` and `bottom`: u's for the first sweeps, g's for the neighbours' fill_ghosts.
template <class T>
void copy_edges(const Stripe& stripe, EdgePorts<AsPorts, T> p);

/// `above` and `below` into a tile's ghost rows: g's, once; the sweeps do it themselves with u's.
template <class T>
void fill_ghosts(const Stripe& stripe, GhostPorts<AsPorts, T> p);

/// A stripe's nodes back to rows x n.
template <class T>
void store_stripe(const Stripe& stripe, In<T> u, Out<T> result);

/// Sweeps; then `top` and `bottom` of the result.
template <class T>
void jacobi(const JacobiArgs& args, SweepPorts<AsPorts, T> p);
template <class T>
void relax_colours(const ColourArgs& args, SweepPorts<AsPorts, T> p);

/// Only `top` and `bottom` of the above, from a stripe that stays as it is: first this, then the neighbours
/// can go on while the interior is being swept. Where rows >= 2 G and G >= reach, of the whole grid's only
/// stripe too.
template <class T>
void jacobi_border(const JacobiArgs& args, BorderPorts<AsPorts, T> p);
template <class T>
void relax_colours_border(const ColourArgs& args, BorderPorts<AsPorts, T> p);
/// The sweeps without `top` and `bottom`.
template <class T>
void jacobi_interior(const JacobiArgs& args, InteriorPorts<AsPorts, T> p);
template <class T>
void relax_colours_interior(const ColourArgs& args, InteriorPorts<AsPorts, T> p);

/// Sums over a stripe's nodes, for [Czapinski 2014] (4.13): of the squares of r / d = (f - A v) / d, of v, and of
/// f / d (0 without a source).
template <class T>
void stripe_residual(const ResidualArgs& args, ResidualPorts<AsPorts, T> p);

}  // namespace cpu

namespace cuda {

template <class T>
void fill_stripe(Stream stream, const FillArgs& args, FillPorts<AsPorts, T> p);
template <class T>
void copy_edges(Stream stream, const Stripe& stripe, EdgePorts<AsPorts, T> p);
template <class T>
void fill_ghosts(Stream stream, const Stripe& stripe, GhostPorts<AsPorts, T> p);
template <class T>
void store_stripe(Stream stream, const Stripe& stripe, In<T> u, Out<T> result);

/// Jacobi's sweeps, one after the other, with every node read from global memory whenever it is needed,
template <class T>
void jacobi_global(Stream stream, const JacobiArgs& args, SweepPorts<AsPorts, T> p);
/// once for a thread block, into its shared memory,
template <class T>
void jacobi_shared(Stream stream, const JacobiArgs& args, SweepPorts<AsPorts, T> p);
/// through the path for data that nobody writes meanwhile;
template <class T>
void jacobi_readonly(Stream stream, const JacobiArgs& args, SweepPorts<AsPorts, T> p);
/// or several sweeps at once in a thread block.
template <class T>
void jacobi_blocked(Stream stream, const JacobiArgs& args, SweepPorts<AsPorts, T> p);
template <class T>
void relax_colours(Stream stream, const ColourArgs& args, SweepPorts<AsPorts, T> p);

/// Jacobi's by the fastest of its kernels.
template <class T>
void jacobi_border(Stream stream, const JacobiArgs& args, BorderPorts<AsPorts, T> p);
template <class T>
void relax_colours_border(Stream stream, const ColourArgs& args, BorderPorts<AsPorts, T> p);
template <class T>
void jacobi_interior(Stream stream, const JacobiArgs& args, InteriorPorts<AsPorts, T> p);
template <class T>
void relax_colours_interior(Stream stream, const ColourArgs& args, InteriorPorts<AsPorts, T> p);

/// As cpu::stripe_residual; the order of summation is fixed, so the result is the same every time.
template <class T>
void stripe_residual(Stream stream, const ResidualArgs& args, ResidualPorts<AsPorts, T> p);

}  // namespace cuda
}  // namespace asterism::relaxation

namespace asterism::relaxation::codelets {

template <class T>
inline const Codelet<FillArgs, FillPorts<AsPorts, T>> fill_stripe{
    typed_name<T>("fill_stripe"), cpu::fill_stripe<T>, ASTERISM_CUDA_KERNEL(cuda::fill_stripe<T>)};

template <class T>
inline const Codelet<Stripe, EdgePorts<AsPorts, T>> copy_edges{
    typed_name<T>("copy_edges"), cpu::copy_edges<T>, ASTERISM_CUDA_KERNEL(cuda::copy_edges<T>)};

template <class T>
inline const Codelet<Stripe, GhostPorts<AsPorts, T>> fill_ghosts{
    typed_name<T>("fill_ghosts"), cpu::fill_ghosts<T>, ASTERISM_CUDA_KERNEL(cuda::fill_ghosts<T>)};

/// Ports: u, the result.
template <class T>
inline const Codelet<Stripe, In<T>, Out<T>> store_stripe{typed_name<T>("store_stripe"), cpu::store_stripe<T>,
                                                         ASTERISM_CUDA_KERNEL(cuda::store_stripe<T>)};

template <class T>
inline const Codelet<JacobiArgs, SweepPorts<AsPorts, T>> jacobi{
    typed_name<T>("jacobi"),
    {cpu::jacobi<T>},
#ifdef ASTERISM_WITH_CUDA
    {cuda::jacobi_blocked<T>, cuda::jacobi_global<T>, cuda::jacobi_readonly<T>, cuda::jacobi_shared<T>}
#else
    {}
#endif
};
template <class T>
inline const Codelet<ColourArgs, SweepPorts<AsPorts, T>> relax_colours{
    typed_name<T>("relax_colours"), cpu::relax_colours<T>, ASTERISM_CUDA_KERNEL(cuda::relax_colours<T>)};

template <class T>
inline const Codelet<JacobiArgs, BorderPorts<AsPorts, T>> jacobi_border{
    typed_name<T>("jacobi_border"), cpu::jacobi_border<T>, ASTERISM_CUDA_KERNEL(cuda::jacobi_border<T>)};
template <class T>
inline const Codelet<ColourArgs, BorderPorts<AsPorts, T>> relax_colours_border{
    typed_name<T>("relax_colours_border"), cpu::relax_colours_border<T>,
    ASTERISM_CUDA_KERNEL(cuda::relax_colours_border<T>)};

template <class T>
inline const Codelet<JacobiArgs, InteriorPorts<AsPorts, T>> jacobi_interior{
    typed_name<T>("jacobi_interior"), cpu::jacobi_interior<T>,
    ASTERISM_CUDA_KERNEL(cuda::jacobi_interior<T>)};
template <class T>
inline const Codelet<ColourArgs, InteriorPorts<AsPorts, T>> relax_colours_interior{
    typed_name<T>("relax_colours_interior"), cpu::relax_colours_interior<T>,
    ASTERISM_CUDA_KERNEL(cuda::relax_colours_interior<T>)};

template <class T>
inline const Codelet<ResidualArgs, ResidualPorts<AsPorts, T>> stripe_residual{
    typed_name<T>("stripe_residual"), cpu::stripe_residual<T>,
                    ASTERISM_CUDA_KERNEL(cuda::stripe_residual<T>)};

}  // namespace asterism::relaxation::codelets
