// The C ABI over the public C++ headers. No exception leaves it.
#include "c_api/guard.hpp"
#include "ir/contract.hpp"
#include "plan/devices.hpp"
#include "plan/ops.hpp"

namespace trireme::c_api {
namespace {

static_assert(static_cast<int>(Type::F4E2M1) == TRIREME_F4E2M1 && static_cast<int>(Type::F64) == TRIREME_F64);
static_assert(static_cast<int>(Code::InvalidProgram) + 1 == TRIREME_INVALID_PROGRAM);
static_assert(static_cast<int>(Code::Internal) + 1 == TRIREME_INTERNAL);

Result<PlanOptions> options_of(const trireme_plan_options& from) {
  PlanOptions to{.axes = last(from.axes == 0 ? 1 : from.axes), .threads = from.threads};
  TRIREME_TRY(shape, dims_of(from.shape, from.rank, "shape"));
  to.shape = shape;
  to.parallel_for = {from.parallel_for, from.host};
  if (from.max_workspace_bytes < 0) return invalid("max_workspace_bytes is negative; 0 is no limit");
  if (from.max_workspace_bytes > 0) to.max_workspace_bytes = from.max_workspace_bytes;
  if (from.config) to.config = from.config;
  TRIREME_CHECK(read_types(from.types, from.type_count, to.types));
  TRIREME_CHECK(read_constants(from.constants, from.constant_count, to.constants));
  TRIREME_CHECK(read_names(from.absent, from.absent_count, "absent", to.absent));
  TRIREME_CHECK(read_names(from.accumulate, from.accumulate_count, "accumulate", to.accumulate));
  to.row_block = from.row_block;
  if (from.results) to.results.emplace();
  if (from.result_count > 0) TRIREME_CHECK(given(from.results, "results"));
  if (from.results) TRIREME_CHECK(read_names(from.results, from.result_count, "results", *to.results));
  TRIREME_CHECK(each_of(from.in_place, from.in_place_count, "in_place", [&](const trireme_in_place& each) -> Status {
    TRIREME_CHECK(given(each.result, "a result in in_place"));
    TRIREME_CHECK(given(each.operand, "an operand in in_place"));
    to.in_place[each.result] = each.operand;
    return Done{};
  }));
  TRIREME_CHECK(each_of(from.strides, from.stride_count, "strides", [&](const trireme_named_strides& each) -> Status {
    TRIREME_CHECK(given(each.name, "a name in strides"));
    TRIREME_TRY(strides, dims_of(each.strides, each.rank, each.name));
    to.strides[each.name] = strides;
    return Done{};
  }));
  return to;
}

Status give_program(Result<RowProgram> program, trireme_program** out) {
  if (!program) return program.error();
  auto object = std::make_unique<ProgramObject>();
  object->text = program->print();
  object->parameters = program->signature();
  object->program = std::move(*program);
  *out = static_cast<trireme_program*>(Programs::add(std::move(object)));
  return Done{};
}

}  // namespace
}  // namespace trireme::c_api

using namespace trireme;
using namespace trireme::c_api;

const char* trireme_last_error(void) { return last_error.message.c_str(); }
void trireme_last_error_bytes(int64_t* needed, int64_t* got) {
  if (needed) *needed = last_error.needed;
  if (got) *got = last_error.got;
}
const char* trireme_version(void) { return TRIREME_VERSION; }
int32_t trireme_contract_version(void) { return contract::version; }
int64_t trireme_row_block(int64_t rows, int64_t entries) {
  return contract::row_block(std::max<int64_t>(rows, 0), entries);
}

// ---- programs ----

size_t trireme_operator_count(void) { return operator_texts().size(); }
const char* trireme_operator_name(size_t index) {
  return index < operator_texts().size() ? operator_texts()[index].name.data() : nullptr;  // literals: they end in 0
}
const char* trireme_operator_text(size_t index) {
  return index < operator_texts().size() ? operator_texts()[index].text.data() : nullptr;
}

trireme_status trireme_program_parse(const char* text, size_t bytes, trireme_program** program) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(text, "text"));
    TRIREME_CHECK(given(program, "program"));
    return give_program(RowProgram::parse({text, bytes}), program);
  });
}

trireme_status trireme_program_named(const char* name, trireme_program** program) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(name, "name"));
    TRIREME_CHECK(given(program, "program"));
    return give_program(RowProgram::named(name), program);
  });
}

trireme_status trireme_program_differentiate(const trireme_program* program, trireme_program** backward) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(backward, "backward"));
    return give_program(object->program.differentiate(), backward);
  });
}

