// Programs compiled to WebAssembly give the reference's bits. One node process for all of them.
#include "devices/wasm/wasm_device.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "plan/check.hpp"
#include "reference/reference.hpp"

namespace trireme::wasm {
namespace {

struct Source {
  const char* text;  // of a program called as its file
  std::vector<const char*> types;
};

const Source sources[] = {
    {"softmax(x[i,j]) -> (y[i,j])\n m = amax(x)\n e = exp(x - m)\n y = e / sum(e)\n",
     {"x=f32", "x=bf16 y=f32", "x=f16", "x=f64"}},
    {"norm(x[i,j], gamma[j] = 1, beta[j] = 0, eps = 1e-5) -> (y[i,j], mu[i], rstd[i])\n mu = mean(x)\n d = x - mu\n"
     " rstd = rsqrt(mean(d * d) + eps)\n y = d * rstd * gamma + beta\n",
     {"x=f32", "x=bf16", "x=f16 y=f8e4m3", "x=f64 gamma=f32", "x=f8e5m2 y=i8"}},
    {"gates(x[i,j], g[i,j]) -> (y[i,j], z[i,j])\n y = silu(g) * x + gelu(x)\n z = tanh(x) * log1p(abs(g)) + erf(g)\n",
     {"x=f32", "x=bf16 y=f16", "x=f64"}},
    {"masked(x[i,j], length[i]) -> (y[i,j], s[i])\n kept = select(j < length, x, -inf)\n s = amax(kept)\n"
     " y = select(j < i, floor(x), min(round(x), s))\n",
     {"x=f32 length=i32", "x=i8 length=i32 y=f32"}},
    {"turned(x[i,j], w[i % 3, j]) -> (y[i,j])\n y = rotate(x, 3) * w + cast(x, x)\n", {"x=f32", "x=bf16"}},
};

// "softmax" of the text above.
std::string name_of(const Source& source) { return std::string(source.text, std::strchr(source.text, '(')); }

struct Check {
  std::string line;
  Prepared prepared;
  std::unique_ptr<WasmExecutable> executable;
  std::optional<Staged> staged;
  std::string wanted;
};

// `text`: of the program, where it is none that comes with Trireme.
Check prepare(const std::string& line, const char* text, bool relaxed, const RunOptions& options, bool loops) {
  Check check{.line = line + (relaxed ? " relaxed" : "") + (loops ? " in loops" : "")};
  check.prepared = prepare_problem(parse_problem(line).value(), text ? text : "").value();
  Prepared& prepared = check.prepared;
  Facts facts = facts_of(prepared.program, prepared.view());
  run_reference(prepared.program, prepared.view()).value();
  check.wanted = digest_of(prepared);
  poison_results(prepared);
  Config config = choose_config(prepared.program, {.simd = true, .register_bytes = 16}, facts);
  if (loops) config = {.lanes = config.lanes, .unroll = 4};
  check.executable = WasmExecutable::create(prepared.program, config, {.relaxed = relaxed}).value();
  check.staged.emplace(check.executable->stage(prepared.view(), options).value());
  return check;
}

void run(std::vector<Check> checks, bool in_wasmtime_too = false) {
  std::vector<Job> jobs;
  for (const Check& check : checks) jobs.push_back(check.staged->job);
  const std::vector<Status> outcomes = run_in_node(jobs);
  for (std::size_t k = 0; k < checks.size(); ++k) {
    ASSERT_TRUE(outcomes[k]) << checks[k].line << ": " << outcomes[k].error().message;
    checks[k].staged->finish().value();
    EXPECT_EQ(digest_of(checks[k].prepared), checks[k].wanted) << checks[k].line;
  }
  if (!in_wasmtime_too || !wasmtime_missing(true).empty()) return;
  for (Check& check : checks) {
    poison_results(check.prepared);
    const auto sandbox = compile_in_wasmtime(check.staged->job.module);
    ASSERT_TRUE(sandbox) << check.line << ": " << sandbox.error().message;
    const Status status = run_in_wasmtime(**sandbox, check.staged->job);
    ASSERT_TRUE(status) << check.line << ": " << status.error().message;
    check.staged->finish().value();
    EXPECT_EQ(digest_of(check.prepared), check.wanted) << check.line << " in wasmtime";
  }
}

#define TRIREME_SKIP_WITHOUT_WASM_DEVICE() \
  if (std::string reason = missing(Choice::Node, false); !reason.empty()) GTEST_SKIP() << reason

TEST(WasmDevice, NormsOfAllWidths) {
  TRIREME_SKIP_WITHOUT_WASM_DEVICE();
  std::vector<Check> checks;
  for (const char* direction : {"", " backward"})
    for (const char* type : {"f32", "bf16", "f64"})
      for (int columns : {1, 2, 7, 127, 255, 256, 257, 1024, 4096, 4097})
        for (int rows : {0, 1, 65}) {
          const std::string line =
              "rms_norm " + std::to_string(rows) + "x" + std::to_string(columns) + " x=" + type + direction;
          checks.push_back(prepare(line, nullptr, false, {.chunk_rows = rows == 65 ? 5 : 0}, columns % 2));
        }
  run(std::move(checks));
}

TEST(WasmDevice, ProgramsOfAllTypes) {
  TRIREME_SKIP_WITHOUT_WASM_DEVICE();
  const bool relaxed_runs = missing(Choice::Node, true).empty();
  std::vector<Check> checks;
  for (const Source& source : sources)
    for (const char* types : source.types)
      for (const char* shape : {"5x7", "3x300"})
        for (bool relaxed : {false, true})
          if (!relaxed || relaxed_runs) {
            const std::string line = name_of(source) + ".row " + shape + " " + types;
            checks.push_back(prepare(line, source.text, relaxed, {}, relaxed));
          }
  run(std::move(checks), true);
  if (!relaxed_runs) GTEST_SKIP() << missing(Choice::Node, true);
}

}  // namespace
}  // namespace trireme::wasm
