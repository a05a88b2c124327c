// Tasks on GPUs: what travels there and back, on which of them they run, and what stays there.

#ifdef ASTERISM_WITH_CUDA

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "numbered_tiles.hpp"
#include "plain_codelets.hpp"
#include "runtime/codelet.hpp"
#include "runtime/cuda.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

Options one_gpu() {
  Options options;
  options.gpus = 1;
  return options;
}

}  // namespace

TEST_CASE("gpu: tiles travel to a CUDA kernel and back unharmed, and their bytes are counted") {
  Runtime runtime(one_gpu());
  const Codelet codelet{"test_gpu_nothing", cpu_axpy, cuda_nothing};
  constexpr Index n = 256;
  constexpr std::int64_t bytes = n * n * 8;
  std::vector<double> x(n * n, 3), y(n * n, 4);
  {
    const Tile<double> from(runtime, x.data(), n, n, n), to(runtime, y.data(), n, n, n);
    codelet(1, from, to, {.where = Where::cuda});
    runtime.wait();
    CHECK(runtime.traffic().to_device == 2 * bytes);
  }
  CHECK(runtime.traffic().from_device == bytes);
  CHECK(std::all_of(x.begin(), x.end(), [](double value) { return value == 3; }));
  CHECK(std::all_of(y.begin(), y.end(), [](double value) { return value == 4; }));
}

TEST_CASE("gpu: a tile that is sent home comes anew, one that is fetched stays") {
  Runtime runtime(one_gpu());
  const Codelet codelet{"test_gpu_nothing", cpu_axpy, cuda_nothing};
  constexpr Index n = 256;
  constexpr std::int64_t bytes = n * n * 8;
  std::vector<double> x(n * n, 3), y(n * n, 4);
  const Tile<double> from(runtime, x.data(), n, n, n), to(runtime, y.data(), n, n, n);
  for (int task = 0; task < 3; ++task) {
    codelet(1, from, to, {.where = Where::cuda});
    to.fetch();
  }
  runtime.wait();
  CHECK(runtime.traffic().to_device == 2 * bytes);
  for (int task = 0; task < 3; ++task) {
    codelet(1, from, to, {.where = Where::cuda});
    to.send_home();
  }
  to.wait();
  CHECK(runtime.traffic().to_device == 4 * bytes);  // the first of them found it there
  CHECK(std::all_of(y.begin(), y.end(), [](double value) { return value == 4; }));
}

TEST_CASE("gpu: on the GPU that the submitter names") {
  Runtime runtime;
  const int gpus = runtime.machine().count(WorkerKind::cuda);
  struct Seen {
    std::mutex mutex;
    std::map<int, std::set<std::thread::id>> threads;
  };
  struct Arguments {
    std::shared_ptr<Seen> seen;
    int worker;
  };
  const Codelet<Arguments, Out<double>> note{"test_gpu_note", nullptr,
                                             [](Stream, const Arguments& a, Out<double>) {
                                               const std::lock_guard lock(a.seen->mutex);
                                               a.seen->threads[a.worker].insert(std::this_thread::get_id());
                                             }};
  const auto seen = std::make_shared<Seen>();
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 40; ++k) {
    const int worker = k * k % gpus;
    note({seen, worker}, tiles.emplace_back(runtime, 1, 1), {.where = Where::cuda, .worker = worker});
  }
  runtime.wait();
  std::set<std::thread::id> all;
  for (const auto& [worker, threads] : seen->threads) {
    CHECK(threads.size() == 1);
    all.merge(std::set(threads));
  }
  CHECK(all.size() == seen->threads.size());
  CHECK_THROWS_AS(note({seen, 0}, tiles[0], {.where = Where::cuda, .worker = gpus}), Error);
}

namespace {

void copy(Stream stream, InOut<double> to, InOut<double> from) {
  cuda::check(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(to.cols) * sizeof(double),
                              cudaMemcpyDefault, cuda::native(stream)),
              "copy");
}

}  // namespace

