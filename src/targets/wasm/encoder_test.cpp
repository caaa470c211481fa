// Bytes beside each call; then two judges from outside: wabt assembles the listing of every instruction to the
// encoder's own bytes and validates them, and node runs whole modules.
#include "targets/wasm/encoder.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

namespace trireme::wasm {
namespace {

using Binary = std::vector<std::uint8_t>;
using Write = std::function<void(Function&)>;

// ---- Bytes ----------------------------------------------------------------------------------------------------------

// The code between the declaration of locals (none) and the final end.
Binary code(const Write& write) {
  Function f("f");
  write(f);
  const Binary bytes = encode(f.finish().value());
  return {bytes.begin() + 1, bytes.end() - 1};
}

// The code that pushes one value, without the drop that balances it.
Binary value(const Write& write) {
  Binary bytes = code([&](Function& f) { write(f), f.op("drop"); });
  bytes.pop_back();
  return bytes;
}

TEST(Encoder, Constants) {
  EXPECT_EQ(value([](Function& f) { f.i32_const(63); }), (Binary{0x41, 0x3f}));
  EXPECT_EQ(value([](Function& f) { f.i32_const(64); }), (Binary{0x41, 0xc0, 0x00}));
  EXPECT_EQ(value([](Function& f) { f.i32_const(-64); }), (Binary{0x41, 0x40}));
  EXPECT_EQ(value([](Function& f) { f.i32_const(-65); }), (Binary{0x41, 0xbf, 0x7f}));
  EXPECT_EQ(value([](Function& f) { f.i64_const(-1); }), (Binary{0x42, 0x7f}));
  EXPECT_EQ(value([](Function& f) { f.f32_const(1.5f); }), (Binary{0x43, 0, 0, 0xc0, 0x3f}));
  EXPECT_EQ(value([](Function& f) { f.f64_const(-0.0); }), (Binary{0x44, 0, 0, 0, 0, 0, 0, 0, 0x80}));
  EXPECT_EQ(value([](Function& f) {
              f.v128_const(std::array<std::uint32_t, 4>{1, 2, 3, 4});
            }),
            (Binary{0xfd, 0x0c, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}));
  EXPECT_EQ(value([](Function& f) { f.splat_const(1.0f); }),
            (Binary{0xfd, 0x0c, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f}));
}

TEST(Encoder, Immediates) {
  EXPECT_EQ(value([](Function& f) { f.op("memory.size"), f.memory("v128.load"); }), (Binary{0x3f, 0, 0xfd, 0, 4, 0}));
  EXPECT_EQ(value([](Function& f) { f.op("memory.size"), f.memory("i32.load", {.offset = 300, .align_log2 = 0}); }),
            (Binary{0x3f, 0, 0x28, 0, 0xac, 0x02}));
  EXPECT_EQ(value([](Function& f) {
              f.op("memory.size"), f.op("memory.size"), f.op("i32x4.splat");
              f.memory_lane("v128.load32_lane", 3, {.offset = 8});
            }),
            (Binary{0x3f, 0, 0x3f, 0, 0xfd, 0x11, 0xfd, 0x56, 2, 8, 3}));
  EXPECT_EQ(value([](Function& f) { f.op("memory.size"), f.op("i32x4.splat"), f.lane("i16x8.extract_lane_u", 7); }),
            (Binary{0x3f, 0, 0xfd, 0x11, 0xfd, 0x19, 7}));
  EXPECT_EQ(code([](Function& f) { f.i32_const(1), f.i32_const(2), f.i32_const(3), f.op("memory.copy"); }),
            (Binary{0x41, 1, 0x41, 2, 0x41, 3, 0xfc, 0x0a, 0, 0}));
}

TEST(Encoder, OpcodesAboveSevenBitsTakeTwoBytes) {
  const Binary bytes = value([](Function& f) {
    for (int k = 0; k < 3; ++k) f.op("memory.size"), f.op("i32x4.splat");
    f.op("f32x4.relaxed_madd"), f.op("f32x4.sqrt");
  });
  EXPECT_EQ(Binary(bytes.end() - 6, bytes.end()), (Binary{0xfd, 0x85, 0x02, 0xfd, 0xe3, 0x01}));
}

TEST(Encoder, BranchesNameTheirLabel) {
  EXPECT_EQ(code([](Function& f) {
              const Label done = f.block();
              const Label again = f.loop();
              f.i32_const(1), f.br_if(done);
              f.i32_const(2);
              const Label odd = f.if_();
              f.br(again);
              f.else_(odd);
              f.br(odd);
              f.end(odd);
              f.end(again);
              f.end(done);
            }),
            (Binary{0x02, 0x40, 0x03, 0x40, 0x41, 1,    0x0d, 1,    0x41, 2,
                    0x04, 0x40, 0x0c, 1,    0x05, 0x0c, 0,    0x0b, 0x0b, 0x0b}));
}

TEST(Encoder, LocalsAreRunsOfOneType) {
  Function f("f", Type::F32);
  const auto p = f.parameter<I32>("p");
  f.local<V128>(), f.local<V128>();
  const auto x = f.local<F32>("x");
  f.get(p), f.memory("f32.load"), f.tee(x);
  EXPECT_EQ(encode(f.finish().value()), (Binary{2, 2, 0x7b, 1, 0x7d, 0x20, 0, 0x2a, 2, 0, 0x22, 3, 0x0b}));
}

TEST(Encoder, LocalsOfDifferentTypesDoNotMix) {
  static_assert(!std::is_convertible_v<Local<F32>, Local<I32>> && !std::is_convertible_v<Local<V128>, Local<F32>>);
  static_assert(!std::is_convertible_v<int, Label>);
}

TEST(Encoder, Module) {
  Module module({.export_name = "m", .min_pages = 2, .max_pages = 3});
  const Global global = module.global({.name = "g", .value = 5, .is_mutable = true, .is_exported = true});
  Function f("f", Type::I32), h("h", Type::I32);
  f.get(global);
  const Callee callee = module.add(f.finish().value());
  h.call(callee);
  module.add(h.finish().value(), "h");
  module.data(9, Binary{'a', 'b'});
  EXPECT_EQ(module.encode(),
            (Binary{0,  'a', 's', 'm',  1,    0,    0,    0,                                   //
                    1,  5,   1,   0x60, 0,    1,    0x7f,                                      // one type for both
                    3,  3,   2,   0,    0,                                                     // functions
                    5,  4,   1,   1,    2,    3,                                               // memory
                    6,  6,   1,   0x7f, 1,    0x41, 5,    0x0b,                                // global
                    7,  13,  3,   1,    'm',  2,    0,    1,    'g', 3,  0,    1, 'h',  0, 1,  // exports
                    10, 11,  2,   4,    0,    0x23, 0,    0x0b, 4,   0,  0x10, 0, 0x0b,        // code
                    11, 8,   1,   0,    0x41, 9,    0x0b, 2,    'a', 'b'}));                   // data
  const Binary named = module.encode(true);
  EXPECT_EQ(Binary(named.end() - 16, named.end()),
            (Binary{0, 14, 4, 'n', 'a', 'm', 'e', 1, 7, 2, 0, 1, 'f', 1, 1, 'h'}));
}

// ---- Text -----------------------------------------------------------------------------------------------------------

// The sum of `count` floats at `address + 16`: four at a time, then one at a time.
Body sum_of_floats() {
  Function f("sum", Type::F32);
  const auto address = f.parameter<I32>("address"), count = f.parameter<I32>("count");
  const auto vector = f.local<V128>("vector");
  const auto total = f.local<F32>("total");
  const auto advance = [&](int elements) {
    f.get(address), f.i32_const(4 * elements), f.op("i32.add"), f.set(address);
    f.get(count), f.i32_const(elements), f.op("i32.sub"), f.set(count);
  };
  const Label vectors_done = f.block();
  const Label vectors = f.loop();
  f.get(count), f.i32_const(4), f.op("i32.lt_u"), f.br_if(vectors_done);
  f.get(vector), f.get(address), f.memory("v128.load", {.offset = 16, .align_log2 = 2}), f.op("f32x4.add"),
      f.set(vector);
  advance(4);
  f.br(vectors);
  f.end(vectors);
  f.end(vectors_done);
  for (std::uint8_t lane = 0; lane < 4; ++lane) {
    f.get(total), f.get(vector), f.lane("f32x4.extract_lane", lane), f.op("f32.add"), f.set(total);
  }
  const Label rest = f.loop();
  f.get(count);
  const Label some = f.if_();
  f.get(total), f.get(address), f.memory("f32.load", {.offset = 16}), f.op("f32.add"), f.set(total);
  advance(1);
  f.br(rest);
  f.end(some);
  f.end(rest);
  f.get(total);
  return f.finish().value();
}

TEST(Listing, ReadsAsTheTextFormat) {
  Function f("clamp", Type::F32);
  const auto x = f.parameter<F32>("x");
  f.local<F32>("x"), f.local<V128>();
  f.get(x), f.f32_const(0.1f), f.op("f32.lt");
  const Label low = f.if_(Type::F32);
  f.f32_const(-0.0f);
  f.else_(low);
  f.i32_const(-8), f.memory("f32.load", {.offset = 12, .align_log2 = 0});
  f.end(low);
  EXPECT_EQ(text(f.finish().value(), "c"), R"((func $clamp (export "c") (param $x f32) (result f32)
  (local $x.1 f32)
  (local $.2 v128)
  local.get $x
  f32.const 0.1
  f32.lt
  if $0 (result f32)
    f32.const -0
  else
    i32.const -8
    f32.load offset=12 align=1
  end)
)");
}

// ---- The stack check ------------------------------------------------------------------------------------------------

std::string refusal(const Write& write, Type result = Type::None) {
  Function f("f", result);
  write(f);
  const auto body = f.finish();
  return body ? "accepted" : body.error().message;
}

TEST(Check, RefusesWithAReason) {
  EXPECT_EQ(refusal([](Function& f) { f.i32_const(1), f.f32_const(2), f.op("i32.add"); }),
            "wasm function f, instruction 2 (i32.add): wants i32, and the stack has f32");
  EXPECT_EQ(refusal([](Function& f) { f.op("drop"); }),
            "wasm function f, instruction 0 (drop): wants any value, and the stack is empty");
  EXPECT_EQ(refusal([](Function& f) { f.i32_const(1); }), "wasm function f, at its end: 1 left on the stack");
  EXPECT_EQ(refusal([](Function&) {}, Type::F32), "wasm function f, at its end: wants f32, and the stack is empty");
  EXPECT_EQ(refusal([](Function& f) { f.block(); }), "wasm function f, at its end: a block is still open");
  EXPECT_EQ(refusal([](Function& f) { f.i32_const(1), f.f32_const(1), f.i32_const(1), f.op("select"), f.op("drop"); }),
            "wasm function f, instruction 3 (select): wants f32, and the stack has i32");
  // A block does not see the operands below it.
  EXPECT_EQ(refusal([](Function& f) { f.i32_const(1), f.block(), f.op("drop"); }),
            "wasm function f, instruction 2 (drop): wants any value, and the stack is empty");
}

TEST(Check, RefusesLabelsThatAreNotOpen) {
  const Write closed = [](Function& f) {
    const Label label = f.block();
    f.end(label);
    f.br(label);
  };
  EXPECT_EQ(refusal(closed), "wasm function f, instruction 2 (br): its label is not open here");
  const Write crossed = [](Function& f) {
    const Label outer = f.block();
    f.block();
    f.end(outer);
  };
  EXPECT_EQ(refusal(crossed), "wasm function f, instruction 2 (end): does not belong to the innermost block");
  const Write two_elses = [](Function& f) {
    f.i32_const(1);
    const Label label = f.if_();
    f.else_(label), f.else_(label);
  };
  EXPECT_EQ(refusal(two_elses), "wasm function f, instruction 3 (else): belongs to an if without else");
  const Write half = [](Function& f) {
    f.i32_const(1);
    const Label label = f.if_(Type::I32);
    f.i32_const(1), f.end(label);
  };
  EXPECT_EQ(refusal(half, Type::I32), "wasm function f, instruction 3 (end): an if with a result has an else");
}

TEST(Check, RefusesImmediatesOutOfRange) {
  EXPECT_EQ(refusal([](Function& f) { f.splat_const(0), f.lane("f32x4.extract_lane", 4); }),
            "wasm function f, instruction 1 (f32x4.extract_lane): no such lane");
  EXPECT_EQ(refusal([](Function& f) { f.i32_const(0), f.splat_const(0), f.memory_lane("v128.store64_lane", 2); }),
            "wasm function f, instruction 2 (v128.store64_lane): no such lane");
  EXPECT_EQ(refusal([](Function& f) { f.splat_const(0), f.splat_const(0), f.shuffle({32}); }),
            "wasm function f, instruction 2 (i8x16.shuffle): no such lane");
  EXPECT_EQ(refusal([](Function& f) { f.i32_const(0), f.memory("i32.load", {.align_log2 = 3}); }),
            "wasm function f, instruction 1 (i32.load): alignment above the natural one");
  EXPECT_EQ(refusal([](Function& f) {
              f.i32_const(0), f.set(Global{0, false, "g"});
            }),
            "wasm function f, instruction 1 (global.set): the global is not mutable");
  EXPECT_EQ(refusal([](Function& f) { f.get(Local<I32>{0}); }),
            "wasm function f, instruction 0 (local.get): a local of another function");
  EXPECT_EQ(refusal([](Function& f) { f.local<F32>("x"), f.parameter<F32>("y"); }),
            "wasm function f: parameter declared behind a local: y");
}

TEST(Check, CodeBehindABranchTakesAnyOperands) {
  EXPECT_EQ(refusal([](Function& f) { f.op("unreachable"), f.op("select"), f.op("i32.add"), f.op("drop"); }),
            "accepted");
  EXPECT_EQ(refusal([](Function& f) { f.f32_const(1), f.ret(); }, Type::F32), "accepted");
  EXPECT_EQ(refusal([](Function& f) { f.op("unreachable"), f.f32_const(1), f.op("i32.add"), f.op("drop"); }),
            "wasm function f, instruction 2 (i32.add): wants i32, and the stack has f32");
  const Write after_end = [](Function& f) {
    const Label label = f.block();
    f.br(label);
    f.end(label);
    f.op("drop");
  };
  EXPECT_EQ(refusal(after_end), "wasm function f, instruction 3 (drop): wants any value, and the stack is empty");
}

// ---- Judges from outside --------------------------------------------------------------------------------------------

struct Outcome {
  int status;
  std::string output;
};

Outcome shell(const std::string& command) {
  Outcome outcome{-1, {}};
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (std::size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.output.append(buffer, got);
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

class Judged : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "trireme_wasm_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static bool missing(const std::string& tool) { return shell("command -v " + tool).status != 0; }

  std::string write(const std::string& file, std::string_view bytes) {
    std::ofstream(folder_ / file, std::ios::binary) << bytes;
    return (folder_ / file).string();
  }
  std::string write(const Module& module) {
    const Binary bytes = module.encode();
    return write("module.wasm", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  Binary assemble(const std::string& text) {
    const std::string out = (folder_ / "assembled.wasm").string();
    const Outcome outcome = shell("wat2wasm --enable-relaxed-simd " + write("module.wat", text) + " -o " + out);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    std::ifstream file(out, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // What the JavaScript expression prints, where `e` are the module's exports.
  std::string run(const Module& module, const std::string& expression) {
    const std::string script = write("run.cjs",
                                     "const bytes = require('fs').readFileSync(process.argv[2]);\n"
                                     "const e = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;\n"
                                     "process.stdout.write(String(" +
                                         expression + "));\n");
    return shell("node " + script + " " + write(module)).output;
  }

  std::filesystem::path folder_;
};

#define TRIREME_SKIP_WITHOUT(tool) \
  if (missing(tool)) GTEST_SKIP() << tool " is not installed"

// A function that gives one instruction its operands and drops its result; nothing where that takes more than a record.
std::optional<Body> sample(const Instruction& instruction) {
  Function f(std::string(instruction.name));
  const std::size_t colon = instruction.signature.find(':');
  for (char letter : instruction.signature.substr(0, colon)) {
    switch (letter) {
      case 'i': f.i32_const(-1234567); break;
      case 'l': f.i64_const(std::int64_t{1} << 62); break;
      case 'd': f.f64_const(-1e-300); break;
      case 'v': f.v128_const(std::array<std::uint64_t, 2>{0x0123456789abcdef, ~std::uint64_t{1}}); break;
      default: f.f32_const(0.1f); break;
    }
  }
  if (instruction.immediate == Immediate::None) {
    f.op(Op<Immediate::None>(instruction));
  } else if (instruction.immediate == Immediate::Memory) {
    f.memory(Op<Immediate::Memory>(instruction), {.offset = 70000});
  } else if (instruction.immediate == Immediate::MemoryLane) {
    f.memory_lane(Op<Immediate::MemoryLane>(instruction), 1, {.offset = 1, .align_log2 = 0});
  } else if (instruction.immediate == Immediate::Lane) {
    f.lane(Op<Immediate::Lane>(instruction), instruction.argument - 1);
  } else {
    return std::nullopt;
  }
  if (colon + 1 < instruction.signature.size()) f.op("drop");
  return f.finish().value();
}

// The instructions that `sample` leaves out.
Body the_others(const Global& global, const Callee& callee) {
  Function f("the_others", Type::I32);
  const auto x = f.parameter<F32>("x");
  const auto count = f.local<I32>();
  f.get(x), f.tee(x), f.set(x), f.get(global), f.set(global), f.call(callee);
  f.i32_const(INT32_MIN), f.op("drop"), f.i64_const(INT64_MIN), f.op("drop");
  for (std::uint32_t bits :
       {0x3dcccccdu, 0x00000001u, 0x7f7fffffu, 0x80000000u, 0xff800000u, 0x7fc00000u, 0xffa12345u}) {
    f.f32_const(std::bit_cast<float>(bits)), f.op("drop");
  }
  for (std::uint64_t bits : {0x3fb999999999999aull, 0x1ull, 0x7ff8000000000abcull, 0xfff0000000000000ull}) {
    f.f64_const(std::bit_cast<double>(bits)), f.op("drop");
  }
  f.v128_const(std::array<float, 4>{1, -2, 3, -4}), f.splat_const(std::int8_t{-1});
  f.shuffle({0, 31, 2, 29, 4, 27, 6, 25, 8, 23, 10, 21, 12, 19, 14, 17}), f.op("drop");

  const Label done = f.block(Type::I32);
  const Label again = f.loop();
  f.get(count), f.get(count), f.br_if(done), f.op("drop");
  f.get(count);
  const Label choice = f.if_(Type::I32);
  f.get(count), f.ret();
  f.else_(choice);
  f.br(again);
  f.end(choice);
  f.br(done);
  f.end(again);
  f.op("unreachable");
  f.end(done);
  return f.finish().value();
}

// A module with every instruction of the table, and the bodies it consists of.
Module every_instruction(std::vector<Body>& bodies) {
  Module module({.min_pages = 2, .max_pages = 65536});
  const Global global = module.global({.name = "counter", .value = -3, .is_mutable = true});
  const Callee callee = module.add(Function("callee").finish().value());
  bodies.push_back(the_others(global, callee));
  for (const Instruction& instruction : instructions) {
    if (auto body = sample(instruction)) bodies.push_back(*body);
  }
  for (const Body& body : bodies) module.add(body);
  return module;
}

TEST(Table, NamesAndOpcodesAreDistinct) {
  std::set<std::string_view> names;
  std::set<std::uint32_t> codes;
  for (const Instruction& instruction : instructions) {
    EXPECT_TRUE(names.insert(instruction.name).second) << instruction.name;
    EXPECT_TRUE(codes.insert(instruction.code).second) << instruction.name;
  }
}

TEST(Table, EveryInstructionIsInTheModuleThatIsJudged) {
  std::vector<Body> bodies;
  every_instruction(bodies);
  std::set<std::string_view> used;
  for (const Body& body : bodies) {
    for (const Body::Item& item : body.items) used.insert(item.instruction->name);
  }
  for (const Instruction& instruction : instructions) EXPECT_TRUE(used.contains(instruction.name)) << instruction.name;
}

TEST_F(Judged, EveryInstructionAssemblesToTheSameBytes) {
  TRIREME_SKIP_WITHOUT("wat2wasm");
  std::vector<Body> bodies;
  const Module module = every_instruction(bodies);
  if (assemble(module.text()) == module.encode()) return;
  ADD_FAILURE() << "the bytes differ; one function at a time:";
  for (const Body& body : std::span(bodies).subspan(1)) {
    Module one({});
    one.add(body);
    EXPECT_EQ(assemble(one.text()), one.encode()) << one.text();
  }
}

TEST_F(Judged, EveryInstructionValidates) {
  TRIREME_SKIP_WITHOUT("wasm-validate");
  std::vector<Body> bodies;
  const Outcome outcome = shell("wasm-validate --enable-relaxed-simd " + write(every_instruction(bodies)));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST_F(Judged, ModuleAssemblesToTheSameBytes) {
  TRIREME_SKIP_WITHOUT("wat2wasm");
  Module module({.min_pages = 1});
  module.global({.name = "__heap_base", .value = 65530, .is_exported = true});
  module.add(sum_of_floats(), "sum");
  module.data(65530, Binary{'n', '"', '\\', 0, 255});
  EXPECT_EQ(assemble(module.text()), module.encode()) << module.text();
}

TEST_F(Judged, NodeSumsFloatsWithATail) {
  TRIREME_SKIP_WITHOUT("node");
  Module module({.min_pages = 1});
  module.add(sum_of_floats(), "sum");
  // 1 + 2 + … + n from byte 116 on; the values around them must not be read.
  const std::string sum =
      "(n => { const m = new Float32Array(e.memory.buffer).fill(1e9);"
      " for (let k = 0; k < n; ++k) m[29 + k] = k + 1; return e.sum(100, n); })";
  EXPECT_EQ(run(module, "[0, 1, 3, 4, 7, 257].map(" + sum + ")"), "0,1,6,10,28,33153");
}

TEST_F(Judged, NodeSeesGlobalsDataCallsAndControl) {
  TRIREME_SKIP_WITHOUT("node");
  Module module({.min_pages = 1, .max_pages = 2});
  const Global calls = module.global({.name = "calls", .is_mutable = true, .is_exported = true});
  module.global({.name = "__heap_base", .value = 1024, .is_exported = true});
  module.data(40, Binary{7, 0, 0, 0, 9, 0, 0, 0});

  Function load("load", Type::I64);  // counts its calls
  const auto address = load.parameter<I32>("address");
  load.get(calls), load.i32_const(1), load.op("i32.add"), load.set(calls);
  load.get(address), load.memory("i64.load32_u", {.offset = 36});
  const Callee loader = module.add(load.finish().value());

  Function pick("pick", Type::I64);  // the entry, or -1 beyond the second
  const auto index = pick.parameter<I32>("index");
  const Label outside = pick.block();
  pick.get(index), pick.i32_const(2), pick.op("i32.ge_u"), pick.br_if(outside);
  pick.get(index), pick.i32_const(4), pick.op("i32.mul"), pick.i32_const(4), pick.op("i32.add"), pick.call(loader);
  pick.ret();
  pick.end(outside);
  pick.i64_const(-1);
  module.add(pick.finish().value(), "pick");
  EXPECT_EQ(run(module, "[e.pick(0), e.pick(1), e.pick(2), e.calls.value, e.__heap_base.value, e.memory.grow(1)]"),
            "7,9,-1,2,1024,1");
}

}  // namespace
}  // namespace trireme::wasm
