// Does not compile: test port_by_reference looks at what the compiler says.

#include "runtime/codelet.hpp"

using namespace asterism;

void kernel(const double& a, const InOut<double>& x) { *x.data *= a; }
const Codelet scale{"scale", kernel};
