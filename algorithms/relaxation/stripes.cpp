#include "stripes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>

#include "../../runtime/error.hpp"

namespace asterism::relaxation {
namespace {

Sweep sweep_of(Method method) { return method == Method::ssor ? Sweep::symmetric : Sweep::red_black; }

/// 1 is what a Candidate is given before.
bool is_measured(double speed) { return speed > 1; }

/// Rows that a stripe cannot do without, where there is more than one.
Index least_rows(const Settings& settings, Index sweeps) {
  if (settings.exchange == Exchange::stale) return 1;
  return (settings.exchange == Exchange::overlapped ? 2 : 1) * ghost_rows(settings.method, sweeps);
}

/// The bounds of stripes whose heights are in proportion to weights, but not below `least`.
std::vector<Index> bounds(const std::vector<double>& weights, Index rows, Index least) {
  const std::size_t count = weights.size();
  double total = 0, sum = 0;
  for (const double weight : weights) total += weight;
  std::vector<Index> bound(count + 1, 0);
  for (std::size_t s = 0; s < count; ++s) {
    sum += weights[s];
    bound[s + 1] = std::llround(static_cast<double>(rows) * sum / total);
  }
  bound[count] = rows;
  for (std::size_t s = 1; s < count; ++s) bound[s] = std::max(bound[s], bound[s - 1] + least);
  for (std::size_t s = count - 1; s > 0; --s) bound[s] = std::min(bound[s], bound[s + 1] - least);
  return bound;
}

bool same_worker(const Share& a, const Share& b) {
  return a.rank == b.rank && a.where == b.where && a.worker == b.worker;
}

/// From the end of a task to the start of the next one that depends on it, in seconds: StarPU's reaction (40
/// to 60 us with a GPU), and where stripes exchange rows through a link or a network what a message takes to
/// get going.
double task_seconds(const std::vector<Share>& shares) {
  const bool any_gpu =
      std::any_of(shares.begin(), shares.end(), [](const Share& s) { return s.where == Where::cuda; });
  const bool crosses_ranks = shares.front().rank != shares.back().rank;
  const bool crosses_link = any_gpu && !same_worker(shares.front(), shares.back());
  return crosses_ranks || crosses_link ? 100e-6 : any_gpu ? 50e-6 : 20e-6;
}

/// What a sweep over stripes takes in tasks of so many of them: as long as the worker that takes longest.
/// @param speeds of the shares' workers
double predicted_seconds(const std::vector<Share>& shares, const std::vector<double>& speeds, Index sweeps,
                         const Problem& problem, const Settings& settings) {
  // On average G rows are ghosts; and both borders, of 2 G rows on average, are relaxed twice where exchange
  // is overlapped.
  const double ghosts = shares.size() == 1 ? 0 : settings.exchange == Exchange::overlapped ? 5 : 1;
  const double ghost_work = ghosts * static_cast<double>(ghost_rows(settings.method, sweeps));
  // The sweeps of a task share the bringing of numbers from memory into caches, which takes as long as the
  // arithmetic of a sweep; and what a task costs.
  const double shared = 1 / static_cast<double>(sweeps), task = shared * task_seconds(shares);
  double longest = 0, busy = 0;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const double row = static_cast<double>(problem.shape[1]) / speeds[s];
    if (s > 0 && !same_worker(shares[s - 1], shares[s])) busy = 0;
    busy += (static_cast<double>(shares[s].rows) + ghost_work) * row * (1 + shared) + task;
    longest = std::max(longest, busy);
  }
  return longest;
}

/// The fewest sweeps with which a sweep takes nearly as little time as it can.
Index choose_sweeps(const std::vector<Share>& shares, const std::vector<double>& speeds, Index lowest,
                    const Problem& problem, const Settings& settings) {
  const auto seconds = [&](Index sweeps) {
    return predicted_seconds(shares, speeds, sweeps, problem, settings);
  };
  constexpr Index most = 256;
  std::vector<Index> possible{1};  // or an even number, which leaves the result where it was
  for (Index k = 2; k <= std::min(most, settings.check_every); k += 2)
    if (shares.size() == 1 || least_rows(settings, k) <= lowest) possible.push_back(k);
  double best = seconds(1);
  for (const Index k : possible) best = std::min(best, seconds(k));
  return *std::find_if(possible.begin(), possible.end(), [&](Index k) { return seconds(k) <= 1.05 * best; });
}

/// Numbers that a task on a worker has in its memory, where that is limited.
struct TaskNumbers {
  Index each_row, beside;

