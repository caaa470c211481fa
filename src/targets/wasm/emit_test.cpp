// Masks, memory, indices and control, run in node and compared bit for bit with what C++ computes. Primitives,
// conversions and fma have tests of their own.
#include "targets/wasm/emit.hpp"

#include <numeric>

#include "devices/wasm/test_cases.hpp"

namespace trireme::wasm {
namespace {

const std::vector<Storage> all_types = [] {
  std::vector<Storage> types;
  for (const TypeFacts& each : type_facts)
    if (!is_packed(each.type)) types.push_back(each.type);
  return types;
}();

// Copies `length` elements, whose bits are small integers in every type. What comes last ends where memory ends.
Case tail(Storage compute, Storage type, std::int64_t length, bool result_last) {
  Kernels kernels{.rows = new_kernel(compute)};
  KernelBuilder b(kernels.rows);
  const Slot slots[] = {{Slot::What::Pointer, 1}, {Slot::What::Pointer}};
  const Reg n = b.slot({Slot::What::Columns});
  const Reg first = b.pointer(slots[result_last]), second = b.pointer(slots[!result_last]);
  const Reg j = b.copy(b.index(0));
  b.repeat_while_less(j, n, [&] {
    const Reg mask = b.below(j, 0, n), value = b.fresh(Bank::Lane);
    b.emit({.code = Do::Load, .type = type, .a = result_last ? first : second, .b = j, .c = mask, .values = {value}});
    b.emit({.code = Do::Store, .type = type, .a = result_last ? second : first, .b = j, .c = mask, .values = {value}});
    b.increase(j, lanes(compute));
  });
  Bytes from(static_cast<std::size_t>(length) * bytes(type));
  std::iota(from.begin(), from.end(), std::uint8_t{1});
  for (std::size_t k = 0; k < from.size(); ++k)  // no NaN
    if (!is_integer(type)) from[k] &= 0x3f;
  Bytes to(from.size());
  return {
      .name = "tail of " + std::to_string(length) + " " + std::string(name(type)) + " in " + std::string(name(compute)),
      .kernels = std::move(kernels),
      .buffers = result_last ? std::vector{from, to} : std::vector{to, from},
      .columns = length,
      .check = [=](const Case& done) {
        if (is_integer(type) && bytes(type) >= bytes(compute)) return;  // rounds
        EXPECT_EQ(done.buffers[result_last], from);
      }};
}

TEST(WasmEmit, MaskedTailsOfEveryLength) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<Case> cases;
  for (Storage compute : {Storage::F32, Storage::F64})
    for (Storage type : all_types)
      for (int length = 1; length <= lanes(compute) + 1; ++length)
        for (bool result_last : {false, true})
          if (compute == Storage::F64 || type != Storage::F64)
            cases.push_back(tail(compute, type, length, result_last));
  run(std::move(cases));
}

// The kernel of `write`, whose results are stored one after the other by `put`; then what they must be.
class Puts {
 public:
  explicit Puts(Storage compute, std::string name) : compute_(compute), name_(std::move(name)) {
    kernels_.rows = new_kernel(compute);
    b.emplace(kernels_.rows);
    to_ = b->pointer({Slot::What::Pointer, 1});
  }
  std::optional<KernelBuilder> b;

