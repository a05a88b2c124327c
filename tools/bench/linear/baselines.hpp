/// \file
/// Conjugate gradients of other libraries, on the same matrix in the same run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../../../codelets/sparse/krylov/textbook_cg.hpp"
#include "../../../runtime/pause.hpp"
#include "eigen_cg.hpp"
#include "tables.hpp"

namespace asterism::tools {

constexpr const char* about_textbook =
    "cuSPARSE + cuBLAS on the first GPU: SpMV of compressed rows (the faster of both algorithms), dot, axpy and scal "
    "with scalars on the GPU, replayed from a CUDA graph";

/// Name and description of those that this machine has.
inline std::vector<std::pair<std::string, std::string>> baselines_here(const Machine& machine) {
  std::vector<std::pair<std::string, std::string>> all;
#ifdef ASTERISM_WITH_CUDA
  if (machine.count(WorkerKind::cuda) > 0) all.emplace_back("cuSPARSE + cuBLAS", about_textbook);
#endif
  if (const int cpus = machine.count(WorkerKind::cpu); cpus > 0) all.emplace_back("Eigen", about_eigen(cpus));
  return all;
}

/// They too begin with x = 0, with b = 1, and make the iterations of a run of ours.
template <class T>
class Baselines {
 public:
  /// @param a all rows, with a diagonal
  Baselines(Runtime& runtime, const sparse::Csr<T>& a, int repeats)
      : runtime_(&runtime),
        a_(a),
        diagonal_(inverse_diagonal(a_)),
        ones_(diagonal_.size(), 1),
        repeats_(repeats) {}

  /// None where they have no such preconditioner.
  std::vector<BaselineRun> beside(const LinearRun& ours) {
    if (ours.timed_iterations == 0 || !ours.bytes) return {};
    std::vector<BaselineRun> runs;
    const Machine machine = runtime_->machine();
    if (machine.count(WorkerKind::cuda) > 0) textbook(ours, runs);
    if (machine.count(WorkerKind::cpu) > 0) eigen(ours, machine.count(WorkerKind::cpu), runs);
    return runs;
  }

 private:
  static bool has_diagonal(const LinearRun& ours) {
    return ours.preconditioner.method == sparse::PreconditionerMethod::diagonal;
  }
  BaselineRun run(const LinearRun& ours, const char* name, const char* detail, Index iterations,
                  double seconds, double residual) const {
    return {.name = name,
            .preconditioner = to_string(ours.preconditioner),
            .detail = detail,
            .iterations = iterations,
            .seconds_per_iteration = seconds,
            .residual = residual,
            .model_bytes = ours.bytes->model,
            .of_ours = seconds / ours.seconds_per_iteration};
  }

  void textbook([[maybe_unused]] const LinearRun& ours, [[maybe_unused]] std::vector<BaselineRun>& runs) {
#ifdef ASTERISM_WITH_CUDA
    sparse::TextbookTimes times;
    runtime_->on_worker(WorkerKind::cuda, 0, [&] {
      times =
          sparse::cuda::textbook_cg<T>({.rows = a_.rows(),
                                        .entries = a_.entries(),
                                        .begins = a_.begins.data(),
                                        .columns = a_.columns.data(),
                                        .values = a_.values.data(),
                                        .b = ones_.data(),
                                        .inverse_diagonal = has_diagonal(ours) ? diagonal_.data() : nullptr},
                                       ours.timed_iterations, repeats_);
    });
    runs.push_back(run(ours, "cuSPARSE + cuBLAS", times.algorithm, times.iterations,
                       times.seconds_per_iteration, times.residual));
#endif
  }

  void eigen(const LinearRun& ours, int threads, std::vector<BaselineRun>& runs) {
    const Pause workers_sleep;
    const BaselineTimes times = eigen_cg(a_, has_diagonal(ours) ? Diagonal::preconditions : Diagonal::unused,
                                         threads, ours.timed_iterations, repeats_);
    runs.push_back(run(ours, "Eigen", "", times.iterations, times.seconds_per_iteration, times.residual));
  }

  Runtime* runtime_;
  NarrowRows<T> a_;
  std::vector<T> diagonal_, ones_;
  int repeats_;
};

}  // namespace asterism::tools
