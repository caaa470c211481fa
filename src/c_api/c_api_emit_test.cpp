// Kernels as text and bytes, from C.
#include <gtest/gtest.h>
#include <trireme.h>

#include <cstring>
#include <string>

#include "targets/targets.hpp"

namespace {

struct Emitted {
  trireme_emission* emission = nullptr;
  trireme_emission_view view = {};
  ~Emitted() {
    if (emission) trireme_emission_destroy(emission);
  }
};

TEST(CApiEmit, GivesWhatTheToolWrites) {
  trireme_program *program = nullptr, *backward = nullptr;
  ASSERT_EQ(trireme_program_named("rms_norm", &program), TRIREME_OK);
  ASSERT_EQ(trireme_program_differentiate(program, &backward), TRIREME_OK);
  const trireme_named_type types[] = {{"x", TRIREME_BF16}};
  const char* absent[] = {"gamma"};
  for (const trireme::Target* target : trireme::targets())
    for (const trireme_program* each : {program, backward}) {
      trireme_emit_options options = {};
      options.struct_size = sizeof options;
      const std::string name(target->name);
      options.target = name.c_str();
      options.columns = 512;
      options.types = types, options.type_count = 1;
      options.absent = absent, options.absent_count = 1;
      Emitted made;
      ASSERT_EQ(trireme_emit(each, &options, &made.emission), TRIREME_OK) << trireme_last_error();
      made.view.struct_size = sizeof made.view;
      ASSERT_EQ(trireme_emission_get(made.emission, &made.view), TRIREME_OK) << trireme_last_error();
      EXPECT_GT(made.view.byte_count, 100u);
      EXPECT_NE(std::strstr(made.view.manifest, "\"columns\":"), nullptr) << made.view.manifest;
      EXPECT_NE(std::strstr(made.view.description, "512 columns"), nullptr) << made.view.description;
      EXPECT_NE(std::strstr(made.view.c_constants, "#define RMS_NORM"), nullptr);
    }
  trireme_program_destroy(backward);
  trireme_program_destroy(program);
}

TEST(CApiEmit, Refusals) {
  trireme_program* program = nullptr;
  ASSERT_EQ(trireme_program_named("rms_norm", &program), TRIREME_OK);
  trireme_emission* emission = nullptr;
  trireme_emit_options options = {};
  EXPECT_EQ(trireme_emit(program, nullptr, &emission), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_emit(program, &options, &emission), TRIREME_INVALID_ARGUMENT);  // no struct_size
  options.struct_size = sizeof options;
  EXPECT_EQ(trireme_emit(program, &options, &emission), TRIREME_INVALID_ARGUMENT);  // no target
  options.target = "abacus";
  EXPECT_EQ(trireme_emit(program, &options, &emission), TRIREME_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(trireme_last_error(), "abacus"), nullptr);
  EXPECT_EQ(trireme_emit(nullptr, &options, &emission), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(emission, nullptr);
  EXPECT_EQ(trireme_emission_destroy(nullptr), TRIREME_OK);  // as free() does
  trireme_program_destroy(program);
}

}  // namespace
