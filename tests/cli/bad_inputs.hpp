/// \file
/// Input that the program refuses, and how its refusals are checked.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "../support/command_line.hpp"

namespace asterism::test {

/// A .npy file by hand, with whatever header.
inline void save_raw(const std::filesystem::path& path, const std::string& header, std::size_t bytes) {
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  text.append(bytes, '\0');
  std::ofstream(path, std::ios::binary) << text;
}

/// Bad files in a folder, and an output that is there already.
struct BadInputs {
  std::filesystem::path folder = fresh_folder("bad");
  std::string old = "what was there before\n";

  BadInputs() {
    std::ofstream(folder / "old.npy") << old;
    Array f = random_array({40, 30});
    save(folder / "good.npy", f);
    save(folder / "cube.npy", random_array({2, 3, 4}));
    save(folder / "five.npy", random_array({5}));
    save(folder / "four_axes.npy", random_array({2, 2, 3, 4}));
    save(folder / "five_axes.npy", random_array({1, 2, 2, 3, 4}));
    f.values[33 * 30 + 7] = std::nan("");
    save(folder / "nan.npy", f);
    std::fill(f.values.begin(), f.values.end(), 1e308);
    save(folder / "huge.npy", f);
    Array line({42});
    for (std::size_t i = 0; i < 42; ++i) line.values[i] = static_cast<double>(i == 17 ? 16 : i);
    save(folder / "standing.npy", line);
    line.values[17] = 17;
    save(folder / "rising.npy", line);
    std::filesystem::copy_file(folder / "good.npy", folder / "truncated.npy");
    std::filesystem::resize_file(folder / "truncated.npy", std::filesystem::file_size(folder / "good.npy") - 5);
    save_raw(folder / "complex.npy", "{'descr': '<c16', 'fortran_order': False, 'shape': (2, 3), }\n", 96);
    save_raw(folder / "fortran.npy", "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }\n", 48);
    std::ofstream(folder / "text.npy") << "1 2 3\n";
  }

  [[nodiscard]] std::string operator/(const char* name) const { return (folder / name).string(); }

  /// Runs, expects the status and the words, and looks at what it left.
  void refused(const Words& command, int status, const Words& words) const {
    CAPTURE(line_of(command));
    const Result result = run(command, 30);
    CHECK(result.status == status);
    CHECK(result.out.empty());
    has(result.err, words);
    CHECK(load(folder / "old.npy") == old);
    CHECK(temporaries(folder) == 0);
  }
};

/// A command line that is refused, with what exit status and which words.
struct Refusal {
  Words arguments;
  int status;
  Words words;
};

}  // namespace asterism::test