  void put(Reg lane, std::vector<double> want) {  // a whole vector
    b->emit({.code = Do::Store, .type = compute_, .a = to_, .imm = offset(), .values = {lane}});
    ASSERT_EQ(want.size(), static_cast<std::size_t>(lanes(compute_)));
    want_.insert(want_.end(), want.begin(), want.end());
  }
  void put_all(Reg lane, double want) { put(lane, std::vector<double>(lanes(compute_), want)); }
  void put_index(Reg index, std::int64_t want) {
    put_all(b->into(Bank::Lane, {.code = Do::LaneFromIndex, .a = index}), static_cast<double>(want));
  }
  void put_mask(Reg mask, std::vector<bool> want) {
    put(b->primitive(Primitive::Select, {mask, b->number(1), b->number(0)}), {want.begin(), want.end()});
  }
  Case make() {
    const auto want = want_;
    const Storage compute = compute_;
    Bytes room(want.size() * bytes(compute));
    return {.name = name_,
            .kernels = kernels_,
            .buffers = {room},
            .columns = 1000,
            .first = 3,
            .last = 5,
            .total = 7,
            .constants = constants,
            .check = [=](const Case& done) {
              std::vector<double> got;
              if (compute == Storage::F64) got = values_of<double>(done.buffers.back());
              else
                for (float value : values_of<float>(done.buffers.back())) got.push_back(value);
              expect_same<double>(got, want, [&](std::size_t k) { return "number " + std::to_string(k); });
            }};
  }
  std::vector<std::uint64_t> constants;

