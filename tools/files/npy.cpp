#include "npy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>

#include "../../runtime/error.hpp"

namespace asterism::tools {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "numbers are read and written as they lie in memory");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t alignment = 64;          // of the first number in the file, as NumPy writes it
constexpr std::size_t longest_header = 65535;  // the room of version 1: plenty for an array of plain numbers
constexpr Index piece_bytes = Index{1} << 20;  // read or written at a time: fits a core's second-level cache

std::string reason() { return std::generic_category().message(errno); }

/// Bytes of a file for people: what cannot be printed becomes \xNN.
std::string quoted(std::string_view bytes) {
  std::string text = "'";
  for (const char c : bytes) {
    if (c >= ' ' && c <= '~')
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + "'";
}

/// The product of the extents and a size, or nothing when it is beyond Index.
std::optional<Index> checked_product(Index size, const std::vector<Index>& extents) {
  for (const Index extent : extents)
    if (__builtin_mul_overflow(size, extent, &size)) return std::nullopt;
  return size;
}

/// Where the number `element`, counted through the file, is in an array of that shape.
std::vector<Index> indices(const std::vector<Index>& shape, Index element) {
  std::vector<Index> at(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) at[axis] = element % shape[axis];
  return at;
}

/// The Python literal of a header, {'descr': '<f8', 'fortran_order': False, 'shape': (3, 5), }: strict in
/// what it means, tolerant of the order of its keys, of white space, and of either quote.
class HeaderParser {
 public:
  /// \param first_byte  where `text` begins in the file.
  HeaderParser(const fs::path& path, std::string_view text, std::size_t first_byte)
      : path_(path), text_(text), first_byte_(first_byte) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::size_t at = next();
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        header.precision = precision();
      } else if (key == "fortran_order" && !order) {
        order = true;
        c_order();
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = extents();
      } else {
        fail(at, fmt::format("the key {} is unknown or there twice", quoted(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (next() != text_.size()) fail(at_, fmt::format("{} follows the end of the header", token()));
    if (!descr || !order || !shape)
      fail(0, fmt::format("the header has no {}", !descr   ? "'descr'"
                                                  : !order ? "'fortran_order'"
                                                           : "'shape'"));
    return header;
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw Error(fmt::format("{}: byte {}: {}", path_.string(), first_byte_ + at, what));
  }

  /// Skips white space; where the next token begins.
  std::size_t next() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n\f", at_), text_.size());
    return at_;
  }

  /// The next token, for messages.
  std::string token() const {
    if (at_ == text_.size()) return "the end of the header";
    const std::size_t length = text_.find_first_of(" \t\r\n,:(){}[]", at_ + 1);
    return quoted(text_.substr(at_, std::min<std::size_t>(length - at_, 20)));
  }

  bool accept(char c) {
    if (next() == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(at_, fmt::format("'{}' is wanted, not {}", c, token()));
  }

  std::string_view string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail(at_ - 1, "a string that does not end");
    const std::string_view content = text_.substr(at_, end - at_);
    at_ = end + 1;
    return content;
  }

  Precision precision() {
    const std::size_t at = next();
    if (at < text_.size() && text_[at] == '[') fail(at, "a structured type; plain '<f4' or '<f8' is wanted");
    const std::string_view descr = string();
    if (descr == "<f4") return Precision::f32;
    if (descr == "<f8") return Precision::f64;
    if (descr == ">f4" || descr == ">f8")
      fail(at, fmt::format("{} is big-endian; save a.astype('<{}') instead", quoted(descr), descr.substr(1)));
    fail(at, fmt::format("the type {} is not '<f4' or '<f8'; save a.astype('<f8') instead", quoted(descr)));
  }

  void c_order() {
    const std::size_t at = next();
    if (accept_word("False")) return;
    if (accept_word("True")) fail(at, "fortran_order is True; save numpy.ascontiguousarray(a) instead");
    fail(at, fmt::format("fortran_order is True or False, not {}", token()));
  }

  bool accept_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::vector<Index> extents() {
    std::vector<Index> shape;
    const std::size_t at = next();
    expect('(');
    bool comma = false;  // one extent without a comma, (3), is a number in Python, not a shape
    while (!accept(')')) {
      if (!shape.empty() && !comma) fail(at_, fmt::format("',' or ')' is wanted, not {}", token()));
      const std::size_t digits = next();
      Index extent = 0;
      const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (status == std::errc::result_out_of_range)
        fail(digits, fmt::format("the extent {} is too large", token()));
      if (status != std::errc{}) fail(digits, fmt::format("an extent is wanted, not {}", token()));
      at_ = static_cast<std::size_t>(end - text_.data());
      if (extent < 1) fail(digits, fmt::format("the extent {}: every extent must be at least 1", extent));
      shape.push_back(extent);
      comma = accept(',');
    }
    if (shape.empty()) fail(at, "the shape () is that of a single number, not of an array");
    if (shape.size() == 1 && !comma) fail(at, "the shape is a number, not a tuple");
    return shape;
  }

  const fs::path& path_;
  std::string_view text_;
  std::size_t first_byte_, at_ = 0;
};

/// Reads `bytes` bytes at `offset`. @return how many there were.
std::size_t read_up_to(int file, const fs::path& path, void* into, std::size_t bytes, std::size_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const auto got =
        ::pread(file, static_cast<char*>(into) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(fmt::format("{}: byte {}: cannot be read: {}", path.string(), offset + done, reason()),
                  Blame::machine);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void read_all(int file, const fs::path& path, void* into, std::size_t bytes, std::size_t offset) {
  const std::size_t got = read_up_to(file, path, into, bytes, offset);
  if (got < bytes)
    throw Error(fmt::format("{}: byte {}: the file ends here: it became shorter while it was read",
                            path.string(), offset + got));
}

void write_all(int file, const fs::path& path, const void* from, std::size_t bytes, std::size_t offset) {
  for (std::size_t done = 0; done < bytes;) {
    const auto put = ::pwrite(file, static_cast<const char*>(from) + done, bytes - done,
                              static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      throw Error(fmt::format("{}: byte {}: cannot be written: {}", path.string(), offset + done, reason()),
                  Blame::machine);
    done += static_cast<std::size_t>(put);
  }
}

/// Checks everything that the file says before its numbers.
NpyHeader read_header(int file, const fs::path& path) {
  struct stat status {};
  if (::fstat(file, &status) != 0) throw Error(fmt::format("{}: {}", path.string(), reason()));
  if (S_ISDIR(status.st_mode)) throw Error(fmt::format("{}: is a folder, not a .npy file", path.string()));
  if (!S_ISREG(status.st_mode))
    throw Error(
        fmt::format("{}: is not a regular file, so its rows cannot be read in any order", path.string()));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) throw Error(fmt::format("{}: byte 0: the file is empty", path.string()));

  std::array<unsigned char, 12> start{};  // magic, version (2 bytes), length of the header (2 or 4 bytes)
  const std::size_t got = read_up_to(file, path, start.data(), start.size(), 0);
  const std::string_view text(reinterpret_cast<const char*>(start.data()), got);
  if (!text.starts_with(magic.substr(0, std::min(got, magic.size()))))
    throw Error(fmt::format("{}: byte 0: not a .npy file: it begins with {}, not with {}", path.string(),
                            quoted(text.substr(0, magic.size())), quoted(magic)));
  const auto truncated = [&](std::size_t needed) {
    if (size < needed)
      throw Error(fmt::format("{}: byte {}: the file ends inside its header, which needs {} bytes",
                              path.string(), size, needed));
  };
  truncated(8);
  const unsigned version = start[6];
  if (version < 1 || version > 3 || start[7] != 0)
    throw Error(fmt::format("{}: byte 6: version {}.{} of the format is unknown: 1.0, 2.0 and 3.0 are known",
                            path.string(), version, start[7]));
  const std::size_t text_offset = version == 1 ? 10 : 12;
  truncated(text_offset);
  std::size_t length = start[8] + (std::size_t{start[9]} << 8);
  if (version > 1) length += (std::size_t{start[10]} << 16) + (std::size_t{start[11]} << 24);
  if (length > longest_header)
    throw Error(fmt::format("{}: byte 8: a header of {} bytes: an array of plain numbers has at most {}",
                            path.string(), length, longest_header));
  truncated(text_offset + length);

  std::string literal(length, '\0');
  read_all(file, path, literal.data(), length, text_offset);
  NpyHeader header = HeaderParser(path, literal, text_offset).parse();
  header.data_offset = text_offset + length;

  const auto bytes = checked_product(static_cast<Index>(bytes_of(header.precision)), header.shape);
  if (!bytes || *bytes > std::numeric_limits<Index>::max() - static_cast<Index>(header.data_offset))
    throw Error(fmt::format("{}: byte {}: the shape {} has more numbers than can be counted", path.string(),
                            text_offset, shape_text(header.shape)));
  const auto there = size - header.data_offset;
  if (there < static_cast<std::size_t>(*bytes))
    throw Error(
        fmt::format("{}: byte {}: the file ends here: {} bytes of numbers are there, the shape {} needs {}",
                    path.string(), size, there, shape_text(header.shape), *bytes));
  if (there > static_cast<std::size_t>(*bytes))
    throw Error(
        fmt::format("{}: byte {}: {} bytes too many: the shape {} needs {} bytes of numbers, {} are there",
                    path.string(), header.file_bytes(), there - static_cast<std::size_t>(*bytes),
                    shape_text(header.shape), *bytes, there));
  return header;
}

/// What NumPy writes before the numbers: version 1, padded so that the numbers begin at a multiple of 64
/// bytes.
std::string header_text(const NpyHeader& header) {
  std::string literal = fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': {}, }}",
                                    bytes_of(header.precision), shape_text(header.shape));
  const std::size_t before = magic.size() + 4;
  const std::size_t total = (before + literal.size() + 1 + alignment - 1) / alignment * alignment;
  literal.append(total - before - literal.size() - 1, ' ');
  literal += '\n';
  const auto length = literal.size();
  return std::string(magic) +
         std::string{'\1', '\0', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)} + literal;
}

int default_threads(int threads) {
  return threads > 0 ? threads : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
}

/// Calls body(begin, end) for pieces of [0, size), pieces of about `piece` each, on several threads.
/// @throw the failure of the lowest piece that failed, whatever the number of threads.
template <class Body>
void for_pieces(Index size, Index piece, int threads, const Body& body) {
  const Index pieces = (size + piece - 1) / piece;
  // Another thread pays from a few pieces on.
  const Index workers = std::clamp<Index>(pieces / 4, 1, threads);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(workers));
  const auto work = [&](Index worker) noexcept {
    try {
      for (Index i = pieces * worker / workers; i < pieces * (worker + 1) / workers; ++i)
        body(i * piece, std::min(size, (i + 1) * piece));
    } catch (...) {
      failures[static_cast<std::size_t>(worker)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (Index worker = 1; worker < workers; ++worker) others.emplace_back(work, worker);
    work(0);
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
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

template <class T>
bool in_place(Index cols, Index ld) {
  return ld == cols || cols * static_cast<Index>(sizeof(T)) >= long_row_bytes;
}

void check_rows(const fs::path& path, const NpyHeader& header, Index first_row, Index count, Index ld) {
  if (first_row < 0 || count < 0 || first_row > header.rows() - count || ld < header.cols())
    throw Error(fmt::format("{}: rows {} to {} with a distance of {} are not rows of the shape {}",
                            path.string(), first_row, first_row + count - 1, ld, shape_text(header.shape)));
}

/// Whether any of `count` numbers is NaN or infinite: their exponents are all ones, so that adding one to the
/// exponent carries into the sign. Integer operations without a branch, which compilers turn into vectors.
template <class T>
bool any_not_finite(const T* data, Index count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  constexpr Bits one = exponent & (~exponent + 1);
  constexpr Index block = 64;
  const auto carry = [](T value) { return (std::bit_cast<Bits>(value) & exponent) + one; };
  Bits carries = 0;
  Index i = 0;
  for (; i + block <= count; i += block)
    for (Index j = 0; j < block; ++j) carries |= carry(data[i + j]);
  for (; i < count; ++i) carries |= carry(data[i]);
  return carries > exponent;
}

/// Reads the numbers [begin, end) of rows that start at byte `offset` of a file of numbers of type F.
template <class F, class T>
void read_piece(int file, const fs::path& path, std::size_t offset, Index begin, Index end, T* into,
                Index cols, Index ld) {
  const auto bytes = [](Index count) { return static_cast<std::size_t>(count) * sizeof(F); };
  if constexpr (std::is_same_v<F, T>) {
    if (in_place<T>(cols, ld)) {
      for_runs(begin, end, into, cols, ld, [&](Index element, T* run, Index count) {
        read_all(file, path, run, bytes(count), offset + bytes(element));
      });
      return;
    }
  }
  const auto buffer = std::make_unique_for_overwrite<F[]>(static_cast<std::size_t>(end - begin));
  read_all(file, path, buffer.get(), bytes(end - begin), offset + bytes(begin));
  for_runs(begin, end, into, cols, ld, [&](Index element, T* run, Index count) {
    std::transform(buffer.get() + (element - begin), buffer.get() + (element - begin) + count, run,
                   [](F value) { return static_cast<T>(value); });
  });
}

}  // namespace

std::string shape_text(const std::vector<Index>& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

Index NpyHeader::rows() const {
  Index rows = 1;
  for (std::size_t i = 0; i < leading; ++i) rows *= shape[i];
  return rows;
}

Index NpyHeader::cols() const {
  Index cols = 1;
  for (std::size_t i = leading; i < shape.size(); ++i) cols *= shape[i];
  return cols;
}

std::size_t NpyHeader::file_bytes() const {
  return data_offset + static_cast<std::size_t>(rows() * cols()) * bytes_of(precision);
}

NpyReader::NpyReader(fs::path path, Dimensions dimensions, int threads)
    : path_(std::move(path)), threads_(default_threads(threads)) {
  // Non-blocking: a named pipe without a writer would wait for ever instead of being refused.
  file_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file_.number() < 0) throw Error(fmt::format("{}: cannot be opened: {}", path_.string(), reason()));
  header_ = read_header(file_.number(), path_);
  const auto [least, most] = dimensions;
  const std::size_t axes = header_.shape.size();
  if (axes < least || axes > most)
    throw Error(fmt::format("{}: an array of {} dimension{}, its shape is {}; {} dimension{} wanted",
                            path_.string(), axes, axes == 1 ? "" : "s", shape_text(header_.shape),
                            least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
                            most == 1 ? " is" : "s are"));
}

template <class T>
void NpyReader::read_rows(Index first_row, Index count, T* into, Index ld, Values values) const {
  check_rows(path_, header_, first_row, count, ld);
  const Index cols = header_.cols();
  const std::size_t number = bytes_of(header_.precision);
  const std::size_t offset = header_.data_offset + static_cast<std::size_t>(first_row * cols) * number;
  for_pieces(count * cols, piece_bytes / static_cast<Index>(number), threads_, [&](Index begin, Index end) {
    if (header_.precision == Precision::f32)
      read_piece<float>(file_.number(), path_, offset, begin, end, into, cols, ld);
    else
      read_piece<double>(file_.number(), path_, offset, begin, end, into, cols, ld);
    if (values == Values::any) return;
    for_runs(begin, end, into, cols, ld, [&](Index element, const T* run, Index length) {
      if (const auto bad = first_not_finite(run, 1, length, length)) {
        const Index at = element + bad->col;
        throw Error(fmt::format("{}: byte {}: the number at [{}] is {}: every number must be finite",
                                path_.string(), offset + static_cast<std::size_t>(at) * number,
                                fmt::join(indices(header_.shape, first_row * cols + at), ", "),
                                run[bad->col]));
      }
    });
  });
}

NpyWriter::NpyWriter(const fs::path& target, Precision precision, std::vector<Index> shape, int threads)
    : NpyWriter(OutputFile(target), NpyHeader{precision, std::move(shape)}, threads) {
  const std::string text = header_text(header_);
  header_.data_offset = text.size();
  write_all(file_.descriptor(), target, text.data(), text.size(), 0);
  file_.reserve(header_.file_bytes());
}

NpyWriter::NpyWriter(OutputFile file, NpyHeader header, int threads)
    : file_(std::move(file)), header_(std::move(header)), threads_(default_threads(threads)) {}

NpyWriter NpyWriter::attach(const fs::path& temporary, int threads) {
  OutputFile file = OutputFile::attach(temporary);
  NpyHeader header = read_header(file.descriptor(), temporary);
  return NpyWriter(std::move(file), std::move(header), threads);
}

template <class T>
void NpyWriter::write_rows(Index first_row, Index count, const T* from, Index ld) const {
  check_rows(temporary(), header_, first_row, count, ld);
  if (header_.precision != precision_of<T>)
    throw Error(fmt::format("{}: is a file of {}, the rows are {}", temporary().string(),
                            to_string(header_.precision), to_string(precision_of<T>)));
  const Index cols = header_.cols();
  const auto bytes = [](Index elements) { return static_cast<std::size_t>(elements) * sizeof(T); };
  const std::size_t offset = header_.data_offset + bytes(first_row * cols);
  for_pieces(
      count * cols, piece_bytes / static_cast<Index>(sizeof(T)), threads_, [&](Index begin, Index end) {
        if (in_place<T>(cols, ld)) {
          for_runs(begin, end, from, cols, ld, [&](Index element, const T* run, Index length) {
            write_all(file_.descriptor(), temporary(), run, bytes(length), offset + bytes(element));
          });
          return;
        }
        const auto buffer = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(end - begin));
        for_runs(begin, end, from, cols, ld, [&](Index element, const T* run, Index length) {
          std::copy_n(run, length, buffer.get() + (element - begin));
        });
        write_all(file_.descriptor(), temporary(), buffer.get(), bytes(end - begin), offset + bytes(begin));
      });
}

template <class T>
std::optional<Position> first_not_finite(const T* data, Index rows, Index cols, Index ld) {
  for (Index i = 0; i < rows; ++i) {
    const T* row = data + i * ld;
    if (!any_not_finite(row, cols)) continue;
    return Position{i, std::find_if(row, row + cols, [](T value) { return !std::isfinite(value); }) - row};
  }
  return std::nullopt;
}

template void NpyReader::read_rows(Index, Index, float*, Index, Values) const;
template void NpyReader::read_rows(Index, Index, double*, Index, Values) const;
template void NpyWriter::write_rows(Index, Index, const float*, Index) const;
template void NpyWriter::write_rows(Index, Index, const double*, Index) const;
template std::optional<Position> first_not_finite(const float*, Index, Index, Index);
template std::optional<Position> first_not_finite(const double*, Index, Index, Index);

}  // namespace asterism::tools
