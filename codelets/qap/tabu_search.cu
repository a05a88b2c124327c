#include "tabu_search.hpp"

#include "../../runtime/cuda.hpp"
#include "block/tabu_moves.cuh"
#include "block/walks.cuh"

namespace asterism::qap::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;

namespace {

/// The table of stamps as the list has it; all threads of the block call it.
__device__ void begin_list(const TabuList& list, const WalkHead& head) {
  for (Index i = threadIdx.x; i < list.n * list.n; i += threads) list.stamps[i] = {};
  __syncthreads();
  if (threadIdx.x == 0) {
    for (Index i = head.iterations < head.most_tenure ? 0 : head.iterations - head.most_tenure;
         i < head.iterations; ++i) {
      const auto place = static_cast<std::int32_t>(i % head.most_tenure);
      list.add(TabuEntry(list.entries[place]), place);
    }
  }
  __syncthreads();
}

/// What all threads of a block know of its walk; they all make the same of it.
struct Progress {
  std::int64_t cost, best_cost, iterations, best_iteration;

  /// Whether a tabu move is to be made: it is better than all others, and leads to a new best.
  template <class E>
  __device__ bool aspires(const Candidate<E>& tabu, const Candidate<E>& free, std::int64_t unit) const {
    const bool is_better = tabu.delta < free.delta || (tabu.delta == free.delta && tabu.order < free.order);
    return is_better && tabu.delta != no_delta<E>() &&
           cost + unit * static_cast<std::int64_t>(tabu.delta) < best_cost;
  }
  /// @return whether it is the best so far
  __device__ bool move(std::int64_t change) {
    cost += change;
    ++iterations;
    if (cost >= best_cost) return false;
    best_cost = cost;
    best_iteration = iterations;
    return true;
  }
};

/// Blocks at a time that a multiprocessor has registers for: more where their tables are small.
template <class E, int terms>
constexpr int blocks_at_once = terms == 1 && sizeof(E) == 2 ? 5
                               : sizeof(E) <= 4             ? 3
                                                            : 2;

template <class E, int terms, Tables where>
__global__ void __launch_bounds__(threads, blocks_at_once<E, terms>)
    tabu_kernel(WalkRules a, MatrixView<E> m, Layout<E, terms> layout, BlockWalks walks,
                Scratch<unsigned char> room) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ OfWarps<E> best_free, best_tabu;
  const WalkView walk(walks.mine(), a.n, a.capacity);
  WalkHead& head = walk.head();
  unsigned char* const stamps = room.row(blockIdx.x);
  const TabuList list{head.rule, a.n, walk.list(), reinterpret_cast<Stamp*>(stamps)};
  BlockTable<E, terms, where> table(m, layout, shared,
                                    stamps + a.n * a.n * static_cast<Index>(sizeof(Stamp)));
  TabuMoves<E, terms, where> tabu(list, table);
  begin_list(list, head);
  table.begin(walk.permutation());
  Progress now{head.cost, head.best_cost, head.iterations, head.best_iteration};
  const std::int64_t begin = now.iterations, end = begin + head.planned;
  const auto longest = static_cast<std::int32_t>(head.most_tenure);
  auto length = static_cast<std::int32_t>(begin < longest ? begin : longest),
       next = longest > 0 ? static_cast<std::int32_t>(begin % longest) : 0;
  while (now.iterations < end && now.best_cost > a.target) {
    tabu.find(table, length, now.iterations);
    __syncthreads();
    best_tabu.put(tabu.hide(table));
    __syncthreads();
    best_free.put(table.update());
    __syncthreads();
    Candidate<E> move = best_free.best();
    const Candidate<E> forbidden = best_tabu.best();
    if (now.aspires(forbidden, move, a.unit)) move = forbidden;
    tabu.show(table);
    if (longest > 0) {
      const std::int32_t* const p = table.permutation();
      if (threadIdx.x == threads - 1)
        list.add(entry_of(head, now.iterations, move.r(), move.s(), p[move.r()], p[move.s()]), next);
      next = next + 1 == longest ? 0 : next + 1;
      if (length < longest) ++length;
    }
    table.swap(move.r(), move.s());
    if (now.move(a.unit * static_cast<std::int64_t>(move.delta)))
      for (Index k = threadIdx.x; k < a.n; k += threads) walk.best()[k] = table.permutation()[k];
    __syncthreads();
    table.fill_swapped();
  }
  __syncthreads();
  for (Index k = threadIdx.x; k < a.n; k += threads) walk.permutation()[k] = table.permutation()[k];
  if (threadIdx.x != 0) return;
  head.cost = now.cost;
  head.best_cost = now.best_cost;
  head.iterations = now.iterations;
  head.best_iteration = now.best_iteration;
  head.made = now.iterations - begin;
}

}  // namespace

template <class E>
void tabu_search(Stream stream, const TabuArguments& a, In<E> matrices, Many<InOut<unsigned char>> walks,
                 Scratch<unsigned char> room) {
  if (a.is_stopped()) return;
  const MatrixView<E> view{reinterpret_cast<const Unsigned<E>*>(matrices.data), a.n, matrices.ld, a.terms,
                           a.has_diagonals};
  launch_with_layout<E>(
      a.n, a.terms, a.capacity, [&]<int terms, Tables where>(const Layout<E, terms>& layout) {
        check(cudaFuncSetAttribute(tabu_kernel<E, terms, where>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(layout.bytes)),
              "tabu_search");
        launch_walks(stream, walks, room,
                     [&](cudaStream_t aside, const BlockWalks& some, const Scratch<unsigned char>& its_room) {
                       tabu_kernel<E, terms, where>
                           <<<some.count(), threads, static_cast<std::size_t>(layout.bytes), aside>>>(WalkRules(a), view, layout,
                                                                                                      some, its_room);
                       check_launch("tabu_search");
                     });
      });
}

template void tabu_search(Stream, const TabuArguments&, In<std::int16_t>, Many<InOut<unsigned char>>,
                          Scratch<unsigned char>);
template void tabu_search(Stream, const TabuArguments&, In<std::int32_t>, Many<InOut<unsigned char>>,
                          Scratch<unsigned char>);
template void tabu_search(Stream, const TabuArguments&, In<std::int64_t>, Many<InOut<unsigned char>>,
                          Scratch<unsigned char>);

}  // namespace asterism::qap::cuda
