/// \file
/// What the tile-size model has to know of the GPU at hand, measured.
#pragma once

#include <memory>
#include <vector>

#include "../../../runtime/runtime.hpp"
#include "search.hpp"

namespace asterism::wavefront::tile_model {

/// Measures in the thread of a GPU's worker, on that of the first one: GPUs of one machine are taken to be
/// alike. While it does, no task should run.
template <class T>
class Probe {
 public:
  /// @throw Error: a runtime without GPU
  Probe(Runtime& runtime, int dimensions, bool has_source);
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe();

  [[nodiscard]] const Gpu& gpu() const { return gpu_; }
  [[nodiscard]] int dimensions() const { return dimensions_; }
  [[nodiscard]] bool has_source() const { return has_source_; }

  /// sigma_ker, sigma_thd and sigma_blk by micro-benchmarks; the coefficients of (T1) for each thread
  /// organisation from inter-tile wavefronts of exactly as many full tiles as there are blocks, each with
  /// several tile sizes; the rest of (T4) from runs of the whole kernel on small grids. Takes seconds.
  [[nodiscard]] Costs measure() const;

  /// Seconds of the kernel with each layout: the median of `repeats` runs; infinite where it cannot run.
  [[nodiscard]] std::vector<double> run(const WavefrontArgs& args,
                                        const std::vector<WavefrontLayout>& layouts, int repeats) const;

 private:
  struct State;
  template <class Body>
  void on_gpu(const Body& body) const;

  Runtime* runtime_;
  int dimensions_;
  bool has_source_;
  Gpu gpu_;
  std::unique_ptr<State> state_;
};

}  // namespace asterism::wavefront::tile_model
