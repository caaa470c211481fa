// The part of the C ABI that bindings ask: what a plan is made of, what it promises, and digests.
#include "c_api/guard.hpp"
#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/threads.hpp"

namespace trireme::c_api {
namespace {

Status give_text(const trireme_plan* plan, std::string PlanObject::*field, const char** text) {
  TRIREME_TRY(object, Plans::get(plan, "plan"));
  TRIREME_CHECK(given(text, "text"));
  *text = (object->*field).c_str();
  return Done{};
}

}  // namespace
}  // namespace trireme::c_api

using namespace trireme;
using namespace trireme::c_api;

trireme_status trireme_plan_describe(const trireme_plan* plan, const char** text) {
  return guarded([&] { return give_text(plan, &PlanObject::description, text); });
}
trireme_status trireme_plan_sku(const trireme_plan* plan, const char** text) {
  return guarded([&] { return give_text(plan, &PlanObject::sku, text); });
}
trireme_status trireme_plan_line(const trireme_plan* plan, const char** text) {
  return guarded([&] { return give_text(plan, &PlanObject::line, text); });
}

trireme_status trireme_plan_guarantee(const trireme_plan* plan, trireme_guarantee* guarantee) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Plans::get(plan, "plan"));
    TRIREME_CHECK(versioned(guarantee, "guarantee", sizeof(trireme_guarantee)));
    Guarantee from = object->plan.guarantee();
    guarantee->compute = static_cast<int32_t>(from.compute);
    guarantee->accumulator = static_cast<int32_t>(from.accumulator);
    guarantee->contract = from.contract;
    guarantee->run_to_run = from.run_to_run;
    guarantee->across_batch = from.across_batch;
    guarantee->across_threads = from.across_threads;
    guarantee->across_targets = from.across_targets;
    return Done{};
  });
}

trireme_status trireme_plan_array_count(const trireme_plan* plan, size_t* count) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Plans::get(plan, "plan"));
    TRIREME_CHECK(given(count, "count"));
    *count = object->plan.array_count();
    return Done{};
  });
}

trireme_status trireme_plan_array_at(const trireme_plan* plan, size_t index, trireme_plan_array* array) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Plans::get(plan, "plan"));
    TRIREME_CHECK(versioned(array, "array", sizeof(trireme_plan_array)));
    if (index >= object->plan.array_count())
      return invalid("the plan has " + std::to_string(object->plan.array_count()) + " arrays");
    Plan::Array from = object->plan.array(index);
    array->name = object->names[index].c_str();
    array->kind = from.result ? TRIREME_RESULT : TRIREME_OPERAND;
    array->type = static_cast<int32_t>(from.type);
    array->needed = from.needed;
    array->rank = static_cast<int32_t>(from.shape.size());
    std::fill(std::begin(array->shape), std::end(array->shape), 0);
    std::copy(from.shape.begin(), from.shape.end(), array->shape);
    return Done{};
  });
}

trireme_status trireme_digest(const char* line, const char* text, const char* device, int32_t threads,
                              char digest[TRIREME_DIGEST_BYTES]) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(line, "line"));
    TRIREME_CHECK(given(device, "device"));
    TRIREME_CHECK(given(digest, "digest"));
    TRIREME_TRY(chosen, Device::named(device));
    TRIREME_TRY(problem, parse_problem(line));
    TRIREME_TRY(prepared, prepare_problem(problem, text ? text : ""));
    TRIREME_TRY(count, threads_asked(threads));
    TRIREME_TRY(executable, chosen.entry().compile(prepared.program, facts_of(prepared.program, prepared.view())));
    TRIREME_CHECK(executable->run(prepared.view(), {.threads = count}));
    std::string found = digest_of(prepared);
    std::memcpy(digest, found.c_str(), std::min<std::size_t>(found.size() + 1, TRIREME_DIGEST_BYTES));
    return Done{};
  });
}
