/// \file
/// Searches for good solutions of quadratic assignment problems: parallel multistart tabu search, robust tabu search,
/// parallel tempering.
///
/// Islands search by themselves, generation by generation, and hear of each other's best of two generations before.
/// In a generation no walk makes more than max(1000, 10 n) iterations (in tempering 10 n (n - 1) / 2 proposals): a
/// multistart island's longer walks go on in the next one, so that others need not wait for their end.
/// What they find follows from problem, settings and seed alone: any workers, on any number of ranks, find the same
/// in so many generations, and nobody waits for anybody who is no more than two generations behind.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../codelets/qap/walk.hpp"
#include "../../runtime/runtime.hpp"
#include "move_form.hpp"
#include "problem.hpp"

namespace asterism::qap {

/// For Options. A core takes the next walks when it is free: beside GPUs the machine's own scheduler would deal them out
/// beforehand, though nobody knows how long they will take. Who submits sleeps through a generation. A GPU has the walks of several
/// islands at a time.
Preferences preferences();

enum class Method {
  automatic,   ///< multistart and robust islands in turn
  multistart,  ///< PMTS [Czapinski 2014, section 5.2.3]
  robust,      ///< robust tabu search [Taillard 1991], walks that stand still started anew
  tempering,   ///< parallel tempering: many temperatures, swaps between neighbours
};

/// Who walks. Between generations cores select, so every rank needs at least one.
enum class Walkers {
  all,
  gpus,  ///< these alone
};

/// A cost that is less than all before.
struct Improvement {
  Cost cost = 0;
  double seconds = 0;    ///< since the search began
  Index generation = 0;  ///< that found it, from 0
  std::span<const std::int32_t> permutation;
};

enum class Proceed { go_on, stop };

/// What a search has done so far.
struct SearchState {
  Index generation = 0;  ///< that were looked at
  Cost cost = 0;         ///< the best
  double seconds = 0, moves_per_second = 0;
};

/// Each rank has its own on_improvement, on_generation and interrupted, and need not have any. What one of them throws
/// ends the search: its walks stop as at the end of its time, and when no task is left search() throws it. With several
/// ranks all of them throw it, as an Error with the number of the rank.
struct SearchSettings {
  Method method = Method::automatic;
  std::uint64_t seed = 1;
  std::optional<double> seconds = {};  ///< to end after; none, and no generations and no target either: 10
  std::optional<Index> generations =
      {};  ///< at most, from 1 on; answers of equal searches without a time limit are equal
  std::optional<Cost> target = {};  ///< a cost that is good enough
  Permutation start = {};           ///< an initial solution of the first island; empty: all are random
  /// So many that their walks keep large GPUs busy, and that 2, 4 or 8 ranks have equally many.
  Index islands = 8;
  Index initials = 0;               ///< initial solutions of a multistart island; 0: 5
  Index max_offset = 0;             ///< of diversification; 0: 5
  std::vector<Index> tenures = {};  ///< of the multistart's tabu lists; empty: five from the literature
  /// Of robust walks, and where no tenures are given of the multistart's; none: 0.9 n to 1.1 n, and those from the
  /// literature.
  std::optional<TenureRange> tenure = {};
  Index walks = 0;             ///< of a robust island; 0: 16. Of tempering; 0: 24
  Index first_iterations = 0;  ///< of a multistart's walk; 0: n
  Index most_iterations = 0;   ///< to which they grow; 0: n^2
  /// Cores beside GPUs take walks as they become free where Options::scheduler is prio; under dmdas they are dealt out.
  Walkers walkers = Walkers::all;
  /// Called on every rank for every new best, in the thread that searches. Says whether to go on. What it throws is
  /// thrown before on_generation is called.
  std::function<Proceed(const Improvement&)> on_improvement = {};
  /// Called after every generation, on every rank, in the thread that searches. What it throws is thrown before the
  /// next generation is looked at.
  std::function<void(const SearchState&)> on_generation = {};
  /// Asked all the time, by another thread: whether to end now. What it throws is thrown by the thread that searches,
  /// at the end of the generation, which comes soon; it is not asked again.
  std::function<bool()> interrupted = {};
};

enum class Ending { target, optimal, generations, time, stopped };

/// "target", "optimal", ...
std::string to_string(Ending ending);

struct SearchReport {
  Permutation permutation;
  Cost cost = 0;
  Ending ending = Ending::generations;
  Index generations = 0;  ///< that were looked at
  Index iterations = 0;   ///< of all walks together
  double moves = 0;       ///< evaluated: n (n - 1) / 2 in an iteration of tabu search, 1 in one of tempering
  double seconds = 0, seconds_to_best = 0;
  std::vector<std::pair<double, Cost>> history;  ///< seconds, and each new best
  MoveForm form;
  Index walks = 0, batches = 0;  ///< of a generation, on all ranks
  Index longest = 0;             ///< iterations of a walk of the last generation, from its start
};

/// Searches until there is a reason to end. With several ranks: collective, each with the same problem and settings
/// (but for what is called).
/// @throw Error: what facts_of() and require_permutation() refuse; a setting that makes no sense, a target that no
/// permutation can have; a rank without a core, or where GPUs are to walk without a GPU. @throw TaskFailure, Stall; what
/// the caller's functions throw, see SearchSettings
SearchReport search(Runtime& runtime, const Problem& problem, const SearchSettings& settings = {});

}  // namespace asterism::qap
