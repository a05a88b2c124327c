/// \file
/// The lines that a block of `line_transform` works on, and the tables of rotations that it needs.
#pragma once

#include "shared_fft.cuh"

namespace asterism::transforms {

/// The lines of a block, a power of two of them in shared memory, `present` of them in the array: so far
/// apart, and with points so far apart.
template <class T>
struct BlockLines {
  const T* from;
  T* to;
  Index from_step, to_step;
  int from_stride, to_stride;
  int present, log_lines;
  bool side_by_side;  ///< then neighbouring threads take neighbouring lines, else neighbouring points
  int pitch;          ///< of the lines in shared memory, in complex numbers

  ASTERISM_HOST_DEVICE const T* source(int line, int j) const {
    return from + line * from_step + Index{j} * from_stride;
  }
  ASTERISM_HOST_DEVICE T* target(int line, int j) const { return to + line * to_step + Index{j} * to_stride; }

  /// Calls use(line, i) for the thread's share of i = 0 ... count - 1 for every present line.
  template <class Use>
  ASTERISM_HOST_DEVICE void for_each(unsigned count, int thread, int threads, Use use) const {
    for (unsigned i = static_cast<unsigned>(thread); i < count << log_lines; i += static_cast<unsigned>(threads))
      use_piece(i, count, use);
  }
  /// The same for use(line, i, read(line, i)), where what is read is on its way while that before it is used.
  template <class Read, class Use>
  ASTERISM_HOST_DEVICE void for_each_ahead(unsigned count, int thread, int threads, Read read, Use use) const {
    decltype(read(0, 0)) coming{};
    const auto send_for = [&](unsigned i) {
      if (i < count << log_lines) use_piece(i, count, [&](int line, int place) { coming = read(line, place); });
    };
    send_for(static_cast<unsigned>(thread));
    for (unsigned i = static_cast<unsigned>(thread); i < count << log_lines; i += static_cast<unsigned>(threads)) {
      const auto arrived = coming;
      send_for(i + static_cast<unsigned>(threads));
      use_piece(i, count, [&](int line, int place) { use(line, place, arrived); });
    }
  }

 private:
  template <class Use>
  ASTERISM_HOST_DEVICE void use_piece(unsigned i, unsigned count, Use use) const {
    const unsigned line = side_by_side ? i & ((1U << log_lines) - 1) : i / count,
                   place = side_by_side ? i >> log_lines : i % count;
    if (static_cast<int>(line) < present) use(static_cast<int>(line), static_cast<int>(place));
  }
};

/// Lines whose points are neighbours, one after another: how far apart points are needs no arithmetic then.
template <class T>
struct ContiguousLines : BlockLines<T> {
  static constexpr int from_stride = 1, to_stride = 1;

  ASTERISM_HOST_DEVICE explicit ContiguousLines(const BlockLines<T>& lines) : BlockLines<T>(lines) {}
  ASTERISM_HOST_DEVICE const T* source(int line, int j) const { return this->from + line * this->from_step + j; }
  ASTERISM_HOST_DEVICE T* target(int line, int j) const { return this->to + line * this->to_step + j; }
};

/// The tables of one precision, for all lengths up to 2^max_bits: one after another those of the FFTs with
/// radices up to 16 and up to 8, then for lines of 2^bits points c and d of (K1) for dct2 and dft, r of (T10),
/// and the rotations of (T2) for N = 2^bits.
struct LineTables {
  static constexpr int max_bits = 15;

  static constexpr int pairs(int bits) { return (1 << bits) / 4 + 1; }   ///< k = 0 ... n/4
  static constexpr int fourths(int bits) { return (1 << bits) / 2; }     ///< j = 0 ... n/2 - 1
  static constexpr int halves(int bits) { return (1 << bits) / 2 + 1; }  ///< j = 0 ... N/2

