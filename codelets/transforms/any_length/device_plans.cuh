/// \file
/// Plans with their tables on a device. For `.cu` files only.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "../rounds.hpp"
#include "kinds.cuh"
#include "symmetric_plan.hpp"

namespace asterism::transforms::cuda {

/// The FFT of one length on the calling thread's current device.
template <class T>
class DeviceFft {
 public:
  explicit DeviceFft(const FftPlan<T>& plan)
      : view_(plan.view), in_(plan.in), out_(plan.out), tables_(plan.tables) {
    view_.in = in_.data();
    view_.out = out_.data();
    view_.tables = tables_.data();
  }

  [[nodiscard]] const FftView<T>& view() const { return view_; }

 private:
  FftView<T> view_;
  Table<std::uint16_t> in_, out_;
  Table<Complex<T>> tables_;
};

/// What kinds.cuh wants of lines of one kind and length.
template <class T>
class DevicePlan {
 public:
  DevicePlan(Transform kind, Index n, const SymmetricWay&)
      : fft_(FftPlan<T>(fft_length(kind, n))),
        fold_(fold_rotations<T>(kind, n)),
        unfold_(unfold_rotations<T>(kind, n)),
        view_(any_length(kind, n, fft_.view(), fold_.data(), unfold_.data())) {}

  [[nodiscard]] const AnyLength<T>& view() const { return view_; }

 private:
  DeviceFft<T> fft_;
  Table<Complex<T>> fold_, unfold_;
  AnyLength<T> view_;
};

/// What symmetric_kinds.cuh wants.
template <class T>
class SymmetricDevicePlan {
 public:
  SymmetricDevicePlan(Transform kind, Index n, const SymmetricWay& way)
      : SymmetricDevicePlan(kind, fft_length(kind, n), SymmetricPlan<T>(kind, fft_length(kind, n), way)) {}

  [[nodiscard]] const SymmetricView<T>& view() const { return view_; }

 private:
  SymmetricDevicePlan(Transform kind, Index N, const SymmetricPlan<T>& plan)
      : rows_(plan.rows),
        targets_(plan.targets),
        sources_(plan.sources),
        pairs_(plan.pairs),
        odd_(plan.odd),
        twist_(plan.twist),
        view_(symmetric_view(kind, N, plan, rows_.view(),
                             {targets_.data(), sources_.data(), pairs_.data(), odd_.data(), twist_.data()})) {
  }

  DeviceFft<T> rows_;
  Table<Target> targets_;
  Table<Source> sources_;
  Table<PlacePair> pairs_;
  Table<std::uint8_t> odd_;
  Table<Complex<T>> twist_;
  SymmetricView<T> view_;
};

/// The plan of the calling thread's current device.
/// @param way none for a DevicePlan
template <class Plan>
const auto& device_plan(Transform kind, Index n, const SymmetricWay& way) {
  // Never destroyed: at the process's end CUDA may be gone before static objects are.
  static std::mutex mutex;
  static auto& plans = *new std::map<std::tuple<int, Transform, Index, int>, std::unique_ptr<Plan>>;
  int device = 0;
  asterism::cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::scoped_lock lock(mutex);
  auto& plan = plans[{device, kind, n, way.divisor}];
  if (plan == nullptr) plan = std::make_unique<Plan>(kind, n, way);
  return plan->view();
}

}  // namespace asterism::transforms::cuda
