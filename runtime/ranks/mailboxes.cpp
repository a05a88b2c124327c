#include "mailboxes.hpp"

#include <cuda_runtime.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <starpu.h>
#include <starpu_cuda.h>
#include <starpu_mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <random>

#include "../contents.hpp"
#include "../cuda.hpp"
#include "../run/state.hpp"

namespace asterism::ranks {
namespace {

constexpr std::size_t smallest = std::size_t{16} << 10,
                      largest = std::size_t{16} << 20;  // bytes of a message
constexpr std::size_t slots = 4;                        // messages on their way from one rank to another
constexpr std::size_t box_bytes = slots * largest;

class File {
 public:
  explicit File(int opened) : number_(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (number_ >= 0) close(number_);
  }
  [[nodiscard]] int number() const { return number_; }  // -1: the system has refused

 private:
  int number_;
};

}  // namespace

/// Memory that two ranks share, for messages in one direction.
class Mailbox {
  /// A part of a file in memory.
  class Pages {
   public:
    Pages(const File& file, std::size_t offset) {
      void* const found = mmap(nullptr, box_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(),
                               static_cast<off_t>(offset));
      if (found != MAP_FAILED) data_ = static_cast<char*>(found);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() {
      if (data_ != nullptr) munmap(data_, box_bytes);
    }
    [[nodiscard]] char* data() const { return data_; }  // nullptr: the system has refused

   private:
    char* data_ = nullptr;
  };

 public:
  /// Where the sender puts a message.
  struct Slot {
    Slot(Mailbox& its_box, std::size_t its_number) : box(&its_box), number(its_number) {
      starpu_void_data_register(&room);
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { starpu_data_unregister(room); }

    Mailbox* box;
    std::size_t number;
    starpu_data_handle_t room = nullptr;  // for the message that has it
    std::atomic<int> messages = 0;        // that want it, or have it
  };

  Mailbox(const File& file, std::size_t offset) : pages_(file, offset) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    int before = 0;
    if (device_ < 0 || cudaGetDevice(&before) != cudaSuccess) return;
    cudaSetDevice(device_);  // a GPU that this rank does not use would be started otherwise
    for (std::size_t slot = 0; slot < slots; ++slot)
      if (locked_[slot] > 0) cudaHostUnregister(memory(slot));
    cudaSetDevice(before);
  }

  [[nodiscard]] bool is_mapped() const { return pages_.data() != nullptr; }

  /// The first of those that the fewest messages want: it is the most likely to be page-locked.
  Slot& next() {
    while (slots_.size() < slots) slots_.emplace_back(*this, slots_.size());
    return *std::ranges::min_element(slots_, {}, [](const Slot& slot) { return slot.messages.load(); });
  }

  [[nodiscard]] char* memory(std::size_t slot) const { return pages_.data() + slot * largest; }

  /// The same, page-locked as far as a message needs it, where the system allows that: it is faster to copy then. For the
  /// task whose message it is.
  char* locked_memory(std::size_t slot, std::size_t bytes) {
    char* const data = memory(slot);
    std::size_t& locked = locked_[slot];
    if (bytes <= locked) return data;
    if (locked > 0) cudaHostUnregister(data);
    constexpr std::size_t step = std::size_t{2} << 20;
    locked = (bytes + step - 1) / step * step;
    cudaHostRegister(data, locked, cudaHostRegisterPortable);
    int device = 0;
    cudaGetDevice(&device);
    device_ = device;
    cudaGetLastError();  // or the next launch's check would find it
    return data;
  }

