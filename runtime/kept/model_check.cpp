#include "model_check.hpp"

#include <fmt/format.h>
#include <starpu.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace asterism::model_check {
namespace {

constexpr long any = std::numeric_limits<long>::max();

/// The lines of a file that are neither empty nor comments, as words. What is asked of them and not so throws.
class Lines {
 public:
  explicit Lines(std::string_view text, std::size_t longest = any) : rest_(text), longest_(longest) {
    if (text.empty()) fail("the file is empty");
    if (text.find('\0') != std::string_view::npos) fail("the file is no text");
    if (text.back() != '\n') fail("the file is cut short");
  }

  /// Goes to the next line. @return how many words it has; 0: there is none
  std::size_t next() {
    words_.clear();
    while (words_.empty() && !rest_.empty()) {
      ++number_;
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (line.size() > longest_) fail("it is too long");
      if (!line.empty() && is_blank(line.front())) fail("it begins with a blank");
      line = line.substr(0, line.find('#'));
      for (auto from = line.begin(); from != line.end();) {
        const auto to = std::find_if(from, line.end(), is_blank);
        words_.emplace_back(from, to);
        from = std::find_if_not(to, line.end(), is_blank);
      }
    }
    return words_.size();
  }

  /// Goes to the next line, which must have so many words.
  void next(std::size_t words) {
    if (next() != words) fail(fmt::format("{} numbers instead of {}", words_.size(), words));
  }

  double number(std::size_t k) const {
    const std::string_view word = words_.at(k);
    double value = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failed != std::errc{} || end != word.data() + word.size()) fail("a word is no number");
    return value;
  }

  void measured(std::size_t k, double least = 0) const {
    const double value = number(k);
    if (!std::isfinite(value) || value < least) fail("a number cannot have been measured");
  }

  long whole(std::size_t k, long least = 0, long most = any, int base = 10) const {
    const std::string_view word = words_.at(k);
    long value = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value, base);
    if (failed != std::errc{} || end != word.data() + word.size() || value < least || value > most)
      fail("a number cannot be meant");
    return value;
  }

  /// The only word of the next line.
  long next_whole(long least = 0, long most = any) {
    next(1);
    return whole(0, least, most);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(number_ == 0 ? what : fmt::format("line {}: {}", number_, what));
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }

  std::string_view rest_;
  std::size_t longest_;
  std::vector<std::string_view> words_;
  int number_ = 0;
};

/// A table of numbers from each memory (line) to each (column); those beyond the last one are no numbers.
void links(std::string_view text, const Counts& counts, double least) {
  Lines lines(text);
  const auto nodes = static_cast<std::size_t>(counts.nodes);
  for (std::size_t from = 0; from < nodes; ++from) {
    const std::size_t columns = lines.next();
    if (columns < nodes) lines.fail(fmt::format("{} numbers instead of {}", columns, nodes));
    for (std::size_t to = 0; to < columns; ++to)
      if (to == from || to >= nodes)
        lines.number(to);
      else
        lines.measured(to, least);
  }
}

/// What was measured of one implementation on one kind of worker.
void implementation(Lines& lines) {
  const long entries = lines.next_whole();
  lines.next(9);  // a linear regression: four sums, alpha and beta, samples, smallest and largest size
  for (std::size_t k = 0; k < 6; ++k) lines.number(k);
  for (std::size_t k = 6; k < 9; ++k) lines.whole(k);
  lines.next(3);  // another one
  for (std::size_t k = 0; k < 3; ++k) lines.number(k);
  lines.next_whole(0, 0);  // none of several variables
  for (long entry = 0; entry < entries; ++entry) {
    lines.next(8);  // footprint, bytes, flops, mean, deviation, sum, sum of squares, samples
    lines.whole(0, 0, any, 16);
    lines.whole(1);
    for (std::size_t k = 2; k < 7; ++k) lines.measured(k);
    lines.whole(7);
  }
}

}  // namespace

Counts config(std::string_view text) {
  constexpr long most = 1 << 20;
  Lines lines(text);
  lines.next_whole(1, most);  // processors
  Counts counts{.numa_nodes = lines.next_whole(1, most)};
  for (counts.nodes = counts.numa_nodes; lines.next() != 0;) counts.nodes += lines.whole(0, 0, most);
  return counts;
}

void affinity(std::string_view text, const Counts& counts) {
  Lines lines(text);
  if (!text.starts_with("# GPU\tNUMA0\t")) lines.fail("the heading is missing");
  for (long gpu = counts.numa_nodes; gpu < counts.nodes; ++gpu) {
    lines.next(1 + static_cast<std::size_t>(counts.numa_nodes));
    const long number = gpu - counts.numa_nodes;
    lines.whole(0, number, number);  // and NUMA nodes, the nearest first
    for (long numa = 1; numa <= counts.numa_nodes; ++numa)
      lines.whole(static_cast<std::size_t>(numa), 0, counts.numa_nodes - 1);
  }
}

void latency(std::string_view text, const Counts& counts) { links(text, counts, 0); }

void bandwidth(std::string_view text, const Counts& counts) {
  links(text, counts, std::numeric_limits<double>::min());
}

void codelet(std::string_view text, std::string_view version) {
  constexpr long most_devices = 64;
  constexpr std::size_t longest = 254;  // its buffer, less an end of line
  Lines lines(text, longest);
  if (const long found = lines.next_whole(); std::to_string(found) != version)
    lines.fail(fmt::format("version {} instead of {}", found, version));
  for (long kinds = lines.next_whole(); kinds > 0; --kinds) {  // kinds of workers
    for (long devices = lines.next_whole(1, most_devices); devices > 0; --devices) {
      lines.next_whole(0, STARPU_NARCH - 1);
      lines.next_whole();  // its number
      lines.next_whole();  // its cores
    }
    for (long count = lines.next_whole(1, STARPU_MAXIMPLEMENTATIONS); count > 0; --count) implementation(lines);
  }
  if (lines.next() != 0) lines.fail("more than there should be");
}

}  // namespace asterism::model_check
