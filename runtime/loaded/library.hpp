/// \file
/// Shared libraries that are loaded when a program first needs them. CUDA's larger ones take longer to load than all else
/// that a program does at its start, and most runs call none of them.
#pragma once

#include <string>
#include <type_traits>

namespace asterism {

/// Stays loaded until the process ends. What the program is linked to is not loaded twice.
class LoadedLibrary {
 public:
  /// @param name for messages ("cuBLAS") @param file as the loader looks for it ("libcublas.so.13")
  /// @throw Error: the loader does not find the file, or cannot load it
  LoadedLibrary(std::string name, const std::string& file);

  /// Becomes a pointer to a function of whichever type it initialises.
  class Function {
   public:
    template <class Pointer>
    requires std::is_function_v<std::remove_pointer_t<Pointer>>
    operator Pointer() const { return reinterpret_cast<Pointer>(address_); }

   private:
    friend class LoadedLibrary;
    explicit Function(void* address) : address_(address) {}
    void* address_;
  };

  ///     decltype(&cublasSetStream) set_stream = library["cublasSetStream_v2"];
  ///
  /// @throw Error: the library has no function of this name
  [[nodiscard]] Function operator[](const char* function) const;

 private:
  std::string name_;
  void* handle_;
};

}  // namespace asterism