TEST_CASE("gpu: several GPUs work on a task together, and find tiles where they are at home") {
  Runtime runtime;
  const int gpus = runtime.machine().count(WorkerKind::cuda);
  struct Homes {
    std::vector<int> gpus = {};
    int rounds = 0;
  };
  // Each member hands what it has on to the next one, round after round: who goes on too early, or too late, is seen.
  const Codelet<Homes, Many<InOut<double>>, Many<InOut<double>>> pass_on{
      "test_gpu_pass_on", nullptr,
      [](Stream stream, const Homes& homes, Many<InOut<double>> x, Many<InOut<double>> y) {
        for (const auto& list : {x, y})
          for (Index k = 0; k < x.size(); ++k) {
            cudaPointerAttributes where{};
            cuda::check(cudaPointerGetAttributes(&where, list[k].data), "cudaPointerGetAttributes");
            if (where.device != homes.gpus[static_cast<std::size_t>(k)]) throw Error("a tile is not at home");
          }
        cuda::Team team(stream, homes.gpus);
        for (int round = 0; round < homes.rounds; ++round) {
          for (Index k = 0; k < x.size(); ++k)
            copy(team.on(static_cast<std::size_t>(k)), y[(k + 1) % y.size()], x[k]);
          team.meet();
          for (Index k = 0; k < x.size(); ++k) copy(team.on(static_cast<std::size_t>(k)), x[k], y[k]);
          team.meet();
        }
      }};
  constexpr Index n = 1 << 16;
  const int members = std::max(gpus, 3);
  Homes homes{.rounds = 100};
  std::vector<Tile<double>> x, y;
  for (int k = 0; k < members; ++k) {
    homes.gpus.push_back(k % gpus);
    for (auto* tiles : {&x, &y}) {
      set_first(k, tiles->emplace_back(runtime, 1, n));
      tiles->back().set_home(k % gpus);
    }
  }
  for (int again = 0; again < 3; ++again)
    pass_on(homes, x, y, {.where = Where::cuda, .worker = 0, .together = true});
  if (runtime.gpus_see_each_other()) {
    for (int k = 0; k < members; ++k) CHECK(value(x[static_cast<std::size_t>((k + 300) % members)]) == k);
  } else {
    CHECK_THROWS_AS(runtime.wait(), TaskFailure);
  }
  CHECK_THROWS_WITH_AS(pass_on(homes, x, y, {.together = true}),
                       "task test_gpu_pass_on is for GPUs together, and not for them alone: say Where::cuda",
                       Error);
  CHECK_THROWS_AS(x[0].set_home(gpus), Error);
}

TEST_CASE("gpu: what is launched aside does not wait for tasks before it, and is done when its task is") {
  Runtime runtime(one_gpu());
  static std::atomic<int> next{0};
  struct Copies {
    int rounds = 0;
    int* turn = nullptr;  // when they were done
  };
  const Codelet<Copies, InOut<double>, InOut<double>> copy_often{
      "test_gpu_copy_aside", nullptr, [](Stream stream, const Copies& a, InOut<double> x, InOut<double> y) {
        const cuda::Aside aside(stream);
        for (int round = 0; round < a.rounds; ++round) {
          copy(aside.stream(), y, x);
          copy(aside.stream(), x, y);
        }
        const auto note = [](void* turn) { *static_cast<int*>(turn) = ++next; };
        cuda::check(cudaLaunchHostFunc(cuda::native(aside.stream()), note, a.turn), "cudaLaunchHostFunc");
      }};
  constexpr Index n = 1 << 22;
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 4; ++k) set_first(k, tiles.emplace_back(runtime, 1, n));
  int many = 0, few = 0;
  copy_often({1, &many}, tiles[0], tiles[1]);  // the tiles are on the GPU then
  copy_often({1, &few}, tiles[2], tiles[3]);
  runtime.wait();
  copy_often({2000, &many}, tiles[0], tiles[1]);  // a tenth of a second
  copy_often({1, &few}, tiles[2], tiles[3]);
  runtime.wait();
  CHECK(few == 3);
  CHECK(many == 4);
  for (const int k : {0, 1, 2, 3}) CHECK(value(tiles[static_cast<std::size_t>(k)]) == (k < 2 ? 0 : 2));
}

TEST_CASE("gpu: what throws in a CUDA kernel arrives at wait") {
  Runtime runtime(one_gpu());
  const Codelet<NoArgs, InOut<double>> fails{
      "test_gpu_fails", nullptr,
      [](Stream, const NoArgs&, InOut<double>) { throw Error("launch: CUDA says no"); }};
  double number = 0;
  const Tile<double> tile(runtime, &number, 1, 1, 1);
  fails({}, tile, {.label = "slab 1"});
  CHECK_THROWS_WITH_AS(runtime.wait(), "task test_gpu_fails (slab 1) failed: launch: CUDA says no",
                       TaskFailure);
  runtime.wait();
}

