/// \file
/// Model matrices of any size, every row by itself, so that ranks make their own. All but convection2d are
/// symmetric and positive definite.
#pragma once

#include <string>
#include <string_view>

#include "../csr.hpp"

namespace asterism::sparse {

/// What a model matrix is like. Their nodes are numbered along x first, then y, then z.
enum class ModelFamily {
  poisson2d,     ///< five-point differences on a grid: 4 and -1
  poisson3d,     ///< seven-point differences on a grid: 6 and -1
  convection2d,  ///< five-point differences and a flow along both axes, upwind: 7, -3 and -2 upstream, -1
  triangulation_like,  ///< a step of a diffusion, P1 elements on a grid of triangles (SuiteSparse's parabolic_fem)
  ecology_like,        ///< conductances of a random landscape, five points (SuiteSparse's ecology2)
  circuit_like,        ///< an irregular circuit with a few nodes tied to ground (SuiteSparse's G3_circuit)
};

/// A model matrix of a size. Its entries are always the same, whichever of its rows are asked for.
struct MatrixModel {
  ModelFamily family = ModelFamily::poisson2d;
  Index nx = 1, ny = 1, nz = 1;  ///< nodes along each axis; a circuit has its nodes in nx

  [[nodiscard]] Index rows() const { return nx * ny * nz; }
  [[nodiscard]] bool is_symmetric() const { return family != ModelFamily::convection2d; }
};

/// Reads "NAME:SIZES": "poisson2d:1000x1000", "circuit-like:5000". The sizes of the likes of a SuiteSparse matrix may
/// be left out, and are that matrix's then.
/// @throw Error no such name, too few or too many sizes, a size that is no whole number of at least 1, too large a
///   matrix
MatrixModel parse_matrix_model(std::string_view text);

/// All names with their sizes, a line for each, for help texts and messages.
std::string list_of_matrix_models();

/// The rows [first, end) of a model. @throw Error: not all of them are rows of it
Csr<double> model_rows(const MatrixModel& model, Index first, Index end);

/// All rows of a model.
inline Csr<double> model_matrix(const MatrixModel& model) { return model_rows(model, 0, model.rows()); }

}  // namespace asterism::sparse
