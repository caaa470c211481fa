// What `trireme bench` says of its measurements: a table for people, CSV for programs; json.cpp has JSON.
#pragma once
#include <string>
#include <vector>

#include "measure.hpp"

namespace trireme::cli {

double gigabytes_per_second(const Measurement& measured, double seconds);
double share_of_copy(const Measurement& measured);  // of the fastest copy's speed: 1.00 is all the memory gives

std::string table_head(const Measurement& measured);
std::string table_rows(const Measurement& measured);
std::string as_csv(const std::vector<Measurement>& all);

}  // namespace trireme::cli
