// What a check found, as JSON. docs/json.md describes the fields.
#pragma once
#include <string_view>

#include "receipt/check.hpp"
#include "support/json.hpp"

namespace trireme::receipts {

json::Object report_of(const CheckReport& report, std::string_view device);

}  // namespace trireme::receipts
