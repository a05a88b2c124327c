// Does not compile: test tile_not_named looks at what the compiler says.

#include "runtime/codelet.hpp"

using namespace asterism;

template <template <class> class As>
struct AxpyPorts {
  As<In<double>> x;
  As<InOut<double>> y;
};
void kernel(const double& a, AxpyPorts<AsPorts> p) { *p.y.data += a * *p.x.data; }
const Codelet axpy{"axpy", kernel};

void call(const Tile<double>& y) { axpy(2.0, {.y = y}); }
