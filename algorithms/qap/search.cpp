#include "search.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "../../runtime/collectives.hpp"
#include "../common/statement.hpp"
#include "../common/stopwatch.hpp"
#include "batches.hpp"
#include "generations.hpp"

namespace asterism::qap {
namespace {

/// Sets the flag when the time is over, or somebody wants an end, or cannot say whether.
class Alarm {
 public:
  Alarm(std::atomic<bool>& flag, std::optional<double> seconds, const std::function<bool()>& interrupted,
        const asterism::Stopwatch& watch)
      : thread_([&flag, seconds, &interrupted, &watch, this](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          while (!stop.stop_requested() && !flag) {
            if (seconds && watch.total() >= *seconds) over_ = flag = true;
            if (interrupted) ask(interrupted, flag);
            constexpr double step = 0.02;
            const double wait = seconds ? std::clamp(*seconds - watch.total(), 0.0, step) : step;
            wake_.wait_for(lock, stop, std::chrono::duration<double>(wait), [] { return false; });
          }
        }) {}

  [[nodiscard]] bool time_is_over() const { return over_; }
  [[nodiscard]] bool was_interrupted() const { return interrupted_; }
  /// What `interrupted` has thrown, if it has.
  void rethrow() const {
    if (failed_) std::rethrow_exception(error_);
  }

 private:
  void ask(const std::function<bool()>& interrupted, std::atomic<bool>& flag) {
    try {
      if (interrupted()) interrupted_ = flag = true;
    } catch (...) {
      error_ = std::current_exception();
      failed_ = true;  // before the flag: what a stopped walk has found is not taken for a whole generation's
      flag = true;
    }
  }

  std::atomic<bool> over_{false}, interrupted_{false}, failed_{false};
  std::exception_ptr error_;  // there once failed_ is set
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // ends first
};

/// The best of a generation on all ranks, and what all of them did. Collective.
Found of_all_ranks(const Runtime& runtime, Found mine) {
  if (runtime.ranks() == 1) return mine;
  struct Head {
    Index is_there, cost, island, iterations, moves, longest;
  };
  const std::vector<Head> heads = gather(runtime, Head{mine.is_there ? 1 : 0, mine.cost, mine.island,
                                                       mine.iterations, mine.moves, mine.longest});
  Found all;
  int winner = -1;
  for (std::size_t rank = 0; rank < heads.size(); ++rank) {
    const Head& head = heads[rank];
    if (all.add({.is_there = head.is_there != 0,
                 .cost = head.cost,
                 .island = head.island,
                 .iterations = head.iterations,
                 .moves = head.moves,
                 .longest = head.longest,
                 .permutation = {}}))
      winner = static_cast<int>(rank);
  }
  all.permutation = gather_lists(runtime, winner == runtime.rank() ? mine.permutation : Permutation{});
  return all;
}

/// A search from its first generation to its last.
class Search {
 public:
  Search(Runtime& runtime, const Problem& problem, const ProblemFacts& facts, const SearchSettings& settings,
         const Plan& plan)
      : runtime_(runtime),
        facts_(facts),
        settings_(settings),
        form_(form_of(problem, facts)),
        plan_(plan),
        generations_(make_generations(runtime, problem, facts, form_, plan_, settings)) {
    report_.form = form_;
    for (const IslandPlan& island : plan_.islands) report_.walks += island.walks;
    report_.batches = generations_->batches();
  }

  SearchReport run() {
    const bool endless = !settings_.generations && !settings_.target;
    Alarm alarm(generations_->stop(), settings_.seconds || !endless ? settings_.seconds : 10.0,
                settings_.interrupted, watch_);
    const Index limit = settings_.generations.value_or(std::numeric_limits<Index>::max());
    Index submitted = 0;
    std::optional<Ending> ending;
    while (!ending && report_.generations < limit) {
      while (submitted < limit && submitted - report_.generations < Generations::ahead) {
        generations_->submit();
        ++submitted;
      }
      look(alarm);
      ending = reason_to_end(alarm);
    }
    generations_->stop() = true;
    report_.ending = ending.value_or(Ending::generations);
    // Answers that the clock decides on anyway may as well have what the last tasks found.
    const bool by_clock = ending == Ending::time || ending == Ending::stopped;
    while (by_clock && report_.generations < submitted) look(alarm);
    runtime_.wait();
    report_.seconds = watch_.total();
    return std::move(report_);
  }

 private:
  void look(const Alarm& alarm) {
    const Found found = of_all_ranks(runtime_, generations_->look(report_.generations));
    ++report_.generations;
    report_.iterations += found.iterations;
    report_.longest = found.longest;
    report_.moves += static_cast<double>(found.moves);
    const double seconds = watch_.total();
    const bool is_better = found.is_there && (report_.history.empty() || found.cost < report_.cost);
    if (is_better) {
      report_.cost = found.cost;
      report_.permutation = found.permutation;
      report_.seconds_to_best = seconds;
      report_.history.emplace_back(seconds, found.cost);
    }
    tell(is_better, seconds, alarm);
  }