  /// @param stripe all but its rows
  TaskNumbers(const Candidate& worker, const Stripe& stripe) {
    // u, its second tile and g with ghost rows; the frame. On GPUs f and the first guess, which cores find
    // where the caller has them; on cores what neighbours exchange, and the border's working memory.
    const bool on_gpu = worker.where == Where::cuda;
    const Index nodes = stripe.nodes, columns = stripe.tile_cols(), frame_rows = 2 * (nodes + 2),
                exchanged = on_gpu ? 0 : 4 * stripe.halo * columns + border_scratch(stripe);
    each_row = (on_gpu ? 2 * nodes : 0) + 3 * columns + 2;
    beside = 2 * stripe.halo * (3 * columns + 2) + exchanged + frame_rows;
  }
};

constexpr double share_of_task = 0.9;  // of the memory: the rest is for what tasks bring along that are next

}  // namespace

Index ghost_rows(Method method, Index sweeps) {
  return method == Method::jacobi ? jacobi_reach(sweeps) : reach(sweep_of(method), sweeps);
}

JacobiArgs jacobi_args(const Discretisation& grid, const Stripe& stripe, Index sweeps, bool has_source) {
  return {stripe, grid.along_y, grid.along_x, sweeps, has_source};
}

ColourArgs colour_args(const Discretisation& grid, const Stripe& stripe, Index sweeps, bool has_source,
                       const Settings& settings) {
  return {.stripe = stripe,
          .along_y = grid.along_y,
          .along_x = grid.along_x,
          .omega = *settings.omega,
          .sweeps = sweeps,
          .sweep = sweep_of(settings.method),
          .has_source = has_source,
          .stale_ghosts = settings.exchange == Exchange::stale};
}

double speed_of(const Candidate& worker) {
  return is_measured(worker.speed) ? worker.speed : worker.where == Where::cuda ? 200e9 : 1e9;
}

Index most_rows(const Candidate& worker, const Stripe& stripe, std::size_t element_bytes) {
  constexpr Index most_elements = (Index{1} << 32) - 1;  // of a tile
  Index rows = most_elements / stripe.tile_cols() - 2 * stripe.halo;
  if (worker.memory > 0) {
    const TaskNumbers task(worker, stripe);
    const auto numbers =
        static_cast<Index>(share_of_task * worker.memory / static_cast<double>(element_bytes));
    rows = std::min(rows, (numbers - task.beside) / task.each_row);
  }
  return std::max<Index>(0, rows);
}

Index Division::count() const { return std::accumulate(stripes.begin(), stripes.end(), Index{0}); }

Index worthwhile_stripes(const std::vector<Candidate>& workers, Index nodes, Index possible) {
  // So many nodes that a few sweeps over them take longer than a task costs.
  const bool only_gpus =
      std::all_of(workers.begin(), workers.end(), [](const Candidate& w) { return w.where == Where::cuda; });
  const Index worthwhile = only_gpus ? Index{1} << 21 : Index{1} << 15;
  Index ranks = 0;
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (i == 0 || workers[i].rank != workers[i - 1].rank) ++ranks;
  return std::min({std::max(nodes / worthwhile, ranks), static_cast<Index>(workers.size()), possible});
}

