// For tests: a register of each bank, as the printed kernel names them.
#pragma once
#include "schedule/kernel.hpp"

namespace trireme {

constexpr Reg f(int id) { return {Bank::Lane, id}; }
constexpr Reg m(int id) { return {Bank::Mask, id}; }
constexpr Reg x(int id) { return {Bank::Index, id}; }
constexpr Reg p(int id) { return {Bank::Pointer, id}; }

}  // namespace trireme