 private:
  Pages pages_;
  std::array<std::size_t, slots> locked_{};  // bytes
  std::atomic<int> device_ = -1;             // that has locked some
  std::deque<Slot> slots_;                   // none before something is sent
};

namespace {

/// A tile in the memory of a task's worker.
Out<std::byte> tile_in(const void* buffer) {
  const auto* const m = static_cast<const starpu_matrix_interface*>(buffer);
  const auto bytes = [&](std::uint32_t elements) { return static_cast<Index>(elements * m->elemsize); };
  return {reinterpret_cast<std::byte*>(m->ptr), m->ny, bytes(m->nx), bytes(m->ld)};
}

std::uint64_t& word_in(void* buffer) {
  return *reinterpret_cast<std::uint64_t*>(
      STARPU_VARIABLE_GET_PTR(static_cast<starpu_variable_interface*>(buffer)));
}

/// A slot for what is in a tile, as those reach it that work there.
template <Where where>
Out<std::byte> slot_for(const Out<std::byte>& tile, Mailbox& box, std::size_t number) {
  char* const slot = where == Where::cuda
                         ? box.locked_memory(number, static_cast<std::size_t>(tile.rows * tile.cols))
                         : box.memory(number);
  return {reinterpret_cast<std::byte*>(slot), tile.rows, tile.cols, tile.cols};
}

/// @param kind of the GPU's copy
template <Where where>
void copy(const Out<std::byte>& from, const Out<std::byte>& to, cudaMemcpyKind kind) {
  if constexpr (where == Where::cuda)
    cuda::check(cudaMemcpy2DAsync(to.data, static_cast<std::size_t>(to.ld), from.data,
                                  static_cast<std::size_t>(from.ld), static_cast<std::size_t>(to.cols),
                                  static_cast<std::size_t>(to.rows), kind, starpu_cuda_get_local_stream()),
                "copy through a mailbox");
  else
    detail::copy_rows<std::byte>(0, {from.data, from.rows, from.cols, from.ld}, to);
}

/// Puts a tile into a slot, and tells which one that is.
template <Where where>
void put(void* buffers[], Mailbox::Slot& slot) {
  const Out<std::byte> tile = tile_in(buffers[0]);
  word_in(buffers[1]) = slot.number;
  copy<where>(tile, slot_for<where>(tile, *slot.box, slot.number), cudaMemcpyDeviceToHost);
}

/// Takes it out of there.
template <Where where>
void take(void* buffers[], Mailbox& box) {
  const Out<std::byte> tile = tile_in(buffers[0]);
  copy<where>(slot_for<where>(tile, box, word_in(buffers[1])), tile, cudaMemcpyHostToDevice);
}

/// What StarPU runs as a task. Nothing may be thrown into it.
template <auto body, class Argument>
void run(void* buffers[], void* argument) noexcept {
  try {
    body(buffers, *static_cast<Argument*>(argument));
  } catch (const std::exception& error) {
    current_runtime()->fail(starpu_task_get_current()->name, error.what());
  }
  Rest::task_ended();
}

starpu_codelet codelet(const char* name, std::initializer_list<starpu_data_access_mode> modes) {
  starpu_codelet its;
  starpu_codelet_init(&its);
  its.nbuffers = static_cast<int>(modes.size());
  std::ranges::copy(modes, its.modes);
  its.name = name;
  return its;
}

starpu_codelet codelet(const char* name, starpu_cpu_func_t on_core, starpu_cuda_func_t on_gpu,
                       std::initializer_list<starpu_data_access_mode> modes) {
  starpu_codelet its = codelet(name, modes);
  its.cpu_funcs[0] = on_core;
  its.cuda_funcs[0] = on_gpu;
  its.cuda_flags[0] = STARPU_CUDA_ASYNC;
  its.specific_nodes = 1;  // only the tile goes where the task runs: MPI sends words from main memory
  std::fill_n(its.nodes, modes.size(), STARPU_SPECIFIC_NODE_CPU);
  its.nodes[0] = STARPU_SPECIFIC_NODE_LOCAL;
  return its;
}

// StarPU keeps codelets beyond the Runtime.
// On a tile, the word "full", and the room of a slot.
starpu_codelet put_in_mailbox =
    codelet("put_in_mailbox", run<put<Where::cpu>, Mailbox::Slot>, run<put<Where::cuda>, Mailbox::Slot>,
            {STARPU_R, STARPU_W, STARPU_RW});
// On a tile, and the words "full" and "empty".
starpu_codelet take_from_mailbox = codelet("take_from_mailbox", run<take<Where::cpu>, Mailbox>,
                                           run<take<Where::cuda>, Mailbox>, {STARPU_W, STARPU_R, STARPU_W});
// On the word "empty", and the room. There is nothing to be done.
starpu_codelet free_slot = [] {
  starpu_codelet its = codelet("free_slot", {STARPU_R, STARPU_W});
  its.where = STARPU_NOWHERE;
  return its;
}();

/// The worker of the GPU where a tile is, or is wanted; none: it is main memory.
using OnGpu = std::optional<int>;

OnGpu first_gpu() {
  const int worker = number_in_starpu(WorkerKind::cuda, 0);
  return worker >= 0 ? OnGpu(worker) : OnGpu();
}

/// Where a task has its tiles, as far as that is known before it runs.
OnGpu place_of(const starpu_task& task) {
  if (task.execute_on_a_specific_worker == 0) return (task.where & STARPU_CUDA) != 0 ? first_gpu() : OnGpu();
  const auto worker = static_cast<int>(task.workerid);
  return starpu_worker_get_type(worker) == STARPU_CUDA_WORKER ? OnGpu(worker) : OnGpu();
}

/// What StarPU keeps beside a tile: nothing where nobody has noted a place.
void note_place(starpu_data_handle_t tile, OnGpu gpu) {
  starpu_data_set_user_data(tile, reinterpret_cast<void*>(static_cast<std::intptr_t>(gpu.value_or(-1)) + 1));
}
OnGpu noted_place(starpu_data_handle_t tile) {
  const auto noted = reinterpret_cast<std::intptr_t>(starpu_data_get_user_data(tile));
  return noted > 0 ? OnGpu(static_cast<int>(noted - 1)) : OnGpu();
}

/// @return StarPU's status
int submit(starpu_codelet& what, std::initializer_list<starpu_data_handle_t> tiles, void* argument,
           int priority, OnGpu gpu = {}) {
  if (starpu_cpu_worker_get_count() == 0 && !gpu) gpu = first_gpu();
  starpu_task* const task = starpu_task_create();
  task->cl = &what;
  task->name = what.name;
  std::ranges::copy(tiles, task->handles);
  task->cl_arg = argument;
  task->priority = priority;
  if (what.where != STARPU_NOWHERE) {
    task->where = gpu ? STARPU_CUDA : STARPU_CPU;
    task->execute_on_a_specific_worker = gpu ? 1 : 0;
    task->workerid = static_cast<unsigned>(gpu.value_or(0));
  }
  return starpu_task_submit(task);
}

/// What StarPU calls when a message has gone its way.
void gone(void* slot) { --static_cast<Mailbox::Slot*>(slot)->messages; }

starpu_data_handle_t new_word() {
  starpu_data_handle_t word = nullptr;
  starpu_variable_data_register(&word, -1, 0, sizeof(std::uint64_t));
  return word;
}

}  // namespace

/// What goes with the messages of one tile from one rank to another. They are in order, as they have the same words.
struct Mailboxes::Words {
  explicit Words(starpu_data_handle_t tile) {
    constexpr starpu_mpi_tag_t beyond_tiles = starpu_mpi_tag_t{1} << 40;
    tag_of_full = beyond_tiles + 2 * starpu_mpi_data_get_tag(tile);
    tag_of_empty = tag_of_full + 1;
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  /// StarPU ends them when nobody waits for them any more.
  ~Words() {
    for (starpu_data_handle_t word : {full, empty}) starpu_data_unregister_submit(word);
  }

  starpu_data_handle_t full = new_word(), empty = new_word();
  starpu_mpi_tag_t tag_of_full, tag_of_empty;
};

struct Mailboxes::Pair {
  Mailbox out, in;
};

Mailboxes::Mailboxes(MPI_Comm comm, MPI_Comm node) : comm_(comm) {
  int ranks = 0, me = 0, here = 0;
  MPI_Comm_size(comm, &ranks);
  pairs_.resize(static_cast<std::size_t>(ranks));
  MPI_Comm_rank(node, &me);
  MPI_Comm_size(node, &here);
  const auto box_of = [](int rank) { return static_cast<std::size_t>(rank) * box_bytes; };

  // What this rank sends is in a file that only memory has, with room for each other rank. Nobody need tidy it up.
  struct Told {
    int rank, process, file;
    std::uint64_t key;  // what stands behind the boxes: another container may have a process of that number
  };
  Told mine{0, static_cast<int>(getpid()), -1, std::random_device{}()};
  MPI_Comm_rank(comm, &mine.rank);
  const bool wanted = here > 1 && starpu_cuda_worker_get_count() > 0;
  const File file(wanted ? memfd_create("asterism mailboxes", MFD_CLOEXEC) : -1);
  if (pwrite(file.number(), &mine.key, sizeof mine.key, static_cast<off_t>(box_of(here))) == sizeof mine.key)
    mine.file = file.number();
  std::vector<Told> all(static_cast<std::size_t>(here));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node);

