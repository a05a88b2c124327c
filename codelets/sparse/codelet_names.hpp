/// \file
/// The names of codelets whose preconditioner has numbers of a type of its own.
#pragma once

#include <string>

#include "../../runtime/codelet.hpp"

namespace asterism::sparse::codelets {

/// "solve_f64_f32"
template <class T, class V>
std::string name_for(const std::string& verb) {
  return typed_name<V>(typed_name<T>(verb));
}

}  // namespace asterism::sparse::codelets
