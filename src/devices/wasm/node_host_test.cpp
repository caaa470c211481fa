#include "devices/wasm/node_host.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "support/environment_for_test.hpp"
#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {
namespace {

using Bytes = std::vector<std::uint8_t>;

#define TRIREME_SKIP_WITHOUT_NODE_HOST() \
  if (std::string reason = node_missing(); !reason.empty()) GTEST_SKIP() << reason

struct Rows {
  Function f{"rows"};
  Local<I32> args = f.parameter<I32>("args");
  Local<I64> first = f.parameter<I64>("first"), last = f.parameter<I64>("last"), total = f.parameter<I64>("total");
  // Pushes the address in a slot.
  void pointer(std::uint32_t slot) { f.get(args), f.memory("i32.load", {.offset = 8 * slot}); }
};

Bytes module_of(const std::function<void(Rows&)>& write, bool with_columns = false) {
  Rows rows;
  write(rows);
  Module module({});
  module.add(rows.f.finish().value(), "rows");
  if (with_columns) {  // the first byte behind slot 0 counts its calls
    Function f("columns");
    const auto args = f.parameter<I32>("args");
    f.parameter<I64>("first"), f.parameter<I64>("last");
    f.get(args), f.memory("i32.load"), f.get(args), f.memory("i32.load"), f.memory("i32.load8_u");
    f.i32_const(100), f.op("i32.add"), f.memory("i32.store8");
    module.add(f.finish().value(), "columns");
  }
  return module.encode();
}

// Adds the byte behind slot 1 and the row's number to the bytes first .. last behind slot 0.
const auto add_rows = [](Rows& rows) {
  Function& f = rows.f;
  const Label done = f.block(), again = f.loop();
  f.get(rows.first), f.get(rows.last), f.op("i64.ge_s"), f.br_if(done);
  const auto at = f.local<I32>("at");
  rows.pointer(0), f.get(rows.first), f.op("i32.wrap_i64"), f.op("i32.add"), f.tee(at);
  f.get(at), f.memory("i32.load8_u");
  rows.pointer(1), f.memory("i32.load8_u"), f.op("i32.add");
  f.get(rows.first), f.op("i32.wrap_i64"), f.op("i32.add"), f.memory("i32.store8");
  f.get(rows.first), f.i64_const(1), f.op("i64.add"), f.set(rows.first);
  f.br(again);
  f.end(again);
  f.end(done);
};

std::string said(const Status& status) {
  return status ? "ok" : std::string(name(status.error().code)) + ": " + status.error().message;
}
#define EXPECT_SAYS(status, part) EXPECT_NE(said(status).find(part), std::string::npos) << said(status)

TEST(NodeHost, RunsChunksThenColumns) {
  TRIREME_SKIP_WITHOUT_NODE_HOST();
  const Bytes module = module_of(add_rows, true);
  Bytes values = {10, 20, 30, 40, 50}, added = {0, 1};
  using Entry = Job::Call::Entry;
  const Status status = run_in_node(Job{.module = module,
                                        .buffers = {{.data = added}, {.data = values}, {.bytes = 100}},
                                        .slots = {0, 0},
                                        .relocations = {{0, 1}, {1, 0, 1}},
                                        .calls = {{.first = 0, .last = 2, .total = 5},
                                                  {.first = 2, .last = 5, .total = 5},
                                                  {.entry = Entry::Columns, .first = 0, .last = 1}}});
  EXPECT_EQ(said(status), "ok");
  EXPECT_EQ(values, (Bytes{111, 22, 33, 44, 55}));
  EXPECT_EQ(added, (Bytes{0, 1}));
}

TEST(NodeHost, JobsFailAlone) {
  TRIREME_SKIP_WITHOUT_NODE_HOST();
  const Bytes good = module_of(add_rows);
  const Bytes broken = {0, 'a', 's', 'm', 1, 0, 0, 0, 99};
  const Bytes beyond = module_of([](Rows& rows) {  // one byte behind the buffer, which ends memory
    rows.pointer(0), rows.f.memory("i32.load8_u", {.offset = 3}), rows.f.op("drop");
  });
  const Bytes before = module_of([](Rows& rows) {
    rows.pointer(0), rows.f.i32_const(1), rows.f.op("i32.sub"), rows.f.i32_const(0), rows.f.memory("i32.store8");
  });
  Bytes values = {1, 2, 3}, kept = values;
  const auto job = [&](const Bytes& module) {
    return Job{.module = module,
               .buffers = {{.data = values}},
               .slots = {0, 0},
               .relocations = {{0, 0}, {1, 0}},
               .calls = {{.first = 0, .last = 0, .total = 0}}};
  };
  Job large = job(good);
  large.buffers.insert(large.buffers.begin(), {.bytes = std::size_t{1} << 32});
  const Job jobs[] = {job(good), job(broken), job(beyond), job(before), large, job(good)};
  const std::vector<Status> status = run_in_node(jobs);
  EXPECT_EQ(said(status[0]), "ok");
  EXPECT_SAYS(status[1], "Internal: wasm in node: CompileError");
  EXPECT_SAYS(status[2], "memory access out of bounds");
  EXPECT_SAYS(status[3], "byte -1 from buffer 0 was written");
  EXPECT_SAYS(status[4], "OutOfMemory");
  EXPECT_EQ(said(status[5]), "ok");
  EXPECT_EQ(values, kept);
}

TEST(NodeHost, StopsWhatDoesNotEnd) {
  TRIREME_SKIP_WITHOUT_NODE_HOST();
  const Bytes module = module_of([](Rows& rows) {
    const Label again = rows.f.loop();
    rows.f.br(again), rows.f.end(again);
  });
  EXPECT_SAYS(run_in_node(Job{.module = module, .calls = {{}}}, {.timeout_seconds = 1}), "stopped after 1 seconds");
}

// What libraries built with -ffast-math by old compilers do to whoever loads them.
TEST(NodeHost, RefusesAThreadThatFlushes) {
  TRIREME_SKIP_WITHOUT_NODE_HOST();
  char folder[] = "/tmp/trireme-XXXXXX";
  ASSERT_TRUE(mkdtemp(folder));
  const std::string library = std::string(folder) + "/flush.so", source = std::string(folder) + "/flush.c";
  std::ofstream(source) << "#include <xmmintrin.h>\n"
                           "__attribute__((constructor)) static void f(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }\n";
  const bool made = std::system(("cc -shared -fPIC -o " + library + " " + source + " 2> /dev/null").c_str()) == 0;
  if (made) {
    Environment preload("LD_PRELOAD", library);
    EXPECT_SAYS(run_in_node(Job{.module = module_of(add_rows)}), "Unsupported: wasm in node: node flushes");
  }
  std::filesystem::remove_all(folder);
  if (!made) GTEST_SKIP() << "no C compiler for x86 here";
}

TEST(NodeHost, SaysWhatIsMissing) {
  Environment path("PATH", "/nowhere");
  EXPECT_SAYS(run_in_node(Job{}), "NoDevice: node is not on PATH");
}

}  // namespace
}  // namespace trireme::wasm
