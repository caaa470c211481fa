// For tests of the wasm target: kernels with their buffers, judged by wasm-validate where it is installed and run in
// one node process.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "devices/wasm/node_host.hpp"
#include "schedule/kernel_builder.hpp"
#include "targets/wasm/emit.hpp"

namespace trireme::wasm {

using Storage = trireme::Type;
using Primitive = trireme::Op;
using Bytes = std::vector<std::uint8_t>;

// A kernel's slots in order of use: n, then a pointer a buffer, the result last, then scratch.
struct Case {
  std::string name;
  Kernels kernels;
  std::vector<Bytes> buffers;  // one a pointer to an operand or result, in the order of these slots
  std::int64_t columns = 0;
  std::int64_t first = 0, last = 1, total = 1;
  bool relaxed = false;
  bool scalar = false;  // a kernel of one lane, in WebAssembly 1.0
  std::vector<std::uint64_t> constants;
  std::function<void(const Case&)> check;
};

inline bool have_validator() {
  static const bool have = std::system("wasm-validate --version > /dev/null 2>&1") == 0;
  return have;
}

inline void validate(const Case& each, const Bytes& module) {
  const auto file = std::filesystem::temp_directory_path() / ("trireme-" + std::to_string(getpid()) + ".wasm");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(module.data()), static_cast<std::streamsize>(module.size()));
  const std::string flags = each.relaxed  ? "--enable-relaxed-simd "
                            : each.scalar ? "--disable-simd --disable-bulk-memory --disable-reference-types "
                                            "--disable-sign-extension --disable-saturating-float-to-int "
                                            "--disable-multi-value --disable-mutable-globals "
                                          : "";
  EXPECT_EQ(std::system(("wasm-validate " + flags + file.string()).c_str()), 0) << each.name;
  std::filesystem::remove(file);
}

// Runs all of them in one process, then each one's check.
inline void run(std::vector<Case> cases) {
  std::vector<Bytes> modules;
  std::vector<Job> jobs;
  for (Case& each : cases) {
    auto module = emit(each.kernels, {.relaxed = each.relaxed, .compact = each.scalar, .scalar = each.scalar});
    ASSERT_TRUE(module) << each.name << ": " << module.error().message;
    if (have_validator()) validate(each, *module);
    modules.push_back(std::move(*module));
  }
  for (std::size_t k = 0; k < cases.size(); ++k) {
    Case& each = cases[k];
    Job job{.module = modules[k], .relaxed = each.relaxed};
    std::size_t next_buffer = 0, next_constant = 0;
    for (Bytes& buffer : each.buffers) job.buffers.push_back({.data = buffer});
    for (const Slot& slot : each.kernels.rows.slots) {
      std::uint64_t value = 0;
      if (slot.what == Slot::What::Columns) {
        value = static_cast<std::uint64_t>(each.columns);
      } else if (slot.what != Slot::What::Pointer) {
        value = each.constants.at(next_constant++);
      } else if (slot.array != scratch_array) {
        job.relocations.push_back({job.slots.size(), next_buffer++});
      } else {
        job.relocations.push_back({job.slots.size(), job.buffers.size()});
        job.buffers.insert(job.buffers.end(), {.bytes = 4096});
      }
      job.slots.push_back(value);
    }
    job.calls.push_back({.first = each.first, .last = each.last, .total = each.total});
    for (std::size_t c = 0; c < each.kernels.columns.size(); ++c)
      job.calls.push_back({.entry = Job::Call::Entry::Columns, .first = each.first, .last = each.last});
    jobs.push_back(std::move(job));
  }
  const std::vector<Status> outcomes = run_in_node(jobs);
  for (std::size_t k = 0; k < cases.size(); ++k) {
    SCOPED_TRACE(cases[k].name);
    if (!outcomes[k] && outcomes[k].error().code == trireme::Code::Unsupported && cases[k].relaxed) {
      std::printf("[ not run  ] %s: %s\n", cases[k].name.c_str(), outcomes[k].error().message.c_str());
      continue;
    }
    ASSERT_TRUE(outcomes[k]) << outcomes[k].error().message;
    cases[k].check(cases[k]);
  }
}

#define TRIREME_SKIP_WITHOUT_NODE() \
  if (std::string reason = node_missing(); !reason.empty()) GTEST_SKIP() << reason

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes result(values.size() * sizeof(T));
  std::memcpy(result.data(), values.data(), result.size());
  return result;
}
template <typename T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> result(bytes.size() / sizeof(T));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}
template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <typename T>
void expect_same(const std::vector<T>& got, const std::vector<T>& want,
                 const std::function<std::string(std::size_t)>& of) {
  ASSERT_EQ(got.size(), want.size());
  int shown = 0;
  for (std::size_t k = 0; k < got.size() && shown < 10; ++k) {
    if (std::isnan(got[k]) && std::isnan(want[k])) continue;
    if (std::bit_cast<Word<T>>(got[k]) == std::bit_cast<Word<T>>(want[k])) continue;
    ++shown;
    ADD_FAILURE() << of(k) << ": got " << std::hexfloat << got[k] << " want " << want[k];
  }
}