 private:
  std::int64_t offset() const { return static_cast<std::int64_t>(want_.size() * bytes(compute_)); }
  Storage compute_;
  std::string name_;
  Kernels kernels_;
  Reg to_;
  std::vector<double> want_;
};

std::vector<double> lane_numbers(Storage compute, auto&& f) {
  std::vector<double> result;
  for (int k = 0; k < lanes(compute); ++k) result.push_back(f(k));
  return result;
}

Case indices(Storage compute) {
  Puts puts(compute, "indices");
  KernelBuilder& b = *puts.b;
  const Reg big = b.index(0x123456789), seven = b.index(7), minus = b.index(-5);
  const auto rounded = [&](std::int64_t value) {
    return compute == Storage::F64 ? static_cast<double>(value) : static_cast<double>(static_cast<float>(value));
  };
  const auto put = [&](Reg index, std::int64_t want) {
    puts.put_index(index, static_cast<std::int64_t>(rounded(want)));
  };
  for (std::int64_t which : {0, 1, 2}) put(b.argument(static_cast<int>(which)), 3 + 2 * which);
  put(b.slot({Slot::What::Columns}), 1000);
  put(big, 0x123456789), put(minus, -5), put(b.copy(minus), -5);
  struct {
    Do code;
    std::int64_t (*want)(std::int64_t, std::int64_t);
  } const rows[] = {{Do::IndexAdd, [](std::int64_t x, std::int64_t y) { return x + y; }},
                    {Do::IndexSub, [](std::int64_t x, std::int64_t y) { return x - y; }},
                    {Do::IndexMul, [](std::int64_t x, std::int64_t y) { return x * y; }},
                    {Do::IndexMin, [](std::int64_t x, std::int64_t y) { return x < y ? x : y; }},
                    {Do::IndexAnd, [](std::int64_t x, std::int64_t y) { return x & y; }},
                    {Do::IndexDivide, [](std::int64_t x, std::int64_t y) { return x / y; }},
                    {Do::IndexRemainder, [](std::int64_t x, std::int64_t y) { return x % y; }}};
  for (const auto& row : rows) {
    put(b.index(row.code, big, seven), row.want(0x123456789, 7));
    for (std::int64_t imm : {1, 7, 64, 100}) put(b.index(row.code, big, imm), row.want(0x123456789, imm));
  }
  put(b.index(Do::IndexMin, minus, seven), -5);
  put(b.index(Do::IndexMin, minus, std::int64_t{-9}), -9);
  put(b.index(Do::IndexShiftRight, big, 8), 0x1234567);
  // The smallest integers that f32 has to round.
  for (std::int64_t value : {16777217ll, 16777219ll, -16777219ll, 2147483583ll}) put(b.index(value), value);
  return puts.make();
}

Case lane_codes(Storage compute) {
  Puts puts(compute, "lanes");
  KernelBuilder& b = *puts.b;
  const int width = lanes(compute);
  const auto rounded = [&](double v) {
    return compute == Storage::F64 ? v : static_cast<double>(static_cast<float>(v));
  };
  for (double value : {0.0, -0.0, 0.1, -HUGE_VAL, 0x1p-126}) puts.put_all(b.number(rounded(value)), rounded(value));
  for (double value : {0.1, 3.0}) {
    const int number = static_cast<int>(puts.constants.size());
    puts.put_all(b.into(Bank::Lane, {.code = Do::LaneSlot, .imm = b.slot_number({Slot::What::Value, number})}),
                 rounded(value));
    puts.constants.push_back(compute == Storage::F64 ? std::bit_cast<std::uint64_t>(value)
                                                     : std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  }
  for (std::int64_t from : {0, 100, 16777214, 2147483640})
    puts.put(b.into(Bank::Lane, {.code = Do::LaneColumn, .a = b.index(from), .imm = 3}),
             lane_numbers(compute, [&](int k) { return rounded(static_cast<double>(from) + 3 + k); }));
  for (std::int64_t from : {0, 5, 8388600})
    puts.put(b.into(Bank::Lane, {.code = Do::LaneColumn, .imm = from}),
             lane_numbers(compute, [&](int k) { return static_cast<double>(from) + k; }));
  const Reg column = b.into(Bank::Lane, {.code = Do::LaneColumn, .a = b.index(0)});
  for (int lane = 0; lane < width; ++lane)
    puts.put(b.shuffle_xor(column, lane), lane_numbers(compute, [&](int k) { return k ^ lane; }));
  const std::int64_t far = std::int64_t{1} << 40;
  for (std::int64_t limit : {-far, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3},
                             std::int64_t{4}, std::int64_t{5}, far, far + 1, far + 6}) {
    for (std::int64_t start : {std::int64_t{0}, std::int64_t{2}, far}) {
      std::vector<bool> want;
      for (int k = 0; k < width; ++k) want.push_back(start + 1 + k < limit);
      puts.put_mask(b.below(b.index(start), 1, b.index(limit)), want);
      puts.put_mask(b.below(b.index(start - far), far + 1, b.index(limit)), want);
      puts.put_mask(b.equal(b.index(start), 1, b.index(limit)),
                    std::vector<bool>(static_cast<std::size_t>(width), start + 1 == limit));
    }
  }
  const Reg moved = b.fresh(Bank::Lane);
  b.assign(moved, column);
  b.assign(column, b.number(9));
  puts.put(moved, lane_numbers(compute, [](int k) { return k; }));
  puts.put_all(column, 9);
  return puts.make();
}

TEST(WasmEmit, LoadsIntegersAsIndices) {
  TRIREME_SKIP_WITHOUT_NODE();
  Kernels kernels{.rows = new_kernel(Storage::F64)};
  KernelBuilder b(kernels.rows);
  const Reg from = b.pointer({Slot::What::Pointer}), to = b.pointer({Slot::What::Pointer, 1});
  const Reg none = b.below(b.index(1), 0, b.index(0)), some = b.below(b.index(0), 0, b.index(1));
  const auto put = [&](int place, Instr instr) {
    instr.code = Do::IndexLoad, instr.type = Storage::I32, instr.a = from;
    const Reg value = b.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = b.into(Bank::Index, std::move(instr))});
    b.emit({.code = Do::StoreOne, .type = Storage::F64, .a = to, .imm = 8 * place, .values = {value}});
  };
  put(0, {}), put(1, {.b = b.index(1)}), put(2, {.b = b.index(1), .c = some, .imm = 4});
  put(3, {.b = b.index(1000000), .c = none});
  run({{.name = "integers",
        .kernels = kernels,
        .buffers = {bytes_of(std::vector<std::int32_t>{INT32_MIN, -1, 7}), Bytes(32)},
        .check = [](const Case& done) {
          EXPECT_EQ(values_of<double>(done.buffers[1]), (std::vector<double>{INT32_MIN, -1, 7, 0}));
        }}});
}