trireme_status trireme_program_without(const trireme_program* program, const char* const* absent, size_t absent_count,
                                       trireme_program** called) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(called, "called"));
    std::set<std::string> names;
    TRIREME_CHECK(read_names(absent, absent_count, "absent", names));
    return give_program(object->program.without(names), called);
  });
}

trireme_status trireme_program_compose(const trireme_program* program, trireme_program** composed) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(composed, "composed"));
    return give_program(object->program.compose(), composed);
  });
}

trireme_status trireme_program_differentiate_for(const trireme_program* program, const char* const* gradients,
                                                 size_t gradient_count, trireme_program** backward) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(backward, "backward"));
    DifferentiateOptions options;
    TRIREME_CHECK(read_names(gradients, gradient_count, "gradients", options.gradients.emplace()));
    return give_program(object->program.differentiate(options), backward);
  });
}

trireme_status trireme_program_name(const trireme_program* program, const char** name) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(name, "name"));
    *name = object->program.name().c_str();
    return Done{};
  });
}

trireme_status trireme_program_print(const trireme_program* program, const char** text) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(text, "text"));
    *text = object->text.c_str();
    return Done{};
  });
}

trireme_status trireme_program_parameter_count(const trireme_program* program, size_t* count) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(count, "count"));
    *count = object->parameters.size();
    return Done{};
  });
}

trireme_status trireme_program_parameter(const trireme_program* program, size_t index, trireme_parameter* parameter) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(versioned(parameter, "parameter", offsetof(trireme_parameter, fallback)));
    if (index >= object->parameters.size())
      return invalid("the program has " + std::to_string(object->parameters.size()) + " parameters");
    const RowProgram::Parameter& each = object->parameters[index];
    parameter->name = each.name.c_str();
    parameter->spread = each.spread.c_str();
    parameter->kind = static_cast<int32_t>(each.kind);
    parameter->optional = each.optional;
    if (parameter->struct_size > offsetof(trireme_parameter, fallback))
      parameter->fallback = each.fallback.value_or(std::numeric_limits<double>::quiet_NaN());
    return Done{};
  });
}

trireme_status trireme_program_destroy(trireme_program* program) {
  return guarded([&] { return Programs::remove(program, "program"); });
}

// ---- rows over machines ----

namespace {

Result<RowProgram::Phase*> phase_of(const trireme_split* split, size_t phase) {
  TRIREME_TRY(object, Splits::get(split, "split"));
  if (phase >= object->phases.size())
    return invalid("the program has " + std::to_string(object->phases.size()) + " phases");
  return &object->phases[phase];
}

Result<RowProgram::Exchange*> exchange_of(const trireme_split* split, size_t phase, size_t index) {
  TRIREME_TRY(found, phase_of(split, phase));
  if (index >= found->exchanges.size())
    return invalid("the phase has " + std::to_string(found->exchanges.size()) + " exchanges");
  return &found->exchanges[index];
}

}  // namespace

trireme_status trireme_program_split(const trireme_program* program, trireme_split** split) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(split, "split"));
    TRIREME_TRY(phases, object->program.split());
    auto made = std::make_unique<SplitObject>(SplitObject{std::move(phases)});
    *split = static_cast<trireme_split*>(Splits::add(std::move(made)));
    return Done{};
  });
}

trireme_status trireme_split_phase_count(const trireme_split* split, size_t* count) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Splits::get(split, "split"));
    TRIREME_CHECK(given(count, "count"));
    *count = object->phases.size();
    return Done{};
  });
}

trireme_status trireme_split_phase(const trireme_split* split, size_t phase, trireme_program** program) {
  return guarded([&]() -> Status {
    TRIREME_TRY(found, phase_of(split, phase));
    TRIREME_CHECK(given(program, "program"));
    return give_program(found->program, program);
  });
}

trireme_status trireme_split_group_count(const trireme_split* split, size_t phase, size_t* count) {
  return guarded([&]() -> Status {
    TRIREME_TRY(found, phase_of(split, phase));
    TRIREME_CHECK(given(count, "count"));
    *count = found->groups.size();
    return Done{};
  });
}

trireme_status trireme_split_group(const trireme_split* split, size_t phase, size_t index, const char** group) {
  return guarded([&]() -> Status {
    TRIREME_TRY(found, phase_of(split, phase));
    TRIREME_CHECK(given(group, "group"));
    if (index >= found->groups.size())
      return invalid("the phase has " + std::to_string(found->groups.size()) + " groups");
    *group = found->groups[index].c_str();
    return Done{};
  });
}

