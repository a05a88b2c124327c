#include "../error.hpp"

#include <vector>

namespace asterism {
namespace {

thread_local std::vector<std::weak_ptr<Error::Note>> notes;  // of errors that live, and of some that do no more

}  // namespace

Error::Error(const std::string& message, Blame blame, ThrownBy ranks)
    : std::runtime_error(message), note_(std::make_shared<Note>(Note{message, blame, ranks})) {
  std::erase_if(notes, [](const std::weak_ptr<Note>& note) { return note.expired(); });
  notes.push_back(note_);
}

std::shared_ptr<Error::Note> Error::newest() noexcept {
  for (auto note = notes.rbegin(); note != notes.rend(); ++note)
    if (auto living = note->lock()) return living;
  return nullptr;
}

}  // namespace asterism
