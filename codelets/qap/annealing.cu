#include "annealing.hpp"

#include "../../runtime/cuda.hpp"
#include "block/move_table.cuh"
#include "block/walks.cuh"

namespace asterism::qap::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;

namespace {

/// Filled before every launch, with the same: which GPU a task runs on is not known before.
__constant__ double logs_of_gpu[MinusLogs::count];

/// The first of a block's threads for which something holds, or how many there are: for all of them. With a barrier.
class FirstThread {
 public:
  /// @param round the number of the call: its numbers are read while those of the next one are written
  __device__ int that(bool holds, int round) {
    int* const first_of = of_warps_[round % 2];
    const unsigned mine = __ballot_sync(whole_warp, holds);
    const int number = static_cast<int>(threadIdx.x) / warp, lane = static_cast<int>(threadIdx.x) % warp;
    if (lane == 0) first_of[number] = mine == 0 ? threads : number * warp + __ffs(static_cast<int>(mine)) - 1;
    __syncthreads();
    return __reduce_min_sync(whole_warp, lane < warps ? first_of[lane] : threads);
  }

 private:
  int of_warps_[2][warps];
};

/// A thread looks at a proposal; the first one of those that are accepted is made, and what comes behind it is looked
/// at again: as if there were one thread.
template <class E, int terms, Tables where>
__global__ void __launch_bounds__(threads)
    anneal_kernel(WalkRules a, MatrixView<E> m, Layout<E, terms> layout, BlockWalks walks,
                  Scratch<unsigned char> room) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ FirstThread first;
  const WalkView walk(walks.mine(), a.n, a.capacity);
  BlockTable<E, terms, where> table(m, layout, shared,
                                    room.row(blockIdx.x) + a.n * a.n * static_cast<Index>(sizeof(Stamp)));
  table.begin(walk.permutation());
  // Every thread keeps the head for itself; they all make the same of it.
  WalkHead head = walk.head();
  head.made = 0;
  __syncthreads();
  for (int round = 0; head.made < head.planned && head.best_cost > a.target; ++round) {
    const Index left = head.planned - head.made;
    const auto mine = static_cast<int>(threadIdx.x);
    const auto change_by = [&](const Proposal& move) {
      return a.unit * static_cast<std::int64_t>(table.delta(move.r, move.s));
    };
    const Proposal move = proposal(head.stream, head.iterations + mine, a.n, logs_of_gpu);
    const int made =
        first.that(mine < left && accepts(change_by(move), head.temperature, move.minus_log), round);
    const Proposal chosen = proposal(head.stream, head.iterations + made, a.n, logs_of_gpu);
    const Index looked_at = made < threads ? made + 1 : threads;
    head.made += looked_at < left ? looked_at : left;
    head.iterations += looked_at < left ? looked_at : left;
    if (made == threads) continue;
    head.cost += change_by(chosen);
    table.swap(chosen.r, chosen.s);
    if (head.cost < head.best_cost) {
      head.best_cost = head.cost;
      head.best_iteration = head.iterations;
      for (Index k = threadIdx.x; k < a.n; k += threads) walk.best()[k] = table.permutation()[k];
    }
    __syncthreads();
    table.fill_swapped();
    __syncthreads();
    table.update();
    __syncthreads();
  }
  for (Index k = threadIdx.x; k < a.n; k += threads) walk.permutation()[k] = table.permutation()[k];
  if (threadIdx.x == 0) walk.head() = head;
}

}  // namespace

template <class E>
void anneal(Stream stream, const TabuArguments& a, In<E> matrices, Many<InOut<unsigned char>> walks,
            Scratch<unsigned char> room) {
  if (a.is_stopped()) return;
  const MatrixView<E> view{reinterpret_cast<const Unsigned<E>*>(matrices.data), a.n, matrices.ld, a.terms,
                           a.has_diagonals};
  launch_with_layout<E>(
      a.n, a.terms, a.capacity, [&]<int terms, Tables where>(const Layout<E, terms>& layout) {
        check(
            cudaFuncSetAttribute(anneal_kernel<E, terms, where>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(layout.bytes)),
            "anneal");
        launch_walks(stream, walks, room,
                     [&](cudaStream_t aside, const BlockWalks& some, const Scratch<unsigned char>& its_room) {
                       // Beside kernels that read them: every task brings the same.
                       check(cudaMemcpyToSymbolAsync(logs_of_gpu, minus_logs().of, sizeof(MinusLogs), 0, cudaMemcpyHostToDevice,
                                                     aside),
                             "anneal");
                       anneal_kernel<E, terms, where>
                           <<<some.count(), threads, static_cast<std::size_t>(layout.bytes), aside>>>(WalkRules(a), view, layout,
                                                                                                      some, its_room);
                       check_launch("anneal");
                     });
      });
}

template void anneal(Stream, const TabuArguments&, In<std::int16_t>, Many<InOut<unsigned char>>,
                     Scratch<unsigned char>);
template void anneal(Stream, const TabuArguments&, In<std::int32_t>, Many<InOut<unsigned char>>,
                     Scratch<unsigned char>);
template void anneal(Stream, const TabuArguments&, In<std::int64_t>, Many<InOut<unsigned char>>,
                     Scratch<unsigned char>);

}  // namespace asterism::qap::cuda