// Addresses: both spaces, index and bytes, single elements, masks of all kinds.
Case memory_codes(Storage compute, Storage type) {
  Puts puts(compute, "memory of " + std::string(name(type)));
  KernelBuilder& b = *puts.b;
  b.slot_number({Slot::What::Pointer, scratch_array});
  const int width = lanes(compute);
  const auto size = static_cast<std::int64_t>(bytes(type));
  const Reg column = b.into(Bank::Lane, {.code = Do::LaneColumn, .a = b.index(1)});  // 1, 2, ...
  const Reg at = b.index(64), three = b.index(3), zero = b.index(0);
  const auto load = [&](Instr instr) {
    instr.code = Do::Load, instr.type = type, instr.space = Space::Scratch;
    instr.values = {b.fresh(Bank::Lane)};
    const Reg value = instr.values[0];
    b.emit(std::move(instr));
    return value;
  };
  const auto numbers = [&](int from) { return lane_numbers(compute, [&](int k) { return from + k; }); };
  b.emit({.code = Do::Store, .type = type, .space = Space::Scratch, .a = at, .b = three, .imm = 8, .values = {column}});
  puts.put(load({.a = at, .b = three, .imm = 8}), numbers(1));
  puts.put(load({.imm = 72 + 3 * size}), numbers(1));
  puts.put(load({.b = three, .imm = 72}), numbers(1));
  puts.put(load({.a = b.index(200), .imm = 3 * size - 128}), numbers(1));
  for (int present = 0; present <= width; ++present) {
    const Reg mask = b.below(zero, 0, b.index(present));
    puts.put(load({.a = at, .b = three, .c = mask, .imm = 8}),
             lane_numbers(compute, [&](int k) { return k < present ? 1 + k : 0; }));
    // A masked store over what another store left.
    const Reg five = b.number(5), here = b.index(512);
    b.emit({.code = Do::Store, .type = type, .space = Space::Scratch, .a = here, .values = {five}});
    b.emit({.code = Do::Store, .type = type, .space = Space::Scratch, .a = here, .c = mask, .values = {column}});
    puts.put(load({.a = here}), lane_numbers(compute, [&](int k) { return k < present ? 1 + k : 5; }));
    b.emit({.code = Do::StoreOne, .type = type, .space = Space::Scratch, .a = here, .c = mask, .values = {five}});
    puts.put(load({.a = here}), lane_numbers(compute, [&](int k) { return k == 0 ? 5 : k < present ? 1 + k : 5; }));
    const Reg one = b.into(
        Bank::Lane,
        {.code = Do::LoadOne, .type = type, .space = Space::Scratch, .a = at, .b = three, .c = mask, .imm = 8 + size});
    puts.put(one, lane_numbers(compute, [&](int k) { return k < present ? 2 : 0; }));
  }
  b.emit({.code = Do::StoreOne,
          .type = type,
          .space = Space::Scratch,
          .a = at,
          .imm = 8 + 4 * size,
          .values = {b.number(7)}});
  puts.put_all(
      b.into(Bank::Lane, {.code = Do::LoadOne, .type = type, .space = Space::Scratch, .b = b.index(4), .imm = 72}), 7);
  return puts.make();
}

TEST(WasmEmit, IndicesLanesAndMemory) {
  TRIREME_SKIP_WITHOUT_NODE();
  std::vector<Case> cases;
  for (Storage compute : {Storage::F32, Storage::F64}) {
    cases.push_back(indices(compute));
    cases.push_back(lane_codes(compute));
    for (Storage type : all_types)
      if (type != Storage::F8E8M0 &&
          (compute == Storage::F64 || type != Storage::F64))  // the numbers are no powers of 2
        cases.push_back(memory_codes(compute, type));
  }
  run(std::move(cases));
}

// ---- Control and entries --------------------------------------------------------------------------------------------