trireme_status trireme_split_exchange_count(const trireme_split* split, size_t phase, size_t* count) {
  return guarded([&]() -> Status {
    TRIREME_TRY(found, phase_of(split, phase));
    TRIREME_CHECK(given(count, "count"));
    *count = found->exchanges.size();
    return Done{};
  });
}

trireme_status trireme_split_exchange(const trireme_split* split, size_t phase, size_t index,
                                      trireme_exchange* exchange) {
  return guarded([&]() -> Status {
    TRIREME_TRY(found, exchange_of(split, phase, index));
    TRIREME_CHECK(versioned(exchange, "exchange", sizeof(trireme_exchange)));
    exchange->reduction = found->reduction.c_str();
    exchange->first = found->names[0].c_str();
    exchange->second = found->names.size() > 1 ? found->names[1].c_str() : nullptr;
    return Done{};
  });
}

trireme_status trireme_split_combine(const trireme_split* split, size_t phase, size_t index,
                                     trireme_program** program) {
  return guarded([&]() -> Status {
    TRIREME_TRY(found, exchange_of(split, phase, index));
    TRIREME_CHECK(given(program, "program"));
    return give_program(found->combine, program);
  });
}

trireme_status trireme_split_destroy(trireme_split* split) {
  return guarded([&] { return Splits::remove(split, "split"); });
}

// ---- devices ----

// These have no status to return: where memory runs out there are no devices, and the reason says so.
size_t trireme_device_count(void) {
  size_t count = 0;
  guarded([&]() -> Status { return count = devices().size(), Done{}; });
  return count;
}
const char* trireme_device_name(size_t index) {
  const char* name = nullptr;
  guarded([&]() -> Status {
    if (index < devices().size()) name = devices()[index].name.c_str();
    return Done{};
  });
  return name;
}
const char* trireme_device_missing(size_t index) {
  const char* text = nullptr;
  const trireme_status status = guarded([&]() -> Status {
    if (index >= devices().size()) return Done{};
    thread_local std::string missing;
    missing = devices()[index].missing();
    text = missing.c_str();
    return Done{};
  });
  return status == TRIREME_OK ? text : trireme_last_error();
}

// ---- plans ----

trireme_status trireme_problem_shape(const trireme_program* program, const trireme_named_shape* arrays,
                                     size_t array_count, int32_t axes, const trireme_named_value* constants,
                                     size_t constant_count, int64_t* shape, int32_t* rank) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(shape, "shape"));
    TRIREME_CHECK(given(rank, "rank"));
    std::map<std::string, Dims> shapes;
    TRIREME_CHECK(each_of(arrays, array_count, "arrays", [&](const trireme_named_shape& each) -> Status {
      TRIREME_CHECK(given(each.name, "a name in arrays"));
      TRIREME_TRY(dims, dims_of(each.shape, each.rank, each.name));
      shapes[each.name] = dims;
      return Done{};
    }));
    std::map<std::string, double> values;
    TRIREME_CHECK(read_constants(constants, constant_count, values));
    TRIREME_TRY(found, problem_shape(object->program, shapes, last(std::max(axes, 1)), values));
    if (found.size() > max_rank)
      return invalid("the problem's shape would have " + std::to_string(found.size()) + " axes");
    std::copy(found.begin(), found.end(), shape);
    *rank = static_cast<int32_t>(found.size());
    return Done{};
  });
}

trireme_status trireme_plan_create(const char* device, const trireme_program* program,
                                   const trireme_plan_options* options, trireme_plan** plan) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(device, "device"));
    TRIREME_CHECK(given(plan, "plan"));
    TRIREME_TRY(found, Device::named(device));
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_TRY(raw, versioned(options, "options", offsetof(trireme_plan_options, max_workspace_bytes)));
    TRIREME_TRY(converted, options_of(raw));
    converted.program = object->program;
    TRIREME_TRY(made, Plan::create(found, converted));
    auto kept =
        std::make_unique<PlanObject>(PlanObject{made, made.describe(), print(made.sku()), made.line(), made.names()});
    *plan = static_cast<trireme_plan*>(Plans::add(std::move(kept)));
    return Done{};
  });
}

trireme_status trireme_plan_workspace_bytes(const trireme_plan* plan, size_t* bytes) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Plans::get(plan, "plan"));
    TRIREME_CHECK(given(bytes, "bytes"));
    *bytes = object->plan.workspace_bytes();
    return Done{};
  });
}

trireme_status trireme_plan_prepare(const trireme_plan* plan) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Plans::get(plan, "plan"));
    return object->plan.prepare();
  });
}

trireme_status trireme_plan_destroy(trireme_plan* plan) {
  return guarded([&] { return Plans::remove(plan, "plan"); });
}
