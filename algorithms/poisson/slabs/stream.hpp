/// \file
/// How the slabs of a grid get room on the way through the two passes.
#pragma once

#include <vector>

#include "partition.hpp"

namespace asterism::poisson {

/// In core, slabs stay where they are, and come to main memory in the end. Streaming, they pass through the memory of
/// the workers in both passes: the solver asks for room before every slab and tells what has been submitted for it.
/// Those that are reduced last stay for pass 2, which begins with them.
template <class T>
class SlabStream {
 public:
  /// @param slabs has to outlive it
  SlabStream(Runtime& runtime, const Layout& layout, const Settings& settings, const SlabPartition& slabs)
      : runtime_(&runtime),
        slabs_(&slabs),
        layout_(layout),
        fetches_(settings.fetch_result),
        work_(runtime, 1, layout.scratch) {}

  /// Whether slabs stay where they are between the passes.
  [[nodiscard]] bool keeps_all() const { return layout_.mode != Mode::streaming; }
  /// Working memory of a slab's task.
  [[nodiscard]] const Tile<double>& work(Slab s) const { return slabs_->mine(work_, s); }

  /// @param turns of a problem, in pass 1
  void begin(const std::vector<Slab>& turns);
  /// Waits for the next slab's turn. @throw Stall
  void wait_for_room() const;
  /// In pass 1, after the task that reads the slab.
  void reduced(Slab s, const Tile<T>& slab) const;
  /// In pass 2, before the task that writes it and after that.
  void to_be_solved(const Tile<T>& slab) const;
  void solved(const Tile<T>& slab) const;

 private:
  Runtime* runtime_;
  const SlabPartition* slabs_;
  Layout layout_;
  bool fetches_;
  PerRank<double> work_;
  std::vector<bool> stays_;  // by place: between the passes
};

}  // namespace asterism::poisson
