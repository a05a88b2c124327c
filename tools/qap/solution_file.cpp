#include "solution_file.hpp"

#include <fmt/format.h>

#include <limits>

#include "../../runtime/error.hpp"
#include "../files/text/text_output.hpp"
#include "number_stream.hpp"

namespace asterism::tools {
namespace {

qap::Permutation read_permutation(NumberStream& numbers, Index n) {
  qap::Permutation p;
  std::vector<bool> there(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    const auto number = numbers.next("number of the permutation", 1, n);
    if (!number)
      numbers.fail(fmt::format("the file ends after {} of the {} numbers of the permutation", i, n));
    if (there[static_cast<std::size_t>(*number - 1)])
      numbers.fail(fmt::format("{} is there twice: no permutation of 1 to {}", *number, n));
    there[static_cast<std::size_t>(*number - 1)] = true;
    p.push_back(static_cast<std::int32_t>(*number - 1));
  }
  return p;
}

}  // namespace

Solution read_solution(const std::filesystem::path& path, const qap::Problem& problem) {
  NumberStream numbers(path, "a QAPLIB solution");
  const auto n = numbers.next("size", 0, qap::most_locations);
  if (!n) numbers.fail("the file has no number; a QAPLIB solution begins with its size");
  if (*n != problem.n)
    numbers.fail(fmt::format("a solution of {} locations; the problem has {}", *n, problem.n));
  const auto cost =
      numbers.next("cost", std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max());
  if (!cost) numbers.fail("the file ends before the cost, its second number");
  const qap::Permutation written = read_permutation(numbers, *n), inverse = qap::inverse_of(written);
  numbers.expect_end("the permutation");
  const qap::Cost of_written = cost_of(problem, written), of_inverse = cost_of(problem, inverse);
  if (of_written != *cost && of_inverse != *cost)
    throw Error(fmt::format(
        "{}: the cost is {}, but that of the permutation is {}, and of its inverse {}: a solution of "
        "another instance",
        path.string(), *cost, of_written, of_inverse));
  const Convention convention = of_written != *cost   ? Convention::locations
                                : of_inverse != *cost ? Convention::facilities
                                                      : Convention::either;
  return {convention == Convention::locations ? inverse : written, *cost, convention};
}

void PermutationFile::write(const qap::Permutation& p, qap::Cost cost) {
  TextOutput text(file_, target_);
  text.put(fmt::format("{} {}", p.size(), cost));
  text.end_line();
  for (std::size_t i = 0; i < p.size(); ++i) text.put(fmt::format("{}{}", i > 0 ? " " : "", p[i] + 1));
  text.end_line();
  text.write();
  file_.commit();
}

const char* words_of(Convention convention) {
  switch (convention) {
    case Convention::facilities:
      return "number i is the facility at location i";
    case Convention::locations:
      return "number i is the location of facility i";
    case Convention::either:
      return "the permutation and its inverse cost the same";
  }
  return "";
}

}  // namespace asterism::tools
