// Memory for results, of the kind that the operands are.
#pragma once
#include "arrays.hpp"
#include "made_plan.hpp"

namespace trireme::python {

// Fills `array`, and gives the object. Null with a Python error.
Ref allocate_like(const Array& like, const PlanArray& wanted, Array& array);

// An array of no elements of the same type there.
Ref allocate_nothing(const Array& like);

// Device memory for the time of a call on the device of `like`: an object to hold until the call was made.
Ref allocate_workspace(const Array& like, std::size_t bytes, void*& data);

// The stream that frameworks use now.
bool current_stream(const Array& like, void*& stream);

}  // namespace trireme::python
