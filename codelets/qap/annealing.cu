#include "annealing.hpp"
#include "move_table.cuh"

namespace asterism::qap::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

/// Filled before every launch, with the same: which GPU a task runs on is not known before.
__constant__ double logs_of_gpu[MinusLogs::count];

/// A thread looks at a proposal; the first one of those that are accepted is made, and what comes behind it is looked
/// at again: as if there were one thread.
template <class E>
__global__ void __launch_bounds__(threads)
    anneal_kernel(TabuArguments a, MatrixView<E> m, InOut<unsigned char> walks, Scratch<unsigned char> room,
                  bool tables_are_shared) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ int count, first;
  __shared__ Candidate<E> free[warps], tabu[warps];
  __shared__ Candidate<E> chosen;
  const WalkView walk(walks.row(blockIdx.x), a.n, a.capacity);
  BlockTable<E> table(
      m,
      arrays_of_block<E>(shared, room.row(blockIdx.x) + a.n * a.n * static_cast<Index>(sizeof(Stamp)),
                         tables_are_shared, a.n, a.terms, a.capacity),
      {&count, free, tabu});
  table.begin(walk.permutation());
  // Every thread keeps the head for itself; they all make the same of it.
  WalkHead head = walk.head();
  head.made = 0;
  while (head.made < head.planned && head.best_cost > a.target) {
    if (threadIdx.x == 0) first = threads;
    __syncthreads();
    const int mine = static_cast<int>(threadIdx.x);
    const Proposal move = proposal(head.stream, head.iterations + mine, a.n, logs_of_gpu);
    const E delta = table.delta(move.r, move.s);
    const bool accepted =
        head.made + mine < head.planned &&
        accepts(a.unit * static_cast<std::int64_t>(delta), head.temperature, move.minus_log);
    if (accepted) atomicMin(&first, mine);
    __syncthreads();
    if (first == mine) chosen = {delta, Candidate<E>::order_of(move.r, move.s)};
    __syncthreads();
    const bool made_one = first < threads;
    const Index looked_at = made_one ? first + 1 : threads, left = head.planned - head.made;
    head.made += looked_at < left ? looked_at : left;
    head.iterations += looked_at < left ? looked_at : left;
    if (!made_one) {
      __syncthreads();  // all have read what thread 0 is about to write
      continue;
    }
    const Candidate<E> made = chosen;
    table.swap(made.r(), made.s());
    table.bring_up_to_date();
    head.cost += a.unit * static_cast<std::int64_t>(made.delta);
    if (head.cost < head.best_cost) {
      head.best_cost = head.cost;
      head.best_iteration = head.iterations;
      for (Index k = threadIdx.x; k < a.n; k += threads) walk.best()[k] = table.permutation()[k];
    }
  }
  __syncthreads();
  for (Index k = threadIdx.x; k < a.n; k += threads) walk.permutation()[k] = table.permutation()[k];
  if (threadIdx.x == 0) walk.head() = head;
}

}  // namespace

template <class E>
void anneal(Stream stream, const TabuArguments& a, In<E> matrices, InOut<unsigned char> walks,
            Scratch<unsigned char> room) {
  check(cudaMemcpyToSymbolAsync(logs_of_gpu, minus_logs().of, sizeof(MinusLogs), 0, cudaMemcpyHostToDevice,
                                native(stream)),
        "anneal");
  const TableLayout<E> layout(a.n, a.terms, a.capacity);
  check(cudaFuncSetAttribute(anneal_kernel<E>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(layout.bytes)),
        "anneal");
  const MatrixView<E> view{reinterpret_cast<const Unsigned<E>*>(matrices.data), a.n, matrices.ld, a.terms,
                           a.has_diagonals};
  anneal_kernel<E><<<static_cast<unsigned>(walks.rows), threads, static_cast<std::size_t>(layout.bytes),
                     native(stream)>>>(a, view, walks, room, layout.fit);
  check_launch("anneal");
}

template void anneal(Stream, const TabuArguments&, In<std::int16_t>, InOut<unsigned char>,
                     Scratch<unsigned char>);
template void anneal(Stream, const TabuArguments&, In<std::int32_t>, InOut<unsigned char>,
                     Scratch<unsigned char>);
template void anneal(Stream, const TabuArguments&, In<std::int64_t>, InOut<unsigned char>,
                     Scratch<unsigned char>);

}  // namespace asterism::qap::cuda
