#include "in_lanes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../any_length/kinds.cuh"
#include "../any_length/symmetric_kinds.cuh"
#include "../any_length/ways.hpp"
#include "../fftw.hpp"
#include "../halves.hpp"
#include "../power_of_two/first_kinds.cuh"
#include "lanes.hpp"

namespace asterism::transforms::cpu {
namespace {

/// Of all lengths but powers of two: their FFTs round two to three times as much as those.
using Number = Lanes<double>;

FftView<double> view_of(const FftPlan<double>& plan) {
  FftView<double> view = plan.view;
  view.in = plan.in.data();
  view.out = plan.out.data();
  view.tables = plan.tables.data();
  return view;
}

template <class U>
const U* data_or_null(const std::vector<U>& table) {
  return table.empty() ? nullptr : table.data();
}

/// What any_length/kinds.cuh wants of lines of one kind and length.
struct FoldedPlan {
  FoldedPlan(Transform kind, Index n)
      : fft(fft_length(kind, n)),
        fold(fold_rotations<double>(kind, n)),
        unfold(unfold_rotations<double>(kind, n)),
        view(any_length(kind, n, view_of(fft), data_or_null(fold), data_or_null(unfold))) {}

  using Block = BlockOfAnyLength<Number>;
  [[nodiscard]] Index numbers() const { return view.fft.numbers; }
  [[nodiscard]] bool is_padded() const { return view.fft.padded; }

  FftPlan<double> fft;
  std::vector<Complex<double>> fold, unfold;
  AnyLength<double> view;
};

/// What any_length/symmetric_kinds.cuh wants.
struct HalvedPlan {
  HalvedPlan(Transform kind, Index n, const SymmetricWay& way)
      : plan(kind, fft_length(kind, n), way),
        view(symmetric_view<double>(kind, fft_length(kind, n), plan, view_of(plan.rows),
                                    {plan.targets.data(), plan.sources.data(), plan.pairs.data(),
                                     plan.odd.data(), data_or_null(plan.twist)})) {}

  using Block = BlockOfSymmetricLines<Number>;
  [[nodiscard]] Index numbers() const { return view.rows.numbers; }
  [[nodiscard]] bool is_padded() const { return view.rows.padded; }

