// Searches: what they find is the same whoever searches, and good.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "algorithms/qap/batches.hpp"
#include "algorithms/qap/generations.hpp"
#include "algorithms/qap/search.hpp"
#include "algorithms/qap/speeds.hpp"
#include "codelets/qap/starts.hpp"
#include "least_cost.hpp"
#include "random_instances.hpp"
#include "runtime/collectives.hpp"
#include "tools/qap/instance_file.hpp"

using namespace asterism;
using namespace asterism::qap;
using namespace asterism::test;

namespace {

std::filesystem::path instances() {
  const char* const data = std::getenv("ASTERISM_DATA");
  return data != nullptr ? std::filesystem::path(data) / "qaplib" : std::filesystem::path();
}
SkipUnless with_data() {
  return {std::filesystem::exists(instances()), "ASTERISM_DATA names no folder with qaplib/"};
}

const std::initializer_list<Method> methods = {Method::automatic, Method::multistart, Method::robust,
                                               Method::tempering};

/// GPUs and cores of these speeds.
std::vector<Candidate> workers(std::initializer_list<double> gpus, std::initializer_list<double> cores) {
  std::vector<Candidate> all;
  for (const double speed : gpus) all.push_back({.where = Where::cuda, .speed = speed});
  for (const double speed : cores) all.push_back({.where = Where::cpu, .speed = speed});
  return all;
}

/// What follows from problem, settings and seed.
struct Answer {
  Permutation permutation;
  Cost cost;
  Index iterations, generations;
  std::vector<Cost> costs;
  bool operator==(const Answer&) const = default;
};
Answer answer_of(const SearchReport& report) {
  Answer answer{report.permutation, report.cost, report.iterations, report.generations, {}};
  for (const auto& [seconds, cost] : report.history) answer.costs.push_back(cost);
  return answer;
}

}  // namespace

TEST_CASE("algorithm 5.1 takes every offset-th number") {
  const std::vector<std::int32_t> p{10, 11, 12, 13, 14, 15, 16};
  std::vector<std::int32_t> q(7);
  diversify(1, 7, p.data(), q.data());
  CHECK(q == p);
  diversify(3, 7, p.data(), q.data());
  CHECK(q == std::vector<std::int32_t>{12, 15, 11, 14, 10, 13, 16});
  diversify(7, 7, p.data(), q.data());
  CHECK(q == std::vector<std::int32_t>{16, 15, 14, 13, 12, 11, 10});
}

TEST_CASE("small problems are solved" * doctest::skip(left_out_when_sanitized(shape_is("mpi")))) {
  Runtime runtime;
  for (const Method method : methods)
    for (const Kind kind : {Kind::symmetric, Kind::asymmetric})
      for (const Index n : {2, 3, 6}) {
        CAPTURE(n);
        const Problem problem = random_problem(n, kind, Diagonals::any, -20, 99);
        const SearchReport report = search(runtime, problem, {.method = method, .generations = 3});
        CHECK(report.cost == cost_of(problem, report.permutation));
        CHECK(report.cost == least_of_all(problem));
      }
}

TEST_CASE("problems in which there is nothing to choose") {
  Runtime runtime;
  CHECK(search(runtime, {}).cost == 0);
  CHECK(search(runtime, {}).permutation.empty());
  const SearchReport one = search(runtime, {.n = 1, .d = {3}, .f = {-5}});
  CHECK(one.cost == -15);
  CHECK(one.permutation == Permutation{0});
  CHECK(one.ending == Ending::optimal);
}

TEST_CASE("costs near 2^62 are searched") {
  Runtime runtime;
  const Cost large = Cost{1} << 28;
  const Problem problem = random_problem(7, Kind::asymmetric, Diagonals::any, -large, large);
  const SearchReport report = search(runtime, problem, {.generations = 5});
  CHECK(report.form.bits == 64);
  CHECK(report.cost == least_of_all(problem));
}

TEST_CASE("equal seeds, equal answers, on any number of workers and ranks") {
  const Problem problem = random_problem(20, Kind::symmetric, Diagonals::zero, 0, 9);
  for (const Method method : methods) {
    std::optional<Answer> first;
    for (const int cpus : {-1, 1}) {
      Options options;
      options.cpus = cpus;
      options.gpus = 0;
      Runtime runtime(options);
      const SearchReport report =
          search(runtime, problem, {.method = method, .seed = 5, .generations = 5, .islands = 4});
      CHECK(report.ending == Ending::generations);
      CHECK(report.generations == 5);
      if (first) CHECK(answer_of(report) == *first);
      first = answer_of(report);
    }
    // Written down once: the same in every shape.
    CAPTURE(first->cost);
    CAPTURE(first->iterations);
    const std::vector<std::pair<Cost, Index>> known{
        {5908, 65000}, {5982, 50000}, {5908, 320000}, {5934, 912000}};
    CHECK(first->cost == known[static_cast<std::size_t>(method)].first);
    CHECK(first->iterations == known[static_cast<std::size_t>(method)].second);
  }
}