Division divide(const std::vector<Candidate>& workers, Index stripes) {
  Division division;
  const auto count = static_cast<Index>(workers.size());
  if (stripes >= count) {
    division = {workers, std::vector<Index>(workers.size(), 0)};
    for (Index s = 0; s < stripes; ++s) ++division.stripes[static_cast<std::size_t>(s * count / stripes)];
    return division;
  }
  std::vector<double> speeds;
  for (const Candidate& w : workers) speeds.push_back(speed_of(w));
  std::sort(speeds.begin(), speeds.end(), std::greater<>());
  // All that are faster than the last one that is needed; and of its equals some from all ranks.
  const double last = speeds[static_cast<std::size_t>(stripes - 1)];
  const auto equals = static_cast<Index>(std::count(speeds.begin(), speeds.end(), last));
  const Index needed = stripes - (std::find(speeds.begin(), speeds.end(), last) - speeds.begin());
  const auto needed_before = [&](Index equal) { return (equal * needed + equals - 1) / equals; };
  Index equal = 0;
  for (const Candidate& w : workers) {
    const bool is_equal = speed_of(w) == last;
    if (speed_of(w) > last || (is_equal && needed_before(equal + 1) > needed_before(equal)))
      division.workers.push_back(w);
    if (is_equal) ++equal;
  }
  division.stripes.assign(division.workers.size(), 1);
  return division;
}

std::vector<Share> shares_of(const Division& division, const std::vector<double>& weights, Index rows,
                             Index unit, Index least) {
  std::vector<double> weight_of_stripe;
  std::vector<Share> shares;
  for (std::size_t w = 0; w < division.workers.size(); ++w)
    for (Index k = 0; k < division.stripes[w]; ++k) {
      const Candidate& worker = division.workers[w];
      weight_of_stripe.push_back(weights[w] / static_cast<double>(division.stripes[w]));
      shares.push_back({.rank = worker.rank, .where = worker.where, .worker = worker.worker});
    }
  const std::vector<Index> bound = bounds(weight_of_stripe, std::max<Index>(1, rows / unit), least);
  for (std::size_t s = 0; s < shares.size(); ++s) {
    shares[s].first_row = bound[s] * unit;
    shares[s].rows = (s + 1 < shares.size() ? bound[s + 1] * unit : rows) - shares[s].first_row;
  }
  return shares;
}

bool split_too_high(Division& division, const std::vector<Share>& shares, const Stripe& stripe,
                    std::size_t element_bytes, Index possible) {
  if (static_cast<Index>(shares.size()) >= possible) return false;
  bool any = false;
  for (std::size_t w = 0, s = 0; w < division.workers.size(); ++w) {
    Index rows = 0, highest = 0;
    for (Index k = 0; k < division.stripes[w]; ++k, ++s) {
      rows += shares[s].rows;
      highest = std::max(highest, shares[s].rows);
    }
    const Index most = most_rows(division.workers[w], stripe, element_bytes);
    if (highest <= most) continue;
    // Not at once as many as these would have to be: lower stripes make fewer sweeps a task, with fewer
    // ghosts.
    division.stripes[w] =
        std::clamp(rows / std::max<Index>(1, most), division.stripes[w] + 1, 2 * division.stripes[w]);
    any = true;
  }
  if (division.count() > possible) division = divide(division.workers, possible);
  return any;
}

