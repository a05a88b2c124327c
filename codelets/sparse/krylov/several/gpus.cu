#include "gpus.hpp"

#include <algorithm>
#include <array>

#include "../../exchange.hpp"
#include "meetings.cuh"

namespace asterism::sparse::cuda {
namespace {

template <class Port>
Optional<Port> if_there(const Many<Port>& all, Index block) {
  return all.size() == 0 ? Optional<Port>{} : Optional<Port>{all[block]};
}

/// The blocks, and the streams that each of them is worked on in.
template <class T, class V>
class Blocks {
 public:
  Blocks(Stream stream, const CgOnGpusArgs& args, const CgOnGpusPorts<AsPorts, T, V>& ports)
      : args_(args), ports_(ports), team_(stream, args.gpus), share_a_gpu_(any_twice(args.gpus)) {
    int units = 0;
    for (Index k = 0; k < count(); ++k) {
      meetings_.emplace_back().blocks = static_cast<int>(count());
      for (Index b = 0; b < count(); ++b) meetings_[k].told[b] = ports.told[b].data;
      meetings_[k].own = static_cast<int>(k);
      meetings_[k].first_unit = units;
      units += static_cast<int>(ports.iterates.pq[k].cols);
    }
    for (Meeting& meeting : meetings_) meeting.units = units;
    for (Index k = 0; k < count(); ++k) others_.push_back(others_of(k));
  }

  /// Brings what the tasks before have left in the packs to where it is multiplied.
  void take_first_p() {
    for (std::size_t i = 0; i < args_.pairs.size(); ++i) {
      const auto pair = static_cast<Index>(i);
      const In<T> pack = ports_.pairs.packs[pair];
      const In<std::int32_t> placed = ports_.pairs.placed[pair];
      const Index k = args_.pairs[i].to;
      unpack<T>(stream_of(k), {{&pack, 1}, {&placed, 1}}, ports_.iterates.p[k].data);
    }
  }

  /// @param number of the iteration, from the first of this task on
  void iterate(Index number) {
    for (Meeting& meeting : meetings_) meeting.number = static_cast<std::uint32_t>(args_.before + number + 1);
    const auto step = [&](Index k) {
      return CgArgs{.shape = args_.shapes[k], .unit = args_.unit, .iteration = args_.iteration + number};
    };
    for (Index k = 0; k < count(); ++k)
      multiply<T>(stream_of(k), step(k),
                  {matrix(k),
                   {},
                   to_read(ports_.iterates.state[k]),
                   ports_.iterates.p[k],
                   ports_.iterates.q[k],
                   ports_.iterates.pq[k]},
                  meetings_[k]);
    meet();
    for (Index k = 0; k < count(); ++k)
      descend<T, V>(stream_of(k), step(k),
                    {.pq = {},
                     .q = to_read(ports_.iterates.q[k]),
                     .inverse_diagonal = if_there(ports_.inverse_diagonal, k),
                     .r = ports_.iterates.r[k],
                     .rr = ports_.iterates.rr[k],
                     .rz = if_there(ports_.iterates.rz, k),
                     .state = ports_.iterates.state[k]},
                    meetings_[k]);
    meet();
    for (Index k = 0; k < count(); ++k)
      turn<T, V>(stream_of(k), step(k),
                 {.rr = {},
                  .rz = {},
                  .r = to_read(ports_.iterates.r[k]),
                  .z = {},
                  .inverse_diagonal = if_there(ports_.inverse_diagonal, k),
                  .x = ports_.iterates.x[k],
                  .p = ports_.iterates.p[k],
                  .state = ports_.iterates.state[k],
                  .departures = {}},
                 meetings_[k], others_[k]);
  }

 private:
  static bool any_twice(std::vector<int> gpus) {
    std::ranges::sort(gpus);
    return std::ranges::adjacent_find(gpus) != gpus.end();
  }

  [[nodiscard]] Index count() const { return static_cast<Index>(args_.shapes.size()); }
  Stream stream_of(Index k) { return team_.on(static_cast<std::size_t>(k)); }
  /// A kernel that waits may keep the one that it waits for from its GPU.
  void meet() {
    if (share_a_gpu_) team_.meet();
  }
  [[nodiscard]] BlockPorts<AsPorts, T> matrix(Index k) const {
    const BlocksPorts<AsPorts, T>& all = ports_.matrix;
    return {if_there(all.values, k), if_there(all.begins, k), if_there(all.columns, k),
            if_there(all.differences, k)};
  }

  [[nodiscard]] OthersElements<T, V> others_of(Index k) const {
    OthersElements<T, V> others;
    Index longest = 0;
    for (std::size_t i = 0; i < args_.pairs.size(); ++i) {
      const auto [from, to] = args_.pairs[i];
      if (to != k) continue;
      const auto pair = static_cast<Index>(i);
      others.r[others.pairs] = ports_.iterates.r[from].data;
      others.d[others.pairs] = if_there(ports_.inverse_diagonal, from).data;
      others.taken[others.pairs] = ports_.pairs.taken[pair].data;
      others.placed[others.pairs] = ports_.pairs.placed[pair].data;
      others.counts[others.pairs++] = ports_.pairs.placed[pair].cols;
      longest = std::max(longest, ports_.pairs.placed[pair].cols);
    }
    others.blocks_of_pair =
        static_cast<unsigned>(std::clamp<Index>(parts(longest, unit_threads), 1, 64));
    return others;
  }

  const CgOnGpusArgs& args_;
  const CgOnGpusPorts<AsPorts, T, V>& ports_;
  asterism::cuda::Team team_;
  const bool share_a_gpu_;
  std::vector<Meeting> meetings_;  // of each block
  std::vector<OthersElements<T, V>> others_;
};

}  // namespace

template <class T, class V>
void cg_on_gpus(Stream stream, const CgOnGpusArgs& args, CgOnGpusPorts<AsPorts, T, V> ports) {
  Blocks<T, V> blocks(stream, args, ports);
  if (args.iteration == 0) blocks.take_first_p();
  for (Index i = 0; i < args.count; ++i) blocks.iterate(i);
}

template void cg_on_gpus(Stream, const CgOnGpusArgs&, CgOnGpusPorts<AsPorts, float, float>);
template void cg_on_gpus(Stream, const CgOnGpusArgs&, CgOnGpusPorts<AsPorts, double, float>);
template void cg_on_gpus(Stream, const CgOnGpusArgs&, CgOnGpusPorts<AsPorts, double, double>);

}  // namespace asterism::sparse::cuda
