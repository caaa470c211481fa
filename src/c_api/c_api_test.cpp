// The C ABI as its callers see it, and what it says of misuse.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "trireme.h"

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
  view.type = 8;
  expect_refused(trireme_args_set(args, "x", &view), TRIREME_INVALID_ARGUMENT, "no type 8");
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

}  // namespace
