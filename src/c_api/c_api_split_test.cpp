// A row over two machines through the C ABI alone, as an engine in C runs it: each phase on each part, what a phase
// exchanges combined, and the bits of one machine at the end.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "trireme.h"

namespace {

using Arrays = std::map<std::string, std::vector<float>>;
using Constants = std::vector<trireme_named_value>;

constexpr int64_t kRows = 5, kPart = 512, kColumns = 2 * kPart;

std::vector<trireme_parameter> parameters_of(const trireme_program* program) {
  size_t count = 0;
  EXPECT_EQ(trireme_program_parameter_count(program, &count), TRIREME_OK);
  std::vector<trireme_parameter> found(count);
  for (size_t k = 0; k < count; ++k) {
    found[k].struct_size = sizeof found[k];
    EXPECT_EQ(trireme_program_parameter(program, k, &found[k]), TRIREME_OK);
  }
  return found;
}

// Runs a program on arrays by name; results are added to them.
void run(const trireme_program* program, int64_t rows, int64_t columns, const Constants& known, Arrays& arrays) {
  Constants constants;  // those that the program has
  for (const trireme_parameter& each : parameters_of(program))
    for (const trireme_named_value& value : known)
      if (each.kind == TRIREME_CONSTANT && std::string(each.name) == value.name) constants.push_back(value);
  const int64_t shape[] = {rows, columns};
  trireme_plan_options options = {};
  options.struct_size = sizeof options;
  options.shape = shape, options.rank = 2;
  options.constants = constants.data(), options.constant_count = constants.size();
  trireme_plan* plan = nullptr;
  ASSERT_EQ(trireme_plan_create("cpu", program, &options, &plan), TRIREME_OK) << trireme_last_error();
  trireme_args* args = nullptr;
  ASSERT_EQ(trireme_args_create(plan, &args), TRIREME_OK);
  size_t count = 0;
  ASSERT_EQ(trireme_plan_array_count(plan, &count), TRIREME_OK);
  for (size_t k = 0; k < count; ++k) {
    trireme_plan_array array = {};
    array.struct_size = sizeof array;
    ASSERT_EQ(trireme_plan_array_at(plan, k, &array), TRIREME_OK);
    size_t elements = 1;
    for (int32_t axis = 0; axis < array.rank; ++axis) elements *= static_cast<size_t>(array.shape[axis]);
    std::vector<float>& data = arrays[array.name];
    if (array.kind == TRIREME_RESULT) data.assign(elements, 0);
    ASSERT_EQ(data.size(), elements) << array.name;
    trireme_view view = {};
    view.struct_size = sizeof view;
    view.data = data.data(), view.type = TRIREME_F32, view.bytes = elements * sizeof(float);
    ASSERT_EQ(trireme_args_set_at(args, k, &view), TRIREME_OK) << trireme_last_error();
  }
  trireme_workspace* workspace = nullptr;
  void* memory = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(trireme_workspace_create(plan, &workspace), TRIREME_OK);
  ASSERT_EQ(trireme_workspace_memory(workspace, &memory, &bytes), TRIREME_OK);
  EXPECT_EQ(trireme_plan_run(plan, args, nullptr, memory, bytes), TRIREME_OK) << trireme_last_error();
  EXPECT_EQ(trireme_workspace_destroy(workspace), TRIREME_OK);
  EXPECT_EQ(trireme_args_destroy(args), TRIREME_OK);
  EXPECT_EQ(trireme_plan_destroy(plan), TRIREME_OK);
}

// A machine's columns of an array: the part's `kPart` of each row, or everything where there are no columns.
std::vector<float> part_of(const std::vector<float>& whole, const std::string& spread, int64_t part) {
  if (spread.find('j') == std::string::npos) return whole;
  std::vector<float> mine;
  for (auto row = whole.begin(); row != whole.end(); row += kColumns)
    mine.insert(mine.end(), row + part * kPart, row + (part + 1) * kPart);
  return mine;
}

// The values of an exchange, of both machines, to one that both have.
void exchange(const trireme_split* split, size_t phase, size_t index, Arrays (&machines)[2]) {
  trireme_exchange what = {};
  what.struct_size = sizeof what;
  ASSERT_EQ(trireme_split_exchange(split, phase, index, &what), TRIREME_OK);
  trireme_program* combine = nullptr;
  ASSERT_EQ(trireme_split_combine(split, phase, index, &combine), TRIREME_OK);
  Arrays pair;
  const std::string suffix = what.second ? "_first" : "";
  pair["left" + suffix] = machines[0][what.first], pair["right" + suffix] = machines[1][what.first];
  if (what.second) pair["left_second"] = machines[0][what.second], pair["right_second"] = machines[1][what.second];
  const Constants counts = {{"left_columns", double(kPart)}, {"right_columns", double(kPart)}};
  run(combine, 1, static_cast<int64_t>(machines[0][what.first].size()), counts, pair);
  for (Arrays& machine : machines) {
    machine[what.first] = pair["both" + suffix];
    if (what.second) machine[what.second] = pair["both_second"];
  }
  EXPECT_EQ(trireme_program_destroy(combine), TRIREME_OK);
}

// Of `program` on `arrays`: what two machines with half of the columns each make, and how many exchanges that takes.
// Results are left in `arrays`, those of one machine.
size_t expect_two_give_what_one_gives(const trireme_program* program, Arrays& arrays) {
  Arrays machines[2];
  for (const trireme_parameter& each : parameters_of(program))
    if (each.kind == TRIREME_OPERAND)
      for (int part = 0; part < 2; ++part) machines[part][each.name] = part_of(arrays[each.name], each.spread, part);
  run(program, kRows, kColumns, {}, arrays);
  trireme_split* split = nullptr;
  EXPECT_EQ(trireme_program_split(program, &split), TRIREME_OK) << trireme_last_error();
  size_t phases = 0, made = 0;
  EXPECT_EQ(trireme_split_phase_count(split, &phases), TRIREME_OK);
  for (size_t phase = 0; phase < phases; ++phase) {
    trireme_program* local = nullptr;
    EXPECT_EQ(trireme_split_phase(split, phase, &local), TRIREME_OK);
    for (int part = 0; part < 2; ++part)
      run(local, kRows, kPart, {{"columns", double(kColumns)}, {"first_column", double(part * kPart)}}, machines[part]);
    size_t exchanges = 0;
    EXPECT_EQ(trireme_split_exchange_count(split, phase, &exchanges), TRIREME_OK);
    for (size_t k = 0; k < exchanges; ++k) exchange(split, phase, k, machines);
    made += exchanges;
    EXPECT_EQ(trireme_program_destroy(local), TRIREME_OK);
  }
  EXPECT_EQ(trireme_split_destroy(split), TRIREME_OK);
  for (const trireme_parameter& each : parameters_of(program)) {
    if (each.kind != TRIREME_RESULT) continue;
    for (int part = 0; part < 2; ++part) {
      const std::vector<float> wanted = part_of(arrays[each.name], each.spread, part);
      const std::vector<float>& got = machines[part][each.name];
      EXPECT_EQ(got.size(), wanted.size()) << each.name;
      EXPECT_EQ(std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)), 0)
          << each.name << " of " << part;
    }
  }
  return made;
}