void require_room(const Division& division, const std::vector<Share>& shares, const Stripe& stripe,
                  std::size_t element_bytes, Index possible) {
  const Index columns = stripe.tile_cols();
  std::map<int, double> taken;  // by the cores' stripes of each rank
  for (std::size_t w = 0, s = 0; w < division.workers.size(); ++w) {
    const Candidate& worker = division.workers[w];
    const Index most = most_rows(worker, stripe, element_bytes);
    const TaskNumbers task(worker, stripe);
    for (Index k = 0; k < division.stripes[w]; ++k, ++s) {
      if (worker.memory > 0 && shares[s].rows > most) {
        const bool could_be_more = static_cast<Index>(shares.size()) < possible;
        throw Error(
            fmt::format("{} stripe{}: a task needs {} for the {} row{} of one and what is beside them, and a "
                        "worker's share of memory has {} for it; {} more memory ({})",
                        shares.size(), shares.size() == 1 ? "" : "s",
                        human_bytes(static_cast<double>(shares[s].rows * task.each_row + task.beside) *
                                    static_cast<double>(element_bytes)),
                        shares[s].rows, shares[s].rows == 1 ? "" : "s",
                        human_bytes(share_of_task * worker.memory),
                        could_be_more ? "ask for more stripes (--stripes), or allow"
                                      : "there can be no more stripes (--stripes): allow",
                        worker.where == Where::cuda ? "--gpu-memory" : "--memory"),
            Blame::machine);
      }
      if (worker.where != Where::cpu) continue;
      const Index elements =
          (shares[s].rows + 2 * stripe.halo) * (3 * columns + 2) + 4 * stripe.halo * columns;
      double& bytes = taken[worker.rank];
      bytes += static_cast<double>(elements) * static_cast<double>(element_bytes);
      if (worker.rank_memory > 0 && bytes > worker.rank_memory)
        throw Error(
            fmt::format("the grid's stripes take more than the {} of main memory that there are for them; "
                        "allow more (--memory), or name a folder for what does not fit (--spill)",
                        human_bytes(worker.rank_memory)),
            Blame::machine);
    }
  }
}

std::optional<std::size_t> tasks_in_memory(const Machine& machine) {
  if (machine.capacity(MemoryKind::disk) == 0) return {};
  return machine.workers.size() + 1;  // and one whose tiles are on their way
}

namespace {

/// As many stripes as so many rows can be cut into.
Index most_stripes(Index rows, Index least) { return std::max<Index>(1, rows / least); }

void require_rows(Index stripes, Index rows, const Settings& settings) {
  const Index least = stripes == 1 ? 1 : least_rows(settings, 1);
  if (stripes > rows / least)
    throw Error(
        fmt::format("{} stripes of {} rows: so that neighbours can exchange theirs, a stripe needs at "
                    "least {}; ask for at most {} stripe{} (--stripes)",
                    stripes, rows, least, most_stripes(rows, least), rows / least > 1 ? "s" : ""));
}

/// The cut into the stripes of a division.
Cut cut_into(const Division& division, const Problem& problem, const Settings& settings) {
  const Index rows = problem.shape[0], stripes = division.count();
  const Index least = stripes == 1 ? 1 : least_rows(settings, 1);
  std::vector<double> weights, speeds;
  for (std::size_t w = 0; w < division.workers.size(); ++w) {
    // Where so many stripes were asked for, the stripes are equal; else the workers are.
    const double equal = settings.stripes > 0 ? static_cast<double>(division.stripes[w]) : 1;
    weights.push_back(settings.balance == Balance::measured ? division.workers[w].speed : equal);
    for (Index k = 0; k < division.stripes[w]; ++k) speeds.push_back(speed_of(division.workers[w]));
  }

  Cut cut{.shares = shares_of(division, weights, rows, 1, least)};
  Index lowest = rows;
  for (const Share& share : cut.shares) lowest = std::min(lowest, share.rows);
  cut.sweeps_per_task = settings.sweeps_per_task > 0
                            ? settings.sweeps_per_task
                            : choose_sweeps(cut.shares, speeds, lowest, problem, settings);
  if (settings.exchange == Exchange::stale) cut.sweeps_per_task = 1;
  if (settings.sweeps > 0) cut.sweeps_per_task = std::min(cut.sweeps_per_task, settings.sweeps);
  if (stripes > 1)
    while (cut.sweeps_per_task > 1 && least_rows(settings, cut.sweeps_per_task) > lowest)
      --cut.sweeps_per_task;
  // Without neighbours a stripe needs no more than a row for the frame, as one whose ghost rows nobody
  // relaxes.
  const bool relaxes_ghosts = stripes > 1 && settings.exchange != Exchange::stale;
  cut.halo = relaxes_ghosts ? ghost_rows(settings.method, cut.sweeps_per_task) : 1;
  cut.seconds_per_sweep = predicted_seconds(cut.shares, speeds, cut.sweeps_per_task, problem, settings);
  return cut;
}

}  // namespace