  SymmetricPlan<double> plan;
  SymmetricView<double> view;
};

/// Lengths of FFTs that are done as power_of_two/even_kinds.cuh and first_kinds.cuh have them.
constexpr int least_bits = 5, most_bits = 12;
bool is_power_of_two(Transform kind, Index n) {
  const auto N = static_cast<std::size_t>(fft_length(kind, n));
  return std::has_single_bit(N) && N >= std::size_t{1} << least_bits && N <= std::size_t{1} << most_bits;
}

template <class T>
const Tables<T>& line_tables() {
  static const auto& numbers = *new std::vector(LineTables::make<T>(most_bits));
  static const auto& places = *new std::vector(output_places<Lanes<T>>());
  static const Tables<T> tables{numbers.data(), places.data()};
  return tables;
}

/// A line of numbers one after the other, whose outputs take their places.
template <class N>
BlockLines<N> line_of(N* points, Index pitch, int log_lines = 0) {
  return {.from = points,
          .to = points,
          .from_step = 0,
          .to_step = 0,
          .from_stride = 1,
          .to_stride = 1,
          .present = 1,
          .log_lines = log_lines,
          .side_by_side = false,
          .pitch = static_cast<int>(pitch)};
}

template <class N>
Complex<N>* room_for(Index numbers) {
  struct Passing;
  return reinterpret_cast<Complex<N>*>(
      thread_memory<Passing>(numbers * static_cast<Index>(sizeof(Complex<N>))));
}

template <class T, class Kinds>
void transform_power_of_two(Transform kind, Lanes<T>* points) {
  const ContiguousLines<Lanes<T>> line(line_of(points, Kinds::numbers));
  Complex<Lanes<T>>* const numbers = room_for<Lanes<T>>(Kinds::numbers);
  [&]<int... phase>(std::integer_sequence<int, phase...>) {
    (Kinds::template run<phase>(line, kind, numbers, line_tables<T>(), 0, 1), ...);
  }(std::make_integer_sequence<int, Kinds::phases>{});
}

template <class T>
using PowerOfTwo = void (*)(Transform, Lanes<T>*);

template <class T>
PowerOfTwo<T> power_of_two(Transform kind, Index n) {
  static constexpr auto of = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array{std::pair{&transform_power_of_two<T, FirstKinds<Lanes<T>, least_bits + i>>,
                                &transform_power_of_two<T, EvenKinds<Lanes<T>, least_bits + i>>}...};
  }(std::make_integer_sequence<int, most_bits - least_bits + 1>{});
  line_tables<T>();
  const auto N = static_cast<std::size_t>(fft_length(kind, n));
  const auto& [first, even] = of[static_cast<std::size_t>(std::countr_zero(N) - least_bits)];
  return is_first_kind(kind) ? first : even;
}

/// There is room for any: numbers 0 only where there is none at all.
Choice choice_of(Transform kind, Index n, Care care) {
  const auto choices = in_order(ways_of(kind, n), fft_length(kind, n), care);
  const auto* const first =
      std::ranges::find_if(choices, [](const Choice& choice) { return choice.numbers > 0; });
  return first == choices.end() ? Choice{} : *first;
}

/// Whether (T9) is done first: N = 1388 takes 1.07 times as long with it, 1868 1.09.
bool in_halves(Transform kind, Index n) {
  const Index N = fft_length(kind, n);
  return is_first_kind(kind) && N % 2 == 0 && N >= least_in_halves;
}

/// A line alone, though (P1) would do two real lines as one complex: their rounding would depend on each other, and so on how
/// a grid is cut.
template <class Plan>
void transform_points(const Plan& plan, Number* points) {
  const BlockLines<Number> line = line_of(points, plan.numbers(), lines_together(plan.view.kind) - 1);
  const typename Plan::Block block(line, plan.view, room_for<Number>(plan.numbers()), 0, 1);
  for (int phase = plan.is_padded() ? 0 : 1; phase < block.phases(plan.view); ++phase) block.run(phase);
}

/// The plan for lines of one kind and length, no power of two.
class LanesPlan {
 public:
  /// @param care see Lines
  LanesPlan(Transform kind, Index n, Care care) : kind_(kind), n_(n) {
    if (in_halves(kind, n)) {
      const HalfLines halves = halves_of(kind, n);
      front_ = std::make_unique<LanesPlan>(halves.front.kind, halves.front.length, care);
      back_ = std::make_unique<LanesPlan>(halves.back.kind, halves.back.length, care);
    } else if (const SymmetricWay way = choice_of(kind, n, care).symmetric; way.divisor > 0) {
      halved_.emplace(kind, n, way);
    } else {
      folded_.emplace(kind, n);
    }
  }

  /// @param points of a line, one after the other; they give way to the outputs
  void operator()(Number* points) const {
    if (front_)
      transform_halves(points);
    else if (halved_)
      transform_points(*halved_, points);
    else
      transform_points(*folded_, points);
  }

 private:
  /// (T9)
  void transform_halves(Number* points) const {
    for (Index j = first_number(kind_); 2 * j <= fft_length(kind_, n_); ++j)
      split_pair(kind_, n_, j, points, 1, points, 1);
    (*front_)(points);
    (*back_)(points + front_->n_);
    struct Joining;
    auto* const outputs =
        reinterpret_cast<Number*>(thread_memory<Joining>(n_ * static_cast<Index>(sizeof(Number))));
    for (Index at = 0; at < n_; ++at) {
      const auto [from, negative] = halves_output(kind_, n_, at);
      outputs[at] = signed_as(negative, points[from]);
    }
    std::copy_n(outputs, n_, points);
  }

  Transform kind_;
  Index n_;
  std::unique_ptr<LanesPlan> front_, back_;  ///< of lines in halves, else one of these
  std::optional<FoldedPlan> folded_;
  std::optional<HalvedPlan> halved_;
};

/// Lines of numbers T that have one register's lanes, of numbers S, from `first` on: fewer where there are no more.
template <class S, class T>
class LaneLines {
  static constexpr Index lanes = Lanes<S>::count;

 public:
  LaneLines(const Lines<T>& lines, Index first)
      : stride_(lines.stride),
        count_(std::clamp<Index>(lines.count * lines.width - first, 0, lanes)),
        side_by_side_(count_ == lanes) {
    for (Index lane = 0; lane < count_; ++lane) {
      const Index line = first + lane;
      begin_[lane] = lines.data + line / lines.width * lines.distance + line % lines.width;
      side_by_side_ = side_by_side_ && begin_[lane] == begin_[0] + lane;
    }
  }

