// The settings of the environment, held against the tables of devices and targets too.
#pragma once
#include "support/environment.hpp"

namespace trireme {

Status check_setting(const environment::Setting& setting);

// The first setting whose value is wrong, as environment::check().
Status check_settings();

}  // namespace trireme
