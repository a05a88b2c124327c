#include "probe.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "../../../codelets/wavefront/probe.hpp"
#include "fit.hpp"

namespace asterism::wavefront::tile_model {

namespace {

constexpr int all_threads[] = {32, 64, 128, 256, 512, 1024};
constexpr int all_tiles_beside[] = {1, 2, 3, 4, 6, 8, 12, 16};

/// B for some numbers of threads: the most shared memory with which there still are 1, 2, ... blocks on a
/// multiprocessor.
using Occupancy = std::map<int, std::vector<std::size_t>>;

template <class T>
Occupancy occupancy_of(int dimensions) {
  Occupancy occupancy;
  const std::size_t most = cuda::most_shared_bytes();
  for (const int threads : all_threads) {
    std::vector<std::size_t>& bytes = occupancy[threads];
    const int most_blocks = cuda::wavefront_blocks_per_sm<T>(dimensions, threads, 0);
    for (int blocks = 1; blocks <= most_blocks; ++blocks) {
      std::size_t fits = 0, above = bytes.empty() ? most + 1 : bytes.back() + 1;
      while (above - fits > 1) {
        const std::size_t middle = fits + (above - fits) / 2;
        (cuda::wavefront_blocks_per_sm<T>(dimensions, threads, middle) >= blocks ? fits : above) = middle;
      }
      bytes.push_back(fits);
    }
  }
  return occupancy;
}

/// A grid larger than any that tiles are measured for.
WavefrontArgs any_problem(int dimensions, bool has_source) {
  WavefrontArgs args;
  args.dimensions = dimensions;
  args.omega = 1;
  args.along = {0.25, 0.25, 0.25};
  args.has_source = has_source;
  args.sweeps = 1 << 14;
  args.nodes = {1 << 14, 1 << 14, 1 << 14};
  return args;
}

/// Costs for all thread organisations that there can be, none measured yet.
std::vector<TileCosts> organisations(const Occupancy& occupancy) {
  std::vector<TileCosts> all;
  for (const auto& [threads, bytes] : occupancy)
    for (const int b : all_tiles_beside)
      if (b <= static_cast<int>(bytes.size())) all.push_back({.threads = threads, .tiles_beside = b});
  return all;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Fits the coefficients of one thread organisation to runs of full tiles.
/// @return whether there were tiles enough
template <class T>
bool measure_tiles(cuda::WavefrontProbe<T>& probe, const Gpu& gpu, const WavefrontArgs& args,
                   const Costs& costs, TileCosts& organisation) {
  constexpr std::size_t tile_sizes = 32, least = 10;
  Costs only_this = costs;  // random_layouts draws from the organisations that are listed
  only_this.tiles = {organisation};
  const auto seed = static_cast<std::uint64_t>(organisation.threads * 64 + organisation.tiles_beside);
  std::vector<Terms> counted;
  std::vector<double> seconds;
  for (const WavefrontLayout& layout :
       random_layouts(only_this, gpu, args, space_of(args), tile_sizes, seed)) {
    const TileProfile profile(args.dimensions, layout.tile, args.has_source);
    const double tile = probe.seconds_of_wavefront(layout) - costs.block_barrier(layout.blocks) -
                        costs.thread_barriers(profile, layout.threads);
    if (!std::isfinite(tile) || tile <= 0) continue;
    counted.push_back(profile.terms_of(layout.threads));
    seconds.push_back(tile);
  }
  if (counted.size() < least) return false;
  organisation.coefficients = fit(counted, seconds);
  std::vector<double> errors;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    double fitted = 0;
    for (std::size_t k = 0; k < terms; ++k) fitted += organisation.coefficients[k] * counted[i][k];
    errors.push_back(std::abs(fitted - seconds[i]) / seconds[i]);
  }
  organisation.error = median(errors);
  return true;
}

/// Small grids, on which the parts of (T4) have different weights: of few tiles and of many.
std::vector<WavefrontArgs> small_grids(WavefrontArgs args) {
  const auto grid = [&](Index sweeps, Index n) {
    args.sweeps = sweeps;
    args.nodes = {n, n, n};
    return args;
  };
  if (args.dimensions == 1) return {grid(1024, 8192), grid(4096, 4096), grid(4096, 16384), grid(8192, 32768)};
  if (args.dimensions == 2) return {grid(32, 256), grid(64, 512), grid(64, 1024), grid(128, 2048)};
  return {grid(16, 64), grid(32, 96), grid(32, 160), grid(64, 192)};
}

template <class T>
std::vector<Run> runs_of_small_grids(cuda::WavefrontProbe<T>& probe, const Gpu& gpu,
                                     const WavefrontArgs& problem, const Costs& costs) {
  constexpr std::size_t layouts_of_grid = 24;
  constexpr int repeats = 3;
  std::vector<Run> runs;
  for (WavefrontArgs args : small_grids(problem))
    for (const WavefrontLayout& layout :
         random_layouts(costs, gpu, args, space_of(args), layouts_of_grid, 1)) {
      args.layout = layout;
      const double seconds = probe.seconds_of_run(args, repeats);
      if (std::isfinite(seconds)) runs.push_back({args, seconds});
    }
  return runs;
}

}  // namespace

template <class T>
struct Probe<T>::State {
  Occupancy occupancy;
};

/// Runs the body in the thread of the GPU worker that wavefronts run on.
template <class T>
template <class Body>
void Probe<T>::on_gpu(const Body& body) const {
  runtime_->on_worker(WorkerKind::cuda, 0, body);
}

template <class T>
Probe<T>::Probe(Runtime& runtime, int dimensions, bool has_source)
    : runtime_(&runtime),
      dimensions_(dimensions),
      has_source_(has_source),
      state_(std::make_unique<State>()) {
  if (runtime.machine().count(WorkerKind::cuda) == 0)
    throw Error("the tile-size model is of GPUs, and there is none", Blame::machine);
  on_gpu([&] {
    gpu_.name = cuda::device_name();
    gpu_.multiprocessors = cuda::multiprocessors();
    gpu_.most_shared_bytes = cuda::most_shared_bytes();
    state_->occupancy = occupancy_of<T>(dimensions_);
  });
  gpu_.shared_bytes = [dimensions, has_source](const WavefrontTile& tile) {
    return cuda::wavefront_shared_bytes<T>(dimensions, tile, has_source);
  };
  gpu_.blocks_per_sm = [occupancy = state_->occupancy](int threads, std::size_t bytes) {
    const auto found = occupancy.find(threads);
    if (found == occupancy.end()) return 0;
    const std::vector<std::size_t>& most = found->second;  // falling
    return static_cast<int>(
        std::partition_point(most.begin(), most.end(), [&](std::size_t b) { return b >= bytes; }) -
        most.begin());
  };
}

template <class T>
Costs Probe<T>::measure() const {
  Costs costs;
  on_gpu([&] {
    cuda::WavefrontProbe<T> probe(dimensions_, has_source_);
    const WavefrontArgs args = any_problem(dimensions_, has_source_);
    const int P = gpu_.multiprocessors;
    costs.kernel = cuda::seconds_of_empty_kernel(P, 256);
    std::vector<TileCosts> all = organisations(state_->occupancy);
    for (TileCosts& c : all) {
      const int blocks = c.tiles_beside * P;
      if (!costs.thread.contains(c.threads))
        costs.thread[c.threads] = cuda::seconds_of_thread_barrier(c.threads);
      if (!costs.block.contains(blocks))
        costs.block[blocks] = cuda::seconds_of_block_barrier(blocks, c.threads);
      if (measure_tiles(probe, gpu_, args, costs, c)) costs.tiles.push_back(c);
    }
    if (costs.tiles.empty()) throw Error("no run of the wavefront kernel succeeded", Blame::machine);
    calibrate(costs, P, runs_of_small_grids(probe, gpu_, args, costs));
  });
  return costs;
}

template <class T>
std::vector<double> Probe<T>::run(const WavefrontArgs& args, const std::vector<WavefrontLayout>& layouts,
                                  int repeats) const {
  std::vector<double> seconds;
  on_gpu([&] {
    cuda::WavefrontProbe<T> probe(dimensions_, has_source_);
    WavefrontArgs with = args;
    for (const WavefrontLayout& layout : layouts) {
      with.layout = layout;
      seconds.push_back(probe.seconds_of_run(with, repeats));
    }
  });
  return seconds;
}

template <class T>
Probe<T>::~Probe() = default;

template class Probe<float>;
template class Probe<double>;

}  // namespace asterism::wavefront::tile_model
