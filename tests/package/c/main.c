/* Against an installed Trireme: RMS normalisation of one row, in C. */
#include <stdio.h>
#include <string.h>
#include <trireme.h>

#define MUST(call)                                              \
  do {                                                          \
    if ((call) != TRIREME_OK) {                                 \
      fprintf(stderr, "%s: %s\n", #call, trireme_last_error()); \
      return 1;                                                 \
    }                                                           \
  } while (0)

int main(void) {
  float x[4] = {1, 1, 1, 1}, y[4] = {0};
  const int64_t shape[2] = {1, 4};
  const char* absent[] = {"gamma"};
  const char* results[] = {"y"};
  const trireme_named_value constants[] = {{"eps", 3}};
  trireme_program* program = NULL;
  trireme_plan* plan = NULL;
  trireme_args* args = NULL;
  trireme_plan_options options;
  trireme_view view;

  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.shape = shape;
  options.rank = 2;
  options.threads = 1;
  options.constants = constants;
  options.constant_count = 1;
  options.absent = absent;
  options.absent_count = 1;
  options.results = results;
  options.result_count = 1;
  MUST(trireme_program_named("rms_norm", &program));
  MUST(trireme_plan_create("cpu", program, &options, &plan));
  MUST(trireme_program_destroy(program));
  MUST(trireme_args_create(plan, &args));

  memset(&view, 0, sizeof view);
  view.struct_size = sizeof view;
  view.type = TRIREME_F32;
  view.bytes = sizeof x;
  view.data = x;
  MUST(trireme_args_set(args, "x", &view));
  view.data = y;
  MUST(trireme_args_set(args, "y", &view));
  MUST(trireme_plan_run(plan, args, NULL, NULL, 0));
  MUST(trireme_args_destroy(args));
  MUST(trireme_plan_destroy(plan));
  if (trireme_plan_destroy(plan) != TRIREME_INVALID_ARGUMENT) return 1;
  puts(y[0] == 0.5f && y[3] == 0.5f ? "right" : "wrong");
  return y[0] == 0.5f && y[3] == 0.5f ? 0 : 1;
}
