#include "gmres.hpp"

#include "unit_steps.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::launch_chained;
using asterism::cuda::wait_for_previous_kernel;

namespace {

/// The vectors of a basis, as they travel with a launch. (As many as LinearSettings::restart may be, and one.)
template <class T>
struct BasisVectors {
  static constexpr int most = 257;
  const T* at[most];
  int count = 0;

  explicit BasisVectors(const Many<In<T>>& basis) {
    for (const In<T>& vector : basis) at[count++] = vector.data;
  }
};

/// Dot products that a block of threads forms at a time.
constexpr int products_at_once = 8;

/// (w, v_i) over a unit for all vectors of a basis, into list i. @param with_square also (w, w), behind them
template <class T>
__device__ void form_products(const Unit& unit, const T* w, const BasisVectors<T>& basis, bool with_square,
                              double* to, Index units) {
  const int lists = basis.count + (with_square ? 1 : 0);
  for (int first = 0; first < lists; first += products_at_once) {
    double sums[products_at_once] = {};
    for_each_element(unit, [&](Index i) {
      const double w_i = static_cast<double>(w[i]);
#pragma unroll
      for (int k = 0; k < products_at_once; ++k)
        if (first + k < lists)
          sums[k] += w_i * (first + k < basis.count ? static_cast<double>(basis.at[first + k][i]) : w_i);
    });
    sum_over_block<unit_threads>(sums);
    if (threadIdx.x == 0)
#pragma unroll
      for (int k = 0; k < products_at_once; ++k)
        if (first + k < lists) to[(first + k) * units + unit.number] = sums[k];
  }
}

/// w - sum_i factors[i] v_i, an element of it.
template <class T>
__device__ T remainder_of(T w, const double* factors, const BasisVectors<T>& basis, Index i) {
  for (int k = 0; k < basis.count; ++k) w = multiply_add(static_cast<T>(-factors[k]), basis.at[k][i], w);
  return w;
}

// ---- Totals of lists -----------------------------------------------------------------------------------------------

/// What blocks have of the lists of all units.
struct Lists {
  const double* at[most_blocks];
  std::int16_t begins[most_blocks + 1];  ///< units before those of a block
  std::int16_t blocks;

