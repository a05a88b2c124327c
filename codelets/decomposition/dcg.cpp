#include "dcg.hpp"

#include <algorithm>

namespace asterism::decomposition::cpu {
namespace {

template <class T>
T product(const RowPorts<AsPorts, T>& rows, Index i, const T* x) {
  T sum = 0;
  for (std::int32_t k = rows.begins.data[i]; k < rows.begins.data[i + 1]; ++k)
    sum += rows.values.data[k] * x[rows.columns.data[k]];
  return sum;
}

/// y = rows x
template <class T>
void multiply(const RowPorts<AsPorts, T>& rows, const T* x, T* y) {
  for (Index i = 0; i + 1 < rows.begins.cols; ++i) y[i] = product(rows, i, x);
}

template <class T>
double dot(const T* a, const T* b, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// 0 where there is nothing to divide by.
double quotient(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

/// y = scale y + factor x
template <class T>
void combine(double factor, const T* x, double scale, T* y, Index n) {
  for (Index i = 0; i < n; ++i) y[i] = static_cast<T>(factor) * x[i] + static_cast<T>(scale) * y[i];
}

}  // namespace

template <class T>
void dcg_begin(DcgBeginPorts<AsPorts, T> ports) {
  sparse::cpu::unpack(ports.x_arrivals, ports.x.data);
  sparse::cpu::unpack(ports.r_arrivals, ports.r.data);
  sparse::cpu::unpack(ports.outside_arrivals, ports.outside.data);
  std::copy_n(ports.r.data, ports.r.cols, ports.p.data);
}

template <class T>
void dcg_descend(DcgDescendPorts<AsPorts, T> ports) {
  const Index n = ports.x.cols;
  T* const lp = ports.work.data;
  multiply(ports.inside, ports.p.data, lp);
  const double alpha =
      quotient(dot(ports.r.data, ports.r.data, n), dot(static_cast<const T*>(lp), ports.p.data, n));
  combine(alpha, ports.p.data, 1, ports.x.data, n);
  combine(-alpha, static_cast<const T*>(lp), 1, ports.r.data, n);
  sparse::cpu::pack(static_cast<const T*>(ports.x.data), ports.departures);
}

template <class T>
void dcg_turn(DcgTurnPorts<AsPorts, T> ports) {
  const Index n = ports.r.cols;
  T *const r = ports.r.data, *const p = ports.p.data, *const work = ports.work.data;
  if (ports.outside) {
    T* const change = work;  // of x^
    std::copy_n(ports.outside.data, ports.outside.cols, change);
    sparse::cpu::unpack(ports.arrivals, ports.outside.data);
    for (Index i = 0; i < ports.outside.cols; ++i) change[i] = ports.outside.data[i] - change[i];
    for (Index i = 0; i < n; ++i) r[i] -= product(ports.between, i, static_cast<const T*>(change));
  }
  const double gamma = quotient(dot(r, p, n), dot(r, r, n));
  combine(-gamma, static_cast<const T*>(r), 1, p, n);
  multiply(ports.inside, static_cast<const T*>(p), work);
  const double beta = quotient(-dot(r, work, n), dot(p, work, n));
  combine(1, static_cast<const T*>(r), beta, p, n);
}

template void dcg_begin(DcgBeginPorts<AsPorts, float>);
template void dcg_begin(DcgBeginPorts<AsPorts, double>);
template void dcg_descend(DcgDescendPorts<AsPorts, float>);
template void dcg_descend(DcgDescendPorts<AsPorts, double>);
template void dcg_turn(DcgTurnPorts<AsPorts, float>);
template void dcg_turn(DcgTurnPorts<AsPorts, double>);

}  // namespace asterism::decomposition::cpu
