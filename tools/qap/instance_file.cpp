#include "instance_file.hpp"

#include <fmt/format.h>

#include <limits>

#include "../../runtime/error.hpp"
#include "../files/text/text_output.hpp"
#include "number_stream.hpp"

namespace asterism::tools {
namespace {

std::vector<qap::Cost> read_matrix(NumberStream& numbers, Index n, const char* which, const char* entry) {
  std::vector<qap::Cost> matrix;
  matrix.reserve(static_cast<std::size_t>(n * n));
  for (Index k = 0; k < n * n; ++k) {
    const auto value =
        numbers.next(entry, std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max());
    if (!value)
      numbers.fail(fmt::format("the file ends after {} of the {} x {} = {} numbers of the {} matrix", k, n, n,
                               n * n, which));
    matrix.push_back(*value);
  }
  return matrix;
}

void put_matrix(TextOutput& text, const std::vector<qap::Cost>& matrix, Index n) {
  text.end_line();
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      text.put(j > 0 ? " " : "");
      text.put(matrix[static_cast<std::size_t>(i * n + j)]);
    }
    text.end_line();
  }
}

}  // namespace

qap::Problem read_instance(const std::filesystem::path& path) {
  NumberStream numbers(path, "a QAPLIB instance");
  const auto n = numbers.next("size", 0, qap::most_locations);
  if (!n) numbers.fail("the file has no number; a QAPLIB instance begins with its size");
  qap::Problem problem;
  problem.n = *n;
  // Two characters a number at least: a size that the file cannot hold is found before memory is taken for it.
  const auto room = static_cast<Index>(numbers.lines().size() / 2) + 1;
  if (2 * *n * *n > room)
    numbers.fail(fmt::format("the size is {}, which makes {} numbers; the file of {} bytes cannot hold them",
                             *n, 2 * *n * *n, numbers.lines().size()));
  problem.d = read_matrix(numbers, *n, "first", "number of the first matrix");
  problem.f = read_matrix(numbers, *n, "second", "number of the second matrix");
  numbers.expect_end("the second matrix");
  try {
    qap::facts_of(problem);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path.string(), error.what()));
  }
  return problem;
}

void write_instance(const std::filesystem::path& target, const qap::Problem& problem) {
  OutputFile file(target);
  TextOutput text(file, target);
  text.put(problem.n);
  text.end_line();
  put_matrix(text, problem.d, problem.n);
  put_matrix(text, problem.f, problem.n);
  text.write();
  file.commit();
}

}  // namespace asterism::tools
