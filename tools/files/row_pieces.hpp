/// \file
/// How the rows of a file pass between it and memory: in pieces, by several threads, a piece in runs of numbers that
/// lie together.
#pragma once

#include <algorithm>
#include <bit>
#include <filesystem>

#include <fmt/format.h>

#include "../../algorithms/common/team.hpp"
#include "../../runtime/error.hpp"
#include "npy/header.hpp"

namespace asterism::tools {

static_assert(std::endian::native == std::endian::little,
              "numbers are read and written as they lie in memory");

constexpr Index piece_bytes = Index{1} << 20;  // read or written at a time: fits a core's second-level cache

/// As many as there are cores, at most 8, where none are asked for.
inline int default_threads(int threads) { return threads > 0 ? threads : std::min(team_size(0), 8); }

/// Calls body(begin, end) for pieces of [0, size), pieces of about `piece` each, on several threads.
/// @throw the failure of the lowest piece that failed, whatever the number of threads.
template <class Body>
void for_pieces(Index size, Index piece, int threads, const Body& body) {
  constexpr Index least_pieces = 4;  // for which another thread pays
  const auto each = [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) body(i * piece, std::min(size, (i + 1) * piece));
  };
  in_parts((size + piece - 1) / piece, threads, each, least_pieces);
}

/// Calls run(element, data, count) for the runs of consecutive numbers [begin, end) of a matrix with rows ld
/// apart: one run when the rows touch, one for each (part of a) row otherwise.
template <class T, class Run>
void for_runs(Index begin, Index end, T* matrix, Index cols, Index ld, const Run& run) {
  while (begin < end) {
    const Index row = begin / cols, col = begin % cols;
    const Index count = ld == cols ? end - begin : std::min(cols - col, end - begin);
    run(begin, matrix + row * ld + col, count);
    begin += count;
  }
}

/// Rows shorter than this are gathered in a buffer: a system call for each would take longer than the copy.
constexpr Index long_row_bytes = 16384;

/// Whether the rows of a matrix go straight to the file or come from there.
template <class T>
bool in_place(Index cols, Index ld) {
  return ld == cols || cols * static_cast<Index>(sizeof(T)) >= long_row_bytes;
}

/// @throw Error: rows that the file has not, or rows that overlap in memory
inline void require_rows(const std::filesystem::path& path, const NpyHeader& header, Index first_row,
                         Index count, Index ld) {
  if (first_row < 0 || count < 0 || first_row > header.rows() - count || ld < header.cols())
    throw Error(fmt::format("{}: rows {} to {} with a distance of {} are not rows of the shape {}",
                            path.string(), first_row, first_row + count - 1, ld, shape_text(header.shape)));
}

}  // namespace asterism::tools
