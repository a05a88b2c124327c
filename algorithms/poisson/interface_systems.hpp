/// \file
/// The interface systems: in every mode the tridiagonal system that is left when each slab is reduced to what it shows
/// to the others (codelets/poisson/recurrences.hpp). The chain of their elimination goes from slab to slab along the
/// axis and back.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "mode_systems.hpp"
#include "slabs/partition.hpp"

namespace asterism::poisson {

enum class Spacing {
  equal,  ///< of the nodes of the slowest axis: slabs of the same extent respond equally
  any,
};

/// Works by tasks: for each problem of the batch `begin`, `eliminate` as its slabs are reduced, `close`, and
/// `substitute_down_to` as they are solved. Where no such system exists only the first and the last may be called.
class InterfaceSystems {
 public:
  /// @param slabs, modes have to outlive it. @param axis rows of the slowest axis, per slab. @param modes per rank
  InterfaceSystems(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabPartition& slabs,
                   Spacing spacing, const Tiles<double>& axis, const std::vector<ModeTiles>& modes);

  /// Whether slabs have anything to tell each other, or themselves.
  [[nodiscard]] bool exist() const { return layout_.slabs > 1 || periodic_; }

  void begin(Index problem);
  /// What a slab shows: to be written in pass 1.
  [[nodiscard]] const Tile<double>& shown(Slab s) const { return shown_[s.number]; }
  /// Tells that a task will write what the slab shows. Eliminates, from the first slab on, all that are shown by now.
  void eliminate(Slab s);
  /// When all are: joins the ends of a periodic axis, and makes ready to substitute. @throw Stall
  void close();
  /// Substitutes, from the last slab back, down to this one.
  void substitute_down_to(Slab s);
  /// The modes just before and after a slab that has been substituted down to.
  [[nodiscard]] const Tile<double>& before(Slab s) const;
  [[nodiscard]] const Tile<double>& after(Slab s) const;
  /// Tells that the task which needs before(s) and after(s) is there, and no other will.
  void forget_around(Slab s);

 private:
  [[nodiscard]] const ModeTiles& modes(Slab s) const { return slabs_->mine(*modes_, s); }
  [[nodiscard]] const Tile<double>& prefix_before(Slab s) const;
  [[nodiscard]] const Tile<double>& before_start(Slab s) const;
  [[nodiscard]] std::tuple<int, Index> kind_of(Slab s) const;
  [[nodiscard]] const Tile<double>& response(Slab s) const { return responses_.at(kind_of(s)); }
  [[nodiscard]] Hints hints(Slab s) const;
  /// Of this many rows, one for every slab.
  [[nodiscard]] Tiles<double> tiles(Index rows) const;
  void make_responses(const Tiles<double>& axis);

  Runtime* runtime_;
  const SlabPartition* slabs_;
  const std::vector<ModeTiles>* modes_;
  Layout layout_;
  Index columns_;
  InterfaceRows rows_;
  bool periodic_;
  Spacing spacing_;
  bool forgets_, crosses_gpus_;

  Tiles<double> shown_, prefix_, first_, before_;             // per slab
  Tiles<double> before_start_, after_end_;                    // per problem: beyond the ends of a periodic axis
  std::map<std::tuple<int, Index>, Tile<double>> responses_;  // by rank and kind of slab

  Index problem_ = 0;
  std::vector<bool> is_shown_;  // by place
  Index next_ = 0;              // the place to eliminate, and from close() on to substitute
};

}  // namespace asterism::poisson
