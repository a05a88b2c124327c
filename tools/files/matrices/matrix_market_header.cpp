#include "matrix_market_header.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

#include "../npy/header.hpp"
#include "../text/line_tokens.hpp"

namespace asterism::tools {
namespace {

template <class Meaning, std::size_t count>
using WordsOfHeader = std::array<std::pair<std::string_view, Meaning>, count>;

constexpr WordsOfHeader<Format, 2> format_words{{{"coordinate", Format::coordinate}, {"array", Format::array}}};
constexpr WordsOfHeader<Field, 3> fields{
    {{"real", Field::real}, {"integer", Field::integer}, {"pattern", Field::pattern}}};
constexpr WordsOfHeader<Symmetry, 3> symmetries{{{"general", Symmetry::general},
                                         {"symmetric", Symmetry::symmetric},
                                         {"skew-symmetric", Symmetry::skew_symmetric}}};

template <class Meaning, std::size_t count>
std::string word_of(const WordsOfHeader<Meaning, count>& words, Meaning meaning) {
  for (const auto& [word, its] : words)
    if (its == meaning) return std::string(word);
  return {};
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// The first line: %%MatrixMarket matrix FORMAT FIELD SYMMETRY.
class FirstLine {
 public:
  FirstLine(const TextLines& lines, std::string_view line) : tokens_(lines, line) {}

  void read(MatrixMarketHeader& header) {
    const std::string_view banner = tokens_.word();
    if (lower_case(banner) != "%%matrixmarket")
      fail(fmt::format("it begins with {}, not with '%%MatrixMarket'", quoted(banner.substr(0, 40))));
    constexpr WordsOfHeader<bool, 1> objects{{{"matrix", true}}};
    one_of(objects);
    header.format = one_of(format_words);
    header.field = one_of(fields);
    header.symmetry = one_of(symmetries);
    if (!tokens_.at_end()) fail(fmt::format("{} is one word too many", tokens_.told()));
    if (header.format == Format::array && header.field == Field::pattern)
      fail("an 'array' has every value, so it is no 'pattern'");
    if (header.field == Field::pattern && header.symmetry == Symmetry::skew_symmetric)
      fail("a 'pattern' has no signs, so it is not 'skew-symmetric'");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    tokens_.fail(fmt::format(
        "{}; the first line must be '%%MatrixMarket matrix FORMAT FIELD SYMMETRY' with FORMAT coordinate or array, "
        "FIELD real, integer or pattern, SYMMETRY general, symmetric or skew-symmetric",
        what));
  }

  template <class Meaning, std::size_t count>
  Meaning one_of(const WordsOfHeader<Meaning, count>& words) {
    std::string choice;
    for (std::size_t i = 0; i < count; ++i)
      choice += fmt::format("{}'{}'", i == 0 ? "" : i + 1 < count ? ", " : " or ", words[i].first);
    const std::string told = tokens_.told();
    const std::string word = lower_case(tokens_.word());
    for (const auto& [known, meaning] : words)
      if (word == known) return meaning;
    if (word == "complex" || word == "hermitian")
      fail(fmt::format("{}: matrices of complex numbers are not read, only real ones", told));
    fail(fmt::format("{} stands where {} is wanted", told, choice));
  }

  LineTokens tokens_;
};

/// How many numbers the lower triangle or all of a dense matrix has, or nothing when they are beyond Index.
std::optional<Index> dense_entries(const MatrixMarketHeader& header) {
  const Index n = header.rows, above = header.symmetry == Symmetry::symmetric ? n + 1 : n - 1;
  const bool even = n % 2 == 0;  // of n and its neighbours one is halved
  Index entries = 0;
  const bool beyond = header.symmetry == Symmetry::general
                          ? __builtin_mul_overflow(n, header.cols, &entries)
                          : __builtin_mul_overflow(even ? n / 2 : n, even ? above : above / 2, &entries);
  if (beyond) return std::nullopt;
  return entries;
}

void read_sizes(TextLines& lines, MatrixMarketHeader& header) {
  std::string_view line;
  const bool coordinate = header.format == Format::coordinate;
  const char* const wanted = coordinate ? "rows columns entries" : "rows columns";
  if (!next_content(lines, line)) lines.fail(fmt::format("the file ends before its sizes, '{}'", wanted));
  LineTokens tokens(lines, line);
  constexpr Index most = std::numeric_limits<Index>::max() - 1;
  header.rows = tokens.whole("number of rows", 1, most);
  header.cols = tokens.whole("number of columns", 1, most);
  if (coordinate) header.entries = tokens.whole("number of entries", 0, most);
  tokens.expect_end(wanted);
  if (header.symmetry != Symmetry::general && header.rows != header.cols)
    lines.fail(fmt::format("a {} matrix of {} x {}: it must be square", to_string(header.symmetry),
                           header.rows, header.cols));
  if (!coordinate) {
    const auto entries = dense_entries(header);
    if (!entries)
      lines.fail(fmt::format("{} x {} are more numbers than can be counted", header.rows, header.cols));
    header.entries = *entries;
  }
}

/// The shortest that a line with an entry can be: "1 1", "1 1 1" or "1" and its end.
Index shortest_line(const MatrixMarketHeader& header) {
  if (header.format == Format::array) return 2;
  return header.field == Field::pattern ? 4 : 6;
}

void require_room(const TextLines& lines, const MatrixMarketHeader& header) {
  // The end of the last line may lack.
  const auto most = static_cast<Index>(lines.bytes_left() + 1) / shortest_line(header);
  if (header.entries <= most) return;
  lines.fail(fmt::format(
      "{} entries are announced, which take at least {} bytes each: {} bytes are left of the file's {}",
      header.entries, shortest_line(header), lines.bytes_left(), lines.size()));
}

}  // namespace

std::string to_string(Format format) { return word_of(format_words, format); }
std::string to_string(Field field) { return word_of(fields, field); }
std::string to_string(Symmetry symmetry) { return word_of(symmetries, symmetry); }

MatrixMarketHeader read_matrix_market_header(TextLines& lines) {
  MatrixMarketHeader header;
  std::string_view line;
  lines.next(line);
  FirstLine(lines, line).read(header);
  read_sizes(lines, header);
  require_room(lines, header);
  header.first_entry = lines.place();
  return header;
}

}  // namespace asterism::tools