// Values of a linear congruential generator, in [-2, 2).
std::vector<float> drawn(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& each : values) each = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-22f - 2;
  return values;
}

TEST(CApi, two_parts_give_one_machines_bits) {
  struct Case {
    const char* name;
    bool composed;
    size_t forward, backward;  // exchanges
  };
  for (const auto& [name, composed, forward, backward] :
       {Case{"rms_norm", false, 1, 1}, Case{"layer_norm", false, 2, 2}, Case{"layer_norm", true, 1, 2},
        Case{"softmax", false, 2, 1}, Case{"log_softmax", true, 1, 1}}) {
    SCOPED_TRACE(std::string(name) + (composed ? ", composed" : ""));
    trireme_program *program = nullptr, *gradient = nullptr;
    ASSERT_EQ(trireme_program_named(name, &program), TRIREME_OK);
    ASSERT_EQ(trireme_program_differentiate(program, &gradient), TRIREME_OK);
    Arrays arrays = {{"x", drawn(kRows * kColumns, 1)},
                     {"dy", drawn(kRows * kColumns, 2)},
                     {"gamma", drawn(kColumns, 3)},
                     {"beta", drawn(kColumns, 4)}};
    for (trireme_program* each : {program, gradient}) {
      const size_t wanted = each == program ? forward : backward;
      if (!composed) {
        EXPECT_EQ(expect_two_give_what_one_gives(each, arrays), wanted);
        continue;
      }
      trireme_program* once = nullptr;
      ASSERT_EQ(trireme_program_compose(each, &once), TRIREME_OK);
      EXPECT_EQ(expect_two_give_what_one_gives(once, arrays), wanted);
      EXPECT_EQ(trireme_program_destroy(once), TRIREME_OK);
    }
    for (trireme_program* each : {program, gradient}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
  }
}

}  // namespace
