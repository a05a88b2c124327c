/// \file
/// What wrong input is answered with.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "runtime/error.hpp"

namespace asterism::test {

/// The message of the Error that `action` ends with, which blames the input; empty when it ends well.
template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.blame() == Blame::input);
    return error.what();
  }
  return "";
}

inline void message_has(const std::string& message, std::initializer_list<const char*> words) {
  CAPTURE(message);
  for (const std::string word : words) {
    CAPTURE(word);
    CHECK(message.find(word) != std::string::npos);
  }
}

}  // namespace asterism::test
