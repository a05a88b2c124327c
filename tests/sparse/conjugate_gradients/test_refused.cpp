// Conjugate gradients. What makes no sense is refused.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "../../support/messages.hpp"
#include "cases.hpp"

namespace asterism::test {

TEST_CASE("what makes no sense is refused with words") {
  Runtime runtime;
  const Csr<double> a = model("poisson2d:4x4");
  const std::vector<double> ones(16, 1);
  const auto message = [&](const Csr<double>& matrix, const std::vector<double>& b,
                           const LinearSettings& settings) {
    return message_of([&] { solve<double>(runtime, matrix, b, settings, Rows::on_rank_0); });
  };
  CHECK(message(a, ones, {.tolerance = 2}) == "the tolerance is 2: it must be at least 0 and below 1");
  CHECK(message(a, ones, {.tolerance = 0}) ==
        "neither a tolerance nor a number of iterations is given: there would be no end; give one");
  Csr<double> wide = a;
  wide.cols = 17;
  CHECK(message(wide, ones, {}).find("the matrix is 16 x 17: it must be square") != std::string::npos);
  Csr<double> outside = a;
  outside.columns.back() = 16;
  CHECK(message(outside, ones, {}).find("an entry in column 16 (the first is 0): there are 16") !=
        std::string::npos);
  std::vector<double> nan = ones;
  nan[5] = std::numeric_limits<double>::quiet_NaN();
  CHECK(message(a, nan, {}).find("the right-hand side has nan in row 5") != std::string::npos);
  Csr<double> negative = a;
  for (double& value : negative.values) value = -value;
  CHECK(message(negative, ones, with("diagonal"))
            .find("row 0 of the matrix (the first is 0) has -4 on its diagonal") != std::string::npos);
  for (const char* bad : {"", "ic", "ic0:1", "polynomial", "polynomial:-1", "polynomial:x", "mc-ssor:2",
                          "mc-ilu:1,0", "mc-ilu:-1"}) {
    CAPTURE(bad);
    CHECK(message_of([&] { parse_preconditioner(bad); }).find(std::string("preconditioner ") + bad + ":") ==
          0);
  }
  for (const char* good : all_preconditioners) CHECK(sparse::to_string(parse_preconditioner(good)) == good);
}

}  // namespace asterism::test