  /// Calls this rank's functions. @throw what they or `interrupted` throw on any rank, on all, when no task is left
  void tell(bool is_better, double seconds, const Alarm& alarm) {
    try {
      agree(runtime_, [&] {
        if (is_better && settings_.on_improvement)
          wants_end_ |= settings_.on_improvement({report_.cost, seconds, report_.generations - 1,
                                                  report_.permutation}) == Proceed::stop;
        if (settings_.on_generation)
          settings_.on_generation({report_.generations, report_.cost, seconds, report_.moves / seconds});
        alarm.rethrow();
      });
    } catch (...) {  // on all ranks
      generations_->stop() = true;
      runtime_.wait();  // for the tasks of generations that nobody will look at
      throw;
    }
  }

  /// The same on all ranks.
  std::optional<Ending> reason_to_end(const Alarm& alarm) {
    if (report_.cost <= facts_.least_cost) return Ending::optimal;
    if (settings_.target && report_.cost <= *settings_.target) return Ending::target;
    if (any(runtime_, wants_end_ || alarm.was_interrupted())) return Ending::stopped;
    if (any(runtime_, alarm.time_is_over())) return Ending::time;
    return {};
  }

  Runtime& runtime_;
  const ProblemFacts& facts_;
  const SearchSettings& settings_;
  const MoveForm form_;
  const Plan& plan_;
  const asterism::Stopwatch watch_;
  std::unique_ptr<Generations> generations_;
  SearchReport report_;
  bool wants_end_ = false;
};

/// Where there is nothing to choose from.
SearchReport only_one(const Problem& problem) {
  SearchReport report;
  report.permutation.resize(static_cast<std::size_t>(problem.n));
  std::iota(report.permutation.begin(), report.permutation.end(), 0);
  report.cost = cost_of(problem, report.permutation);
  report.history.emplace_back(0, report.cost);
  report.ending = Ending::optimal;
  return report;
}

/// Collective.
void require_workers(const Runtime& runtime, Walkers walkers) {
  const Machine machine = runtime.machine();
  if (any(runtime, machine.count(WorkerKind::cpu) == 0))
    throw Error(
        "a search selects on cores between generations, and there is a rank without any: give each "
        "one (Options::cpus), which need not walk (SearchSettings::walkers)");
  if (walkers == Walkers::gpus && any(runtime, machine.count(WorkerKind::cuda) == 0))
    throw Error("GPUs alone are to walk, and there is a rank without any: let its cores walk, too");
}

void require_same_on_all_ranks(const Runtime& runtime, const Problem& problem, const SearchSettings& s) {
  const TenureRange tenure = s.tenure.value_or(TenureRange{-1, -1});
  Statement statement;
  statement.add("locations", problem.n)
      .add("d", problem.d)
      .add("f", problem.f)
      .add("method", s.method)
      .add("seed", s.seed)
      .add("generations", s.generations)
      .add("target", s.target)
      .add("start", std::vector<Cost>(s.start.begin(), s.start.end()))
      .add("tenure", std::vector<Index>{tenure.least, tenure.most})
      .add("islands", s.islands)
      .add("initial solutions", s.initials)
      .add("offsets", s.max_offset)
      .add("tenures", s.tenures)
      .add("walks", s.walks)
      .add("first iterations", s.first_iterations)
      .add("most iterations", s.most_iterations)
      .add("walkers", s.walkers);
  runtime.require_alike(statement.text());
}

}  // namespace

std::string to_string(Ending ending) {
  switch (ending) {
    case Ending::target:
      return "target";
    case Ending::optimal:
      return "optimal";
    case Ending::generations:
      return "generations";
    case Ending::time:
      return "time";
    case Ending::stopped:
      return "stopped";
  }
  return "";
}

Preferences preferences() {
  return {.scheduler = "prio", .core_for_submission = false, .tasks_on_gpu = batches_at_once};
}

SearchReport search(Runtime& runtime, const Problem& problem, const SearchSettings& settings) {
  const ProblemFacts facts = facts_of(problem);
  const Plan plan = plan_of(settings, problem.n, runtime.ranks());
  if (!settings.start.empty()) require_permutation(settings.start, problem.n, "the start");
  if (settings.target && *settings.target < facts.least_cost)
    throw Error(
        fmt::format("a target of {}: no permutation costs less than {}", *settings.target, facts.least_cost));
  require_same_on_all_ranks(runtime, problem, settings);
  if (problem.n < 2) return only_one(problem);
  require_workers(runtime, settings.walkers);
  return Search(runtime, problem, facts, settings, plan).run();
}

}  // namespace asterism::qap
