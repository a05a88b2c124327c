#include "task_record.hpp"

#include <mutex>
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

/// Memory for records that no thread has for itself. It comes in blocks and stays until the process ends. Records that
/// are allocated one by one lie between the tasks that StarPU allocates, and keep its memory in small pieces, to look
/// for which takes the allocator longer than all that is done here for a task.
class Pool {
 public:
  /// Some, at least one, for a thread.
  void take(std::vector<void*>& to) {
    const std::lock_guard lock(mutex_);
    if (records_.empty()) add_block();
    for (std::size_t i = 0; i < at_a_time && !records_.empty(); ++i) move_last(records_, to);
  }
  /// As many, or all that a thread has.
  void put(std::vector<void*>& from, std::size_t count) {
    const std::lock_guard lock(mutex_);
    for (; count > 0; --count) move_last(from, records_);
  }
  static constexpr std::size_t at_a_time = 1024;

 private:
  static void move_last(std::vector<void*>& from, std::vector<void*>& to) {
    to.push_back(from.back());
    from.pop_back();
  }
  void add_block() {
    auto* const block = static_cast<std::byte*>(
        ::operator new (at_a_time * sizeof(TaskRecord), std::align_val_t{alignof(TaskRecord)}));
    blocks_.push_back(block);
    for (std::size_t i = 0; i < at_a_time; ++i) records_.push_back(block + i * sizeof(TaskRecord));
  }

  std::mutex mutex_;
  std::vector<void*> records_, blocks_;
};
Pool& pool() {
  static Pool& all = *new Pool;  // handles may end after all else
  return all;
}

/// What a thread has for itself.
struct Spare {
  std::vector<void*> records;
  Spare() = default;
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() {
    pool().put(records, records.size());
    gone = true;
  }
  bool gone = false;
};
thread_local Spare spare;
constexpr std::size_t most_spare = 16 * Pool::at_a_time;

}  // namespace

void* TaskRecord::operator new(std::size_t /*bytes*/) {
  std::vector<void*> one;
  std::vector<void*>& records = spare.gone ? one : spare.records;
  if (records.empty()) pool().take(records);
  void* const memory = records.back();
  records.pop_back();
  if (!one.empty()) pool().put(one, one.size());
  return memory;
}

void TaskRecord::operator delete(void* memory) noexcept {
  std::vector<void*> one;
  std::vector<void*>& records = spare.gone ? one : spare.records;
  records.push_back(memory);
  if (!one.empty()) pool().put(one, 1);
  if (records.size() > most_spare) pool().put(records, records.size() / 2);
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
