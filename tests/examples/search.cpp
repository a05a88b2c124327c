// A search that keeps the best it has found, and stops early: a number whose hash begins with many zero bits.
#include <asterism/runtime/per_rank.hpp>
#include <asterism/runtime/run.hpp>
#include <cstdint>
#include <cstdio>
using namespace asterism;

struct Found { std::uint64_t number; int zeros; };
struct Range { std::uint64_t first, count; };

ASTERISM_HOST_DEVICE std::uint64_t hash(std::uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

ASTERISM_HOST_DEVICE int zeros_at_the_front(std::uint64_t x) {
  int zeros = 0;
  while (zeros < 64 && x >> (63 - zeros) == 0) ++zeros;
  return zeros;
}
ASTERISM_HOST_DEVICE Found best_of(Range range, unsigned step) {  // of every step-th number
  Found best{0, -1};
  for (std::uint64_t n = range.first; n < range.first + range.count; n += step)
    if (const int zeros = zeros_at_the_front(hash(n)); zeros > best.zeros) best = {n, zeros};
  return best;
}
void scan_on_core(Range range, Out<Found> best) { *best.data = best_of(range, 1); }
#ifdef __CUDACC__
__global__ void scan_by_threads(Range range, Out<Found> best) {
  __shared__ Found each[256];
  each[threadIdx.x] = best_of({range.first + threadIdx.x, range.count - threadIdx.x}, 256);
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (unsigned k = 1; k < 256; ++k)
    if (each[k].zeros > each[0].zeros) each[0] = each[k];
  *best.data = each[0];
}
void scan_on_gpu(Stream stream, Range range, Out<Found> best) {
  scan_by_threads<<<1, 256, 0, cudaStream_t(stream.handle)>>>(range, best);
}
#endif
const Codelet scan{"scan", scan_on_core, ASTERISM_CUDA_KERNEL(scan_on_gpu)};
// In whatever order they are ready.
const auto keep_better = codelet("keep_better", [](In<Found> found, Commute<Found> best) {
  if (found.data->zeros > best.data->zeros) *best.data = *found.data;
});

int main() {
  return run({}, [](Runtime& runtime) {
    constexpr Index parts = 4096, numbers = 1 << 16;
    constexpr int enough = 20;  // one number in a million
    const PerRank<Found> best(runtime, 1, 1);
    for (const Tile<Found>& tile : best) set(tile, {0, -1});
    const Tiles<Found> found(runtime, parts, 1, 1, 1, [&](Index k, Index) { return int(k % runtime.ranks()); });
    for (Index k = 0; k < parts; ++k) {
      const Tile<Found>& mine = best[found[k].owner()];
      scan({std::uint64_t(k * numbers), numbers}, found[k]);
      keep_better(found[k], mine);
      if (k % 64 >= runtime.ranks()) continue;
      const Snapshot<Found> look(mine);  // of this moment; what comes next does not wait until somebody has looked
      look.then([&runtime, look] {
        if (look(0, 0).zeros >= enough) runtime.cancel();  // on all ranks: what has not begun does nothing
      });
    }
    runtime.wait();
    const Tile<Found> overall(runtime, 1, 1);
    reduce(runtime, keep_better, TileList<Found>(best), overall);
    const Found winner = gather(overall)[0];
    if (runtime.rank() == 0)
      std::printf("the hash of %llu begins with %d zero bits\n", static_cast<unsigned long long>(winner.number),
                  winner.zeros);
    return winner.zeros >= enough && zeros_at_the_front(hash(winner.number)) == winner.zeros ? 0 : 1;
  });
}