TEST_CASE("walks that are longer than a generation go on in the next one") {
  Runtime runtime;
  const Problem problem = random_problem(20, Kind::symmetric, Diagonals::zero, 0, 9);
  Index generations = 0;
  for (const Index iterations :
       {1000, 2000, 2500, 3500}) {  // of a walk, and of one from the next initial solutions
    const SearchReport report = search(runtime, problem,
                                       {.method = Method::multistart,
                                        .generations = ++generations,
                                        .islands = 1,
                                        .initials = 2,
                                        .max_offset = 1,
                                        .tenures = {5, 9},
                                        .first_iterations = 2500});
    CHECK(report.iterations == 4 * iterations);
    CHECK(report.longest == 2500);
    CHECK(report.cost == cost_of(problem, report.permutation));
  }
}

TEST_CASE("of equal costs the first island's is a generation's best, whoever is added first") {
  const auto found = [](bool is_there, Cost cost, Index island) {
    return Found{.is_there = is_there,
                 .cost = cost,
                 .island = island,
                 .iterations = 10,
                 .moves = 100,
                 .longest = island,
                 .permutation = {static_cast<std::int32_t>(island)}};
  };
  std::vector<Found> all{found(true, 7, 0), found(true, 5, 1), found(true, 5, 2), found(false, 0, 3)};
  do {
    Found best;
    for (const Found& its : all) best.add(its);
    CHECK(best.is_there);
    CHECK(best.cost == 5);
    CHECK(best.island == 1);
    CHECK(best.permutation == Permutation{1});
    CHECK(best.iterations == 40);
    CHECK(best.moves == 400);
    CHECK(best.longest == 3);
  } while (std::ranges::next_permutation(all, {}, &Found::longest).found);
}

TEST_CASE("other seeds, other walks" * doctest::skip(left_out_when_sanitized(shape_is("mpi")))) {
  Runtime runtime;
  const Problem problem = random_problem(50, Kind::symmetric, Diagonals::zero, 0, 99);
  const auto of_seed = [&](std::uint64_t seed) {
    return answer_of(search(runtime, problem, {.seed = seed, .generations = 1}));
  };
  CHECK(of_seed(1) == of_seed(1));
  CHECK(of_seed(1).permutation != of_seed(2).permutation);
}

TEST_CASE("a core beside a GPU gets no walk that a generation would wait for") {
  CHECK(share_walks(125, workers({40}, {1, 1, 1})) == std::vector<Index>{119, 2, 2, 2});
  CHECK(share_walks(16, workers({40}, {1, 1, 1})) == std::vector<Index>{16, 0, 0, 0});
  CHECK(share_walks(101, workers({20, 20}, {5, 5})) == std::vector<Index>{42, 41, 9, 9});
  CHECK(share_walks(9, workers({}, {1, 1})) == std::vector<Index>{5, 4});
  CHECK(share_walks(1, workers({}, {1, 1, 1})) == std::vector<Index>{0, 1, 0});
  CHECK(share_walks(7, workers({3}, {})) == std::vector<Index>{7});
}

TEST_CASE("cores walk beside GPUs where generations become shorter by it") {
  const double walk = 1e6;  // a speed of one walk per second
  std::vector<Turn> of_gpus = turns_of_gpus(workers({1, 1}, {1, 1, 1}), 101);
  REQUIRE(of_gpus.size() == 3);
  CHECK(of_gpus[1].walks == 51);
  CHECK(of_gpus[2].walks == 1);
  of_gpus[0].worker.speed = of_gpus[1].worker.speed = 20 * walk;
  of_gpus[2].worker.speed = 5 * walk;
  std::vector<Turn> of_all = turns_of_all(workers({1, 1}, {1, 1}), 101, of_gpus);
  REQUIRE(of_all.size() == 4);
  CHECK(of_all[0].walks == 42);
  CHECK(of_all[3].walks == 9);
  CHECK(of_all[3].worker.speed == 5 * walk);
  CHECK(quicker_of(of_gpus, of_all).size() == 4);  // 2.1 s, 2.55 without them
  of_all[0].worker.speed = 42 / 2.5 * walk;        // with fewer walks hardly sooner than with all
  CHECK(quicker_of(of_gpus, of_all).size() == 2);
  of_all[0].worker.speed = 20 * walk;
  of_all[3].worker.speed = 3 * walk;  // a slower core than the one that spoke for it gets less
  CHECK(quicker_of(of_gpus, of_all).size() == 4);
  of_all[2].worker.speed = of_all[3].worker.speed = 1 * walk;
  CHECK(quicker_of(of_gpus, of_all).size() == 2);

  for (Turn& turn : of_gpus) turn.worker.speed *= 1e5;  // generations of 25 us
  CHECK(turns_of_all(workers({1, 1}, {1, 1}), 101, of_gpus).empty());
  CHECK(quicker_of(of_gpus, {}).size() == 2);
  of_gpus[0].worker.speed = of_gpus[1].worker.speed = 20 * walk;
  of_gpus[2].worker.speed = 0.1 * walk;
  CHECK(turns_of_all(workers({1, 1}, {1, 1}), 101, of_gpus).empty());  // no walk for a core
}

