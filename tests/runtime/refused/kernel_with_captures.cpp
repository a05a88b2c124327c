// Does not compile: test kernel_with_captures looks at what the compiler says.

#include "runtime/codelet.hpp"

using namespace asterism;

void scale_by(double factor) {
  const auto scale = codelet("scale", [factor](InOut<double> x) { *x.data *= factor; });
}
