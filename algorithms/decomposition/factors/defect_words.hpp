/// \file
/// Why a block has no factors, in words.
#pragma once

#include <fmt/format.h>

#include <string>

#include "../../../codelets/decomposition/factorise.hpp"

namespace asterism::decomposition {

/// What is wrong with a block, told to all ranks.
struct BadBlock {
  Index subdomain = 0, row = 0;
  Defect::Kind kind = Defect::Kind::singular;
  double pivot = 0;
};

/// "the block of subdomain 3 (the first is 0)" @param only what it is where there is no other; nullptr: there are
inline std::string name_of(Index subdomain, const char* only) {
  if (only != nullptr) return only;
  return fmt::format("the block of subdomain {} (the first is 0)", subdomain);
}

template <class V>
std::string words_of(const BadBlock& bad, const char* only) {
  const std::string where = name_of(bad.subdomain, only) + " ";
  const std::string row = fmt::format("row {} (the first is 0)", bad.row);
  const char* const f32 =
      sizeof(V) == 4 ? " in f32; it is too ill-conditioned for that: use factors in f64" : "";
  switch (bad.kind) {
    case Defect::Kind::not_positive:
      return fmt::format("{}is not positive definite{}: {} has the pivot {:.3g}{}", where,
                         sizeof(V) == 4 ? ", or not" : "", row, bad.pivot,
                         sizeof(V) == 4 ? f32 : "; factorise it as a general matrix (bicgstab, gmres)");
    case Defect::Kind::singular:
      return fmt::format(
          "{}is singular: there is no pivot for the column of {}{}; cut it in other subdomains", where, row,
          sizeof(V) == 4 ? " in f32" : "");
    case Defect::Kind::not_finite:
      return fmt::format("the factors of {}exceed the numbers of {}: {} has the pivot {}{}", where,
                         sizeof(V) == 4 ? "f32" : "f64", row, bad.pivot,
                         sizeof(V) == 4 ? "; use factors in f64, or scale the matrix" : "; scale the matrix");
  }
  return where;
}

}  // namespace asterism::decomposition
