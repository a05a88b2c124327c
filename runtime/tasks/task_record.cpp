#include "task_record.hpp"

#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "../run/state.hpp"
#include "codelet_state.hpp"

namespace asterism::detail {

KeptArgs::KeptArgs(const KernelArgs& args) : where_(here_), type_(args.type) {
  if (!is_here(*type_)) where_ = ::operator new (type_->bytes, std::align_val_t{type_->alignment});
  type_->copy(where_, args.args);
}

bool KeptArgs::is_here(const ArgsType& type) {
  return type.bytes <= sizeof here_ && type.alignment <= alignof(std::max_align_t);
}

void KeptArgs::end() noexcept {
  const ArgsType* const type = std::exchange(type_, nullptr);
  if (type == nullptr) return;
  void* const where = is_here(*type) ? here_ : where_;  // which lies where the worker has written
  if (type->end != nullptr) type->end(where);
  if (where != here_) ::operator delete (where, std::align_val_t{type->alignment});
}

namespace {

/// Memory for a record, and what is told of it to those who look for tasks and do not know whether there is one in it.
struct alignas(64) Place {
  alignas(TaskRecord) std::byte memory[sizeof(TaskRecord)];
  std::atomic<std::uint64_t> number = 0;  // of its task, while that is in flight
};
static_assert(offsetof(Place, memory) == 0);

Place& place_of(TaskRecord* record) { return *reinterpret_cast<Place*>(record); }

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

  template <class Look>
  void look_at_all(Look look) const {
    const std::lock_guard lock(mutex_);
    for (const std::unique_ptr<Place[]>& block : blocks_)
      for (std::size_t i = 0; i < at_a_time; ++i) look(block[i]);
  }

 private:
  static void move_last(std::vector<void*>& from, std::vector<void*>& to) {
    to.push_back(from.back());
    from.pop_back();
  }
  void add_block() {
    Place* const block = blocks_.emplace_back(new Place[at_a_time]).get();
    for (std::size_t i = 0; i < at_a_time; ++i) records_.push_back(block[i].memory);
  }

  mutable std::mutex mutex_;
  std::vector<void*> records_;
  std::vector<std::unique_ptr<Place[]>> blocks_;
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

void TaskRecord::enter_flight(std::uint64_t number) noexcept {
  place_of(this).number.store(number, std::memory_order_release);
}

void TaskRecord::leave_flight() noexcept { place_of(this).number.store(0, std::memory_order_relaxed); }

const TaskRecord* TaskRecord::oldest_in_flight() {
  const TaskRecord* oldest = nullptr;
  std::uint64_t its_number = std::numeric_limits<std::uint64_t>::max();
  pool().look_at_all([&](const Place& place) {
    const std::uint64_t number = place.number.load(std::memory_order_acquire);
    if (number == 0 || number > its_number) return;
    const auto* const record = reinterpret_cast<const TaskRecord*>(place.memory);
    if (record->ended) return;
    oldest = record;
    its_number = number;
  });
  return oldest;
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
