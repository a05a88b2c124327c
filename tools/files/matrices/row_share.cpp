#include "row_share.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "../../../runtime/error.hpp"
#include "../../../runtime/hardware/machine.hpp"

namespace asterism::tools {
namespace {

Index rows_of(std::span<const Index> row_begin) { return static_cast<Index>(row_begin.size()) - 1; }

/// The first row of a part, or the end of the last.
Index part_begin(std::span<const Index> row_begin, Index part, Index parts) {
  if (part == parts) return rows_of(row_begin);
  const Index entries = row_begin.back();
  const Index before = entries / parts * part + entries % parts * part / parts;
  return std::lower_bound(row_begin.begin(), row_begin.end(), before) - row_begin.begin();
}

}  // namespace

RowRange whole_matrix(std::span<const Index> row_begin) { return {0, rows_of(row_begin)}; }

RowShare equal_entries(Index part, Index parts) {
  if (parts < 1 || part < 0 || part >= parts)
    throw Error(fmt::format("part {} of {}: parts are numbered from 0", part, parts));
  return [=](std::span<const Index> row_begin) {
    return RowRange{part_begin(row_begin, part, parts), part_begin(row_begin, part + 1, parts)};
  };
}

sparse::Csr<double> room_for_rows(const std::filesystem::path& path, std::span<const Index> row_begin,
                                  Index cols, const RowShare& share) {
  const auto [first, end] = share(row_begin);
  if (first < 0 || end < first || end > rows_of(row_begin))
    throw Error(fmt::format("{}: rows {} to {} are wanted, the matrix has {}", path.string(), first, end,
                            rows_of(row_begin)));
  sparse::Csr<double> matrix;
  matrix.first_row = first;
  matrix.total_rows = rows_of(row_begin);
  matrix.cols = cols;
  const auto own =
      row_begin.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first) + 1);
  const Index entries = own.back() - own.front();
  require_memory(path, static_cast<double>(entries) * (sizeof(Index) + sizeof(double)),
                 fmt::format("{} entries", entries));
  matrix.row_begin.resize(own.size());
  std::transform(own.begin(), own.end(), matrix.row_begin.begin(),
                 [&](Index begin) { return begin - own.front(); });
  matrix.columns.resize(static_cast<std::size_t>(entries));
  matrix.values.resize(static_cast<std::size_t>(entries));
  return matrix;
}

void require_memory(const std::filesystem::path& path, double bytes, const std::string& what) {
  const auto there = static_cast<double>(physical_memory());
  if (bytes <= there) return;
  constexpr double gib = 1024. * 1024 * 1024;
  throw Error(fmt::format("{}: {} take {:.3g} GiB of main memory, this machine has {:.3g} GiB", path.string(),
                          what, bytes / gib, there / gib),
              Blame::machine);
}

}  // namespace asterism::tools
