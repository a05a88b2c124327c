#include "gpus.hpp"

#include <algorithm>
#include <array>

#include "../../../common/chained_launch.cuh"
#include "../../exchange.hpp"
#include "../../row_products.cuh"
#include "../../unit_sums.cuh"
#include "../cg_steps.hpp"

namespace asterism::sparse::cuda {

using asterism::cuda::launch_chained;
using asterism::cuda::wait_for_previous_kernel;

namespace {

constexpr int tell_threads = 256, most = most_blocks_on_gpus;

/// Where a kind of sums is among those that a block has been told.
enum class Kind { pq, rr, rz };

/// What a block tells all blocks, itself too.
struct ToldSums {
  const double* sums[2];  ///< of its units
  double* told[2][most];  ///< where they go
  int kinds, blocks, units;
};

/// What a block gives another of z, or takes.
template <class T>
struct Elements {
  T* packs[most];
  const std::int32_t* places[most];
  Index counts[most];
  int pairs = 0;
  Index longest = 0;

  void add(T* pack, const std::int32_t* at, Index count) {
    packs[pairs] = pack;
    places[pairs] = at;
    counts[pairs++] = count;
    longest = std::max(longest, count);
  }
  /// Blocks of threads for each of them.
  [[nodiscard]] unsigned blocks() const {
    return static_cast<unsigned>(std::clamp<Index>((longest + tell_threads - 1) / tell_threads, 1, 64));
  }
};

/// @tparam V of the diagonal D^-1, if there is one
template <class T, class V>
struct Telling {
  ToldSums sums;
  Elements<T> to;
  const T* r;  ///< own elements
  const V* d;
};

/// The first row of blocks of threads has the sums, every other one a pair.
template <class T, class V>
__global__ void __launch_bounds__(tell_threads) tell_kernel(const __grid_constant__ Telling<T, V> all) {
  wait_for_previous_kernel();
  const Index first = blockIdx.x * Index{tell_threads} + threadIdx.x, step = Index{tell_threads} * gridDim.x;
  if (blockIdx.y == 0) {
    for (int k = 0; k < all.sums.kinds; ++k)
      for (Index u = first; u < all.sums.units; u += step) {
        const double sum = all.sums.sums[k][u];
        for (int b = 0; b < all.sums.blocks; ++b) all.sums.told[k][b][u] = sum;
      }
    return;
  }
  const int pair = static_cast<int>(blockIdx.y) - 1;
  for (Index j = first; j < all.to.counts[pair]; j += step) {
    const std::int32_t i = all.to.places[pair][j];
    const T r = all.r[i];
    all.to.packs[pair][j] = all.d == nullptr ? r : static_cast<T>(all.d[i]) * r;
  }
}

/// (N4)
template <class T>
__global__ void __launch_bounds__(tell_threads)
    turn_others_kernel(const __grid_constant__ Elements<const T> from, T* p, const CgState* state,
                       Index iteration) {
  wait_for_previous_kernel();
  const int now = side_of(iteration), next = side_of(iteration + 1);
  if (state->status[now] != CgStatus::running) return;
  const T beta = static_cast<T>(state->rz[next] / state->rz[now]);
  const int pair = static_cast<int>(blockIdx.y);
  const Index step = Index{tell_threads} * gridDim.x;
  for (Index j = blockIdx.x * Index{tell_threads} + threadIdx.x; j < from.counts[pair]; j += step) {
    T& p_j = p[from.places[pair][j]];
    p_j = multiply_add(beta, p_j, from.packs[pair][j]);
  }
}

template <class Port>
Optional<Port> if_there(const Many<Port>& all, Index block) {
  return all.size() == 0 ? Optional<Port>{} : Optional<Port>{all[block]};
}

/// The blocks, and the streams that each of them is worked on in.
template <class T, class V>
class Blocks {
 public:
  Blocks(Stream stream, const CgOnGpusArgs& args, const CgOnGpusPorts<AsPorts, T, V>& ports)
      : args_(args), ports_(ports), team_(stream, args.gpus), iteration_(args.iteration) {
    Index units = 0;
    for (Index k = 0; k < count(); ++k) {
      first_units_[k] = units;
      units += ports.iterates.pq[k].cols;
    }
    units_ = units;
  }

  [[nodiscard]] Index count() const { return static_cast<Index>(args_.shapes.size()); }

  /// Brings what the tasks before have left in the packs to where it is multiplied.
  void take_first_p() {
    for (Index k = 0; k < count(); ++k) {
      const Elements<const T> from = arrivals(k);
      for (int i = 0; i < from.pairs; ++i) {
        const In<T> pack{from.packs[i], 1, from.counts[i], from.counts[i]};
        const In<std::int32_t> places{from.places[i], 1, from.counts[i], from.counts[i]};
        unpack<T>(stream_of(k), {{&pack, 1}, {&places, 1}}, ports_.iterates.p[k].data);
      }
    }
  }

