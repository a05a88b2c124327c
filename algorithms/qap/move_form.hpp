/// \file
/// How a problem is stated for the tables of moves: which matrices, in how many bits.
#pragma once

#include "../../codelets/qap/matrices.hpp"
#include "problem.hpp"

namespace asterism::qap {

struct MoveForm {
  int bits = 64;               ///< of an element: 16, 32 or 64, the least that hold every difference of costs
  int terms = 2;               ///< see MatrixView
  Cost unit = 1;               ///< what a difference of 1 is in costs: 2 where all of them are even
  bool has_diagonals = false;  ///< see MatrixView
};

MoveForm form_of(const Problem& problem, const ProblemFacts& facts);

/// The content of the tile that MatrixView describes, rows of padded<E>(n) elements.
template <class E>
std::vector<E> matrices_of(const Problem& problem, const ProblemFacts& facts, const MoveForm& form);

}  // namespace asterism::qap
