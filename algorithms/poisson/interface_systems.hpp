/// \file
/// The interface systems: in every mode the tridiagonal system that is left when each slab is reduced to what it shows
/// to the others (codelets/poisson/recurrences.hpp). Their elimination goes from slab to slab along the axis in two
/// chains, from both ends to the middle, where they meet, and back.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "mode_systems.hpp"
#include "slabs/partition.hpp"

namespace asterism::poisson {

/// Works by tasks: for each problem of the batch `begin`, `eliminate` as its slabs are reduced, `close`, and
/// `substitute_down_to` as they are solved. Where no such system exists only the first and the last may be called, and
/// `response`.
class InterfaceSystems {
 public:
  /// @param slabs, axis, modes have to outlive it. @param axis rows of the slowest axis, per slab. @param modes per rank
  InterfaceSystems(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabPartition& slabs,
                   const Tiles<double>& axis, const std::vector<ModeTiles>& modes);

  /// Whether slabs have anything to tell each other.
  [[nodiscard]] bool exist() const { return layout_.slabs > 1; }

  void begin(Index problem);
  /// How a slab responds: makes it where it is not there. That of a ring is there from the beginning.
  [[nodiscard]] const Tile<double>& response(Slab s);
  /// What a slab shows: to be written in pass 1.
  [[nodiscard]] const Tile<double>& shown(Slab s) const { return shown_[s.number]; }
  /// Tells that a task will write what the slab shows. Eliminates, from both ends on, all that are shown by now.
  void eliminate(Slab s);
  /// When all are: lets the two chains meet, and makes ready to substitute. @throw Stall
  void close();
  /// Substitutes, from the middle back, down to this one.
  void substitute_down_to(Slab s);
  /// The modes just before and after a slab that has been substituted down to.
  [[nodiscard]] const Tile<double>& before(Slab s) const;
  [[nodiscard]] const Tile<double>& after(Slab s) const;
  /// Tells that the task which needs before(s) and after(s) is there, and no other will.
  void forget_around(Slab s);

 private:
  /// One of the two chains: the first half of the slabs from the first one on, or the rest from the last one on. To what
  /// goes backward the slab after is the one before.
  struct Chain {
    Direction direction;
    Index length;    ///< slabs
    Index next = 0;  ///< to eliminate, and from close() on to substitute
  };
  /// Where the chains of a problem meet, and the values at the ends of a periodic axis.
  struct Meeting {
    Tile<double> first, last, before_start, after_end;
  };

  /// Slab i of a chain, counted from its end of the axis; the chain that a slab is in, and its number there.
  [[nodiscard]] Slab nth(const Chain& chain, Index i) const;
  [[nodiscard]] Slab last(const Chain& chain) const;
  [[nodiscard]] std::size_t chain_of(Slab s) const;
  [[nodiscard]] Index number_in(const Chain& chain, Slab s) const;

  [[nodiscard]] const ModeTiles& modes(Slab s) const { return slabs_->mine(*modes_, s); }
  /// The prefix before slab i of a chain, to be used by a task of slab `user`.
  [[nodiscard]] const Tile<double>& prefix_shown(const Chain& chain, Index i, Slab user) const;
  [[nodiscard]] const Tile<double>& prefix_response(const Chain& chain, Index i, Slab user) const;
  /// The value at a chain's end of the axis.
  [[nodiscard]] const Tile<double>& start(const Chain& chain, Slab user) const;
  /// The values beside a slab: from where the chain comes, and to where it goes.
  [[nodiscard]] const Tile<double>& outward(const Chain& chain, Slab s) const;
  [[nodiscard]] const Tile<double>& inward(const Chain& chain, Slab s) const;
  [[nodiscard]] const Meeting& meeting(const Chain& chain) const;

  [[nodiscard]] std::tuple<int, Index> kind_of(Slab s) const;
  /// Gives up how slab i of a chain responds where the next one needs another response, and responses are repeated.
  /// @param next its number in the chain, or the chain's length
  void give_up_response(const Chain& chain, Index i, Index next);
  [[nodiscard]] Hints hints(Slab s) const;
  /// Whether pass 2 reads what pass 1 has written.
  enum class Recalled { no, yes };
  /// Of this many rows, where the tasks of a slab are; one for every slab.
  [[nodiscard]] Tile<double> tile(Index rows, Slab s, Recalled recalled) const;
  [[nodiscard]] Tiles<double> tiles(Index rows, Recalled recalled) const;
  /// Those of a problem.
  [[nodiscard]] std::vector<Meeting> meetings(bool has_waves) const;

  void eliminate_response(const Chain& chain, Index i);
  void send_home(const Chain& chain, Index i) const;
  void meet(const Meeting& meeting, Slab user);
  void substitute_next(Chain& chain);
  /// Forgets what is given up one by one.
  void forget(const Tile<double>& tile) const;

  Runtime* runtime_;
  const SlabPartition* slabs_;
  const Tiles<double>* axis_;
  const std::vector<ModeTiles>* modes_;
  Layout layout_;
  Index columns_;
  InterfaceRows rows_;
  bool periodic_;
  bool is_equally_spaced_;
  /// On GPUs with slabs that pass through there is no room to spare: interface tiles that have no room of their own leave as
  /// pass 1 goes on, and are given up one by one as pass 2 goes back.
  bool passes_;
  bool crosses_gpus_;
  /// Number in its chain of the outermost slab that is substituted for. The value at an end of the axis is known; of waves,
  /// which return from there, what enters the slab is not.
  Index outermost_;

  Tiles<double> shown_, prefix_shown_, prefix_response_;  // per slab; the latter two of the prefixes after it
  Tiles<double> first_, before_;  // per slab, as its chain sees it: its first unknown and the value before it
  struct Responding {
    Tile<double> response;
    bool is_there = false;
  };
  std::map<std::tuple<int, Index>, Responding> responses_;  // by rank and kind of slab
  std::vector<std::vector<Meeting>> meetings_;  // per problem: one for each chain, or one for both

  Index problem_ = 0;
  std::array<Chain, 2> chains_;
  std::vector<bool> is_shown_;  // by place
};

}  // namespace asterism::poisson