template <class T>
Cut cut_rows(const std::vector<Candidate>& workers, const Problem& problem, const Settings& settings) {
  const Index rows = problem.shape[0], nodes = problem.shape[1];
  if (settings.stripes > 0) require_rows(settings.stripes, rows, settings);  // before they are made
  const Index possible = most_stripes(rows, least_rows(settings, 1));
  const Index as_wanted =
      most_stripes(rows, least_rows(settings, std::max<Index>(1, settings.sweeps_per_task)));
  Division division =
      divide(workers,
             settings.stripes > 0 ? settings.stripes : worthwhile_stripes(workers, rows * nodes, as_wanted));
  for (;;) {
    Cut cut = cut_into(division, problem, settings);
    const Stripe stripe{.nodes = nodes, .halo = cut.halo, .arrangement = settings.arrangement};
    if (settings.stripes == 0 && split_too_high(division, cut.shares, stripe, sizeof(T), possible)) continue;
    require_room(division, cut.shares, stripe, sizeof(T), possible);
    return cut;
  }
}

template Cut cut_rows<float>(const std::vector<Candidate>&, const Problem&, const Settings&);
template Cut cut_rows<double>(const std::vector<Candidate>&, const Problem&, const Settings&);

namespace {

/// Those workers of which something is true.
template <class Property>
std::vector<Candidate> those(const std::vector<Candidate>& all, Property property) {
  std::vector<Candidate> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), property);
  return some;
}

/// The rank whose workers are the fastest, taken together.
int fastest_rank(const std::vector<Candidate>& workers) {
  std::map<int, double> speeds;
  for (const Candidate& w : workers) speeds[w.rank] += speed_of(w);
  return std::max_element(speeds.begin(), speeds.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

template <class T>
std::vector<Candidate> choose_workers(const std::vector<Candidate>& all, const Problem& problem,
                                      const Settings& settings) {
  const auto has_gpu = [&](int rank) {
    return std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
      return other.rank == rank && other.where == Where::cuda;
    });
  };
  std::vector<Candidate> best =  // each rank's fastest kind
      those(all, [&](const Candidate& w) { return w.where == Where::cuda || !has_gpu(w.rank); });
  if (!std::all_of(all.begin(), all.end(), [](const Candidate& w) { return is_measured(w.speed); }))
    return best;
  std::vector<std::vector<Candidate>> others;
  if (settings.stripes == 0) {
    const int fastest = fastest_rank(best);
    others.push_back(those(best, [](const Candidate& w) { return w.where == Where::cuda; }));
    others.push_back(those(best, [&](const Candidate& w) { return w.rank == fastest; }));
  }
  others.push_back(all);
  const std::size_t of_every_rank = best.size();
  double seconds = cut_rows<T>(best, problem, settings).seconds_per_sweep;
  for (const std::vector<Candidate>& workers : others) {
    if (workers.empty() || workers.size() == of_every_rank) continue;
    constexpr double worthwhile = 0.9;  // of the time, which is but a prediction
    const double others_seconds = cut_rows<T>(workers, problem, settings).seconds_per_sweep;
    if (others_seconds >= worthwhile * seconds) continue;
    seconds = others_seconds;
    best = workers;
  }
  return best;
}

template std::vector<Candidate> choose_workers<float>(const std::vector<Candidate>&, const Problem&,
                                                      const Settings&);
template std::vector<Candidate> choose_workers<double>(const std::vector<Candidate>&, const Problem&,
                                                       const Settings&);

}  // namespace asterism::relaxation