TEST_CASE("gpu: a task that fits in main memory only runs there") {
  Options options = one_gpu();
  options.gpu_memory = std::size_t{512} << 20;
  Runtime runtime(options);
  const Tile<double> tile(runtime, 8192, 8192 + 1024);  // 576 MiB
  const Codelet<double, Out<double>> both{"test_gpu_both", cpu_set_first,
                                          [](Stream, const double&, Out<double>) {}};
  CHECK_THROWS_AS(both(1, tile, {.where = Where::cuda}), Error);
  both(1, tile);
  CHECK(value(tile) == 1);
}

TEST_CASE("gpu: four times the GPU's memory passes through it") {
  Options options = one_gpu();
  options.gpu_memory = std::size_t{512} << 20;
  Runtime runtime(options);
  const Codelet<NoArgs, InOut<double>> visit{"test_gpu_visit", nullptr,
                                             [](Stream, const NoArgs&, InOut<double>) {}};
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 64; ++k) set_first(k, tiles.emplace_back(runtime, 2048, 2048));  // 32 MiB
  for (const Tile<double>& tile : tiles) {
    tile.write_through();
    visit({}, tile);
    tile.wont_use();
  }
  for (int k = 0; k < 64; ++k) CHECK(value(tiles[static_cast<std::size_t>(k)]) == k);
  CHECK(runtime.traffic().to_device >= std::int64_t{2} << 30);
}

TEST_CASE("gpu: what a GPU keeps stays there while a stream passes") {
  Options options = one_gpu();
  options.gpu_memory = std::size_t{512} << 20;
  Runtime runtime(options);
  const Codelet<NoArgs, InOut<double>> visit{"test_gpu_visit", nullptr,
                                             [](Stream, const NoArgs&, InOut<double>) {}};
  const Tile<double> kept = Tile<double>::kept_on_gpu(runtime, 2048, 2048, 0);  // 32 MiB
  set_first(7, kept);
  visit({}, kept);
  kept.wait();
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 64; ++k) set_first(k, tiles.emplace_back(runtime, 2048, 2048)), visit({}, tiles.back());
  runtime.wait();
  const std::int64_t to_device = runtime.traffic().to_device;
  visit({}, kept);
  runtime.wait();
  CHECK(runtime.traffic().to_device == to_device);  // it was there
  CHECK(value(kept) == 7);
  CHECK_THROWS_WITH_AS(Tile<double>::kept_on_gpu(runtime, 2, 2, 1),
                       "tile for GPU 1: there are 1, counted from 0", Error);
}

TEST_CASE("gpu: what is kept at home is read there, until a task writes it") {
  Runtime runtime(one_gpu());
  const Codelet<NoArgs, InOut<double>> visit{"test_gpu_visit", nullptr,
                                             [](Stream, const NoArgs&, InOut<double>) {}};
  const Codelet<NoArgs, In<double>, Out<double>> copy_first{
      "test_gpu_copy_first", nullptr, [](Stream stream, const NoArgs&, In<double> from, Out<double> to) {
        cuda::check(
            cudaMemcpyAsync(to.data, from.data, sizeof(double), cudaMemcpyDefault, cuda::native(stream)),
            "a copy");
      }};
  const Tile<double> kept = Tile<double>::kept_at_home(runtime, 1024, 1024), first(runtime, 1, 1);
  const std::int64_t bytes = 8 << 20;
  const auto comes_for = [&](const auto& submit) {
    const std::int64_t before = runtime.traffic().to_device;
    submit();
    runtime.wait();
    return runtime.traffic().to_device - before;
  };
  const auto read_it = [&] { copy_first({}, kept, first); };
  set_first(7, kept);
  kept.send_home();
  CHECK(comes_for(read_it) == 0);
  CHECK(value(first) == 7);
  CHECK(comes_for([&] { visit({}, kept); }) == bytes);
  CHECK(comes_for(read_it) == 0);  // it is on the GPU
  set_first(8, kept);
  CHECK(comes_for(read_it) == bytes);  // by what a tile does that nobody has sent home
  visit({}, kept);
  kept.send_home();
  CHECK(comes_for(read_it) == 0);
  CHECK(value(first) == 8);
  kept.forget();
  set_first(9, kept);
  CHECK(value(kept) == 9);
}

