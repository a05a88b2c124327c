/// \file
/// Who walks, and how fast.
#pragma once

#include <vector>

#include "../../codelets/qap/tabu_search.hpp"
#include "../../runtime/per_rank.hpp"
#include "../../runtime/runtime.hpp"
#include "../common/workers.hpp"
#include "plan.hpp"

namespace asterism::qap {

/// What tasks need beside walks.
template <class E>
struct Givens {
  const PerRank<E>& matrices;
  const PerRank<Index>& costs;          ///< d, below it f
  const PerRank<std::int32_t>& starts;  ///< as found_island() wants them
};

/// A worker, and how many walks it makes of a generation.
struct Turn {
  Candidate worker;
  Index walks = 0;
};

/// A rank's GPUs with all of its walks, and one of its cores with one: to measure all of them takes longer than a short
/// search does. @param workers of the rank, with cores, GPUs first
std::vector<Turn> turns_of_gpus(const std::vector<Candidate>& workers, Index walks);

/// All workers of a rank with what each surely makes meanwhile, by these speeds; none where cores would get nothing, or
/// their tasks alone took longer than the GPUs do.
/// @param of_gpus measured; its core speaks for the others
std::vector<Turn> turns_of_all(std::vector<Candidate> workers, Index walks, const std::vector<Turn>& of_gpus);

/// The cores of a rank only where they make its generations clearly shorter: a GPU with fewer walks than it could make
/// at a time need not be quicker. @param of_gpus, of_all measured
std::vector<Candidate> quicker_of(const std::vector<Turn>& of_gpus, const std::vector<Turn>& of_all);

/// Generations from which on it pays to try who walks how fast: the trial takes as long as a few, and cores beside GPUs
/// shorten each by some percent.
constexpr Index generations_worth_a_trial = 100;

/// All workers that walk. Where a rank has GPUs and cores both are tried, with the search's own walks from an island's
/// starts: its GPUs with all walks, and then all workers together; in a short search its GPUs walk alone. With several
/// ranks: collective, the same on all. @param all workers (all_workers) @param a of the walks' tasks, but for target and stop
/// @throw as measure_speeds
template <class E>
std::vector<Candidate> walking_workers(Runtime& runtime, const std::vector<Candidate>& all, const Plan& plan,
                                       const TabuArguments& a, const Givens<E>& givens,
                                       const SearchSettings& settings);

}  // namespace asterism::qap