TEST_CASE("a task on a core has walks of one island, one on a GPU of several if there are many") {
  std::vector<IslandPlan> islands{{.walks = 125}, {.walks = 16}, {.walks = 125}, {.walks = 16}};
  using Shares = std::vector<std::vector<Share>>;
  const auto cut = [&](const std::vector<Candidate>& all) {
    Shares shares;
    Cores cores(all, all, false);
    for (const Batch& batch : cut_walks(islands, all, 1000, cores)) shares.push_back(batch.shares);
    return shares;
  };
  const Shares one_each{{{0, 125}}, {{1, 16}}, {{2, 125}}, {{3, 16}}};
  CHECK(cut(workers({1}, {})) == one_each);
  CHECK(cut(workers({1, 1}, {})) == one_each);  // two for each of them
  // The same part of all islands, whose walks may be long or short, and those of one to different cores.
  const Shares beside = cut(workers({17}, {3}));  // 0.95 * 3/20 of 282 on the core, in a dozen batches or so
  REQUIRE(beside.size() == 4 + 12);
  CHECK(Shares(beside.begin(), beside.begin() + 4) == Shares{{{0, 108}}, {{1, 13}}, {{2, 108}}, {{3, 13}}});
  std::vector<Index> of_core(4);
  for (std::size_t k = 4; k < beside.size(); ++k) {
    REQUIRE(beside[k].size() == 1);
    CHECK(beside[k].front().walks <= 4);
    of_core[beside[k].front().island] += beside[k].front().walks;
  }
  CHECK(of_core == std::vector<Index>{17, 3, 17, 3});
  CHECK(cut(workers({170}, {1, 1, 1})) ==
        Shares{{{0, 124}}, {{1, 16}}, {{2, 124}}, {{3, 15}}, {{0, 1}}, {{2, 1}}, {{3, 1}}});
  CHECK(cut(workers({300}, {1, 1, 1})) == cut(workers({300}, {})));  // a core would take longer for one
  CHECK(cut(workers({}, {1, 1})) ==
        Shares{{{0, 63}}, {{0, 62}}, {{1, 8}}, {{1, 8}}, {{2, 63}}, {{2, 62}}, {{3, 8}}, {{3, 8}}});
  islands.assign(8, {.walks = 250});
  const Shares two_each{
      {{0, 250}, {1, 250}}, {{2, 250}, {3, 250}}, {{4, 250}, {5, 250}}, {{6, 250}, {7, 250}}};
  CHECK(cut(workers({1}, {})) == two_each);
  std::vector<Candidate> small = workers({1}, {});
  small[0].memory = 1000 * 1000;  // room for 500
  CHECK(cut(small) == two_each);
  small[0].memory = 500 * 1000;
  CHECK(cut(small).size() == 8);
  islands.assign(5, {.walks = 1000});  // each of them keeps a GPU busy
  CHECK(cut(workers({1}, {})).size() == 5);
}

TEST_CASE(
    "whichever core is free takes a task, or each in turn where the scheduler would choose one beforehand") {
  std::vector<Candidate> all = workers({1}, {1, 1});
  all[2].worker = 1;
  all.push_back({.rank = 1, .where = Where::cpu});
  Cores free(all, all, false), in_turn(all, all, true);
  for (const int worker : {0, 1, 0}) {
    CHECK(free.next(0).worker == Hints{}.worker);
    CHECK(free.next(0).where == Where::cpu);
    const Hints hints = in_turn.next(0);
    CHECK(hints.worker == worker);
    CHECK(hints.where == Where::cpu);
    CHECK(in_turn.next(1).worker == 0);
  }
}