  void iterate() {
    for (Index k = 0; k < count(); ++k) {
      const Stream stream = stream_of(k);
      multiply<T>(stream, step(k),
                  {matrix(k),
                   {},
                   to_read(ports_.iterates.state[k]),
                   ports_.iterates.p[k],
                   ports_.iterates.q[k],
                   ports_.iterates.pq[k]});
      tell(stream, k, {Kind::pq}, {});
    }
    team_.meet();
    for (Index k = 0; k < count(); ++k) {
      const Stream stream = stream_of(k);
      const In<double> pq = told(k, Kind::pq);
      descend<T, V>(stream, step(k),
                    {.pq = list_of(pq),
                     .q = to_read(ports_.iterates.q[k]),
                     .inverse_diagonal = if_there(ports_.inverse_diagonal, k),
                     .r = ports_.iterates.r[k],
                     .rr = ports_.iterates.rr[k],
                     .rz = if_there(ports_.iterates.rz, k),
                     .state = ports_.iterates.state[k]});
      if (has_m())
        tell(stream, k, {Kind::rr, Kind::rz}, departures(k));
      else
        tell(stream, k, {Kind::rr}, departures(k));
    }
    team_.meet();
    for (Index k = 0; k < count(); ++k) {
      const Stream stream = stream_of(k);
      const In<double> rr = told(k, Kind::rr), rz = told(k, has_m() ? Kind::rz : Kind::rr);
      turn<T, V>(stream, step(k),
                 {.rr = list_of(rr),
                  .rz = list_of(rz),
                  .r = to_read(ports_.iterates.r[k]),
                  .z = {},
                  .inverse_diagonal = if_there(ports_.inverse_diagonal, k),
                  .x = ports_.iterates.x[k],
                  .p = ports_.iterates.p[k],
                  .state = ports_.iterates.state[k],
                  .departures = {}});
      turn_others(stream, k);
    }
    ++iteration_;
  }

 private:
  [[nodiscard]] bool has_m() const { return ports_.inverse_diagonal.size() > 0; }
  Stream stream_of(Index k) { return team_.on(static_cast<std::size_t>(k)); }
  [[nodiscard]] CgArgs step(Index k) const {
    return {.shape = args_.shapes[static_cast<std::size_t>(k)], .unit = args_.unit, .iteration = iteration_};
  }
  [[nodiscard]] BlockPorts<AsPorts, T> matrix(Index k) const {
    const BlocksPorts<AsPorts, T>& all = ports_.matrix;
    return {if_there(all.values, k), if_there(all.begins, k), if_there(all.columns, k),
            if_there(all.differences, k)};
  }
  /// The sums of all units, as block k has been told them.
  [[nodiscard]] double* place_of(Index k, Kind kind) const {
    return ports_.told[k].data + static_cast<Index>(kind) * most_units;
  }
  [[nodiscard]] In<double> told(Index k, Kind kind) const { return {place_of(k, kind), 1, units_, units_}; }

  [[nodiscard]] Elements<T> departures(Index k) const {
    Elements<T> to;
    for (std::size_t i = 0; i < args_.pairs.size(); ++i)
      if (args_.pairs[i].from == k) {
        const auto pair = static_cast<Index>(i);
        to.add(ports_.pairs.packs[pair].data, ports_.pairs.taken[pair].data, ports_.pairs.taken[pair].cols);
      }
    return to;
  }
  [[nodiscard]] Elements<const T> arrivals(Index k) const {
    Elements<const T> from;
    for (std::size_t i = 0; i < args_.pairs.size(); ++i)
      if (args_.pairs[i].to == k) {
        const auto pair = static_cast<Index>(i);
        from.add(ports_.pairs.packs[pair].data, ports_.pairs.placed[pair].data,
                 ports_.pairs.placed[pair].cols);
      }
    return from;
  }

  void tell(Stream stream, Index k, std::initializer_list<Kind> kinds, const Elements<T>& to) const {
    Telling<T, V> all{};
    all.sums.blocks = static_cast<int>(count());
    all.sums.units = static_cast<int>(ports_.iterates.pq[k].cols);
    for (const Kind kind : kinds) {
      const auto& sums = kind == Kind::pq   ? ports_.iterates.pq
                         : kind == Kind::rr ? ports_.iterates.rr
                                            : ports_.iterates.rz;
      all.sums.sums[all.sums.kinds] = sums[k].data;
      for (Index b = 0; b < count(); ++b)
        all.sums.told[all.sums.kinds][b] = place_of(b, kind) + first_units_[static_cast<std::size_t>(k)];
      ++all.sums.kinds;
    }
    all.to = to;
    all.r = ports_.iterates.r[k].data;
    if (has_m()) all.d = ports_.inverse_diagonal[k].data;
    launch<tell_kernel<T, V>>("tell", stream, {to.blocks(), static_cast<unsigned>(1 + to.pairs)}, all);
  }

  void turn_others(Stream stream, Index k) const {
    const Elements<const T> from = arrivals(k);
    if (from.pairs == 0) return;
    launch<turn_others_kernel<T>>("turn_others", stream, {from.blocks(), static_cast<unsigned>(from.pairs)},
                                  from, ports_.iterates.p[k].data,
                                  static_cast<const CgState*>(ports_.iterates.state[k].data), iteration_);
  }

  template <auto kernel, class... Arguments>
  static void launch(const char* name, Stream stream, std::array<unsigned, 2> blocks,
                     const Arguments&... arguments) {
    launch_chained<kernel>(name, stream, dim3(blocks[0], blocks[1]), tell_threads, arguments...);
  }

  const CgOnGpusArgs& args_;
  const CgOnGpusPorts<AsPorts, T, V>& ports_;
  asterism::cuda::Team team_;
  Index iteration_, units_ = 0;
  std::array<Index, most> first_units_ = {};
};

}  // namespace

template <class T, class V>
void cg_on_gpus(Stream stream, const CgOnGpusArgs& args, CgOnGpusPorts<AsPorts, T, V> ports) {
  Blocks<T, V> blocks(stream, args, ports);
  if (args.iteration == 0) blocks.take_first_p();
  for (Index i = 0; i < args.count; ++i) blocks.iterate();
}

template void cg_on_gpus(Stream, const CgOnGpusArgs&, CgOnGpusPorts<AsPorts, float, float>);
template void cg_on_gpus(Stream, const CgOnGpusArgs&, CgOnGpusPorts<AsPorts, double, float>);
template void cg_on_gpus(Stream, const CgOnGpusArgs&, CgOnGpusPorts<AsPorts, double, double>);

}  // namespace asterism::sparse::cuda