TEST_CASE("runtime: handles and status words are those of a CUDA worker") {
  const char* const handle =
      "a handle of cuBLAS is a CUDA worker's: ask for it in the host code of a CUDA kernel, or in what "
      "Runtime::on_worker runs there";
  const auto ask_all = [&] {
    CHECK_THROWS_WITH_AS(static_cast<void>(Stream{nullptr}.cublas()), handle, Error);
    CHECK_THROWS_AS(static_cast<void>(Stream{nullptr}.cusolver()), Error);
    CHECK_THROWS_AS(static_cast<void>(Stream::of_worker()), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(Stream{nullptr}.status("it")),
                         "a status word is of a task's kernel: ask for it in the host code of a CUDA kernel",
                         Error);
  };
  ask_all();
  Runtime runtime;
  ask_all();
  if (runtime.machine().count(WorkerKind::cpu) > 0) runtime.on_worker(WorkerKind::cpu, 0, ask_all);
}

TEST_CASE("gpu: a worker makes its handles once, in its stream") {
  for (int round = 0; round < 2; ++round) {  // those of a Runtime end with it
    Runtime runtime(one_gpu());
    struct Seen {
      cublasContext* blas = nullptr;
      cusolverDnContext* solver = nullptr;
      cudaStream_t stream = nullptr;
    };
    const auto seen = std::make_shared<Seen>();
    runtime.on_worker(WorkerKind::cuda, 0, [&] {
      *seen = {Stream::of_worker().cublas(), Stream::of_worker().cusolver(),
               static_cast<cudaStream_t>(Stream::of_worker().handle)};
    });
    const Codelet<std::shared_ptr<Seen>, Out<double>> compare{
        "test_gpu_handles", nullptr, [](Stream stream, const std::shared_ptr<Seen>& before, Out<double>) {
          if (stream.cublas() != before->blas || stream.cusolver() != before->solver ||
              stream.handle != before->stream)
            throw Error("other handles");
        }};
    const Tile<double> tile(runtime, 1, 1);
    for (int k = 0; k < 3; ++k) compare(seen, tile);
    runtime.wait();
  }
}

TEST_CASE("gpu: a kernel's status that is not 0 fails its task before another begins that waits for it") {
  Runtime runtime(one_gpu());
  const Codelet<int, InOut<double>> say{
      "test_gpu_status", nullptr, [](Stream stream, const int& byte, InOut<double>) {
        static_cast<void>(stream.status("the first is 0, not"));
        int* const word = stream.status("the bytes are");
        cudaMemsetAsync(word, byte, sizeof(int), static_cast<cudaStream_t>(stream.handle));
      }};
  const auto begun = std::make_shared<bool>(false);
  const Codelet<std::shared_ptr<bool>, InOut<double>> after{
      "test_gpu_after", nullptr,
      [](Stream, const std::shared_ptr<bool>& here, InOut<double>) { *here = true; }};
  const Tile<double> tile(runtime, 1, 1);
  set_first(1, tile);
  for (int k = 0; k < 1000; ++k) say(0, tile);  // words serve again
  runtime.wait();
  say(1, tile, {.label = "block 3"});
  after(begun, tile);
  CHECK_THROWS_WITH_AS(runtime.wait(), "task test_gpu_status (block 3) failed: the bytes are 16843009",
                       TaskFailure);
  CHECK_FALSE(*begun);
  CHECK_THROWS_AS(say(0, tile), Error);  // what it holds is lost
  set_first(1, tile);
  say(0, tile);
  runtime.wait();
}

TEST_CASE("gpu: a kernel that throws leaves its status word to others") {
  Runtime runtime(one_gpu());
  const Codelet<NoArgs, Out<double>> fails{"test_gpu_status_throws", nullptr,
                                           [](Stream stream, const NoArgs&, Out<double>) {
                                             static_cast<void>(stream.status("nothing"));
                                             throw Error("this");
                                           }};
  for (int k = 0; k < 300; ++k) {  // more than there are words
    const Tile<double> tile(runtime, 1, 1);
    fails({}, tile);
    CHECK_THROWS_WITH_AS(runtime.wait(), "task test_gpu_status_throws failed: this", TaskFailure);
  }
}

#endif
