// Kernels as text and bytes, in process: every operator, direction and target; what the tool writes.
#include <gtest/gtest.h>

#include "trireme/emit.hpp"

namespace trireme {
namespace {

RowProgram norm() { return RowProgram::named("rms_norm").value(); }

TEST(Emission, every_operator_for_every_target) {
  int emitted = 0;
  for (const std::string& name : RowProgram::names())
    for (bool backward : {false, true}) {
      RowProgram program = RowProgram::named(name).value();
      if (backward) {
        Result<RowProgram> derived = program.differentiate();
        if (!derived) continue;
        program = *derived;
      }
      EmitOptions options{.program = program, .columns = 512};
      for (const RowProgram::Parameter& each : program.signature())
        if (each.kind == RowProgram::Kind::Constant && !each.optional) options.constants[each.name] = 4;
      if (name == "cross_entropy") options.types["target"] = Type::I32;
      for (const std::string& target : emit_targets()) {
        options.target = target;
        const Result<Emission> made = emit(options);
        ASSERT_TRUE(made) << name << " " << backward << " " << target << ": " << made.error().message;
        EXPECT_FALSE(made->bytes.empty());
        EXPECT_EQ(made->manifest.front(), '{');
        EXPECT_EQ(made->manifest.back(), '}');
        EXPECT_NE(made->manifest.find("\"program\":\"" + program.name() + "\""), std::string::npos) << made->manifest;
        EXPECT_NE(made->description.find("args[0]: "), std::string::npos) << made->description;
        EXPECT_NE(c_header(*made).find("_" + target + "[] = {"), std::string::npos);
        ++emitted;
      }
    }
  EXPECT_GT(emitted, 100);
}

TEST(Emission, says_what_it_was_made_for) {
  const Emission ptx =
      emit({.program = norm(), .target = "ptx", .arch = "sm_90", .types = {{"x", Type::BF16}}}).value();
  EXPECT_EQ(ptx.arch, "sm_90");
  const std::string text(ptx.bytes.begin(), ptx.bytes.end());
  EXPECT_NE(text.find(".target sm_90"), std::string::npos);
  EXPECT_NE(text.find(".entry rms_norm"), std::string::npos);
  EXPECT_NE(ptx.manifest.find("\"entries\":[{\"name\":\"rms_norm\",\"threads\":"), std::string::npos) << ptx.manifest;
  const Emission code = emit({.program = norm().differentiate().value(), .target = "x86"}).value();
  EXPECT_EQ(code.arch, "avx2");
  EXPECT_NE(code.manifest.find("\"columnsEntry\":"), std::string::npos) << code.manifest;
  EXPECT_EQ(emit({.program = norm(), .target = "x86", .config = code.config}).value().config, code.config);
  const Emission module = emit({.program = norm(), .target = "wasm"}).value();
  EXPECT_EQ(std::string(module.bytes.begin(), module.bytes.begin() + 4), std::string("\0asm", 4));
}

TEST(Emission, refusals) {
  auto says = [](const EmitOptions& options, const char* part) {
    const Result<Emission> made = emit(options);
    ASSERT_FALSE(made) << part;
    EXPECT_EQ(made.error().code, Code::InvalidArgument);
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  };
  says({.target = "ptx"}, "no program");
  says({.program = norm(), .target = "pdp11"}, "none of ptx");
  says({.program = norm(), .target = "x86", .arch = "mmx"}, "avx2");
  says({.program = norm(), .target = "x86", .columns = 0}, "column");
  says({.program = norm(), .target = "x86", .types = {{"z", Type::F32}}}, "has no 'z'");
  says({.program = norm(), .target = "x86", .config = "simd lanes=3"}, "lanes=3");
}

}  // namespace
}  // namespace trireme