  static constexpr int rotations(int bits, int most) {
    return sum(bits, [most](int b) { return fft_rotations(b, most); });
  }
  static constexpr int fft(int bits, int most) {
    return (most == 4 ? 0 : rotations(max_bits + 1, 4)) + rotations(bits, most);
  }
  static constexpr int cosine(int bits) { return fft(max_bits + 1, 3) + 2 * sum(bits, pairs); }
  static constexpr int fourier(int bits) { return cosine(max_bits + 1) + 2 * sum(bits, pairs); }
  static constexpr int fourth(int bits) { return fourier(max_bits + 1) + sum(bits, fourths); }
  static constexpr int first(int bits) { return fourth(max_bits + 1) + sum(bits, halves); }
  static constexpr int size() { return first(max_bits + 1); }

  template <class Of>
  static constexpr int sum(int bits, Of of) {
    int total = 0;
    for (int b = 0; b < bits; ++b) total += of(b);
    return total;
  }

  /// @param bits for lengths up to 2^bits; zeros stand for the others (all take 20 ms, those up to 2^12 four)
  template <class T>
  static std::vector<Complex<T>> make(int bits = max_bits) {
    std::vector<Complex<T>> table;
    table.reserve(size());
    for (const int most : {4, 3}) {
      for (int b = 0; b <= bits; ++b) append_fft_rotations(table, b, most);
      table.resize(fft(max_bits + 1, most));
    }
    for (int b = 0; b <= bits; ++b)
      for (Index k = 0, n = Index{1} << b; k < pairs(b); ++k) {
        table.push_back(unit_number<T>(k, 2 * n));
        table.push_back(unit_number<T>(5 * k, 2 * n));
      }
    table.resize(cosine(max_bits + 1));
    for (int b = 0; b <= bits; ++b)
      for (Index k = 0, n = Index{1} << b; k < pairs(b); ++k) {
        table.push_back({1, 0});
        table.push_back(unit_number<T>(2 * k, n));
      }
    table.resize(fourier(max_bits + 1));
    for (int b = 0; b <= bits; ++b)
      for (Index j = 0, n = Index{1} << b; j < fourths(b); ++j)
        table.push_back(unit_number<T>(8 * j + 1, 8 * n));
    table.resize(fourth(max_bits + 1));
    for (int b = 0; b <= bits; ++b)
      for (Index j = 0, N = Index{1} << b; j < halves(b); ++j) table.push_back(conj(unit_number<T>(j, N)));
    table.resize(size());
    return table;
  }
};

/// Where an output of kind I is in its line's shared memory, in units of real numbers; and where its sign is another. From a
/// table, as working it out takes more instructions than all else that an output needs.
struct OutputPlace {
  unsigned bits;  ///< the place, whether it is negative in dst1, and in dct1

  static OutputPlace of(int place, bool negative_in_dst1, bool negative_in_dct1) {
    return {static_cast<unsigned>(place) << 2 | (negative_in_dst1 ? 2U : 0U) | (negative_in_dct1 ? 1U : 0U)};
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE unsigned place() const { return bits >> 2; }
  [[nodiscard]] ASTERISM_HOST_DEVICE bool is_negative(bool sine) const { return (bits & (sine ? 2U : 1U)) != 0; }

  static constexpr int least_bits = 2;
  /// Of a line of N = 2^bits the table has the first so many outputs.
  ASTERISM_HOST_DEVICE static constexpr int apart(int bits) { return bits < 7 ? 1 << bits : 1 << (bits - 3); }
  /// Where those of a length start.
  ASTERISM_HOST_DEVICE static constexpr int start(int bits) {
    int total = 0;
    for (int b = least_bits; b < bits; ++b) total += apart(b);
    return total;
  }
};

/// The tables of one precision, where a block finds them.
template <class T>
struct Tables {
  const Complex<T>* numbers;  ///< LineTables
  const OutputPlace* places;
};

}  // namespace asterism::transforms