// ---- Kernels ------------------------------------------------------------------------------------------------------

inline Kernel new_kernel(Storage compute) {
  Kernel kernel;
  kernel.name = "test";
  kernel.compute = compute;
  kernel.launch.lanes = lanes(compute);
  return kernel;
}

using Evaluate = std::function<Reg(KernelBuilder&, const std::vector<Reg>&)>;

// result[j] = evaluate(operands[j] ...): whole vectors (first two at a time, if wanted), then a masked one.
inline Kernels map_kernel(Storage compute, const std::vector<Storage>& operands, Storage result,
                          const Evaluate& evaluate, bool in_twos = false, bool scalar = false) {
  Kernels kernels{.rows = new_kernel(compute)};
  KernelBuilder b(kernels.rows);
  const std::int64_t width = scalar ? 1 : lanes(compute);
  kernels.rows.launch.lanes = static_cast<int>(width);
  Reg n = b.slot({Slot::What::Columns});
  std::vector<Reg> from;
  for (std::size_t k = 0; k < operands.size(); ++k) from.push_back(b.pointer_to(k));
  Reg to = b.pointer_to(operands.size());
  Reg j = b.copy(b.index(0));
  const auto evaluated = [&](Reg mask, std::int64_t vector) {
    std::vector<Reg> loaded;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      loaded.push_back(b.fresh(Bank::Lane));
      b.emit({.code = Do::Load,
              .type = operands[k],
              .a = from[k],
              .b = j,
              .c = mask,
              .imm = vector * width * static_cast<std::int64_t>(bytes(operands[k])),
              .values = {loaded.back()}});
    }
    return evaluate(b, loaded);
  };
  const auto vector = [&](Reg mask) {
    b.emit({.code = Do::Store, .type = result, .a = to, .b = j, .c = mask, .values = {evaluated(mask, 0)}});
  };
  if (in_twos)
    b.repeat_while_less(j, b.index(Do::IndexSub, n, 2 * width - 1), [&] {
      const Reg low = evaluated({}, 0), high = evaluated({}, 1);
      b.emit({.code = Do::Store, .type = result, .a = to, .b = j, .values = {low, high}});
      b.increase(j, 2 * width);
    });
  b.repeat_while_less(j, b.index(Do::IndexSub, n, width - 1), [&] {
    vector({});
    b.increase(j, width);
  });
  b.when_less(j, n, [&] { vector(b.below(j, 0, n)); });
  return kernels;
}

inline const Evaluate same = [](KernelBuilder&, const std::vector<Reg>& x) { return x[0]; };
inline Evaluate apply(Primitive op, std::int64_t imm = 0, Storage type = Storage::F32) {
  return [=](KernelBuilder& b, const std::vector<Reg>& x) {
    Instr instr{.code = Do::Primitive, .op = op, .type = type, .imm = imm};
    if (x.size() > 0) instr.a = x[0];
    if (x.size() > 1) instr.b = x[1];
    if (x.size() > 2) instr.c = x[2];
    return b.into(Bank::Lane, std::move(instr));
  };
}

template <typename T>
constexpr Storage storage_of = sizeof(T) == 8 ? Storage::F64 : Storage::F32;

template <typename T>
const std::vector<T> specials = [] {
  using Limits = std::numeric_limits<T>;
  std::vector<T> result;
  for (T value : {T(0),
                  Limits::denorm_min(),
                  3 * Limits::denorm_min(),
                  Limits::min() - Limits::denorm_min(),
                  Limits::min(),
                  Limits::epsilon(),
                  T(0.25),
                  T(0.5),
                  T(1) - Limits::epsilon() / 2,
                  T(1),
                  T(1) + Limits::epsilon(),
                  T(1.5),
                  T(2),
                  T(2.5),
                  T(3.5),
                  T(127.5),
                  T(128.5),
                  T(448),
                  T(65519),
                  T(65520),
                  T(8388607.5),
                  T(8388608),
                  T(16777217),
                  T(2147483520),
                  T(2147483648),
                  T(1e30),
                  Limits::max() / 2,
                  Limits::max(),
                  Limits::infinity(),
                  Limits::quiet_NaN()})
    result.push_back(value), result.push_back(-value);
  return result;
}();

}  // namespace trireme::wasm
