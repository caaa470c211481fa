// The part of the C ABI that runs plans: arguments and workspaces.
#include "c_api/guard.hpp"

using namespace trireme;
using namespace trireme::c_api;

trireme_status trireme_args_create(const trireme_plan* plan, trireme_args** args) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Plans::get(plan, "plan"));
    TRIREME_CHECK(given(args, "args"));
    *args = static_cast<trireme_args*>(ArgsHandles::add(std::make_unique<Args>(object->plan.args())));
    return Done{};
  });
}

trireme_status trireme_args_set(trireme_args* args, const char* name, const trireme_view* view) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, ArgsHandles::get(args, "args"));
    TRIREME_CHECK(given(name, "name"));
    TRIREME_TRY(converted, view_of(view));
    TRIREME_TRY(slot, object->slot(name));
    slot = converted;
    return Done{};
  });
}

trireme_status trireme_args_set_at(trireme_args* args, size_t index, const trireme_view* view) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, ArgsHandles::get(args, "args"));
    TRIREME_TRY(converted, view_of(view));
    TRIREME_TRY(slot, object->slot(index));
    slot = converted;
    return Done{};
  });
}

trireme_status trireme_args_destroy(trireme_args* args) {
  return guarded([&] { return ArgsHandles::remove(args, "args"); });
}

trireme_status trireme_plan_check(const trireme_plan* plan, trireme_args* args) {
  return guarded([&]() -> Status {
    TRIREME_TRY(made, Plans::get(plan, "plan"));
    TRIREME_TRY(object, ArgsHandles::get(args, "args"));
    return made->plan.check(*object);
  });
}

trireme_status trireme_plan_run(const trireme_plan* plan, trireme_args* args, void* stream, void* workspace,
                                size_t workspace_bytes) {
  return guarded([&]() -> Status {
    TRIREME_TRY(made, Plans::get(plan, "plan"));
    TRIREME_TRY(object, ArgsHandles::get(args, "args"));
    if (!workspace) workspace_bytes = 0;
    return made->plan.run(*object, {stream}, {static_cast<std::byte*>(workspace), workspace_bytes});
  });
}

trireme_status trireme_workspace_create(const trireme_plan* plan, trireme_workspace** workspace) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Plans::get(plan, "plan"));
    TRIREME_CHECK(given(workspace, "workspace"));
    TRIREME_TRY(made, object->plan.make_workspace());
    *workspace = static_cast<trireme_workspace*>(Workspaces::add(std::make_unique<Workspace>(made)));
    return Done{};
  });
}

trireme_status trireme_workspace_memory(const trireme_workspace* workspace, void** memory, size_t* bytes) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Workspaces::get(workspace, "workspace"));
    TRIREME_CHECK(given(memory, "memory"));
    TRIREME_CHECK(given(bytes, "bytes"));
    *memory = object->span().data();
    *bytes = object->span().size();
    return Done{};
  });
}

trireme_status trireme_workspace_destroy(trireme_workspace* workspace) {
  return guarded([&] { return Workspaces::remove(workspace, "workspace"); });
}
