/// \file
/// Open files by the system's numbers.
#pragma once

namespace asterism::tools {

/// An open file; closed when it ends.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

}  // namespace asterism::tools
