#include "targets/wasm/masked.hpp"

namespace trireme::wasm {
namespace {

// Where all lanes are there `whole()`, else `one(k)` for each that is.
template <typename Whole, typename One>
void by_mask(Function& f, Local<V128> mask, int lane_bytes, Whole&& whole, One&& one) {
  f.get(mask), f.op(lane_bytes == 8 ? PlainOp("i64x2.all_true") : PlainOp("i32x4.all_true"));
  const Label all = f.if_();
  whole();
  f.else_(all);
  for (int k = 0; k < 16 / lane_bytes; ++k) {
    f.get(mask), f.lane("i32x4.extract_lane", static_cast<std::uint8_t>(k * lane_bytes / 4));
    const Label present = f.if_();
    one(static_cast<std::uint8_t>(k),
        MemArg{.offset = static_cast<std::uint32_t>(k * lane_bytes), .align_log2 = std::uint8_t{2}});
    f.end(present);
  }
  f.end(all);
}

}  // namespace

Result<Callee> add_masked_load(Module& module, int lane_bytes) {
  Function f(lane_bytes == 8 ? "masked_load_64" : "masked_load_32", Type::V128);
  const auto at = f.parameter<I32>("at");
  const auto mask = f.parameter<V128>("mask"), value = f.local<V128>("value");
  by_mask(
      f, mask, lane_bytes, [&] { f.get(at), f.memory("v128.load", {.align_log2 = std::uint8_t{2}}), f.set(value); },
      [&](std::uint8_t k, const MemArg& place) {
        f.get(at), f.get(value);
        if (lane_bytes == 8) f.memory_lane("v128.load64_lane", k, place);
        else f.memory_lane("v128.load32_lane", k, place);
        f.set(value);
      });
  f.get(value);
  TRIREME_TRY(body, f.finish());
  return module.add(std::move(body));
}

Result<Callee> add_masked_store(Module& module, int lane_bytes) {
  Function f(lane_bytes == 8 ? "masked_store_64" : "masked_store_32");
  const auto at = f.parameter<I32>("at");
  const auto value = f.parameter<V128>("value"), mask = f.parameter<V128>("mask");
  by_mask(
      f, mask, lane_bytes, [&] { f.get(at), f.get(value), f.memory("v128.store", {.align_log2 = std::uint8_t{2}}); },
      [&](std::uint8_t k, const MemArg& place) {
        f.get(at), f.get(value);
        if (lane_bytes == 8) f.memory_lane("v128.store64_lane", k, place);
        else f.memory_lane("v128.store32_lane", k, place);
      });
  TRIREME_TRY(body, f.finish());
  return module.add(std::move(body));
}

}  // namespace trireme::wasm