  /// Point j of all lines to points[j]; zeros where there is no line.
  void take(Lanes<S>* points, Index n) const {
    if (side_by_side_) {
      for (Index j = 0; j < n; ++j) points[j] = load_lanes<S>(begin_[0] + j * stride_);
      return;
    }
    const Index in_blocks = numbers_in_blocks(n);
    for (Index j = 0; j < in_blocks; j += lanes) {
      for (Index lane = 0; lane < lanes; ++lane) points[j + lane] = load_lanes<S>(begin_[lane] + j);
      transpose(points + j);
    }
    auto* const numbers = reinterpret_cast<S*>(points);
    if (count_ < lanes) std::fill_n(numbers, n * lanes, S{0});
    for (Index lane = 0; lane < count_; ++lane)
      for (Index j = in_blocks; j < n; ++j) numbers[j * lanes + lane] = begin_[lane][j * stride_];
  }

  /// The points are lost.
  void give(Lanes<S>* points, Index n) const {
    if (side_by_side_) {
      for (Index j = 0; j < n; ++j) store_lanes(points[j], begin_[0] + j * stride_);
      return;
    }
    const Index in_blocks = numbers_in_blocks(n);
    for (Index j = 0; j < in_blocks; j += lanes) {
      transpose(points + j);
      for (Index lane = 0; lane < lanes; ++lane) store_lanes(points[j + lane], begin_[lane] + j);
    }
    const auto* const numbers = reinterpret_cast<const S*>(points);
    for (Index lane = 0; lane < count_; ++lane)
      for (Index j = in_blocks; j < n; ++j) begin_[lane][j * stride_] = static_cast<T>(numbers[j * lanes + lane]);
  }

 private:
  /// Of neighbouring points as many as fill registers, all of whose lanes have lines.
  [[nodiscard]] Index numbers_in_blocks(Index n) const {
    return stride_ == 1 && count_ == lanes ? n / lanes * lanes : 0;
  }

  T* begin_[lanes];
  Index stride_, count_;
  bool side_by_side_;
};

/// In lanes of numbers S, by a plan for a line of them.
template <class S, class T, class Plan>
void transform_lines(const Lines<T>& lines, const Plan& plan) {
  const Index n = lines.length;
  struct Points;
  auto* const points =
      reinterpret_cast<Lanes<S>*>(thread_memory<Points>(n * static_cast<Index>(sizeof(Lanes<S>))));
  for (Index first = 0; first < lines.count * lines.width; first += Lanes<S>::count) {
    const LaneLines<S, T> at_once(lines, first);
    at_once.take(points, n);
    plan(points);
    at_once.give(points, n);
  }
}

}  // namespace

bool wants_lanes(Transform kind, Index n) {
  constexpr Index largest_codelet = 16, most_numbers = 3 << 14;
  const Index N = fft_length(kind, n);
  if (n > 0 && is_power_of_two(kind, n)) return true;
  if (N <= largest_codelet || (N % 2 == 0 && !has_prime_above(13, N))) return false;
  if (in_halves(kind, n)) return wants_lanes(halves_of(kind, n).back.kind, N / 2);
  const Index numbers = choice_of(kind, n, Care::usual).numbers;
  return numbers > 0 && numbers <= most_numbers;
}

template <class T>
void plan_in_lanes(Transform kind, Index n, Care care) {
  if (is_power_of_two(kind, n))
    power_of_two<T>(kind, n);
  else
    planned<LanesPlan>(kind, n, care);
}

template <class T>
void transform_in_lanes(Transform kind, const Lines<T>& lines) {
  if (is_power_of_two(kind, lines.length))
    transform_lines<T>(lines, [kind, transform = power_of_two<T>(kind, lines.length)](Lanes<T>* points) {
      transform(kind, points);
    });
  else
    transform_lines<double>(lines, planned<LanesPlan>(kind, lines.length, lines.care));
}

template void plan_in_lanes<float>(Transform, Index, Care);
template void plan_in_lanes<double>(Transform, Index, Care);
template void transform_in_lanes(Transform, const Lines<float>&);
template void transform_in_lanes(Transform, const Lines<double>&);

}  // namespace asterism::transforms::cpu