TEST_CASE("where cores do not walk, two of them select in turn") {
  std::vector<Candidate> all = workers({1}, {1, 1, 1});
  for (int i = 0; i < 3; ++i) all[static_cast<std::size_t>(1 + i)].worker = i;
  all.push_back({.rank = 1, .where = Where::cpu});
  for (const bool chosen_ahead : {false, true}) {
    Cores cores(all, {all.front(), all.back()}, chosen_ahead);
    for (const int worker : {0, 1, 0}) CHECK(cores.next(0).worker == worker);
    CHECK(cores.next(1).worker == (chosen_ahead ? 0 : Hints{}.worker));  // which walks
  }
}

TEST_CASE("each rank's islands are walked by its own workers") {
  std::vector<IslandPlan> islands{{.walks = 5}, {.walks = 3}, {.walks = 4}};
  islands[2].rank = 2;
  std::vector<Candidate> all = workers({1}, {});
  all.push_back({.rank = 1, .where = Where::cpu});
  all.push_back({.rank = 2, .where = Where::cpu});
  Cores cores(all, all, false);
  const std::vector<Batch> batches = cut_walks(islands, all, 1000, cores);
  REQUIRE(batches.size() == 3);
  for (const std::size_t b : {0, 1}) {
    CHECK(batches[b].rank == 0);
    CHECK(batches[b].hints.where == Where::cuda);
  }
  CHECK(batches[0].shares == std::vector<Share>{{0, 5}});
  CHECK(batches[1].shares == std::vector<Share>{{1, 3}});
  CHECK(batches[2].rank == 2);
  CHECK(batches[2].shares == std::vector<Share>{{2, 4}});
}

TEST_CASE("gpu: the same answer as on cores, by GPUs alone and by all workers") {
  const Problem problem = random_problem(30, Kind::asymmetric, Diagonals::any, 0, 9);
  for (const Method method : methods) {
    std::optional<Answer> first;
    for (const auto& [gpus, walkers] :
         {std::pair(0, Walkers::all), std::pair(1, Walkers::gpus), std::pair(1, Walkers::all)}) {
      Options options;
      options.cpus = 2;
      options.gpus = gpus;
      Runtime runtime(options);
      const Answer answer = answer_of(search(
          runtime, problem,
          {.method = method, .generations = generations_worth_a_trial, .islands = 5, .walkers = walkers}));
      if (first) CHECK(answer == *first);
      first = answer;
    }
  }
}

TEST_CASE("gpu: more islands than travel with a launch") {
  const Problem problem = random_problem(9, Kind::symmetric, Diagonals::zero, 0, 9);
  std::optional<Answer> first;
  for (const int gpus : {0, 1}) {
    Options options;
    options.cpus = 1;
    options.gpus = gpus;
    Runtime runtime(options);
    const Answer answer = answer_of(search(runtime, problem,
                                           {.method = Method::robust,
                                            .generations = 3,
                                            .islands = 150,
                                            .walks = 2,
                                            .walkers = gpus > 0 ? Walkers::gpus : Walkers::all}));
    if (first) CHECK(answer == *first);
    first = answer;
  }
}

TEST_CASE("gpu: without a core nothing is selected") {
  Options options;
  options.cpus = 0;
  options.gpus = 1;
  Runtime runtime(options);
  const Problem problem = random_problem(5, Kind::symmetric, Diagonals::zero, 1, 9);
  message_has(message_of([&] { search(runtime, problem, {.generations = 1}); }),
              {"selects on cores", "rank without any", "Options::cpus", "SearchSettings::walkers"});
}

TEST_CASE("a search begins with what it is given, and never ends with worse" *
          doctest::skip(left_out_when_sanitized(shape_is("mpi")))) {
  Runtime runtime;
  const Problem problem = random_problem(25, Kind::symmetric, Diagonals::zero, 0, 9);
  const SearchReport good = search(runtime, problem, {.generations = 12});
  const SearchReport again =
      search(runtime, problem, {.method = Method::multistart, .seconds = 0, .start = good.permutation});
  CHECK(again.ending == Ending::time);
  CHECK(again.cost <= good.cost);
  CHECK(again.seconds < 20);
}

