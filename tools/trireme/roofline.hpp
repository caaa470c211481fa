// A picture of measurements: GB/s over instructions per byte, under two roofs that were measured too.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "measure.hpp"

namespace trireme::cli {

// Billions of instructions a second, counted as math/functions.hpp counts them, by the names of devices; those that are
// missing have no second roof.
using ArithmeticRoofs = std::map<std::string, double>;

// What every picture says of itself.
struct PictureFacts {
  std::string processor;
  std::string version, date;
};

// One panel a device.
std::string roofline_svg(const std::vector<Measurement>& all, const ArithmeticRoofs& roofs, const PictureFacts& facts);

}  // namespace trireme::cli
