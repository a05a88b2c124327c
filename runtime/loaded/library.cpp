#include "library.hpp"

#include <dlfcn.h>

#include <utility>

#include "../error.hpp"

namespace asterism {

LoadedLibrary::LoadedLibrary(std::string name, const std::string& file)
    : name_(std::move(name)), handle_(dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
  if (handle_ == nullptr)
    throw Error(
        name_ + " cannot be loaded: " + dlerror() +
            "; install the version that this program was built with, or name its folder in LD_LIBRARY_PATH",
        Blame::machine);
}

LoadedLibrary::Function LoadedLibrary::operator[](const char* function) const {
  void* const address = dlsym(handle_, function);
  if (address == nullptr)
    throw Error(name_ + " has no function " + function + ": " + dlerror() +
                    "; install the version that this program was built with",
                Blame::machine);
  return Function(address);
}

}  // namespace asterism
