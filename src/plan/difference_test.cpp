#include "plan/difference.hpp"

#include <gtest/gtest.h>

#include "support/float_types.hpp"

namespace trireme {
namespace {

Prepared prepared() { return prepare_problem(parse_problem("rms_norm 3x5 x=bf16 y=bf16+2:9").value()).value(); }

TEST(Difference, names_the_first_element_with_other_bits) {
  Prepared run = prepared();
  KeptResults wanted = keep_results(run);
  EXPECT_FALSE(first_difference(run, wanted));
  store_bits(Type::F32, run.results()[1].entry(2, 0), 0x3F800000);
  EXPECT_EQ(first_difference(run, wanted)->element, "rstd[2]");
  store_bits(Type::BF16, run.results()[0].entry(1, 4), 0x1E);
  Difference first = *first_difference(run, wanted);
  EXPECT_EQ(first.element, "y[1,4]");
  EXPECT_EQ(first.got, "0x001E");
  EXPECT_EQ(first.want, "0xA5A5");
}

TEST(Difference, takes_all_nans_as_equal) {
  Prepared run = prepared();
  store_bits(Type::BF16, run.results()[0].entry(0, 0), 0x7FC0);
  KeptResults wanted = keep_results(run);
  store_bits(Type::BF16, run.results()[0].entry(0, 0), 0xFF81);
  EXPECT_FALSE(first_difference(run, wanted));
}

}  // namespace
}  // namespace trireme
