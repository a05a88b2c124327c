#include "task_record.hpp"

#include <new>
#include <vector>

#include "../run/state.hpp"
#include "codelet_state.hpp"

namespace asterism::detail {

KeptArgs::KeptArgs(const KernelArgs& args) : where_(here_), type_(args.type) {
  if (!is_here()) where_ = ::operator new (type_->bytes, std::align_val_t{type_->alignment});
  type_->copy(where_, args.args);
}

bool KeptArgs::is_here() const {
  return type_->bytes <= sizeof here_ && type_->alignment <= alignof(std::max_align_t);
}

void KeptArgs::end() noexcept {
  if (where_ == nullptr) return;
  type_->end(where_);
  if (!is_here()) ::operator delete (where_, std::align_val_t{type_->alignment});
  where_ = nullptr;
}

namespace {

/// Memory of records that have ended.
struct Spare {
  std::vector<void*> records;
  Spare() = default;
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() {
    for (void* record : records) ::operator delete (record, std::align_val_t{alignof(TaskRecord)});
    gone = true;
  }
  bool gone = false;
};
thread_local Spare spare;
constexpr std::size_t most_spare = 4096;

}  // namespace

void* TaskRecord::operator new(std::size_t bytes) {
  if (spare.gone || spare.records.empty())
    return ::operator new (bytes, std::align_val_t{alignof(TaskRecord)});
  void* const memory = spare.records.back();
  spare.records.pop_back();
  return memory;
}

void TaskRecord::operator delete(void* memory) noexcept {
  if (spare.gone || spare.records.size() == most_spare)
    return ::operator delete (memory, std::align_val_t{alignof(TaskRecord)});
  spare.records.push_back(memory);
}

void TaskRecord::clear() noexcept {
  args.end();
  for (Buffer& buffer : buffers.all) buffer.tile.reset();
}

std::string TaskRecord::name() const { return full_name(codelet->name, label ? *label : std::string()); }

void TaskRecord::lose(const Failure& why) {
  failure = std::make_shared<const Failure>(why);
  for (const Buffer& buffer : buffers.all) buffer.tile->note_end(buffer.access, &why);
}

}  // namespace asterism::detail
