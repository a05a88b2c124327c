// Of a build without CUDA.

#include "probe.hpp"

namespace asterism::wavefront::tile_model {

template <class T>
struct Probe<T>::State {};

template <class T>
Probe<T>::Probe(Runtime& runtime, int dimensions, bool has_source)
    : runtime_(&runtime), dimensions_(dimensions), has_source_(has_source) {
  throw Error("the tile-size model is of GPUs, and this build has no CUDA", Blame::machine);
}

template <class T>
Costs Probe<T>::measure() const {
  return {};
}

template <class T>
std::vector<double> Probe<T>::run(const WavefrontArgs&, const std::vector<WavefrontLayout>&, int) const {
  return {};
}

template <class T>
Probe<T>::~Probe() = default;

template class Probe<float>;
template class Probe<double>;

}  // namespace asterism::wavefront::tile_model