// rows: out[i] = the sum of x[i][0 .. n), but i * 100 for odd i, through pointers moved by strides.
// columns: out[j] += 0.5 for j in first .. last.
TEST(WasmEmit, ControlPointersAndBothEntries) {
  TRIREME_SKIP_WITHOUT_NODE();
  Kernels kernels{.rows = new_kernel(Storage::F32)};
  {
    KernelBuilder b(kernels.rows);
    b.note("a row");
    const Reg n = b.slot({Slot::What::Columns}), x = b.pointer({Slot::What::Pointer});
    const Reg y = b.pointer({Slot::What::Pointer, 1}), row = b.copy(b.argument(0)), end = b.argument(1);
    b.repeat_while_less(row, end, [&] {
      const Reg line = b.pointer(x, b.index(Do::IndexMul, row, n), 4), to = b.fresh(Bank::Pointer);
      b.assign(to, b.pointer(y, row, 4));
      const Reg odd = b.index(Do::IndexAnd, row, std::int64_t{1}), one = b.index(1);
      b.when_less(
          odd, one,
          [&] {
            const Reg total = b.number(0), j = b.copy(b.index(0));
            b.repeat_while_less(j, n, [&] {
              const Reg value = b.into(Bank::Lane, {.code = Do::LoadOne, .type = Storage::F32, .a = line, .b = j});
              b.assign(total, b.primitive(Primitive::Add, {total, value}));
              b.increase(j, 1);
            });
            b.emit({.code = Do::StoreOne, .type = Storage::F32, .a = to, .values = {total}});
          },
          [&] {
            const Reg value = b.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = b.mul(row, 100)});
            b.emit({.code = Do::StoreOne, .type = Storage::F32, .a = to, .values = {value}});
          });
      b.increase(row, 1);
    });
    kernels.columns.push_back(new_kernel(Storage::F32));
    kernels.columns[0].slots = kernels.rows.slots;
    KernelBuilder c(kernels.columns[0]);
    const Reg out = c.pointer({Slot::What::Pointer, 1}), j = c.copy(c.argument(0)), last = c.argument(1);
    c.repeat_while_less(j, last, [&] {
      const Reg value = c.into(Bank::Lane, {.code = Do::LoadOne, .type = Storage::F32, .a = out, .b = j});
      const Reg more = c.primitive(Primitive::Add, {value, c.number(0.5)});
      c.emit({.code = Do::StoreOne, .type = Storage::F32, .a = out, .b = j, .values = {more}});
      c.increase(j, 1);
    });
  }
  std::vector<float> x(6 * 5);
  std::iota(x.begin(), x.end(), 1.0f);
  run({{.name = "rows and columns",
        .kernels = kernels,
        .buffers = {bytes_of(x), bytes_of(std::vector<float>(6, -1))},
        .columns = 5,
        .first = 1,
        .last = 5,
        .total = 6,
        .check = [](const Case& done) {
          EXPECT_EQ(values_of<float>(done.buffers[1]), (std::vector<float>{-1, 100.5, 65.5, 300.5, 115.5, -1}));
        }}});
}

TEST(WasmEmit, RefusesWhatOtherMachinesRun) {
  const auto refusal = [](const Kernels& kernels) {
    const auto module = emit(kernels);
    return module ? "" : std::string(name(module.error().code)) + ": " + module.error().message;
  };
  Kernels threads{.rows = new_kernel(Storage::F32)};
  threads.rows.body.push_back({.code = Do::Barrier});
  EXPECT_NE(refusal(threads).find("belongs to thread machines"), std::string::npos) << refusal(threads);
  Kernels wide{.rows = new_kernel(Storage::F32)};
  wide.rows.launch.lanes = 8;
  EXPECT_NE(refusal(wide).find("has 8 lanes of f32"), std::string::npos) << refusal(wide);
  Kernels composed{.rows = new_kernel(Storage::F32)};
  KernelBuilder b(composed.rows);
  b.primitive(Primitive::Mean, {b.number(1)});
  EXPECT_NE(refusal(composed).find("not a primitive"), std::string::npos) << refusal(composed);
}

}  // namespace
}  // namespace trireme::wasm
