// Sweeps by colours: one colour a launch, in any arrangement and order, or several red-black sweeps in one
// pass through memory.

#include "colours.cuh"

#include <utility>

namespace asterism::relaxation::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

// ---- One colour a launch ---------------------------------------------------------------------------------

/// One colour's pass, in place, over rows [begin, end) in any arrangement.
template <class T>
struct ColourStep {
  Stripe stripe;
  Colour colour;
  Index relaxations, begin, end;
  FivePoint<T> a;
  T omega;
  InOut<T> u;
  In<T> g;
  bool has_source;
};

template <class T>
__global__ void __launch_bounds__(element_threads) colour_step_kernel(ColourStep<T> step) {
  const Stripe& stripe = step.stripe;
  for_each_element(step.end - step.begin, stripe.nodes / 2 + 1, [&](Index row, Index k) {
    const Index r = step.begin + row, s = stripe.start(step.colour, r), number = 2 * k + s;
    if (number < 1 || number > stripe.nodes) return;
    const Places at = places_of(stripe, step.colour, k, s);
    T* const u = step.u.row(r);
    T v = u[at.own];
    T target =
        balance(step.a, step.u.row(r - 1)[at.across], step.u.row(r + 1)[at.across], u[at.left], u[at.right]);
    if (step.has_source) target = target + step.g.row(r)[at.own];
    for (Index i = 0; i < step.relaxations; ++i) v = relaxed(step.omega, v, target);
    u[at.own] = v;
  });
}

template <class T>
void colours_in_steps(Stream stream, const ColourArgs& args, InOut<T> u, InOut<T> other, In<T> g,
                      const Exchange<T>& with) {
  const Stripe& stripe = args.stripe;
  fill_ghosts<T>(stream, stripe, {u, with.above, with.below});
  if (args.sweeps % 2 == 1) {
    copy_rows<T>(stream, {u.data, other.data, u.ld, other.ld, stripe.tile_rows()}, {}, stripe.tile_cols());
    u = other;
  }
  for (Index pass = 0; pass < args.passes(); ++pass) {
    const Index begin = args.begin(pass), end = args.end(pass);
    colour_step_kernel<<<element_blocks(end - begin, stripe.nodes / 2 + 1), element_threads, 0,
                         native(stream)>>>(ColourStep<T>{stripe, args.colour(pass), args.relaxations(pass),
                                                         begin, end, weights<T>(args),
                                                         static_cast<T>(args.omega), u, g, args.has_source});
    check_launch("relax_colours");
  }
  copy_edges<T>(stream, stripe, {reading(u), with.top, with.bottom});
}

// ---- Several sweeps a launch -----------------------------------------------------------------------------

/// A pass of so many sweeps.
template <int sweeps, bool has_source, class T>
void launch_colour_pass(Stream stream, const Pass<T>& pass) {
  using S = ColourShape<T, sweeps, has_source>;
  launch_pass<S, colour_pass_kernel<S, has_source, T>>(stream, pass);
}

template <bool has_source, class T>
void launch_colour_sweeps(Stream stream, int sweeps, const Pass<T>& pass) {
  switch (sweeps) {
    case 1:
      return launch_colour_pass<1, has_source>(stream, pass);
    case 2:
      return launch_colour_pass<2, has_source>(stream, pass);
    default:
      if constexpr (!has_source) launch_colour_pass<4, false>(stream, pass);
  }
}

/// The fastest way that can be gone.
template <class T>
void sweep_colours(Stream stream, const ColourArgs& args, InOut<T> u, InOut<T> other, In<T> g,
                   const Exchange<T>& with) {
  Stripe stripe = args.stripe;
  const bool piped = stripe.arrangement == Arrangement::separated && args.sweep == Sweep::red_black &&
                     aligned(u) && aligned(other) && (!args.has_source || aligned(g));
  if (!piped) return colours_in_steps(stream, args, u, other, g, with);
  if (args.stale_ghosts) {
    for (const InOut<T>& tile : {u, other}) fill_ghosts<T>(stream, stripe, {tile, with.above, with.below});
    stripe.first = stripe.last = true;  // they stay as they are, like the frame
  }
  const Pass<T> pass = pass_over(stripe, weights<T>(args), static_cast<T>(args.omega), g);
  sweep_in_passes(stream, stripe, pass, args.sweeps, deepest_colour_pass(args.has_source),
                  reach(args.sweep, 1), u, other, with, [&](int depth, const Pass<T>& next) {
                    args.has_source ? launch_colour_sweeps<true>(stream, depth, next)
                                    : launch_colour_sweeps<false>(stream, depth, next);
                  });
}

}  // namespace

template <class T>
void relax_colours(Stream stream, const ColourArgs& args, SweepPorts<AsPorts, T> p) {
  sweep_colours<T>(stream, args, p.u, p.other, p.g, {p.above, p.below, p.top, p.bottom});
}

template <class T>
void relax_colours_border(Stream stream, const ColourArgs& args, BorderPorts<AsPorts, T> p) {
  relax_border(stream, sweep_colours<T>, args, p);
}

template <class T>
void relax_colours_interior(Stream stream, const ColourArgs& args, InteriorPorts<AsPorts, T> p) {
  sweep_colours<T>(stream, args, p.u, p.other, p.g, {p.above, p.below, {}, {}});
}

#define ASTERISM_INSTANTIATE(T)                                                           \
  template void relax_colours(Stream, const ColourArgs&, SweepPorts<AsPorts, T>);         \
  template void relax_colours_border(Stream, const ColourArgs&, BorderPorts<AsPorts, T>); \
  template void relax_colours_interior(Stream, const ColourArgs&, InteriorPorts<AsPorts, T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::relaxation::cuda