TEST_CASE("a search ends at its target, and when its caller wants it to") {
  Runtime runtime;
  const Problem problem = random_problem(20, Kind::symmetric, Diagonals::zero, 1, 9);
  const SearchReport good = search(runtime, problem, {.generations = 8});
  const SearchReport aimed = search(runtime, problem, {.target = good.cost});
  CHECK(aimed.ending == Ending::target);
  CHECK(aimed.cost <= good.cost);
  std::vector<Cost> told;
  const SearchReport stopped = search(runtime, problem, {.on_improvement = [&](const Improvement& better) {
                                        CHECK(better.cost == cost_of(problem, better.permutation));
                                        CHECK((told.empty() || better.cost < told.back()));
                                        told.push_back(better.cost);
                                        return Proceed::stop;
                                      }});
  CHECK(stopped.ending == Ending::stopped);
  CHECK(!told.empty());
  CHECK(stopped.cost == told.back());
  const SearchReport interrupted = search(runtime, problem, {.interrupted = [] { return true; }});
  CHECK(interrupted.ending == Ending::stopped);
  CHECK(interrupted.cost == cost_of(problem, interrupted.permutation));
}

TEST_CASE("what a search calls throws: the search throws it, and the next one goes well") {
  Runtime runtime;
  const Problem problem = random_problem(20, Kind::symmetric, Diagonals::zero, 0, 9);
  const auto check_thrown = [&](const SearchSettings& settings, const char* what) {
    std::string message;  // with several ranks perhaps behind the number of one
    try {
      search(runtime, problem, settings);
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    message_has(message, {what});
    const SearchReport next = search(runtime, problem, {.generations = 2});
    CHECK(next.ending == Ending::generations);
    CHECK(next.cost == cost_of(problem, next.permutation));
  };
  SearchSettings improving, generating, interrupted;
  improving.on_improvement = [](const Improvement&) -> Proceed { throw std::runtime_error("too good"); };
  check_thrown(improving, "too good");
  Index generations = 0;
  generating.on_generation = [&](const SearchState& state) {
    generations = state.generation;
    if (generations == 2) throw std::runtime_error("no third one");
  };
  check_thrown(generating, "no third one");
  CHECK(generations == 2);
  interrupted.seconds = 60;
  interrupted.interrupted = []() -> bool { throw std::runtime_error("nobody knows"); };
  check_thrown(interrupted, "nobody knows");
}

TEST_CASE("a cost that no permutation can beat ends a search") {
  Runtime runtime;
  const Problem problem{.n = 3, .d = {0, 1, 1, 1, 0, 1, 1, 1, 0}, .f = {0, 2, 2, 2, 0, 2, 2, 2, 0}};
  const SearchReport report = search(runtime, problem);
  CHECK(report.ending == Ending::optimal);
  CHECK(report.cost == 12);
}

TEST_CASE("settings that make no sense are refused") {
  Runtime runtime;
  const Problem problem = random_problem(5, Kind::symmetric, Diagonals::zero, 1, 9);
  const auto refused = [&](const SearchSettings& settings, std::initializer_list<const char*> words) {
    message_has(message_of([&] { search(runtime, problem, settings); }), words);
  };
  refused({.seconds = -1}, {"a search of -1 seconds: 0 at least"});
  refused({.generations = 0}, {"a search of 0 generations: 1 at least"});
  refused({.target = 19}, {"a target of 19: no permutation costs less than "});
  refused({.start = {0, 1, 2}}, {"the start has 3 numbers; the problem has 5 locations"});
  refused({.start = {0, 1, 2, 3, 3}}, {"the start: number 4 is 3 again"});
  refused({.islands = 0}, {"0 islands: there may be 1 to"});
  refused({.tenures = {3, -1}}, {"a tenure of -1"});
  refused({.tenure = TenureRange{5, 4}}, {"tenures of 5 to 4"});
  if (any(runtime, runtime.machine().count(WorkerKind::cuda) == 0))
    refused({.walkers = Walkers::gpus}, {"GPUs alone are to walk", "rank without any", "let its cores walk"});
}

TEST_CASE("best known costs of small instances" * with_data()) {
  Runtime runtime;
  for (const auto& [name, best] : std::initializer_list<std::pair<const char*, Cost>>{{"nug12", 578},
                                                                                      {"chr12a", 9552},
                                                                                      {"had14", 2724},
                                                                                      {"esc16a", 68},
                                                                                      {"rou15", 354210},
                                                                                      {"scr15", 51140},
                                                                                      {"els19", 17212548},
                                                                                      {"nug20", 2570},
                                                                                      {"bur26a", 5426670}}) {
    CAPTURE(name);
    const Problem problem = tools::read_instance(instances() / (std::string(name) + ".dat"));
    const SearchReport report = search(runtime, problem, {.seconds = 60, .target = best});
    CHECK(report.ending == Ending::target);
    CHECK(report.cost == best);
    CHECK(cost_of(problem, report.permutation) == best);
  }
}
