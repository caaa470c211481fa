#include "self_check.hpp"

#include <fmt/format.h>

#include <limits>

#include "device_choice.hpp"
#include "plan/difference.hpp"
#include "support/float_types.hpp"

namespace trireme::cli {
namespace {

constexpr std::string_view program_text = R"(
self_test(a[i,j], b[i,j], c[i,j]) -> (contracted[i,j], least[i,j], most[i,j], quotient[i,j], root[i,j], total[i], least_of_row[i])
    contracted   = a * b + c
    least        = min(a, b)
    most         = max(a, b)
    quotient     = a / b
    root         = sqrt(a)
    total        = sum(select(abs(a * b * c) < inf, a * b * c, -0.0))
    least_of_row = amin(a)
)";

constexpr double infinity = std::numeric_limits<double>::infinity();

// In f32, (1 + 2^-12)^2 rounds to another number than the fused product gives; 0x1p-149 is the smallest subnormal.
constexpr double values[] = {
    0.0,       -0.0,     1.0,      -1.0,           1 + 0x1p-12, -1 - 0x1p-11, 0x1p-75,
    -0x1p-126, 0x1p-127, 0x1p-149, 0x1.fffffep127, infinity,    -infinity,    std::numeric_limits<double>::quiet_NaN()};
constexpr std::int64_t count = std::size(values);

// Row a holds every pair (b, c); so every triple is met once.
void fill(Prepared& prepared) {
  for (std::int64_t a = 0; a < count; ++a)
    for (std::int64_t b = 0; b < count; ++b)
      for (std::int64_t c = 0; c < count; ++c) {
        const std::int64_t of[] = {a, b, c};
        for (int k = 0; k < 3; ++k)
          store_f64(prepared.operands()[k].type, prepared.operands()[k].entry(a, b * count + c), values[of[k]]);
      }
}

}  // namespace

Result<std::string> self_test(const DeviceEntry& device) {
  for (const char* type : {"f32", "f64", "f16", "bf16"}) {
    TRIREME_TRY(problem, parse_problem(fmt::format("self_test.row {}x{} a={}", count, count * count, type)));
    TRIREME_TRY(prepared, prepare_problem(problem, program_text));
    fill(prepared);
    TRIREME_CHECK(run_once(reference_device(), prepared, {}));
    KeptResults wanted = keep_results(prepared);
    TRIREME_CHECK(run_once(device, prepared, {}));
    if (std::optional<Difference> first = first_difference(prepared, wanted))
      return fmt::format("in {}: {} got {} want {}", type, first->element, first->got, first->want);
  }
  return std::string();
}

}  // namespace trireme::cli
