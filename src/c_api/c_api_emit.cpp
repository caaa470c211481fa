// The part of the C ABI that gives kernels as text and bytes.
#include "c_api/guard.hpp"
#include "trireme/emit.hpp"

namespace trireme::c_api {
namespace {

using Emissions = Handles<Emission>;

Result<EmitOptions> options_of(const trireme_emit_options& raw) {
  EmitOptions options;
  TRIREME_CHECK(given(raw.target, "options.target"));
  options.target = raw.target;
  if (raw.arch) options.arch = raw.arch;
  if (raw.config) options.config = raw.config;
  if (raw.rows) options.rows = raw.rows;
  if (raw.columns) options.columns = raw.columns;
  TRIREME_CHECK(read_types(raw.types, raw.type_count, options.types));
  TRIREME_CHECK(read_constants(raw.constants, raw.constant_count, options.constants));
  TRIREME_CHECK(read_names(raw.absent, raw.absent_count, "absent", options.absent));
  return options;
}

}  // namespace
}  // namespace trireme::c_api

using namespace trireme;
using namespace trireme::c_api;

trireme_status trireme_emit(const trireme_program* program, const trireme_emit_options* options,
                            trireme_emission** emission) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(emission, "emission"));
    TRIREME_TRY(raw, versioned(options, "options", sizeof(trireme_emit_options)));
    TRIREME_TRY(read, options_of(raw));
    read.program = object->program;
    TRIREME_TRY(made, emit(read));
    *emission = static_cast<trireme_emission*>(Emissions::add(std::make_unique<Emission>(std::move(made))));
    return Done{};
  });
}

trireme_status trireme_emission_get(const trireme_emission* emission, trireme_emission_view* view) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Emissions::get(emission, "emission"));
    TRIREME_CHECK(versioned(view, "view", sizeof(trireme_emission_view)));
    const std::size_t size = view->struct_size;
    *view = {.struct_size = size,
             .bytes = object->bytes.data(),
             .byte_count = object->bytes.size(),
             .arch = object->arch.c_str(),
             .config = object->config.c_str(),
             .description = object->description.c_str(),
             .manifest = object->manifest.c_str(),
             .c_constants = object->c_constants.c_str()};
    return Done{};
  });
}

trireme_status trireme_emission_destroy(trireme_emission* emission) {
  return guarded([&] { return Emissions::remove(emission, "emission"); });
}