  Lists(const Many<In<double>>& all, Index lists) : blocks(static_cast<std::int16_t>(all.size())) {
    begins[0] = 0;
    for (Index b = 0; b < all.size(); ++b) {
      at[b] = all[b].data;
      begins[b + 1] = static_cast<std::int16_t>(begins[b] + all[b].cols / lists);
    }
  }
};

/// to[i] = the total of list i, by the i-th block of threads, by halves as units.hpp says.
__global__ void __launch_bounds__(unit_threads)
    add_up_kernel(const __grid_constant__ Lists lists, const GmresStatus* status, double* to) {
  wait_for_previous_kernel();
  if (*status != GmresStatus::running) return;
  __shared__ double all[most_units];
  const int thread = static_cast<int>(threadIdx.x), list = static_cast<int>(blockIdx.x);
  for (int u = thread; u < most_units; u += unit_threads) all[u] = 0;
  __syncthreads();
  for (int b = 0; b < lists.blocks; ++b) {
    const int first = lists.begins[b], units = lists.begins[b + 1] - first;
    for (int u = thread; u < units; u += unit_threads)
      all[first + u] = lists.at[b][static_cast<Index>(list) * units + u];
  }
  __syncthreads();
  for (int half = static_cast<int>(most_units) / 2; half > 0; half /= 2) {
    for (int u = thread; u < half; u += unit_threads) all[u] += all[u + half];
    __syncthreads();
  }
  if (thread == 0) to[list] = all[0];
}

void add_up_lists(Stream stream, const GmresArgs& args, const Many<In<double>>& all, Index count,
                  const GmresState* state, double* to) {
  launch_chained<add_up_kernel>("add_up_lists", stream, static_cast<unsigned>(count), unit_threads,
                                Lists(all, args.m + 2), state->status + side_of(args.step), to);
}

// ---- (G0) ----------------------------------------------------------------------------------------------------------

/// The state is copied and decided on by every block of threads for itself; one of them keeps it.
template <class T, class V>
__global__ void __launch_bounds__(unit_threads)
    begin_kernel(const __grid_constant__ GmresArgs args, const T* r, T* first, HatElements<T, V> hat,
                 double* problem, const GmresState* state,
                 const __grid_constant__ SumLists<most_blocks, 1> rr) {
  wait_for_previous_kernel();
  double totals[1];
  rr.add_up(totals);
  GmresState decided = *state;
  const double scale = decide(args, totals[0], decided);
  if (scale == 0) return;
  const Unit unit = own_unit(args.unit, args.shape.rows, false);
  if (unit.number == 0 && threadIdx.x == 0) LeastSquares{problem, args.m}.begin(1 / scale);
  for_each_element(unit, [&](Index i) {
    first[i] = static_cast<T>(scale) * r[i];
    hat.leave(i, first[i]);
  });
}

/// What begin_kernel has decided, when all of its threads have read what was.
__global__ void __launch_bounds__(unit_threads)
    keep_kernel(const __grid_constant__ GmresArgs args, GmresState* state,
                const __grid_constant__ SumLists<most_blocks, 1> rr) {
  wait_for_previous_kernel();
  double totals[1];
  rr.add_up(totals);
  if (threadIdx.x == 0) decide(args, totals[0], *state);
}

// ---- (G1) ----------------------------------------------------------------------------------------------------------

template <class T>
struct ArnoldiRow {
  static constexpr int at_once = 4;
  T* w;
  struct Nothing {};
  [[nodiscard]] __device__ Nothing bring(int) const { return {}; }
  __device__ void take(int i, T product, Nothing) { w[i] = product; }
};

template <class T>
struct ArnoldiProduct {
  const GmresStatus* status;
  const T* hat;
  T* w;
  double* sums;
  Index rows, unit_rows;
};

template <class Rows, class T>
__global__ void __launch_bounds__(unit_threads)
    arnoldi_kernel(Rows rows, ArnoldiProduct<T> at, const __grid_constant__ BasisVectors<T> basis) {
  wait_for_previous_kernel();
  if (*at.status != GmresStatus::running) return;
  const Unit unit = own_unit(at.unit_rows, at.rows, false);
  ArnoldiRow<T> row{at.w + unit.first};
  take_products(rows, unit, Constant<T>{at.hat}, row);
  __syncthreads();  // rows are not taken by those who read them next
  form_products(unit, at.w, basis, false, at.sums, units_of(at.rows, at.unit_rows));
}

// ---- (G2) ----------------------------------------------------------------------------------------------------------

template <class T>
__global__ void __launch_bounds__(unit_threads)
    project_kernel(const GmresStatus* status, T* w, const double* h, double* sums, Index rows,
                   Index unit_rows, const __grid_constant__ BasisVectors<T> basis) {
  wait_for_previous_kernel();
  if (*status != GmresStatus::running) return;
  const Unit unit = own_unit(unit_rows, rows, false);
  for_each_element(unit, [&](Index i) { w[i] = remainder_of(w[i], h, basis, i); });
  form_products(unit, w, basis, true, sums, units_of(rows, unit_rows));  // each thread reads what it wrote
}

// ---- (G3) ----------------------------------------------------------------------------------------------------------

template <class T, class V>
__global__ void __launch_bounds__(unit_threads)
    extend_kernel(const __grid_constant__ GmresArgs args, const T* w, T* next, HatElements<T, V> hat,
                  double* problem, GmresState* state, const __grid_constant__ BasisVectors<T> basis) {
  wait_for_previous_kernel();
  const Unit unit = own_unit(args.unit, args.shape.rows, false);
  const bool decides = unit.number == 0 && threadIdx.x == 0;
  const GmresStatus status = state->status[side_of(args.step)];
  if (status != GmresStatus::running) {
    if (decides) state->status[side_of(args.step + 1)] = status;
    return;
  }
  const LeastSquares least_squares{problem, args.m};
  const T scale = static_cast<T>(scale_of(args, least_squares.h(), least_squares.g()));
  if (decides) take_column(args, least_squares, *state);
  for_each_element(unit, [&](Index i) {
    next[i] = scale * remainder_of(w[i], least_squares.g(), basis, i);
    hat.leave(i, next[i]);
  });
}

// ---- (G4) ----------------------------------------------------------------------------------------------------------

__global__ void solve_kernel(const GmresState* state, double* problem, Index m) {
  wait_for_previous_kernel();
  LeastSquares{problem, m}.solve(state->columns);
}

template <class T, class V>
__global__ void __launch_bounds__(unit_threads)
    combine_kernel(const __grid_constant__ GmresArgs args, const GmresState* state, const double* solution,
                   T* w, HatElements<T, V> hat, const __grid_constant__ BasisVectors<T> basis) {
  wait_for_previous_kernel();
  const int columns = static_cast<int>(state->columns);
  for_each_element(own_unit(args.unit, args.shape.rows, false), [&](Index i) {
    T sum = 0;
    for (int k = 0; k < columns; ++k) sum = multiply_add(static_cast<T>(solution[k]), basis.at[k][i], sum);
    w[i] = sum;
    hat.leave(i, sum);
  });
}

template <class T>
__global__ void __launch_bounds__(unit_threads)
    correct_kernel(const T* hat, T* x, Index rows, Index unit_rows) {
  wait_for_previous_kernel();
  for_each_element(own_unit(unit_rows, rows, false), [&](Index i) { x[i] += hat[i]; });
}

}  // namespace

