#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "../support/skip.hpp"

namespace {

/// Says what SkipUnless has skipped; tools/test gathers these lines.
struct Skipped : doctest::IReporter {
  explicit Skipped(const doctest::ContextOptions& options) : whole_run(!options.no_skip) {}

  void test_case_skipped(const doctest::TestCaseData& test_case) override {
    if (whole_run && test_case.m_skip && test_case.m_description != nullptr)
      std::printf("skipped: %s: %s\n", test_case.m_name, test_case.m_description);
  }

  void report_query(const doctest::QueryData& /*query*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_start(const doctest::TestCaseData& /*test_case*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*test_case*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*assertion*/) override {}
  void log_message(const doctest::MessageData& /*message*/) override {}

  bool whole_run;  // not a child's, of one test case
};

}  // namespace

REGISTER_LISTENER("skipped", 1, Skipped);

// Test cases named "gpu: ..." need a GPU: they run in the machine shape of that name only. What is tested in both precisions
// is tested in one where ranks take turns on the cores: messages do not differ by more than their length.
int main(int argc, char** argv) {
  doctest::Context context;
  if (!asterism::test::shape_is("gpu")) context.addFilter("test-case-exclude", "gpu:*");
  if (asterism::test::more_than_two_ranks()) context.addFilter("test-case-exclude", "*<float>");
  context.applyCommandLine(argc, argv);
  return context.run();
}
