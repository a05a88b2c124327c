#include "../../runtime/cuda.hpp"
#include "move_table.cuh"
#include "tabu_search.hpp"

namespace asterism::qap::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

/// The table of stamps as the list has it; all threads of the block call it.
__device__ void begin_list(const TabuList& list, const WalkView& walk) {
  for (Index i = threadIdx.x; i < list.n * list.n; i += threads) list.stamps[i] = {};
  __syncthreads();
  if (threadIdx.x == 0) {
    const WalkHead& head = walk.head();
    for (Index i = head.iterations < head.most_tenure ? 0 : head.iterations - head.most_tenure;
         i < head.iterations; ++i) {
      const auto place = static_cast<std::int32_t>(i % head.most_tenure);
      list.add(TabuEntry(list.entries[place]), place);
    }
  }
  __syncthreads();
}

template <class E>
__global__ void __launch_bounds__(threads)
    tabu_kernel(TabuArguments a, MatrixView<E> m, InOut<unsigned char> walks, Scratch<unsigned char> room,
                bool tables_are_shared) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ int count;
  __shared__ Candidate<E> free[warps], tabu[warps];
  const WalkView walk(walks.row(blockIdx.x), a.n, a.capacity);
  unsigned char* const stamps = room.row(blockIdx.x);
  const TabuList list{a.rule, a.n, walk.list(), reinterpret_cast<Stamp*>(stamps)};
  BlockTable<E> table(m,
                      arrays_of_block<E>(shared, stamps + a.n * a.n * static_cast<Index>(sizeof(Stamp)),
                                         tables_are_shared, a.n, a.terms, a.capacity),
                      {&count, free, tabu});
  begin_list(list, walk);
  table.begin(walk.permutation());
  const std::int32_t* const p = table.permutation();
  // Every thread keeps the head for itself; they all make the same of it.
  WalkHead head = walk.head();
  const auto longest = static_cast<std::int32_t>(head.most_tenure);
  std::int32_t length = head.iterations < longest ? static_cast<std::int32_t>(head.iterations) : longest,
               next = longest > 0 ? static_cast<std::int32_t>(head.iterations % longest) : 0;
  for (head.made = 0; head.made < head.planned && head.best_cost > a.target; ++head.made) {
    table.find_best(list, length, head.iterations);
    const Candidate<E> best = free[0], best_tabu = tabu[0];
    Candidate<E> move = best;
    if (best_tabu.delta <= best.delta && best_tabu.delta != no_delta<E>() &&
        head.cost + a.unit * static_cast<std::int64_t>(best_tabu.delta) < head.best_cost)
      move.take(best_tabu);
    const std::int32_t r = move.r(), s = move.s();
    if (longest > 0) {
      if (threadIdx.x == 0) list.add(entry_of(head, head.iterations, r, s, p[r], p[s]), next);
      next = next + 1 == longest ? 0 : next + 1;
      if (length < longest) ++length;
    }
    __syncthreads();  // the entry has been made of the permutation before the swap
    table.swap(r, s);
    head.cost += a.unit * static_cast<std::int64_t>(move.delta);
    ++head.iterations;
    if (head.cost < head.best_cost) {
      head.best_cost = head.cost;
      head.best_iteration = head.iterations;
      for (Index k = threadIdx.x; k < a.n; k += threads) walk.best()[k] = p[k];
    }
  }
  __syncthreads();
  for (Index k = threadIdx.x; k < a.n; k += threads) walk.permutation()[k] = p[k];
  if (threadIdx.x == 0) walk.head() = head;
}

}  // namespace

template <class E>
void tabu_search(Stream stream, const TabuArguments& a, In<E> matrices, InOut<unsigned char> walks,
                 Scratch<unsigned char> room) {
  const TableLayout<E> layout(a.n, a.terms, a.capacity);
  check(cudaFuncSetAttribute(tabu_kernel<E>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(layout.bytes)),
        "tabu_search");
  const MatrixView<E> view{reinterpret_cast<const Unsigned<E>*>(matrices.data), a.n, matrices.ld, a.terms,
                           a.has_diagonals};
  tabu_kernel<E><<<static_cast<unsigned>(walks.rows), threads, static_cast<std::size_t>(layout.bytes),
                   native(stream)>>>(a, view, walks, room, layout.fit);
  check_launch("tabu_search");
}

template void tabu_search(Stream, const TabuArguments&, In<std::int16_t>, InOut<unsigned char>,
                          Scratch<unsigned char>);
template void tabu_search(Stream, const TabuArguments&, In<std::int32_t>, InOut<unsigned char>,
                          Scratch<unsigned char>);
template void tabu_search(Stream, const TabuArguments&, In<std::int64_t>, InOut<unsigned char>,
                          Scratch<unsigned char>);

}  // namespace asterism::qap::cuda
