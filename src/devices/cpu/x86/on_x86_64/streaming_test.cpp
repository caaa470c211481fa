// Kernels for results that outgrow the caches, on small ones: told of many rows, the schedule stores past the caches
// and fetches ahead. Rows that begin inside a line, and results in place, keep their bits too.
#include <gtest/gtest.h>

#include <cstring>

#include "devices/arguments.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "devices/cpu/x86/devices.hpp"
#include "plan/check.hpp"
#include "problem/problem.hpp"
#include "reference/reference.hpp"

namespace trireme::cpu {
namespace {

constexpr std::int64_t many_rows = std::int64_t{1} << 30;

TEST(Streaming, SameBits) {
  const char* lines[] = {"rms_norm 5x4096",
                         "rms_norm 7x1031 x=bf16",
                         "layer_norm 4x2048 x=f16",
                         "add_rms_norm 3x1536",
                         "add_rms_norm 3x2050 x=bf16",
                         "softmax 3x1500",
                         "softmax 3x2048 x=bf16",
                         "swiglu 3x1024",
                         "rms_norm 9x128",
                         "rms_norm 5x1030 backward",
                         "layer_norm 5x2048 backward",
                         "softmax 5x4097 x=bf16 backward",
                         "rms_norm_quant 3x1024",
                         "rms_norm 3x1024 x=f64",
                         "rms_norm 4x1024 x=f32+1:1027",
                         "swiglu 20x300 x=bf16 backward"};
  for (const char* line : lines) {
    Prepared prepared = prepare_problem(parse_problem(line).value()).value();
    Facts facts = facts_of(prepared.program, prepared.view());
    run_reference(prepared.program, prepared.view()).value();
    std::string wanted = digest_of(prepared);
    facts.rows = many_rows;
    facts.result_alignment = 64;  // a plan knows no addresses
    for (const InstructionSet& set : x86_instruction_sets()) {
      if (!set.missing().empty()) continue;
      auto executable = compile(prepared.program, facts, set).value();
      EXPECT_NE(executable->describe().find("streaming"), std::string::npos) << executable->describe();
      for (int threads : {1, 3}) {
        poison_results(prepared);
        executable->run(prepared.view(), {.threads = threads}).value();
        EXPECT_EQ(digest_of(prepared), wanted) << line << ": " << executable->describe();
      }
    }
  }
}

// Sixty stripes' totals lie in scratch while weights are gathered lane by lane through scratch too.
TEST(Scratch, TotalsAndGatheredLanesLieApart) {
  Prepared prepared = prepare_problem(parse_problem("wrapped.row 3x15360").value(),
                                      "wrapped(x[i,j], w[j % 100]) -> (s[i])\n    s = sum(x * w)\n")
                          .value();
  Facts facts = facts_of(prepared.program, prepared.view());
  run_reference(prepared.program, prepared.view()).value();
  std::string wanted = digest_of(prepared);
  for (const InstructionSet& set : x86_instruction_sets()) {
    if (!set.missing().empty()) continue;
    poison_results(prepared);
    compile(prepared.program, facts, set).value()->run(prepared.view(), {}).value();
    EXPECT_EQ(digest_of(prepared), wanted);
  }
}

// Rows overlap there too: what a row's last sweep writes over must have been read.
TEST(Streaming, ResultsInPlaceStayInTheCaches) {
  for (const char* line : {"rms_norm 5x1024", "softmax 5x1024", "softmax 4x1031 x=bf16", "layer_norm 7x2048"}) {
    Prepared wanted = prepare_problem(parse_problem(line).value()).value();
    run_reference(wanted.program, wanted.view()).value();
    for (const InstructionSet& set : x86_instruction_sets()) {
      if (!set.missing().empty()) continue;
      Prepared prepared = prepare_problem(parse_problem(line).value()).value();
      prepared.results()[0] = prepared.operands()[0];
      Facts facts = facts_of(prepared.program, prepared.view());
      EXPECT_TRUE(facts.in_place);
      facts.rows = many_rows;
      auto executable = compile(prepared.program, facts, set).value();
      EXPECT_EQ(executable->describe().find("streaming"), std::string::npos) << executable->describe();
      executable->run(prepared.view(), {}).value();
      const Array &got = prepared.results()[0], &want = wanted.results()[0];
      EXPECT_EQ(std::memcmp(got.data, want.data, wanted.buffers.results[0].entries() * bytes(got.type)), 0) << line;
    }
  }
}

}  // namespace
}  // namespace trireme::cpu
