// Sums over rows in blocks of another problem: parts of its rows, or of its columns, give nodes of its sums.
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "ir/contract.hpp"
#include "plan/check.hpp"
#include "plan/devices_for_test.hpp"
#include "plan/plan_for_test.hpp"
#include "reference/reference.hpp"

namespace trireme {
namespace {

TEST(RowBlock, every_device_gives_the_references_bits) {
  for (const char* line :
       {"rms_norm 300x300 backward row_block=16", "layer_norm 70x257 x=bf16 backward row_block=64",
        "rms_norm 9x4097 backward row_block=5", "group_norm 6x96 groups=3 pixels=8 backward row_block=2",
        "dynamic_tanh 100x33 backward row_block=100", "rms_norm 0x16 backward row_block=3"}) {
    Prepared wanted = prepare_problem(parse_problem(line).value()).value();
    run_reference(wanted.program, wanted.view()).value();
    for (const DeviceEntry* device : devices_here())
      for (int threads : {1, 3}) {
        if (threads > 1 && !device->threads) continue;
        Prepared got = prepare_problem(parse_problem(line).value()).value();
        auto executable = device->compile(got.program, facts_of(got.program, got.view())).value();
        executable->run(got.view(), {.threads = threads, .chunk_rows = threads == 3 ? 7 : 0}).value();
        EXPECT_EQ(digest_of(got), digest_of(wanted)) << device->name << " rerun: trireme verify \"" << line << '"';
      }
  }
}

// 4096 rows have blocks of 16; a quarter of them alone would have blocks of 8.
TEST(RowBlock, parts_of_rows_are_nodes_of_the_whole_sum) {
  constexpr std::int64_t rows = 4096, columns = 40, parts = 4;
  ASSERT_EQ(contract::row_block(rows, columns), 16);
  ASSERT_EQ(contract::row_block(rows / parts, columns), 8);
  std::vector<float> x(rows * columns);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = 1.0f / static_cast<float>(1 + k * 2654435761u % 1000003u);
  RowProgram program = RowProgram::parse("p(x[i,j]) -> (c[j])\n  c = colsum(x)\n").value();
  auto sums = [&](std::int64_t first, std::int64_t count, std::int64_t row_block) {
    std::vector<float> made(columns);
    Plan plan =
        Plan::create(Device::cpu().value(), {.program = program, .shape = {count, columns}, .row_block = row_block})
            .value();
    Args args = plan.args();
    args["x"] = View{.data = x.data() + first * columns};
    args["c"] = View{.data = made.data()};
    Workspace workspace(plan.workspace_bytes());
    plan.run(args, {}, workspace.span()).value();
    return made;
  };
  std::vector<std::vector<float>> nodes;
  bool differs = false;
  const std::vector<float> whole = sums(0, rows, 0);
  for (std::int64_t p = 0; p < parts; ++p) {
    nodes.push_back(sums(p * rows / parts, rows / parts, 16));
    differs = differs || nodes.back() != sums(p * rows / parts, rows / parts, 0);
  }
  for (std::size_t c = 0; c < columns; ++c)
    EXPECT_EQ((nodes[0][c] + nodes[1][c]) + (nodes[2][c] + nodes[3][c]), whole[c]) << c;
  EXPECT_TRUE(differs);  // or the option does nothing
}

TEST(RowBlock, says_what_it_refuses) {
  auto says = [](const char* line, const char* wanted) {
    Result<Problem> problem = parse_problem(line);
    std::string message;
    if (!problem) {
      message = problem.error().message;
    } else {
      Result<Prepared> prepared = prepare_problem(*problem);
      ASSERT_FALSE(prepared) << line;
      message = prepared.error().message;
    }
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
  };
  says("rms_norm 3x5 row_block=4", "no result that is stored sums over rows");
  says("rms_norm 3x5 backward dgamma=none row_block=4", "no result that is stored sums over rows");
  says("rms_norm 4096x5 backward row_block=8", "row_block=8 is less than the contract's, 16");
  says("rms_norm_heads 65536x8 heads=32 backward row_block=8", "row_block=8 is less than the contract's, 16");
  EXPECT_TRUE(prepare_problem(parse_problem("rms_norm_heads 8192x8 heads=64 backward row_block=1").value()));
  says("rms_norm 4096x5 backward row_block=0", "row_block is a number of rows, not '0'");
  says("rms_norm 4096x5 backward row_block=few", "row_block is a number of rows, not 'few'");
  EXPECT_EQ(print(parse_problem("rms_norm 4096x5 backward row_block=32").value()),
            "rms_norm 4096x5 backward row_block=32");
}

}  // namespace
}  // namespace trireme
