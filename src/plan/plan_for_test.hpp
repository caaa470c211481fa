// What tests of plans share: arrays of samples, rms_norm by the reference, refusals.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "problem/samples.hpp"
#include "trireme/plan.hpp"

namespace trireme {

using Floats = std::vector<float>;

inline Floats sampled(std::size_t count, const char* name = "x") {
  Floats values(count);
  for (std::size_t k = 0; k < count; ++k)
    values[k] = static_cast<float>(sample_value(sample_draw(0, name, k), Type::F32, {}));
  return values;
}

inline View view(Floats& values, Dims shape = {}, Dims strides = {}) {
  return {values.data(), Type::F32, shape, strides, values.size() * sizeof(float)};
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline RowProgram rms_norm() { return RowProgram::named("rms_norm").value(); }
inline Device cpu() { return Device::cpu().value(); }
// Where the reference serves there are neither workspaces nor threads.
inline bool has_kernels() { return cpu().name() != "reference"; }

// What the refusal says; empty if there is none.
template <typename T>
std::string refusal(const Result<T>& result) {
  return result ? "" : std::string(name(result.error().code)) + ": " + result.error().message;
}
template <typename T>
void expect_refused(const Result<T>& result, Code code, const std::string& part) {
  ASSERT_FALSE(result) << "not refused: " << part;
  EXPECT_EQ(name(result.error().code), name(code)) << result.error().message;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
}

// rms_norm of contiguous x by the reference device.
struct Normalised {
  Floats y, rstd;
};
inline Normalised by_reference(Floats x, std::int64_t rows, std::int64_t columns) {
  Normalised out{Floats(rows * columns), Floats(rows)};
  Floats gamma = sampled(columns, "gamma");
  Plan plan = Plan::create(Device::reference(), {.program = rms_norm(), .shape = {rows, columns}}).value();
  Args args = plan.args();
  args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(out.y), args["rstd"] = view(out.rstd);
  plan.run(args).value();
  return out;
}

}  // namespace trireme