template <class T, class V>
void begin_basis(Stream stream, const GmresArgs& args, BasisPorts<AsPorts, T, V> ports) {
  T* const own = ports.hat.data + args.shape.own;
  const SumLists<most_blocks, 1> rr(ports.rr);
  launch_chained<begin_kernel<T, V>>("begin_basis", stream, blocks_of_units(args.shape.rows, args.unit),
                                     unit_threads, args, ports.r.data, ports.first.data,
                                     HatElements<T, V>(args.hat, ports.inverse_diagonal, own),
                                     ports.problem.data, ports.state.data, rr);
  launch_chained<keep_kernel>("begin_basis", stream, 1, unit_threads, args, ports.state.data, rr);
  pack(stream, static_cast<const T*>(own), ports.departures);
}

template <class T>
void arnoldi_product(Stream stream, const GmresArgs& args, ArnoldiProductPorts<AsPorts, T> ports) {
  unpack(stream, ports.arrivals, ports.hat.data);
  const ArnoldiProduct<T> at{ports.state.data->status + side_of(args.step),
                             ports.hat.data,
                             ports.w.data,
                             ports.sums.data,
                             args.shape.rows,
                             args.unit};
  with_device_rows<T>(args.shape, ports.matrix, [&](const auto& rows) {
    using Rows = std::remove_cvref_t<decltype(rows)>;
    launch_chained<arnoldi_kernel<Rows, T>>("arnoldi_product", stream,
                                            blocks_of_units(args.shape.rows, args.unit), unit_threads, rows,
                                            at, BasisVectors<T>(ports.basis));
  });
}

template <class T>
void project(Stream stream, const GmresArgs& args, ProjectionPorts<AsPorts, T> ports) {
  double* const h = LeastSquares{ports.problem.data, args.m}.h();
  add_up_lists(stream, args, ports.all_sums, ports.basis.size(), ports.state.data, h);
  launch_chained<project_kernel<T>>("project", stream, blocks_of_units(args.shape.rows, args.unit),
                                    unit_threads, ports.state.data->status + side_of(args.step), ports.w.data,
                                    h, ports.sums.data, args.shape.rows, args.unit,
                                    BasisVectors<T>(ports.basis));
}

template <class T, class V>
void extend_basis(Stream stream, const GmresArgs& args, ExtensionPorts<AsPorts, T, V> ports) {
  T* const own = ports.hat.data + args.shape.own;
  add_up_lists(stream, args, ports.all_sums, ports.basis.size() + 1, ports.state.data,
               LeastSquares{ports.problem.data, args.m}.g());
  launch_chained<extend_kernel<T, V>>("extend_basis", stream, blocks_of_units(args.shape.rows, args.unit),
                                      unit_threads, args, ports.w.data, ports.next.data,
                                      HatElements<T, V>(args.hat, ports.inverse_diagonal, own),
                                      ports.problem.data, ports.state.data, BasisVectors<T>(ports.basis));
  pack(stream, static_cast<const T*>(own), ports.departures);
}

template <class T, class V>
void combine(Stream stream, const GmresArgs& args, CombinationPorts<AsPorts, T, V> ports) {
  launch_chained<solve_kernel>("combine", stream, 1, 1, ports.state.data, ports.problem.data, args.m);
  T* const own = ports.hat.data + args.shape.own;
  launch_chained<combine_kernel<T, V>>(
      "combine", stream, blocks_of_units(args.shape.rows, args.unit), unit_threads, args, ports.state.data,
      LeastSquares{ports.problem.data, args.m}.solution(), ports.w.data,
      HatElements<T, V>(args.hat, ports.inverse_diagonal, own), BasisVectors<T>(ports.basis));
}

template <class T>
void correct(Stream stream, const GmresArgs& args, CorrectionPorts<AsPorts, T> ports) {
  launch_chained<correct_kernel<T>>("correct", stream, blocks_of_units(args.shape.rows, args.unit),
                                    unit_threads, ports.hat.data + args.shape.own, ports.x.data,
                                    args.shape.rows, args.unit);
}

void show(Stream stream, In<GmresState> state, Out<GmresState> shown) {
  asterism::cuda::check(cudaMemcpyAsync(shown.data, state.data, sizeof(GmresState), cudaMemcpyDeviceToDevice,
                                        asterism::cuda::native(stream)),
                        "cudaMemcpyAsync");
}

#define ASTERISM_INSTANTIATE(T)                                                             \
  template void arnoldi_product(Stream, const GmresArgs&, ArnoldiProductPorts<AsPorts, T>); \
  template void project(Stream, const GmresArgs&, ProjectionPorts<AsPorts, T>);             \
  template void correct(Stream, const GmresArgs&, CorrectionPorts<AsPorts, T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE
#define ASTERISM_INSTANTIATE(T, V)                                                     \
  template void begin_basis(Stream, const GmresArgs&, BasisPorts<AsPorts, T, V>);      \
  template void extend_basis(Stream, const GmresArgs&, ExtensionPorts<AsPorts, T, V>); \
  template void combine(Stream, const GmresArgs&, CombinationPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cuda
