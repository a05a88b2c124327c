#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

// Test cases named "gpu: ..." need a GPU: they run in the machine shape of that name only.
int main(int argc, char** argv) {
  doctest::Context context;
  const char* shape = std::getenv("ASTERISM_SHAPE");
  if (shape == nullptr || std::string_view(shape) != "gpu") context.addFilter("test-case-exclude", "gpu:*");
  context.applyCommandLine(argc, argv);
  return context.run();
}
