#include "../pause.hpp"

#include <starpu.h>

namespace asterism {

Pause::Pause() { starpu_pause(); }
Pause::~Pause() { starpu_resume(); }

}  // namespace asterism
