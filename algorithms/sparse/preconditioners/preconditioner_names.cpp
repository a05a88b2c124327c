#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "../../../runtime/error.hpp"
#include "preconditioner.hpp"

namespace asterism::sparse {
namespace {

struct Name {
  const char* name;
  const char* numbers;  ///< as the help shows them
  const char* meaning;
  PreconditionerChoice choice;
};

using enum PreconditionerMethod;
constexpr std::array preconditioner_words{
    Name{"auto", "", "mc-ilu0 where two colours are enough, else the diagonal, or none", {automatic}},
    Name{"none", "", "M = I", {none}},
    Name{"diagonal", "", "the diagonal of A (Jacobi)", {diagonal}},
    Name{
        "polynomial", ":K", "Neumann series of degree K, scaled by the largest diagonal entry", {polynomial}},
    Name{"polynomial-diagonal",
         ":K",
         "Neumann series of degree K, scaled by the diagonal",
         {polynomial_diagonal}},
    Name{"chebyshev", ":K", "Chebyshev's polynomial of degree K in A, scaled by the diagonal", {chebyshev}},
    Name{"ic0", "", "incomplete Cholesky without fill, in A's order", {ic0}},
    Name{"ilu0", "", "incomplete LU without fill, in A's order", {ilu0}},
    Name{"mc-sgs", "", "symmetric Gauss-Seidel, rows in colours", {mc_ssor}},
    Name{"mc-ssor", ":OMEGA", "symmetric successive over-relaxation, rows in colours", {mc_ssor}},
    Name{"mc-ilu0", "", "incomplete LU without fill, rows in colours", {mc_ilu}},
    Name{"mc-ilu",
         ":P,Q",
         "ILU(P, Q): fill of level P, rows in colours of |A|^Q; Q left out: P + 1",
         {mc_ilu}},
};

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

[[noreturn]] void refuse(std::string_view name, const std::string& why) {
  throw Error(fmt::format("preconditioner {}: {}; there are:\n{}", name, why, list_of_preconditioners()));
}

/// Reads what is behind the colon.
PreconditionerChoice with_numbers(std::string_view all, const Name& name, std::string_view numbers) {
  PreconditionerChoice choice = name.choice;
  constexpr int largest = 100;
  if (choice.method == mc_ssor) {
    const auto omega = number_in<double>(numbers);
    if (!omega || !(*omega > 0 && *omega < 2)) refuse(all, "OMEGA must be between 0 and 2");
    choice.omega = *omega;
  } else if (choice.method == mc_ilu) {
    const auto comma = numbers.find(',');
    const auto p = number_in<int>(numbers.substr(0, comma));
    const auto q = comma == std::string_view::npos ? (p ? std::optional(*p + 1) : p)
                                                   : number_in<int>(numbers.substr(comma + 1));
    if (!p || !q || *p < 0 || *q < 1 || *p > largest || *q > largest + 1)
      refuse(all, "P must be a whole number of at least 0 and Q one of at least 1");
    choice.p = *p;
    choice.q = *q;
  } else {
    const auto degree = number_in<int>(numbers);
    if (!degree || *degree < 0 || *degree > largest)
      refuse(all, fmt::format("K must be a whole number from 0 to {}", largest));
    choice.degree = *degree;
  }
  return choice;
}

}  // namespace

PreconditionerChoice parse_preconditioner(std::string_view name) {
  const auto colon = name.find(':');
  const bool has_numbers = colon != std::string_view::npos;
  for (const Name& known : preconditioner_words) {
    if (name.substr(0, colon) != known.name) continue;
    const bool takes_numbers = *known.numbers != '\0';
    if (has_numbers != takes_numbers)
      refuse(name,
             takes_numbers ? fmt::format("it is {}{}", known.name, known.numbers) : "it takes no numbers");
    return takes_numbers ? with_numbers(name, known, name.substr(colon + 1)) : known.choice;
  }
  refuse(name, "there is none of that name");
}

std::string to_string(const PreconditionerChoice& choice) {
  switch (choice.method) {
    case automatic:
      return "auto";
    case none:
      return "none";
    case diagonal:
      return "diagonal";
    case polynomial:
      return fmt::format("polynomial:{}", choice.degree);
    case polynomial_diagonal:
      return fmt::format("polynomial-diagonal:{}", choice.degree);
    case chebyshev:
      return fmt::format("chebyshev:{}", choice.degree);
    case ic0:
      return "ic0";
    case ilu0:
      return "ilu0";
    case mc_ssor:
      return choice.omega == 1 ? "mc-sgs" : fmt::format("mc-ssor:{}", choice.omega);
    case mc_ilu:
      return choice.p == 0 && choice.q == 1 ? "mc-ilu0" : fmt::format("mc-ilu:{},{}", choice.p, choice.q);
  }
  return "";
}

std::string list_of_preconditioners() {
  std::string list;
  for (const Name& name : preconditioner_words)
    list += fmt::format("  {:<22}{}\n", fmt::format("{}{}", name.name, name.numbers), name.meaning);
  list.pop_back();
  return list;
}

}  // namespace asterism::sparse
