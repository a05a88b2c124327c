#include "../collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "../run/state.hpp"

namespace asterism {
namespace detail {

void gather(const Runtime& runtime, const void* mine, Index count, std::size_t element_bytes,
            const std::function<void*(Index)>& resize) {
  const Meeting meeting(runtime.state());
  if (runtime.ranks() > 1)
    ranks::gather(mine, count, element_bytes, resize);
  else if (count > 0)
    std::memcpy(resize(count), mine, static_cast<std::size_t>(count) * element_bytes);
}

void broadcast(const Runtime& runtime, void* value, std::size_t bytes) {
  const Meeting meeting(runtime.state());
  if (runtime.ranks() > 1) ranks::broadcast(value, bytes);
}

}  // namespace detail

std::string broadcast(const Runtime& runtime, std::string text) {
  const Meeting meeting(runtime.state());
  if (runtime.ranks() > 1) ranks::broadcast(text);
  return text;
}

bool any(const Runtime& runtime, bool mine) {
  const std::vector<char> all = gather(runtime, static_cast<char>(mine));
  return std::find(all.begin(), all.end(), true) != all.end();
}

void agree(const Runtime& runtime, const std::function<void()>& body) {
  if (runtime.ranks() == 1) return body();
  std::optional<Failure> failure;
  try {
    body();
  } catch (const Error& error) {
    failure = Failure{"", error.what(), error.blame()};
  } catch (const std::exception& error) {
    failure = Failure{"", error.what(), Blame::task};
  } catch (...) {
    failure = Failure{"", no_standard_exception, Blame::task};
  }
  const Meeting meeting(runtime.state());
  failure = ranks::agree_on_failure(failure);
  if (failure) throw error_on_all_ranks(*failure);
}

namespace {

/// The first line of `statement` that `first` does not have, and what it has there.
std::string difference(const std::string& statement, const std::string& first) {
  std::istringstream mine(statement), theirs(first);
  std::string line, other;
  do {
    line.clear();
    other.clear();
    std::getline(mine, line);
    std::getline(theirs, other);
  } while (line == other && (mine || theirs));  // they may differ by the end of the last line alone
  const auto quoted = [](const std::string& text) { return text.empty() ? "nothing" : "\"" + text + "\""; };
  return quoted(line) + " for " + quoted(other);
}

}  // namespace

void Runtime::barrier() const {
  const Meeting meeting(*state_);
  if (state_->ranks > 1) ranks::barrier();
}

void Runtime::require_alike(const std::string& statement) const {
  if (ranks() == 1) return;
  const std::string first = broadcast(*this, statement);
  std::optional<Failure> failure;
  if (statement != first)
    failure = {
        "", "was given other things than rank 0: " + difference(statement, first) + "; start all ranks alike",
        Blame::input};
  const Meeting meeting(*state_);
  failure = ranks::agree_on_failure(failure);  // never the same on all ranks: rank 0 has none
  if (failure)
    throw Error(fmt::format("rank {} {}", failure->rank, failure->reason), failure->blame,
                ThrownBy::all_ranks);
}

}  // namespace asterism