  std::vector<char> mapped(all.size(), 0), mapped_by(all.size(), 0);
  for (int k = 0; k < here; ++k) {
    const Told& other = all[static_cast<std::size_t>(k)];
    if (k == me || mine.file < 0 || other.file < 0) continue;
    const File theirs(
        open(fmt::format("/proc/{}/fd/{}", other.process, other.file).c_str(), O_RDWR | O_CLOEXEC));
    std::uint64_t key = 0;
    if (pread(theirs.number(), &key, sizeof key, static_cast<off_t>(box_of(here))) != sizeof key ||
        key != other.key)
      continue;
    std::unique_ptr<Pair>& pair = pairs_[static_cast<std::size_t>(other.rank)];
    pair.reset(new Pair{{file, box_of(k)}, {theirs, box_of(me)}});
    mapped[static_cast<std::size_t>(k)] = pair->out.is_mapped() && pair->in.is_mapped() ? 1 : 0;
  }
  MPI_Alltoall(mapped.data(), 1, MPI_CHAR, mapped_by.data(), 1, MPI_CHAR, node);
  for (std::size_t k = 0; k < all.size(); ++k)
    if (mapped[k] == 0 || mapped_by[k] == 0) pairs_[static_cast<std::size_t>(all[k].rank)].reset();
  if (std::ranges::none_of(pairs_, [](const std::unique_ptr<Pair>& pair) { return pair != nullptr; }))
    pairs_.clear();
}

Mailboxes::~Mailboxes() = default;

bool Mailboxes::carry(starpu_data_handle_t tile, int other) const {
  if (pairs_.empty() || pairs_[static_cast<std::size_t>(other)] == nullptr) return false;
  const std::size_t bytes = starpu_data_get_size(tile);
  return bytes >= smallest && bytes <= largest;
}

Mailboxes::Words& Mailboxes::words_of(starpu_data_handle_t tile, int other, Direction direction) {
  std::unique_ptr<Words>& words = words_[{tile, other, direction}];
  if (words == nullptr) words = std::make_unique<Words>(tile);
  return *words;
}

int Mailboxes::send(starpu_data_handle_t tile, int to, int priority) {
  const std::lock_guard lock(mutex_);
  Mailbox::Slot& slot = pairs_[static_cast<std::size_t>(to)]->out.next();
  ++slot.messages;
  const Words& words = words_of(tile, to, Direction::out);
  int status = submit(put_in_mailbox, {tile, words.full, slot.room}, &slot, priority, noted_place(tile));
  if (status == 0)
    status =
        starpu_mpi_isend_detached_prio(words.full, to, words.tag_of_full, priority, comm_, nullptr, nullptr);
  if (status == 0)
    status =
        starpu_mpi_irecv_detached_prio(words.empty, to, words.tag_of_empty, priority, comm_, gone, &slot);
  if (status == 0) status = submit(free_slot, {words.empty, slot.room}, nullptr, priority);
  return status;
}

int Mailboxes::receive(starpu_data_handle_t tile, int from, int priority, const starpu_task* reader) {
  const std::lock_guard lock(mutex_);
  const Words& words = words_of(tile, from, Direction::in);
  const OnGpu place = reader != nullptr ? place_of(*reader) : OnGpu();
  note_place(tile, place);
  int status =
      starpu_mpi_irecv_detached_prio(words.full, from, words.tag_of_full, priority, comm_, nullptr, nullptr);
  if (status == 0)
    status = submit(take_from_mailbox, {tile, words.full, words.empty},
                    &pairs_[static_cast<std::size_t>(from)]->in, priority, place);
  if (status == 0)
    status = starpu_mpi_isend_detached_prio(words.empty, from, words.tag_of_empty, priority, comm_, nullptr,
                                            nullptr);
  return status;
}

void Mailboxes::note_writer(starpu_data_handle_t tile, const starpu_task& writer) const {
  if (!pairs_.empty()) note_place(tile, place_of(writer));
}

void Mailboxes::forget(starpu_data_handle_t tile) {
  const std::lock_guard lock(mutex_);
  const auto first = words_.lower_bound({tile, 0, Direction::in});
  auto end = first;
  while (end != words_.end() && std::get<0>(end->first) == tile) ++end;
  words_.erase(first, end);
}

}  // namespace asterism::ranks
