// The C ABI as its callers see it, and what it says of misuse.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "trireme.h"
#include "trireme/device.hpp"

namespace {

void expect_refused(trireme_status got, trireme_status status, const std::string& part) {
  EXPECT_EQ(got, status);
  EXPECT_NE(std::string(trireme_last_error()).find(part), std::string::npos) << trireme_last_error();
}

trireme_plan_options options_for(const int64_t* shape, int32_t rank) {
  trireme_plan_options options = {};
  options.struct_size = sizeof options;
  options.shape = shape;
  options.rank = rank;
  options.threads = 1;
  return options;
}

trireme_view view_of(void* data, uint64_t bytes = TRIREME_UNKNOWN_BYTES) {
  trireme_view view = {};
  view.struct_size = sizeof view;
  view.data = data;
  view.type = TRIREME_F32;
  view.bytes = bytes;
  return view;
}

TEST(CApi, WhatBindingsAsk) {
  EXPECT_NE(std::string(trireme_operator_text(0)).find("#: try"), std::string::npos);
  EXPECT_EQ(trireme_operator_text(trireme_operator_count()), nullptr);
  trireme_program *program = nullptr, *backward = nullptr;
  ASSERT_EQ(trireme_program_named("rms_norm", &program), TRIREME_OK);
  ASSERT_EQ(trireme_program_differentiate(program, &backward), TRIREME_OK);
  const char* text = nullptr;
  ASSERT_EQ(trireme_program_name(backward, &text), TRIREME_OK);
  EXPECT_STREQ(text, "rms_norm_backward");
  trireme_parameter parameter = {};
  parameter.struct_size = sizeof parameter;
  ASSERT_EQ(trireme_program_parameter(program, 2, &parameter), TRIREME_OK);
  EXPECT_EQ(parameter.fallback, 1e-6);
  parameter.fallback = 7;
  parameter.struct_size = offsetof(trireme_parameter, fallback);  // an older caller's
  ASSERT_EQ(trireme_program_parameter(program, 2, &parameter), TRIREME_OK);
  EXPECT_EQ(parameter.fallback, 7);
  parameter.struct_size = sizeof parameter;
  ASSERT_EQ(trireme_program_parameter(backward, 3, &parameter), TRIREME_OK);
  EXPECT_STREQ(parameter.name, "rstd");
  EXPECT_TRUE(parameter.optional && std::isnan(parameter.fallback));

  const int64_t shape[] = {2, 3, 8};
  trireme_plan_options options = options_for(shape, 3);
  const char* absent[] = {"gamma"};
  options.absent = absent, options.absent_count = 1;
  trireme_plan* plan = nullptr;
  ASSERT_EQ(trireme_plan_create("cpu", program, &options, &plan), TRIREME_OK) << trireme_last_error();
  size_t count = 0;
  ASSERT_EQ(trireme_plan_array_count(plan, &count), TRIREME_OK);
  ASSERT_EQ(count, 3u);  // x, y, rstd
  trireme_plan_array array = {};
  array.struct_size = sizeof array;
  ASSERT_EQ(trireme_plan_array_at(plan, 2, &array), TRIREME_OK);
  EXPECT_STREQ(array.name, "rstd");
  EXPECT_EQ(array.kind, TRIREME_RESULT);
  EXPECT_EQ(array.type, TRIREME_F32);
  EXPECT_EQ(array.rank, 2);
  EXPECT_EQ(array.shape[1], 3);
  expect_refused(trireme_plan_array_at(plan, 3, &array), TRIREME_INVALID_ARGUMENT, "3 arrays");
  ASSERT_EQ(trireme_plan_line(plan, &text), TRIREME_OK);
  EXPECT_STREQ(text, "rms_norm 2x3x8 gamma=none");
  ASSERT_EQ(trireme_plan_sku(plan, &text), TRIREME_OK);
  EXPECT_NE(std::string(text).find("rms_norm forward contract="), std::string::npos) << text;
  trireme_guarantee guarantee = {};
  guarantee.struct_size = sizeof guarantee;
  ASSERT_EQ(trireme_plan_guarantee(plan, &guarantee), TRIREME_OK);
  EXPECT_TRUE(guarantee.run_to_run && guarantee.across_batch && guarantee.across_targets);
  EXPECT_EQ(guarantee.compute, TRIREME_F32);

  trireme_args* args = nullptr;
  ASSERT_EQ(trireme_args_create(plan, &args), TRIREME_OK);
  std::vector<float> x(48, 2), y(48), rstd(6);
  size_t index = 0;
  for (std::vector<float>* each : {&x, &y, &rstd}) {
    trireme_view view = view_of(each->data());
    ASSERT_EQ(trireme_args_set_at(args, index++, &view), TRIREME_OK);
  }
  trireme_view view = view_of(x.data());
  expect_refused(trireme_args_set_at(args, 3, &view), TRIREME_INVALID_ARGUMENT, "3 arrays");
  ASSERT_EQ(trireme_plan_run(plan, args, nullptr, nullptr, 0), TRIREME_OK) << trireme_last_error();
  EXPECT_NEAR(rstd[5], 0.5, 1e-6);
  EXPECT_EQ(trireme_args_destroy(args), TRIREME_OK);
  EXPECT_EQ(trireme_plan_destroy(plan), TRIREME_OK);
  for (trireme_program* each : {program, backward}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
}

// A backward may ask for the type of a gradient that no array carries.
TEST(CApi, TypesOfWhatIsAbsent) {
  trireme_program *program = nullptr, *backward = nullptr;
  ASSERT_EQ(trireme_program_named("rms_norm_quant", &program), TRIREME_OK);
  const char* gradients[] = {"scale"};
  ASSERT_EQ(trireme_program_differentiate_for(program, gradients, 1, &backward), TRIREME_OK) << trireme_last_error();
  const int64_t shape[] = {3, 8};
  trireme_plan_options options = options_for(shape, 2);
  const char* absent[] = {"dq"};
  options.absent = absent, options.absent_count = 1;
  trireme_plan* plan = nullptr;
  expect_refused(trireme_plan_create("cpu", backward, &options, &plan), TRIREME_INVALID_ARGUMENT,
                 "largest(dq) needs a type for 'dq'");
  const trireme_named_type types[] = {{"dq", TRIREME_F8E4M3}};
  options.types = types, options.type_count = 1;
  ASSERT_EQ(trireme_plan_create("cpu", backward, &options, &plan), TRIREME_OK) << trireme_last_error();
  const char* line = nullptr;
  ASSERT_EQ(trireme_plan_line(plan, &line), TRIREME_OK);
  EXPECT_STREQ(line, "rms_norm_quant 3x8 dq=none:f8e4m3 backward gradients=scale");
  EXPECT_EQ(trireme_plan_destroy(plan), TRIREME_OK);
  for (trireme_program* each : {program, backward}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
}

// Where the reference serves there are no workspaces.
bool has_kernels() { return trireme::Device::cpu().value().name() != "reference"; }

TEST(CApi, PreferencesAndOlderCallers) {
  trireme_program *program = nullptr, *backward = nullptr;
  ASSERT_EQ(trireme_program_named("rms_norm", &program), TRIREME_OK);
  ASSERT_EQ(trireme_program_differentiate(program, &backward), TRIREME_OK);
  const int64_t shape[] = {64, 300};
  trireme_plan_options options = options_for(shape, 2);
  options.max_workspace_bytes = 16;
  trireme_plan* plan = nullptr;
  if (has_kernels()) expect_refused(trireme_plan_create("cpu", backward, &options, &plan), TRIREME_UNSUPPORTED, "16");
  options.max_workspace_bytes = -1;
  expect_refused(trireme_plan_create("cpu", backward, &options, &plan), TRIREME_INVALID_ARGUMENT, "0 is no limit");
  options.max_workspace_bytes = 0, options.config = "unrolled";
  EXPECT_NE(trireme_plan_create("cpu", program, &options, &plan), TRIREME_OK);
  options.config = nullptr;
  const char* names[] = {"dx"};
  options.accumulate = names, options.accumulate_count = 1;
  expect_refused(trireme_plan_create("cpu", backward, &options, &plan), TRIREME_INVALID_ARGUMENT, "no sum over rows");
  names[0] = "dgamma";
  ASSERT_EQ(trireme_plan_create("cpu", backward, &options, &plan), TRIREME_OK) << trireme_last_error();
  const char* text = nullptr;
  ASSERT_EQ(trireme_plan_describe(plan, &text), TRIREME_OK);
  EXPECT_NE(std::string_view(text).find("added to what is there"), std::string_view::npos) << text;
  EXPECT_EQ(trireme_plan_destroy(plan), TRIREME_OK);
  options.config = "unrolled";
  // An older caller's structure ends before the preferences: what lies behind it is not read.
  options.struct_size = offsetof(trireme_plan_options, max_workspace_bytes);
  ASSERT_EQ(trireme_plan_create("cpu", program, &options, &plan), TRIREME_OK) << trireme_last_error();
  EXPECT_EQ(trireme_plan_destroy(plan), TRIREME_OK);
  for (trireme_program* each : {program, backward}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
}

TEST(CApi, WorkspacesAreMade) {
  trireme_program *program = nullptr, *backward = nullptr;
  ASSERT_EQ(trireme_program_named("rms_norm", &program), TRIREME_OK);
  ASSERT_EQ(trireme_program_differentiate(program, &backward), TRIREME_OK);
  const int64_t shape[] = {64, 300};
  trireme_plan_options options = options_for(shape, 2);
  for (trireme_program* each : {program, backward}) {
    trireme_plan* plan = nullptr;
    trireme_workspace* workspace = nullptr;
    ASSERT_EQ(trireme_plan_create("cpu", each, &options, &plan), TRIREME_OK) << trireme_last_error();
    size_t needed = 0, bytes = 1;
    void* memory = &bytes;
    ASSERT_EQ(trireme_plan_workspace_bytes(plan, &needed), TRIREME_OK);
    EXPECT_EQ(needed > 0, each == backward && has_kernels());
    ASSERT_EQ(trireme_workspace_create(plan, &workspace), TRIREME_OK) << trireme_last_error();
    EXPECT_EQ(trireme_plan_destroy(plan), TRIREME_OK);
    ASSERT_EQ(trireme_workspace_memory(workspace, &memory, &bytes), TRIREME_OK);
    EXPECT_EQ(bytes, needed);
    EXPECT_EQ(memory != nullptr, needed > 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
    if (memory) std::memset(memory, 1, bytes);
    EXPECT_EQ(trireme_workspace_destroy(workspace), TRIREME_OK);
    expect_refused(trireme_workspace_memory(workspace, &memory, &bytes), TRIREME_INVALID_ARGUMENT, "was destroyed");
  }
  expect_refused(trireme_workspace_create(nullptr, nullptr), TRIREME_INVALID_ARGUMENT, "null handle");
  for (trireme_program* each : {program, backward}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
}

TEST(CApi, Digests) {
  char first[TRIREME_DIGEST_BYTES], second[TRIREME_DIGEST_BYTES];
  const char* line = "rms_norm 5x257 x=bf16 backward";
  ASSERT_EQ(trireme_digest(line, nullptr, "reference", 1, first), TRIREME_OK) << trireme_last_error();
  ASSERT_EQ(trireme_digest(line, nullptr, "cpu", 2, second), TRIREME_OK) << trireme_last_error();
  EXPECT_EQ(std::strlen(first), 32u);
  EXPECT_STREQ(first, second);
  ASSERT_EQ(trireme_digest("twice 3x5", "twice(x[i,j]) -> (y[i,j])\ny = x + x", "cpu", 1, second), TRIREME_OK);
  EXPECT_STRNE(first, second);
  expect_refused(trireme_digest("rms_nrm 5x257", nullptr, "cpu", 1, first), TRIREME_INVALID_ARGUMENT, "rms_norm");
  expect_refused(trireme_digest(line, nullptr, "cpu", -1, first), TRIREME_INVALID_ARGUMENT, "to 4096, not -1");
}

TEST(CApi, Programs) {
  ASSERT_GT(trireme_operator_count(), 10u);
  EXPECT_EQ(trireme_operator_name(trireme_operator_count()), nullptr);
  for (size_t k = 0; k < trireme_operator_count(); ++k) {
    trireme_program *program = nullptr, *backward = nullptr, *again = nullptr;
    ASSERT_EQ(trireme_program_named(trireme_operator_name(k), &program), TRIREME_OK) << trireme_last_error();
    ASSERT_EQ(trireme_program_differentiate(program, &backward), TRIREME_OK) << trireme_last_error();
    const char *text = nullptr, *text_again = nullptr;
    ASSERT_EQ(trireme_program_print(backward, &text), TRIREME_OK);
    ASSERT_EQ(trireme_program_parse(text, std::strlen(text), &again), TRIREME_OK) << trireme_last_error();
    ASSERT_EQ(trireme_program_print(again, &text_again), TRIREME_OK);
    EXPECT_STREQ(text, text_again);
    for (trireme_program* each : {program, backward, again}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
  }
  trireme_program* program = nullptr;
  ASSERT_EQ(trireme_program_named("rms_norm", &program), TRIREME_OK);
  size_t count = 0;
  ASSERT_EQ(trireme_program_parameter_count(program, &count), TRIREME_OK);
  EXPECT_EQ(count, 6u);
  trireme_parameter parameter = {};
  parameter.struct_size = sizeof parameter;
  ASSERT_EQ(trireme_program_parameter(program, 1, &parameter), TRIREME_OK);
  EXPECT_STREQ(parameter.name, "gamma");
  EXPECT_STREQ(parameter.spread, "[j]");
  EXPECT_EQ(parameter.kind, TRIREME_OPERAND);
  EXPECT_TRUE(parameter.optional);
  expect_refused(trireme_program_parameter(program, 6, &parameter), TRIREME_INVALID_ARGUMENT, "6 parameters");
  trireme_program_destroy(program);
  expect_refused(trireme_program_parse("rms_norm(", 9, &program), TRIREME_INVALID_PROGRAM, "1:");
}

TEST(CApi, ShapesOfProblems) {
  trireme_program* program = nullptr;
  ASSERT_EQ(trireme_program_named("embedding", &program), TRIREME_OK);
  const int64_t tokens[] = {2, 3}, table[] = {9, 50};
  const trireme_named_shape arrays[] = {{"token", 2, tokens}, {"table", 2, table}};
  int64_t shape[8] = {};
  int32_t rank = 0;
  ASSERT_EQ(trireme_problem_shape(program, arrays, 2, 0, nullptr, 0, shape, &rank), TRIREME_OK);
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(std::vector<int64_t>(shape, shape + 3), std::vector<int64_t>({2, 3, 50}));
  expect_refused(trireme_problem_shape(program, arrays, 1, 1, nullptr, 0, shape, &rank), TRIREME_INVALID_ARGUMENT,
                 "embedding needs an array for table, or y: nothing else says how many columns there are");
  const int64_t many[] = {1, 1, 1, 1, 1, 1, 1, 1};
  const trireme_named_shape nine[] = {{"token", 8, many}, {"table", 2, table}};
  expect_refused(trireme_problem_shape(program, nine, 2, 1, nullptr, 0, shape, &rank), TRIREME_INVALID_ARGUMENT,
                 "9 axes");
  expect_refused(trireme_problem_shape(program, nullptr, 2, 1, nullptr, 0, shape, &rank), TRIREME_INVALID_ARGUMENT,
                 "arrays");
  expect_refused(trireme_problem_shape(program, arrays, 2, 1, nullptr, 0, nullptr, &rank), TRIREME_INVALID_ARGUMENT,
                 "shape");
  expect_refused(trireme_problem_shape(program, arrays, 2, 1, nullptr, 1, shape, &rank), TRIREME_INVALID_ARGUMENT,
                 "constants");
  trireme_program_destroy(program);
  ASSERT_EQ(trireme_program_named("matmul", &program), TRIREME_OK);
  const int64_t x[] = {3, 64};
  const trireme_named_shape factor[] = {{"x", 2, x}};
  const trireme_named_value m[] = {{"m", 5}};
  ASSERT_EQ(trireme_problem_shape(program, factor, 1, 1, m, 1, shape, &rank), TRIREME_OK);
  EXPECT_EQ(std::vector<int64_t>(shape, shape + rank), std::vector<int64_t>({15, 64}));
  trireme_program_destroy(program);
}

TEST(CApi, Devices) {
  ASSERT_GE(trireme_device_count(), 2u);
  EXPECT_STREQ(trireme_device_name(0), "reference");
  EXPECT_STREQ(trireme_device_missing(0), "");
  EXPECT_EQ(trireme_device_name(1000), nullptr);
  EXPECT_EQ(trireme_device_missing(1000), nullptr);
}

TEST(CApi, fault_29_MisuseIsRefused) {
  const int64_t shape[] = {2, 8};
  trireme_program* program = nullptr;
  trireme_plan* plan = nullptr;
  trireme_args* args = nullptr;
  trireme_plan_options options = options_for(shape, 2);
  ASSERT_EQ(trireme_program_named("softmax", &program), TRIREME_OK);
  expect_refused(trireme_plan_create("cpu", nullptr, &options, &plan), TRIREME_INVALID_ARGUMENT, "program: a null");
  expect_refused(trireme_plan_create(nullptr, program, &options, &plan), TRIREME_INVALID_ARGUMENT, "device is null");
  expect_refused(trireme_plan_create("cpu", program, nullptr, &plan), TRIREME_INVALID_ARGUMENT, "options is null");
  expect_refused(trireme_plan_create("tpu", program, &options, &plan), TRIREME_NO_DEVICE, "no device named 'tpu'");
  options.struct_size = 0;
  expect_refused(trireme_plan_create("cpu", program, &options, &plan), TRIREME_INVALID_ARGUMENT, "struct_size is 0");
  struct {
    trireme_plan_options options;
    int64_t newer;
  } wider = {options_for(shape, 2), 0};
  wider.options.struct_size = sizeof wider;
  ASSERT_EQ(trireme_plan_create("cpu", program, &wider.options, &plan), TRIREME_OK) << trireme_last_error();
  EXPECT_EQ(trireme_plan_destroy(plan), TRIREME_OK);
  wider.newer = 1;
  expect_refused(trireme_plan_create("cpu", program, &wider.options, &plan), TRIREME_UNSUPPORTED, "does not have");
  options = options_for(shape, 9);
  expect_refused(trireme_plan_create("cpu", program, &options, &plan), TRIREME_INVALID_ARGUMENT, "0 to 8 axes");

  options = options_for(shape, 2);
  ASSERT_EQ(trireme_plan_create("cpu", program, &options, &plan), TRIREME_OK);
  expect_refused(trireme_args_create(reinterpret_cast<trireme_plan*>(program), &args), TRIREME_INVALID_ARGUMENT,
                 "plan");
  ASSERT_EQ(trireme_args_create(plan, &args), TRIREME_OK);
  std::vector<float> x(16, 1), y(16);
  trireme_view view = view_of(x.data(), 63);
  ASSERT_EQ(trireme_args_set(args, "x", &view), TRIREME_OK);
  view = view_of(y.data());
  ASSERT_EQ(trireme_args_set(args, "y", &view), TRIREME_OK);
  expect_refused(trireme_args_set(args, "z", &view), TRIREME_INVALID_ARGUMENT, "no array 'z'");
  view.type = 99;
  expect_refused(trireme_args_set(args, "x", &view), TRIREME_INVALID_ARGUMENT, "no type 99");
  expect_refused(trireme_plan_run(plan, args, nullptr, nullptr, 0), TRIREME_BUFFER_TOO_SMALL, "64 bytes");
  int64_t needed = 0, got = 0;
  trireme_last_error_bytes(&needed, &got);
  EXPECT_EQ(needed, 64);
  EXPECT_EQ(got, 63);
  view = view_of(x.data(), 64);
  ASSERT_EQ(trireme_args_set(args, "x", &view), TRIREME_OK);
  EXPECT_EQ(trireme_plan_run(plan, args, nullptr, nullptr, 0), TRIREME_OK) << trireme_last_error();
  EXPECT_EQ(y[5], 0.125f);
  std::thread([] { EXPECT_STREQ(trireme_last_error(), ""); }).join();  // errors are the thread's own

  EXPECT_EQ(trireme_program_destroy(program), TRIREME_OK);
  EXPECT_EQ(trireme_plan_destroy(plan), TRIREME_OK);
  expect_refused(trireme_plan_run(plan, args, nullptr, nullptr, 0), TRIREME_INVALID_ARGUMENT, "was destroyed");
  expect_refused(trireme_plan_destroy(plan), TRIREME_INVALID_ARGUMENT, "was destroyed");
  EXPECT_EQ(trireme_args_destroy(args), TRIREME_OK);
  EXPECT_EQ(trireme_plan_destroy(nullptr), TRIREME_OK);
}

TEST(CApi, fault_51_programs_without_operands) {
  const char text[] = "f(x[i,j], g[j] = 1, s[i] = mean(x), t[i] = s * c, c = 2) -> (y[i,j])\ny = x * t * g";
  trireme_program *program = nullptr, *called = nullptr, *backward = nullptr;
  ASSERT_EQ(trireme_program_parse(text, std::strlen(text), &program), TRIREME_OK) << trireme_last_error();
  auto printed = [](const trireme_program* each) {
    const char* made = nullptr;
    EXPECT_EQ(trireme_program_print(each, &made), TRIREME_OK);
    return std::string(made);
  };
  const char* absent[] = {"g", "s"};
  ASSERT_EQ(trireme_program_without(program, absent, 2, &called), TRIREME_OK) << trireme_last_error();
  EXPECT_EQ(printed(called), "f(x[i,j], t[i] = mean(x) * c, c = 2) -> (y[i,j])\n    y = x * t * 1\n");
  EXPECT_EQ(trireme_program_destroy(called), TRIREME_OK);
  const char* formulas[] = {"s", "t"};
  ASSERT_EQ(trireme_program_without(program, formulas, 2, &called), TRIREME_OK) << trireme_last_error();
  EXPECT_EQ(printed(called),
            "f(x[i,j], g[j] = 1, c = 2) -> (y[i,j])\n    s = mean(x)\n    t = s * c\n    y = x * t * g\n");
  ASSERT_EQ(trireme_program_differentiate(called, &backward), TRIREME_OK) << trireme_last_error();
  EXPECT_NE(printed(backward).find("-> (dx[i,j], dg[j])"), std::string::npos) << printed(backward);
  trireme_program* none = nullptr;
  expect_refused(trireme_program_without(backward, formulas, 1, &none), TRIREME_INVALID_ARGUMENT, "is a backward");
  for (const auto& [name, words] :
       {std::pair{"x", "'x' has no default"}, {"c", "no operand 'c'"}, {"u", "no operand 'u'"}})
    expect_refused(trireme_program_without(program, &name, 1, &none), TRIREME_INVALID_ARGUMENT, words);
  expect_refused(trireme_program_without(program, formulas, 2, nullptr), TRIREME_INVALID_ARGUMENT, "called");
  for (trireme_program* each : {program, called, backward}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
}

TEST(CApi, composes_programs) {
  trireme_program *program = nullptr, *composed = nullptr;
  ASSERT_EQ(trireme_program_named("layer_norm", &program), TRIREME_OK);
  ASSERT_EQ(trireme_program_compose(program, &composed), TRIREME_OK);
  const char* text = nullptr;
  ASSERT_EQ(trireme_program_print(composed, &text), TRIREME_OK);
  EXPECT_NE(std::string(text).find("variance_squares(x)"), std::string::npos) << text;
  trireme_split* split = nullptr;
  size_t phases = 0;
  ASSERT_EQ(trireme_program_split(composed, &split), TRIREME_OK);
  EXPECT_EQ(trireme_split_phase_count(split, &phases), TRIREME_OK);
  EXPECT_EQ(phases, 2u);
  EXPECT_EQ(trireme_program_compose(program, nullptr), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_split_destroy(split), TRIREME_OK);
  for (trireme_program* each : {program, composed}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
  EXPECT_EQ(trireme_program_compose(composed, &program), TRIREME_INVALID_ARGUMENT);  // it is gone
}

TEST(CApi, splits_programs) {
  trireme_program* program = nullptr;
  ASSERT_EQ(trireme_program_named("layer_norm", &program), TRIREME_OK);
  trireme_split* split = nullptr;
  ASSERT_EQ(trireme_program_split(program, &split), TRIREME_OK);
  size_t phases = 0, exchanges = 0;
  EXPECT_EQ(trireme_split_phase_count(split, &phases), TRIREME_OK);
  ASSERT_GE(phases, 2u);
  EXPECT_EQ(trireme_split_exchange_count(split, 0, &exchanges), TRIREME_OK);
  ASSERT_GE(exchanges, 1u);
  trireme_exchange exchange = {};
  exchange.struct_size = sizeof exchange;
  EXPECT_EQ(trireme_split_exchange(split, 0, 0, &exchange), TRIREME_OK);
  EXPECT_STREQ(exchange.reduction, "sum");
  EXPECT_STREQ(exchange.first, "sum_1");
  EXPECT_EQ(exchange.second, nullptr);
  trireme_program *phase = nullptr, *combine = nullptr;
  EXPECT_EQ(trireme_split_phase(split, phases - 1, &phase), TRIREME_OK);
  EXPECT_EQ(trireme_split_combine(split, 0, 0, &combine), TRIREME_OK);
  const char* name = nullptr;
  EXPECT_EQ(trireme_program_name(phase, &name), TRIREME_OK);
  EXPECT_STREQ(name, "layer_norm_rest");
  EXPECT_EQ(trireme_program_name(combine, &name), TRIREME_OK);
  EXPECT_STREQ(name, "combine_sum");
  trireme_program* none = nullptr;
  EXPECT_EQ(trireme_split_phase(split, phases, &none), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_split_combine(split, 0, exchanges, &none), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_split_exchange_count(split, phases, &exchanges), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_program_split(program, nullptr), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_split_destroy(split), TRIREME_OK);
  EXPECT_EQ(trireme_split_phase_count(split, &phases), TRIREME_INVALID_ARGUMENT);  // it is gone
  for (trireme_program* each : {program, phase, combine}) EXPECT_EQ(trireme_program_destroy(each), TRIREME_OK);
  ASSERT_EQ(trireme_program_named("rms_norm_mxfp8", &program), TRIREME_OK);
  ASSERT_EQ(trireme_program_split(program, &split), TRIREME_OK);
  size_t groups = 7;
  const char* group = nullptr;
  EXPECT_EQ(trireme_split_group_count(split, 0, &groups), TRIREME_OK);
  EXPECT_EQ(groups, 0u);
  EXPECT_EQ(trireme_split_group(split, 0, 0, &group), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_split_group_count(split, 1, &groups), TRIREME_OK);
  ASSERT_EQ(groups, 1u);
  ASSERT_EQ(trireme_split_group(split, 1, 0, &group), TRIREME_OK);
  EXPECT_STREQ(group, "[j / block]");
  EXPECT_EQ(trireme_split_group(split, 1, 1, &group), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_split_group(split, 1, 0, nullptr), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_split_group_count(split, 2, &groups), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_split_destroy(split), TRIREME_OK);
  trireme_program_destroy(program);
  ASSERT_EQ(trireme_program_named("rms_norm_rope", &program), TRIREME_OK);
  EXPECT_EQ(trireme_program_split(program, &split), TRIREME_UNSUPPORTED);
  EXPECT_NE(std::string(trireme_last_error()).find("cannot be split"), std::string::npos);
  trireme_program_destroy(program);
  EXPECT_EQ(trireme_row_block(4096, 40), 16);
}

}  // namespace
