#include "devices/wasm/job.hpp"

#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {

std::vector<std::uint8_t> multiply_probe() {
  Function f("f", Type::F32);
  const auto a = f.parameter<F32>("a"), b = f.parameter<F32>("b");
  f.get(a), f.get(b), f.op("f32.mul");
  Module module({});
  module.add(f.finish().value(), "f");
  return module.encode();
}

// (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, and 0 where the product is rounded.
std::vector<std::uint8_t> madd_probe() {
  Function f("f", Type::I32);
  f.splat_const(0x1.001p0f), f.splat_const(0x1.001p0f), f.splat_const(-0x1.002p0f), f.op("f32x4.relaxed_madd");
  f.splat_const(0x1p-24f), f.op("f32x4.eq"), f.op("i32x4.all_true");
  Module module({});
  module.add(f.finish().value(), "f");
  return module.encode();
}

}  // namespace trireme::wasm
