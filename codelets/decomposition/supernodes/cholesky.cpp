#include "cholesky.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace asterism::decomposition {
namespace {

template <class V>
using Dense = Eigen::Matrix<V, Eigen::Dynamic, Eigen::Dynamic>;

/// Columns that are eliminated one by one, before all others are changed by them at once.
constexpr Index block_columns = 48;

template <class V>
class Front {
 public:
  Front(const Supernodes& supernodes, const LowerTriangle<V>& matrix)
      : all_(supernodes), matrix_(matrix), place_(static_cast<std::size_t>(supernodes.columns())) {}

  std::optional<BadPivot> factorise(std::span<V> panels) {
    for (const Supernode& s : all_.nodes) {
      assemble(s);
      if (auto bad = eliminate(s)) return bad;
      store(s, panels.data() + s.panel);
    }
    return {};
  }

 private:
  using Block = Eigen::Map<Dense<V>>;

  [[nodiscard]] Block front(const Supernode& s) {
    const Index size = s.width + s.below;
    return {numbers_.data(), size, size};
  }

  /// Own entries of the matrix, and what the children have left: their remainders are the last ones on the stack.
  void assemble(const Supernode& s) {
    const Index size = s.width + s.below;
    numbers_.assign(static_cast<std::size_t>(size * size), V{});
    Block f = front(s);
    const std::int32_t* const rows = all_.rows.data() + s.rows;
    for (std::int32_t k = 0; k < s.below; ++k) place_[rows[k]] = s.width + k;
    for (std::int32_t j = 0; j < s.width; ++j)
      for (std::int32_t k = matrix_.begins[s.first + j]; k < matrix_.begins[s.first + j + 1]; ++k) {
        const std::int32_t row = matrix_.places[k];
        f(row < s.first + s.width ? row - s.first : place_[row], j) = matrix_.values[k];
      }
    for (std::int32_t c = 0; c < s.child_count; ++c) last_first_.push_back(all_.order[s.children + c]);
    std::sort(last_first_.begin(), last_first_.end(), std::greater<>());
    for (const std::int32_t child : last_first_) take_remainder(all_.nodes[child], f);
    last_first_.clear();
  }

  void take_remainder(const Supernode& child, Block& f) {
    const Index m = child.below;
    stack_top_ -= static_cast<std::size_t>(m * (m + 1) / 2);
    const V* next = stack_.data() + stack_top_;
    const std::int32_t* const places = all_.places.data() + child.rows;
    for (Index j = 0; j < m; ++j) {
      V* const column = &f(0, places[j]);
      for (Index i = j; i < m; ++i) column[places[i]] += *next++;
    }
  }

  std::optional<BadPivot> eliminate(const Supernode& s) {
    Block f = front(s);
    const Index size = f.rows();
    for (Index first = 0; first < s.width; first += block_columns) {
      const Index count = std::min<Index>(block_columns, s.width - first), rest = size - first - count;
      for (Index j = first; j < first + count; ++j)
        if (const auto bad = eliminate_column(f, j, first, first + count)) {
          return BadPivot{s.first + static_cast<std::int32_t>(j), *bad};
        }
      if (rest == 0) continue;
      auto below = f.block(first + count, first, rest, count);
      f.block(first, first, count, count)
          .transpose()
          .template triangularView<Eigen::Upper>()
          .template solveInPlace<Eigen::OnTheRight>(below);
      f.bottomRightCorner(rest, rest).template selfadjointView<Eigen::Lower>().rankUpdate(below, V(-1));
    }
    return {};
  }

  /// A column of the triangle on the diagonal; those before it in the block have not changed it yet.
  static std::optional<double> eliminate_column(Block& f, Index j, Index first, Index end) {
    const auto before = f.row(j).segment(first, j - first);
    const V pivot = f(j, j) - before.squaredNorm();
    if (!std::isfinite(pivot) || !(pivot > 0)) return static_cast<double>(pivot);
    f(j, j) = std::sqrt(pivot);
    for (Index i = j + 1; i < end; ++i)
      f(i, j) = (f(i, j) - f.row(i).segment(first, j - first).dot(before)) / f(j, j);
    return {};
  }

  void store(const Supernode& s, V* panel) {
    const Block f = front(s);
    const Index w = s.width, m = s.below;
    inverse_.setIdentity(w, w);
    f.topLeftCorner(w, w).template triangularView<Eigen::Lower>().solveInPlace(inverse_);
    for (Index j = 0; j < w; ++j) panel = std::copy_n(&inverse_(j, j), w - j, panel);
    for (Index j = 0; j < w && m > 0; ++j) panel = std::copy_n(&f(w, j), m, panel);
    const std::size_t entries = static_cast<std::size_t>(m * (m + 1) / 2);
    if (stack_.size() < stack_top_ + entries)
      stack_.resize(std::max(stack_top_ + entries, 2 * stack_.size()));
    V* next = stack_.data() + stack_top_;
    for (Index j = 0; j < m; ++j) next = std::copy_n(&f(w + j, w + j), m - j, next);
    stack_top_ += entries;
  }

  const Supernodes& all_;
  const LowerTriangle<V>& matrix_;
  std::vector<std::int32_t> place_;  // in the front, of rows
  std::vector<V> numbers_;           // of the front, of which the lower triangle counts
  std::vector<V> stack_;             // what remains of fronts whose parent is not there yet: lower triangles
  std::size_t stack_top_ = 0;
  std::vector<std::int32_t> last_first_;
  Dense<V> inverse_;
};

}  // namespace

template <class V>
std::optional<BadPivot> factorise_supernodes(const Supernodes& supernodes, const LowerTriangle<V>& matrix,
                                             std::span<V> panels) {
  return Front<V>(supernodes, matrix).factorise(panels);
}

template std::optional<BadPivot> factorise_supernodes(const Supernodes&, const LowerTriangle<float>&,
                                                      std::span<float>);
template std::optional<BadPivot> factorise_supernodes(const Supernodes&, const LowerTriangle<double>&,
                                                      std::span<double>);

}  // namespace asterism::decomposition
