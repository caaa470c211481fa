// What is behind a Plan and its Args.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "devices/device.hpp"
#include "layout/buffers.hpp"
#include "layout/flatten.hpp"
#include "layout/indexing.hpp"
#include "layout/overlap.hpp"
#include "trireme/plan.hpp"

namespace trireme {

// One array of the plan: what a view of it must be.
struct PlanArray {
  std::string name;
  bool result = false;
  std::size_t number = 0;  // as Program::array counts them
  Type type = Type::F32;
  Indexing indexing;
  ArrayAxes axes;                      // the expected shape is one after the other
  Dims strides;                        // of that shape, where the view has none
  std::int64_t rows = 1, columns = 1;  // entries; of a packed type bytes
  bool needed = true;                  // an operand that nothing reads may be left out
  ArrayLayout layout;                  // what is compiled for
  std::size_t in_place = none;         // of a result: the operand's place in PlanState::arrays
  static constexpr std::size_t none = ~std::size_t{0};

  Dims shape() const { return axes.all(); }
};

struct PlanState {
  Device device;
  Program program;  // expanded
  std::string source_name;
  bool backward = false;
  std::string line;  // the problem line
  Dims shape;
  int axes = 1;
  std::int64_t rows = 0, columns = 0;
  std::vector<double> constants;
  std::vector<PlanArray> arrays;  // operands in memory, then results
  RunOptions options;
  std::unique_ptr<Executable> executable;
  const DirectExecutable* direct = nullptr;  // the same
  DirectExecutable::MemoryBytes memory;

  Error wrong(Code code, std::string message) const { return {code, message + "; problem line: " + line}; }
  std::optional<std::size_t> find(std::string_view name) const;
  Error unknown(std::string_view name) const;
};

struct ArgsState {
  std::shared_ptr<const PlanState> plan;
  std::vector<View> views;         // as PlanState::arrays
  std::string unknown;             // a name that the plan does not have
  bool checked = false;            // since the last change
  std::vector<const void*> known;  // as PlanState::arrays: the memory that was last found to be the device's
  // Made of the views by the check.
  std::vector<Extent> extents;
  std::vector<Array> arrays;  // as Program::array counts them
  std::vector<std::byte, CacheLineAllocator<std::byte>> own;
  const std::byte* workspace = nullptr;  // that was last found to lie on none of the arrays
};

// Turns views into arrays, or says what is wrong with them. Allocates nothing unless something is.
Status check_arguments(ArgsState& args);
Status check_workspace(ArgsState& args, std::span<std::byte> workspace);  // it lies on none of the arrays

// A view as rows and columns, packed ones as bytes, whether or not it was compiled for. Shapes with ones for the
// missing axes are taken too.
Result<Array> flattened(const PlanState& plan, const PlanArray& array, const View& view);

}  // namespace trireme
