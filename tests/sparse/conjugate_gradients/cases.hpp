/// \file
/// What conjugate gradients are tried with: models, preconditioners and forms, fewer where each takes long.
#pragma once

#include <initializer_list>
#include <iterator>
#include <vector>

#include "../../support/skip.hpp"
#include "../../support/worst.hpp"
#include "../linear_solves.hpp"
#include "algorithms/sparse/models/models.hpp"

namespace asterism::test {

using sparse::CgState;
using sparse::Csr;
using sparse::LinearSettings;
using sparse::model_matrix;
using sparse::parse_matrix_model;
using sparse::parse_preconditioner;

inline constexpr const char* all_preconditioners[] = {"none",
                                                      "diagonal",
                                                      "polynomial:3",
                                                      "polynomial-diagonal:2",
                                                      "polynomial-diagonal:3",
                                                      "chebyshev:3",
                                                      "ic0",
                                                      "ilu0",
                                                      "mc-sgs",
                                                      "mc-ssor:1.3",
                                                      "mc-ilu0",
                                                      "mc-ilu:1,2",
                                                      "mc-ilu:2,2"};

inline constexpr sparse::Reductions all_forms[] = {sparse::Reductions::two, sparse::Reductions::one,
                                                   sparse::Reductions::pipelined};

/// Of these, some that are met on more than two ranks.
inline std::vector<sparse::Reductions> forms() {
  if (more_than_two_ranks()) return {sparse::Reductions::pipelined};
  return {std::begin(all_forms), std::end(all_forms)};
}

/// Ranks that share cores take turns, message by message; one worker does what several do, and sanitizers look at code
/// that one preconditioner of each kind goes through: there these have to do.
inline bool is_brief() { return shape_is("mpi") || shape_is("one_worker") || sanitized; }
inline std::vector<const char*> preconditioners() {
  if (is_brief()) return {"diagonal", "polynomial-diagonal:2", "ic0", "mc-ilu:1,2"};
  return {std::begin(all_preconditioners), std::end(all_preconditioners)};
}
inline std::vector<const char*> models(std::initializer_list<const char*> names) {
  return is_brief() ? std::vector<const char*>{*names.begin()} : std::vector<const char*>(names);
}

inline Csr<double> model(const char* name) { return model_matrix(parse_matrix_model(name)); }

inline LinearSettings with(const char* preconditioner, Index blocks = 0) {
  return {.preconditioner = parse_preconditioner(preconditioner), .blocks = blocks};
}

/// The largest difference from 1.
template <class T>
double distance_from_ones(const std::vector<T>& x) {
  return largest_difference(x, std::vector<T>(x.size(), 1));
}

}  // namespace asterism::test
