#include "collectives.hpp"

#include <algorithm>
#include <cstring>

#include "detail/state.hpp"

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
  }
  const Meeting meeting(runtime.state());
  failure = ranks::agree_on_failure(failure);
  if (failure) throw error_on_all_ranks(*failure);
}

}  // namespace asterism
