/// \file
/// The distributive conjugate gradients, [Czapinski 2014] algorithm 7.1: each subdomain p iterates on its own system
/// L x = b - H x^ with what its neighbours have found in the meantime, x^, as they find it:
///
///     (Y1)  alpha = (r, r) / (L p, p), x += alpha p, r -= alpha L p                     (lines 4 to 6)
///     (Y2)  r -= H (x^ - its value before)                                              (lines 7, 8)
///           gamma = (r, p) / (r, r), p -= gamma r                                       (lines 9, 10)
///           beta = -(r, L p) / (p, L p), p = r + beta p                                 (lines 11, 12)
///
/// All vectors and sums are the subdomain's own. What would divide by zero is left out: nothing remains to be done there.
#pragma once

#include <cstdint>

#include "../../runtime/codelet.hpp"
#include "../sparse/exchange.hpp"

namespace asterism::decomposition {

/// Compressed rows.
template <template <class> class As, class T>
struct RowPorts {
  As<In<std::int32_t>> begins;
  As<Optional<In<std::int32_t>>> columns;
  As<Optional<In<T>>> values;
};

/// Line 1: p = r; x, r and x^ come from blocks of rows.
template <template <class> class As, class T>
struct DcgBeginPorts {
  sparse::Arrivals<As, T> x_arrivals, r_arrivals, outside_arrivals;
  As<Out<T>> x, r, p;
  As<Optional<Out<T>>> outside;
};

/// (Y1) @param work room for L p @param departures what others need of x
template <template <class> class As, class T>
struct DcgDescendPorts {
  RowPorts<As, T> inside;
  As<In<T>> p;
  As<Scratch<T>> work;
  As<InOut<T>> x, r;
  sparse::Departures<As, T> departures;
};

/// (Y2) @param outside x^, of those elements that H has entries in @param work room for it, and for L p
template <template <class> class As, class T>
struct DcgTurnPorts {
  sparse::Arrivals<As, T> arrivals;
  RowPorts<As, T> inside, between;
  As<Scratch<T>> work;
  As<Optional<InOut<T>>> outside;
  As<InOut<T>> r, p;
};

namespace cpu {
template <class T>
void dcg_begin(DcgBeginPorts<AsPorts, T> ports);
template <class T>
void dcg_descend(DcgDescendPorts<AsPorts, T> ports);
template <class T>
void dcg_turn(DcgTurnPorts<AsPorts, T> ports);
}  // namespace cpu

namespace codelets {
template <class T>
inline const Codelet<NoArgs, DcgBeginPorts<AsPorts, T>> dcg_begin{typed_name<T>("dcg_begin"),
                                                                  cpu::dcg_begin<T>};
template <class T>
inline const Codelet<NoArgs, DcgDescendPorts<AsPorts, T>> dcg_descend{typed_name<T>("dcg_descend"),
                                                                      cpu::dcg_descend<T>};
template <class T>
inline const Codelet<NoArgs, DcgTurnPorts<AsPorts, T>> dcg_turn{typed_name<T>("dcg_turn"), cpu::dcg_turn<T>};
}  // namespace codelets

}  // namespace asterism::decomposition
