/// \file
/// What the tests of wavefront-tiled SOR compare with: grids of random values, swept by the sequential loop.
#pragma once

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "../support/matrix.hpp"
#include "codelets/wavefront/sweeps.hpp"

namespace asterism::test {

using wavefront::WavefrontArgs;

inline WavefrontArgs problem(const std::vector<Index>& shape, Index sweeps, bool has_source, bool backward) {
  WavefrontArgs args;
  args.dimensions = static_cast<int>(shape.size());
  double diagonal = 0;
  for (std::size_t axis = 3 - shape.size(); axis < 3; ++axis) {
    args.nodes[axis] = shape[axis + shape.size() - 3];
    args.along[axis] = 1.0 + 0.25 * static_cast<double>(axis);
    diagonal += 2 * args.along[axis];
  }
  for (double& a : args.along) a /= diagonal;
  args.omega = 1.7;
  args.sweeps = sweeps;
  args.has_source = has_source;
  args.backward = backward;
  return args;
}

inline std::string describe(const WavefrontArgs& args) {
  const auto m = tile_extents(args.dimensions, args.layout.tile);
  std::ostringstream text;
  text << args.dimensions << "D, nodes " << args.nodes[0] << ' ' << args.nodes[1] << ' ' << args.nodes[2]
       << ", sweeps " << args.sweeps << ", tile " << m[0] << ' ' << m[1] << ' ' << m[2] << ' ' << m[3]
       << (args.has_source ? ", source" : "") << (args.backward ? ", backward" : "");
  return text.str();
}

template <class T>
struct Data {
  Matrix<T> u, g;
  explicit Data(const WavefrontArgs& args, unsigned seed = 1)
      : u(Matrix<T>(wavefront_rows(args), wavefront_cols(args)).fill_random(seed)),
        g(args.has_source ? Matrix<T>(wavefront_rows(args), wavefront_cols(args)) : Matrix<T>(1, 1)) {
    // g's frame stays NaN.
    if (!args.has_source) return;
    std::mt19937_64 engine(seed + 1);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for_nodes(args, [&](Index row, Index col) { g(row, col) = static_cast<T>(uniform(engine)); });
  }

  /// Calls visit(row, column) for the nodes, in the order of a forward sweep.
  template <class Visit>
  static void for_nodes(const WavefrontArgs& args, Visit visit) {
    const Index planes = args.dimensions > 2 ? args.nodes[0] : 1,
                rows = args.dimensions > 1 ? args.nodes[1] : 1;
    for (Index z = 0; z < planes; ++z)
      for (Index y = 0; y < rows; ++y)
        for (Index x = 0; x < args.nodes[2]; ++x)
          visit(args.dimensions > 2 ? (z + 1) * (rows + 2) + y + 1 : args.dimensions > 1 ? y + 1 : 0, x + 1);
  }
};

/// After the sequential loop.
template <class T>
Matrix<T> swept(const WavefrontArgs& args, const Data<T>& data) {
  Matrix<T> u = data.u;
  wavefront::cpu::wavefront_sequential<T>(args, u.inout(), data.g.in());
  return u;
}

/// The same expression on a GPU: the same bits where this processor can round a b + c once too.
#ifdef __FMA__
inline constexpr bool same_bits = true;
#else
inline constexpr bool same_bits = false;
#endif

}  // namespace asterism::test
