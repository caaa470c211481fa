// What the files of the C ABI share: the objects behind handles, the thread's last error, and the guard that turns what
// C++ says into C.
#pragma once
#include <trireme.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "c_api/handles.hpp"
#include "support/out_of_memory.hpp"
#include "trireme/plan.hpp"

namespace trireme::c_api {

struct ProgramObject {
  RowProgram program;
  std::string text;
  std::vector<RowProgram::Parameter> parameters;
};
struct PlanObject {
  Plan plan;
  std::string description, sku, line;
  std::vector<std::string> names;  // of the arrays
};

struct SplitObject {
  std::vector<RowProgram::Phase> phases;
};

using Programs = Handles<ProgramObject>;
using Splits = Handles<SplitObject>;
using Plans = Handles<PlanObject>;
using ArgsHandles = Handles<Args>;
using Workspaces = Handles<Workspace>;

inline thread_local Error last_error{Code::Internal, ""};

inline trireme_status fails(Error error) {
  last_error = std::move(error);
  return static_cast<trireme_status>(static_cast<int>(last_error.code) + 1);
}

inline trireme_status fails_by(const char* exception) noexcept {
  try {
    return fails({Code::Internal, exception});
  } catch (...) {  // its text needs memory
    return fails(out_of_memory());
  }
}

// Runs `body`, which returns a Status, and turns what it says into C.
template <typename Body>
trireme_status guarded(Body&& body) noexcept {
  try {
    Status status = body();
    return status ? TRIREME_OK : fails(status.error());
  } catch (const std::bad_alloc&) {
    return fails(out_of_memory());
  } catch (const std::exception& error) {
    return fails_by(error.what());
  } catch (...) {
    return fails_by("an exception of unknown type");
  }
}

inline Error invalid(std::string message) { return {Code::InvalidArgument, std::move(message)}; }

template <typename T>
Status given(const T* pointer, const char* what) {
  if (pointer) return Done{};
  return invalid(std::string(what) + " is null");
}

template <typename T, typename Each>
Status each_of(const T* list, std::size_t count, const char* what, Each&& each) {
  if (count > 0) TRIREME_CHECK(given(list, what));
  for (std::size_t k = 0; k < count; ++k) TRIREME_CHECK(each(list[k]));
  return Done{};
}

// A structure of a caller that may be older or newer than this library. `first_bytes`: what the first version had.
template <typename T>
Result<T> versioned(const T* given, const char* what, std::size_t first_bytes) {
  if (!given) return invalid(std::string(what) + " is null");
  std::size_t size = given->struct_size;
  if (size < first_bytes)
    return invalid(std::string(what) + ".struct_size is " + std::to_string(size) +
                   "; set it to sizeof the structure, " + std::to_string(sizeof(T)));
  const char* bytes = reinterpret_cast<const char*>(given);
  for (std::size_t k = sizeof(T); k < size; ++k)
    if (bytes[k] != 0)
      return Error{Code::Unsupported, std::string(what) + ": the caller uses a field that this version does not have"};
  T value;
  std::memset(static_cast<void*>(&value), 0, sizeof value);
  std::memcpy(static_cast<void*>(&value), given, std::min(size, sizeof value));
  return value;
}

inline Result<Dims> dims_of(const std::int64_t* values, std::int32_t rank, const char* what) {
  if (rank < 0 || rank > static_cast<std::int32_t>(max_rank))
    return invalid(std::string(what) + " has 0 to 8 axes, not " + std::to_string(rank));
  if (rank > 0) TRIREME_CHECK(given(values, what));
  return Dims(std::span(values, static_cast<std::size_t>(rank)));
}

inline Result<Type> type_of(std::int32_t type) {
  if (type >= 0 && type < static_cast<std::int32_t>(type_facts.size())) return static_cast<Type>(type);
  return invalid("there is no type " + std::to_string(type));
}

inline Result<View> view_of(const trireme_view* from) {
  TRIREME_TRY(raw, versioned(from, "view", sizeof(trireme_view)));
  TRIREME_TRY(type, type_of(raw.type));
  View view{.data = const_cast<void*>(raw.data), .type = type};  // C has one view for operands and results
  TRIREME_TRY(shape, dims_of(raw.shape, raw.rank, "shape"));
  view.shape = shape;
  if (raw.strides) view.strides = dims_of(raw.strides, raw.rank, "strides").value();
  view.bytes = raw.bytes == TRIREME_UNKNOWN_BYTES ? unknown_bytes : static_cast<std::size_t>(raw.bytes);
  return view;
}

// Lists of options, by name.
inline Status read_types(const trireme_named_type* list, std::size_t count, std::map<std::string, Type>& into) {
  return each_of(list, count, "types", [&](const trireme_named_type& each) -> Status {
    TRIREME_CHECK(given(each.name, "a name in types"));
    TRIREME_TRY(type, type_of(each.type));
    into[each.name] = type;
    return Done{};
  });
}
inline Status read_constants(const trireme_named_value* list, std::size_t count, std::map<std::string, double>& into) {
  return each_of(list, count, "constants", [&](const trireme_named_value& each) -> Status {
    TRIREME_CHECK(given(each.name, "a name in constants"));
    into[each.name] = each.value;
    return Done{};
  });
}
inline Status read_names(const char* const* list, std::size_t count, const char* what, std::set<std::string>& into) {
  return each_of(list, count, what, [&](const char* name) -> Status {
    TRIREME_CHECK(given(name, (std::string("a name in ") + what).c_str()));
    into.insert(name);
    return Done{};
  });
}

}  // namespace trireme::c_api
