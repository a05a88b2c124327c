/// \file
/// StarPU's second way of being told things, and what else a process finds around it. Private to runtime/.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>

namespace asterism {

/// Environment variables for the start of StarPU only: they get their former values back when this ends, so that one
/// Runtime's options do not become the next one's defaults, nor those of the processes that the program starts.
class Environment {
 public:
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : former_)
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
  }

  void set(const std::string& name, const std::string& value) {
    const char* const former = std::getenv(name.c_str());
    former_.try_emplace(name, former == nullptr ? std::nullopt : std::optional<std::string>(former));
    setenv(name.c_str(), value.c_str(), 1);
  }

  /// As set, but leaves alone what the user has set.
  void suggest(const std::string& name, const std::string& value) {
    if (std::getenv(name.c_str()) == nullptr) set(name, value);
  }

 private:
  std::map<std::string, std::optional<std::string>> former_;
};

/// The number in the first of these environment variables that is set.
int first_number(std::initializer_list<const char*> variables, int otherwise);

/// How many GPUs this process can see.
int gpus_installed();

/// Checks the numbers among StarPU's variables as they are now: it would abort at another value.
/// @throw Error that names the variable, its value and what it must be.
void require_sound_environment();

}  // namespace asterism
