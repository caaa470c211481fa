// Kernels of every instruction and type, run in node and compared bit for bit with what C++ computes.
#include "targets/wasm/emit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "devices/wasm/node_host.hpp"
#include "schedule/kernel_builder.hpp"
#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {
namespace {

using Storage = trireme::Type;
using Primitive = trireme::Op;
using Bytes = std::vector<std::uint8_t>;

// ---- Running ----------------------------------------------------------------------------------------------------

// A kernel's slots in order of use: n, then a pointer a buffer, the result last, then scratch.
struct Case {
  std::string name;
  Kernels kernels;
  std::vector<Bytes> buffers;  // one an OperandPointer or ResultPointer slot, in the order of these slots
  std::int64_t columns = 0;
  std::int64_t first = 0, last = 1, total = 1;
  bool relaxed = false;
  std::vector<std::uint64_t> constants;
  std::function<void(const Case&)> check;
};

bool have_validator() {
  static const bool have = std::system("wasm-validate --version > /dev/null 2>&1") == 0;
  return have;
}

void validate(const Case& each, const Bytes& module) {
  const auto file = std::filesystem::temp_directory_path() / ("trireme-" + std::to_string(getpid()) + ".wasm");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(module.data()), static_cast<std::streamsize>(module.size()));
  const std::string flags = each.relaxed ? "--enable-relaxed-simd " : "";
  EXPECT_EQ(std::system(("wasm-validate " + flags + file.string()).c_str()), 0) << each.name;
  std::filesystem::remove(file);
}

// Runs all of them in one process, then each one's check.
void run(std::vector<Case> cases) {
  std::vector<Bytes> modules;
  std::vector<NodeJob> jobs;
  for (Case& each : cases) {
    auto module = emit(each.kernels, {.relaxed = each.relaxed});
    ASSERT_TRUE(module) << each.name << ": " << module.error().message;
    if (have_validator()) validate(each, *module);
    modules.push_back(std::move(*module));
  }
  for (std::size_t k = 0; k < cases.size(); ++k) {
    Case& each = cases[k];
    NodeJob job{.module = modules[k], .relaxed = each.relaxed};
    std::size_t next_buffer = 0, next_constant = 0;
    for (Bytes& buffer : each.buffers) job.buffers.push_back({.data = buffer});
    for (const Slot& slot : each.kernels.rows.slots) {
      std::uint64_t value = 0;
      switch (slot.kind) {
        case Slot::Kind::Columns: value = static_cast<std::uint64_t>(each.columns); break;
        case Slot::Kind::OperandPointer:
        case Slot::Kind::ResultPointer: job.relocations.push_back({job.slots.size(), next_buffer++}); break;
        case Slot::Kind::Scratch:
          job.relocations.push_back({job.slots.size(), job.buffers.size()});
          job.buffers.insert(job.buffers.end(), {.bytes = 4096});
          break;
        default: value = each.constants.at(next_constant++);
      }
      job.slots.push_back(value);
    }
    job.calls.push_back({.first = each.first, .last = each.last, .total = each.total});
    for (std::size_t c = 0; c < each.kernels.columns.size(); ++c)
      job.calls.push_back({.entry = NodeJob::Call::Entry::Columns, .first = each.first, .last = each.last});
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

Kernel new_kernel(Storage compute) {
  Kernel kernel;
  kernel.name = "test";
  kernel.compute = compute;
  kernel.launch.lanes = lanes(compute);
  return kernel;
}

using Evaluate = std::function<Reg(KernelBuilder&, const std::vector<Reg>&)>;

// result[j] = evaluate(operands[j] ...): whole vectors, then a masked one.
Kernels map_kernel(Storage compute, const std::vector<Storage>& operands, Storage result, const Evaluate& evaluate) {
  Kernels kernels{.rows = new_kernel(compute)};
  KernelBuilder b(kernels.rows);
  const std::int64_t width = lanes(compute);
  Reg n = b.slot({Slot::Kind::Columns});
  std::vector<Reg> from;
  for (std::size_t k = 0; k < operands.size(); ++k)
    from.push_back(b.pointer({Slot::Kind::OperandPointer, static_cast<int>(k)}));
  Reg to = b.pointer({Slot::Kind::ResultPointer, 0});
  Reg j = b.copy(b.index(0));
  const auto vector = [&](Reg mask) {
    std::vector<Reg> loaded;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      loaded.push_back(b.fresh(Bank::Lane));
      b.emit({.code = Do::Load, .type = operands[k], .a = from[k], .b = j, .c = mask, .values = {loaded.back()}});
    }
    b.emit({.code = Do::Store, .type = result, .a = to, .b = j, .c = mask, .values = {evaluate(b, loaded)}});
  };
  b.repeat_while_less(j, b.index(Do::IndexSub, n, width - 1), [&] {
    vector({});
    b.increase(j, width);
  });
  b.when_less(j, n, [&] { vector(b.below(j, 0, n)); });
  return kernels;
}

Evaluate same = [](KernelBuilder&, const std::vector<Reg>& x) { return x[0]; };
Evaluate apply(Primitive op, std::int64_t imm = 0, Storage type = Storage::F32) {
  return [=](KernelBuilder& b, const std::vector<Reg>& x) {
    Instr instr{.code = Do::Primitive, .op = op, .type = type, .imm = imm};
    if (x.size() > 0) instr.a = x[0];
    if (x.size() > 1) instr.b = x[1];
    if (x.size() > 2) instr.c = x[2];
    return b.into(Bank::Lane, std::move(instr));
  };
}

// ---- What the contract says about types, by definition ----------------------------------------------------------

struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
};
const std::map<Storage, Format> formats = {{Storage::F16, {5, 10, true}},
                                           {Storage::BF16, {8, 7, true}},
                                           {Storage::F8E4M3, {4, 3, false}},
                                           {Storage::F8E5M2, {5, 2, true}}};
