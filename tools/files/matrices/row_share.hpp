/// \file
/// Which rows of a matrix a rank keeps of a file that every rank reads.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "../../../algorithms/sparse/csr.hpp"

namespace asterism::tools {

/// Rows [first, end).
struct RowRange {
  Index first, end;
};

/// Chooses rows by how many entries they have. It is given row_begin of the whole matrix: the number of entries before
/// each row and, last, of all; entries that stand twice in the file count twice.
using RowShare = std::function<RowRange(std::span<const Index> row_begin)>;

RowRange whole_matrix(std::span<const Index> row_begin);

/// Part `part` of `parts` consecutive ones with about equal numbers of entries. A part may be empty, where a row has
/// more entries than a part should.
RowShare equal_entries(Index part, Index parts);

/// Room for the rows that `share` takes: row_begin is that of these rows, columns and values are zero.
/// @param path  for messages
/// @throw Error: a share that the matrix has not; more than this machine's memory
sparse::Csr<double> room_for_rows(const std::filesystem::path& path, std::span<const Index> row_begin,
                                  Index cols, const RowShare& share);

/// @throw Error: as many bytes are more than this machine's memory
/// @param what  takes them: "1000 rows"
void require_memory(const std::filesystem::path& path, double bytes, const std::string& what);

}  // namespace asterism::tools
