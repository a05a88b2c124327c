// Does not compile: test kernel_without_ports looks at what the compiler says.

#include "runtime/codelet.hpp"

using namespace asterism;

void kernel(const double&) {}
const Codelet nothing{"nothing", kernel};