bool saturates(Storage type) { return bytes(type) == 1 || type == Storage::I32; }

double decode(Storage type, std::uint32_t bits) {
  if (type == Storage::I8) return static_cast<std::int8_t>(bits);
  if (type == Storage::I32) return static_cast<std::int32_t>(bits);
  if (type == Storage::F32) return std::bit_cast<float>(bits);
  const Format& format = formats.at(type);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
  const double sign = bits >> (format.exponent_bits + format.mantissa_bits) ? -1 : 1;
  if (exponent == (1 << format.exponent_bits) - 1) {
    if (format.has_infinity) return mantissa ? NAN : sign * INFINITY;
    if (mantissa == (1u << format.mantissa_bits) - 1) return NAN;
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  return sign * std::ldexp(mantissa | 1u << format.mantissa_bits, exponent - bias - format.mantissa_bits);
}

// All finite magnitudes, in order: the position is the bits. Behind them the value whose bits infinity has.
const std::vector<double>& magnitudes(Storage type) {
  static std::map<Storage, std::vector<double>> tables;
  std::vector<double>& table = tables[type];
  if (table.empty()) {
    while (true) {
      const double value = decode(type, static_cast<std::uint32_t>(table.size()));
      if (!std::isfinite(value)) break;
      table.push_back(value);
    }
    table.push_back(2 * table.back() - table[table.size() - 2]);
  }
  return table;
}

std::uint32_t encode(Storage type, double value) {
  if (is_integer(type)) {
    const double low = type == Storage::I8 ? -128 : -0x1p31, high = facts(type).largest;
    if (std::isnan(value)) return 0;
    const auto whole = static_cast<std::int32_t>(std::clamp(std::nearbyint(value), low, high));
    return static_cast<std::uint32_t>(whole) & (type == Storage::I8 ? 0xff : ~0u);
  }
  const auto& table = magnitudes(type);
  const std::uint32_t sign = std::signbit(value) ? 1u << (8 * bytes(type) - 1) : 0;
  if (std::isnan(value)) return (1u << (8 * bytes(type) - 1)) - 1;
  const double magnitude = std::min(std::fabs(value), saturates(type) ? table[table.size() - 2] : table.back());
  const auto above = std::lower_bound(table.begin(), table.end(), magnitude) - table.begin();
  if (table[above] == magnitude) return sign | static_cast<std::uint32_t>(above);
  const double middle = (table[above - 1] + table[above]) / 2;
  const bool up = magnitude > middle || (magnitude == middle && above % 2 == 0);
  return sign | static_cast<std::uint32_t>(up ? above : above - 1);
}

const Storage narrow_types[] = {Storage::F16,    Storage::BF16, Storage::F8E4M3,
                                Storage::F8E5M2, Storage::I8,   Storage::I32};

// Bits one an element, cut to the type's bytes, and back.
Bytes packed(Storage type, const std::vector<std::uint32_t>& bits) {
  Bytes result;
  for (std::uint32_t each : bits)
    for (std::size_t k = 0; k < bytes(type); ++k) result.push_back(static_cast<std::uint8_t>(each >> (8 * k)));
  return result;
}
std::vector<std::uint32_t> unpacked(Storage type, const Bytes& from) {
  std::vector<std::uint32_t> result(from.size() / bytes(type));
  for (std::size_t k = 0; k < from.size(); ++k)
    result[k / bytes(type)] |= static_cast<std::uint32_t>(from[k]) << (8 * (k % bytes(type)));
  return result;
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

// Every value of a small type, the middle to the next one, and the neighbours of that middle.
template <typename T>
std::vector<T> rounding_samples(Storage type) {
  std::vector<T> result = specials<T>;
  const auto add = [&](double middle) {
    for (T value : {static_cast<T>(middle), std::nextafter(static_cast<T>(middle), T(0)),
                    std::nextafter(static_cast<T>(middle), std::numeric_limits<T>::infinity())})
      result.push_back(value), result.push_back(-value);
  };
  if (is_integer(type)) {
    for (int k = 0; k < 300; ++k) add(k / 2.0);
    for (double whole : {0x1p24, 0x1p30, 0x1p31, 0x1p32})
      for (int k = -5; k <= 5; ++k) add(whole + k / 2.0), add(k + 3e6);
    return result;
  }
  const auto& table = magnitudes(type);
  for (std::size_t k = 0; k + 1 < table.size(); ++k) {
    result.push_back(static_cast<T>(table[k])), result.push_back(static_cast<T>(-table[k]));
    add((table[k] + table[k + 1]) / 2);
  }
  return result;
}

// ---- Tests: conversions -------------------------------------------------------------------------------------------

template <typename T>
Case widening(Storage type) {
  std::vector<std::uint32_t> patterns;
  if (bytes(type) < 4)
    for (std::uint32_t bits = 0; bits < 1u << (8 * bytes(type)); ++bits) patterns.push_back(bits);
  else
    for (T value : specials<T>)
      patterns.push_back(type == Storage::F32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                              : encode(type, value));
  for (std::uint32_t k = 0; bytes(type) == 4 && k < 10000; ++k) patterns.push_back(k * 0x9e3779b9u);
  std::vector<T> want;
  for (std::uint32_t bits : patterns) want.push_back(static_cast<T>(decode(type, bits)));
  return {.name = "widen " + std::string(name(type)) + " to " + std::string(name(storage_of<T>)),
          .kernels = map_kernel(storage_of<T>, {type}, storage_of<T>, same),
          .buffers = {packed(type, patterns), Bytes(patterns.size() * sizeof(T))},
          .columns = static_cast<std::int64_t>(patterns.size()),
          .check = [=](const Case& done) {
            expect_same<T>(values_of<T>(done.buffers[1]), want,
                           [&](std::size_t k) { return std::to_string(patterns[k]); });
          }};
}

TEST(Emit, WidensEveryPattern) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<Case> cases;
  for (Storage type : narrow_types) cases.push_back(widening<float>(type)), cases.push_back(widening<double>(type));
  cases.push_back(widening<float>(Storage::F32)), cases.push_back(widening<double>(Storage::F32));
  run(std::move(cases));
}

template <typename T>
Case narrowing(Storage type, bool round_to) {
  const std::vector<T> samples = rounding_samples<T>(type);
  const auto count = samples.size();
  const std::string title = std::string(round_to ? "round " : "narrow ") + std::string(name(storage_of<T>)) + " to " +
                            std::string(name(type));
  const auto check = [=](const Case& done) {
    std::vector<T> got, want;
    for (T value : samples) want.push_back(static_cast<T>(decode(type, encode(type, value))));
    if (round_to) got = values_of<T>(done.buffers[1]);
    else
      for (std::uint32_t bits : unpacked(type, done.buffers[1])) got.push_back(static_cast<T>(decode(type, bits)));
    expect_same<T>(got, want, [&](std::size_t k) { return std::to_string(samples[k]); });
  };
  if (round_to)
    return {.name = title,
            .kernels = map_kernel(storage_of<T>, {storage_of<T>}, storage_of<T>, apply(Primitive::RoundTo, 0, type)),
            .buffers = {bytes_of(samples), Bytes(count * sizeof(T))},
            .columns = static_cast<std::int64_t>(count),
            .check = check};
  return {.name = title,
          .kernels = map_kernel(storage_of<T>, {storage_of<T>}, type, same),
          .buffers = {bytes_of(samples), Bytes(count * bytes(type))},
          .columns = static_cast<std::int64_t>(count),
          .check = check};
}

TEST(Emit, NarrowsWithOneRounding) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<Case> cases;
  for (Storage type : narrow_types)
    for (bool round_to : {false, true})
      cases.push_back(narrowing<float>(type, round_to)), cases.push_back(narrowing<double>(type, round_to));
  run(std::move(cases));
}

TEST(Emit, NarrowsF64ToF32) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<double> samples = specials<double>;
  std::mt19937_64 random(1);
  for (int k = 0; k < 20000; ++k) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const double next = std::nextafter(value, INFINITY);
    for (double sample : {(value + next) / 2, std::nextafter((value + next) / 2, 0.0)}) samples.push_back(sample);
  }
  std::vector<float> want(samples.begin(), samples.end());
  run({{.name = "f64 to f32",
        .kernels = map_kernel(Storage::F64, {Storage::F64}, Storage::F32, same),
        .buffers = {bytes_of(samples), Bytes(samples.size() * 4)},
        .columns = static_cast<std::int64_t>(samples.size()),
        .check = [=](const Case& done) {
          expect_same<float>(values_of<float>(done.buffers[1]), want,
                             [&](std::size_t k) { return std::to_string(samples[k]); });
        }}});
}

}  // namespace
}  // namespace trireme::wasm
