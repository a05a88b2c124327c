#include "levels.hpp"

#include "rows.hpp"

#include <algorithm>

namespace asterism::sparse {
Levels levels_of(PatternView pattern, Triangle triangle) {
  const Index rows = pattern.rows();
  Levels levels;
  levels.of_rows.assign(at(rows), 0);
  for (Index n = 0; n < rows; ++n) {
    const Index i = triangle == Triangle::lower ? n : rows - 1 - n;
    Index& mine = levels.of_rows[at(i)];
    for (const Index j : pattern.row(i))
      if (triangle == Triangle::lower ? j < i : j > i) mine = std::max(mine, levels.of_rows[at(j)] + 1);
    if (mine == levels.count()) levels.level_begin.push_back(0);
    ++levels.level_begin[at(mine + 1)];
  }
  for (Index level = 0; level < levels.count(); ++level)
    levels.level_begin[at(level + 1)] += levels.level_begin[at(level)];
  levels.rows.resize(at(rows));
  std::vector<Index> next(levels.level_begin.begin(), levels.level_begin.end() - 1);
  for (Index i = 0; i < rows; ++i) levels.rows[at(next[at(levels.of_rows[at(i)])]++)] = i;
  return levels;
}

}  // namespace asterism::sparse
