/// \file
/// Tiles added up element by element, in their order: what makes one number of the parts of a dot product.
#pragma once

#include "../../runtime/codelet.hpp"

namespace asterism::sums {

namespace cpu {
/// total = parts[0] + parts[1] + ..., zeros where there are none. All have the shape of `total`.
template <class T>
void add_up(Many<In<T>> parts, Out<T> total);
}  // namespace cpu

namespace cuda {
template <class T>
void add_up(Stream stream, Many<In<T>> parts, Out<T> total);
}  // namespace cuda

}  // namespace asterism::sums

namespace asterism::sums::codelets {

template <class T>
inline const Codelet<NoArgs, Many<In<T>>, Out<T>> add_up{typed_name<T>("add_up"), cpu::add_up<T>,
                                                         ASTERISM_CUDA_KERNEL(cuda::add_up<T>)};

}  // namespace asterism::sums::codelets
