// Where the program is built without libzip.

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "matrix_file.hpp"

namespace asterism::tools {

MatrixFile read_scipy_matrix(const std::filesystem::path& path, const RowShare&) {
  throw Error(
      fmt::format(
          "{}: is a zip archive, which this program was built without libzip to read: build it with libzip, or "
          "write a Matrix Market file (scipy.io.mmwrite)",
          path.string()),
      Blame::machine);
}

}  // namespace asterism::tools
