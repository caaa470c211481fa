/* Trireme from C and from every language that can call C.
 *
 * Functions return a status; trireme_last_error() then says more, for the calling thread. Handles are opaque; each is
 * given back by its destroy function, in any order: a plan keeps what it needs of its program, arguments of their plan.
 * Structures begin with struct_size = sizeof(the structure): a newer library accepts older callers.
 * Texts that a handle returns live as long as the handle. */
#ifndef TRIREME_H
#define TRIREME_H
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRIREME_C_API __attribute__((visibility("default")))
#else
#define TRIREME_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trireme_status {
  TRIREME_OK = 0,
  TRIREME_INVALID_PROGRAM = 1,
  TRIREME_INVALID_ARGUMENT = 2,
  TRIREME_UNSUPPORTED = 3,
  TRIREME_BUFFER_TOO_SMALL = 4,
  TRIREME_NO_DEVICE = 5,
  TRIREME_DRIVER = 6,
  TRIREME_OUT_OF_MEMORY = 7,
  TRIREME_INTERNAL = 8
} trireme_status;

typedef enum trireme_type {
  TRIREME_F64 = 0,
  TRIREME_F32 = 1,
  TRIREME_F16 = 2,
  TRIREME_BF16 = 3,
  TRIREME_F8E4M3 = 4,
  TRIREME_F8E5M2 = 5,
  TRIREME_I8 = 6,
  TRIREME_I32 = 7,
  TRIREME_I64 = 8,
  TRIREME_U8 = 9,
  TRIREME_F8E8M0 = 10,
  TRIREME_F4E2M1 = 11
} trireme_type;

/* What went wrong in this thread's last call that did not return TRIREME_OK; never null. */
TRIREME_C_API const char* trireme_last_error(void);
/* Bytes, where that was TRIREME_BUFFER_TOO_SMALL. */
TRIREME_C_API void trireme_last_error_bytes(int64_t* needed, int64_t* got);
TRIREME_C_API const char* trireme_version(void);
TRIREME_C_API int32_t trireme_contract_version(void);
/* The contract's rows of a block, where `rows` rows share each of `entries` entries of a sum over rows. */
TRIREME_C_API int64_t trireme_row_block(int64_t rows, int64_t entries);

/* ---- programs ---- */

typedef struct trireme_program trireme_program;

typedef enum trireme_parameter_kind {
  TRIREME_OPERAND = 0,
  TRIREME_CONSTANT = 1,
  TRIREME_RESULT = 2
} trireme_parameter_kind;

typedef struct trireme_parameter {
  size_t struct_size;
  const char* name;
  const char* spread; /* "[i,j]"; empty for constants */
  int32_t kind;       /* trireme_parameter_kind */
  int32_t optional;   /* has a default */
  double fallback;    /* the default where it is a number, else NaN */
} trireme_parameter;

/* The operators that come with Trireme; null beyond their number. */
TRIREME_C_API size_t trireme_operator_count(void);
TRIREME_C_API const char* trireme_operator_name(size_t index);
/* Its file: comments, remarks and program. */
TRIREME_C_API const char* trireme_operator_text(size_t index);

TRIREME_C_API trireme_status trireme_program_parse(const char* text, size_t bytes, trireme_program** program);
TRIREME_C_API trireme_status trireme_program_named(const char* name, trireme_program** program);
TRIREME_C_API trireme_status trireme_program_differentiate(const trireme_program* program, trireme_program** backward);
/* The same for gradients of the results that are named, any of them but a colmax. */
TRIREME_C_API trireme_status trireme_program_differentiate_for(const trireme_program* program,
                                                               const char* const* gradients, size_t gradient_count,
                                                               trireme_program** backward);
/* What a call without these operands computes: their defaults stand in their place, and they in no signature. One whose
 * type the program asks for, largest(s), stays for its type alone. Not of a backward: differentiate what is made. */
TRIREME_C_API trireme_status trireme_program_without(const trireme_program* program, const char* const* absent,
                                                     size_t absent_count, trireme_program** called);
/* The same values, but for roundings, by fewer sweeps over the row: a variance by two means and sums of exponentials
 * shifted by a maximum become totals that are made together. It has no derivative: differentiate, then compose. */
TRIREME_C_API trireme_status trireme_program_compose(const trireme_program* program, trireme_program** composed);
TRIREME_C_API trireme_status trireme_program_name(const trireme_program* program, const char** name);
TRIREME_C_API trireme_status trireme_program_print(const trireme_program* program, const char** text);
TRIREME_C_API trireme_status trireme_program_parameter_count(const trireme_program* program, size_t* count);
TRIREME_C_API trireme_status trireme_program_parameter(const trireme_program* program, size_t index,
                                                       trireme_parameter* parameter);
TRIREME_C_API trireme_status trireme_program_destroy(trireme_program* program);

/* A program cut at its row reductions, for rows whose columns are spread over several machines. Each machine runs a
 * phase's program on its own columns, then all exchange what is listed: neighbouring parts are combined in pairs, level
 * by level, an odd last one moving up unchanged; later phases take the totals as operands of the same names. Constants
 * `columns` and `first_column` are the whole row's columns and where a machine's begin. Programs that are given out are
 * the caller's to destroy. */
typedef struct trireme_split trireme_split;

typedef struct trireme_exchange {
  size_t struct_size;
  const char* reduction; /* "sum", "amax", "amin", "variance", "logsumexp" */
  const char* first;     /* result of the phase's program that is exchanged */
  const char* second;    /* another that is combined with it; null where there is none */
} trireme_exchange;

TRIREME_C_API trireme_status trireme_program_split(const trireme_program* program, trireme_split** split);
TRIREME_C_API trireme_status trireme_split_phase_count(const trireme_split* split, size_t* count);
TRIREME_C_API trireme_status trireme_split_phase(const trireme_split* split, size_t phase, trireme_program** program);
/* What a phase divides j by, as "[j / group]": a machine's columns must begin and end with whole groups of it (but for
 * the last one of the row). The text is the split's own. */
TRIREME_C_API trireme_status trireme_split_group_count(const trireme_split* split, size_t phase, size_t* count);
TRIREME_C_API trireme_status trireme_split_group(const trireme_split* split, size_t phase, size_t index,
                                                 const char** group);
TRIREME_C_API trireme_status trireme_split_exchange_count(const trireme_split* split, size_t phase, size_t* count);
TRIREME_C_API trireme_status trireme_split_exchange(const trireme_split* split, size_t phase, size_t index,
                                                    trireme_exchange* exchange);
/* Two neighbours' values to one: operands left and right -> both; of two results left_first, left_second, right_first,
 * right_second -> both_first, both_second, with the constants left_columns and right_columns. */
TRIREME_C_API trireme_status trireme_split_combine(const trireme_split* split, size_t phase, size_t index,
                                                   trireme_program** program);
TRIREME_C_API trireme_status trireme_split_destroy(trireme_split* split);

/* ---- devices ---- */

TRIREME_C_API size_t trireme_device_count(void);
TRIREME_C_API const char* trireme_device_name(size_t index);
/* Empty, or why it cannot be used here; valid until this thread's next call of it. Null beyond their number. */
TRIREME_C_API const char* trireme_device_missing(size_t index);

/* ---- plans ---- */

typedef struct trireme_plan trireme_plan;
typedef struct trireme_args trireme_args;

#define TRIREME_UNKNOWN_BYTES UINT64_MAX

/* Shapes and strides count elements, of f4e2m1 too, two of which share a byte: strides are even, but for the last,
 * which is 1. rank 0 with null shape: the shape that the plan expects; null strides: contiguous. `bytes` is the memory
 * there is from `data` on, or TRIREME_UNKNOWN_BYTES. An operand is only read; a result is written, so that its memory
 * must be writable. */
typedef struct trireme_view {
  size_t struct_size;
  const void* data;
  int32_t type; /* trireme_type */
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
  uint64_t bytes;
} trireme_view;

typedef struct trireme_named_type {
  const char* name;
  int32_t type; /* trireme_type */
} trireme_named_type;

typedef struct trireme_named_value {
  const char* name;
  double value;
} trireme_named_value;

typedef struct trireme_named_strides {
  const char* name;
  int32_t rank;
  const int64_t* strides;
} trireme_named_strides;

typedef struct trireme_named_shape {
  const char* name;
  int32_t rank;
  const int64_t* shape;
} trireme_named_shape;

typedef struct trireme_in_place {
  const char* result;
  const char* operand;
} trireme_in_place;

typedef struct trireme_plan_options {
  size_t struct_size;
  const int64_t* shape;
  int32_t rank;
  int32_t axes; /* the last so many make a row; 0 is taken as 1 */
  const trireme_named_type* types;
  size_t type_count;
  const trireme_named_value* constants;
  size_t constant_count;
  const char* const* absent;
  size_t absent_count;
  const char* const* results; /* those that are stored; null: all */
  size_t result_count;
  const trireme_in_place* in_place;
  size_t in_place_count;
  const trireme_named_strides* strides;
  size_t stride_count;
  int32_t threads; /* 0: TRIREME_THREADS, or one per core */
  int32_t reserved;
  /* The host's threads: calls body(context, k) for all k in 0 .. count-1. Null: threads of our own. */
  void (*parallel_for)(void* host, int count, void (*body)(void* context, int k), void* context);
  void* host;
  /* Preferences: honoured, or the plan is refused. */
  int64_t max_workspace_bytes; /* 0: no limit */
  const char* config;          /* a schedule (docs/plans.md); null: chosen */
  /* Results that sum over rows: the sum is added to what stands in their memory. */
  const char* const* accumulate;
  size_t accumulate_count;
  /* Rows of a block of those sums, where these rows are a part of more; 0: the contract's. */
  int64_t row_block;
} trireme_plan_options;

/* The shape of the problem that a call's arrays make, found in theirs: that of the first [i,j] array. Without one, its
 * outer axes are those of the first array that has each row ([i], [i, j / 32]), its last `axes` (0 is taken as 1) those
 * of the first that has each column ([j], a table [token, j]). Where none has each row, the first that divides them,
 * [i / m], says as many as fill its entries; `constants` has m where it is not its default. `shape` has room for 8. */
TRIREME_C_API trireme_status trireme_problem_shape(const trireme_program* program, const trireme_named_shape* arrays,
                                                   size_t array_count, int32_t axes,
                                                   const trireme_named_value* constants, size_t constant_count,
                                                   int64_t* shape, int32_t* rank);

/* `device`: "cpu", a name of the list, or a further GPU: "cuda:1". */
TRIREME_C_API trireme_status trireme_plan_create(const char* device, const trireme_program* program,
                                                 const trireme_plan_options* options, trireme_plan** plan);
TRIREME_C_API trireme_status trireme_plan_workspace_bytes(const trireme_plan* plan, size_t* bytes);
TRIREME_C_API trireme_status trireme_plan_describe(const trireme_plan* plan, const char** text);
/* What exactly runs, and the problem line that reproduces it. */
TRIREME_C_API trireme_status trireme_plan_sku(const trireme_plan* plan, const char** text);
TRIREME_C_API trireme_status trireme_plan_line(const trireme_plan* plan, const char** text);

/* What may be relied on. */
typedef struct trireme_guarantee {
  size_t struct_size;
  int32_t compute, accumulator; /* trireme_type */
  int32_t contract;             /* version */
  int32_t run_to_run;           /* the same bits every time; the others likewise */
  int32_t across_batch;         /* 0 where a result sums over rows */
  int32_t across_threads;
  int32_t across_targets;
} trireme_guarantee;
TRIREME_C_API trireme_status trireme_plan_guarantee(const trireme_plan* plan, trireme_guarantee* guarantee);

/* The plan's arrays: operands in memory that are not absent, then results that are stored. */
typedef struct trireme_plan_array {
  size_t struct_size;
  const char* name;
  int32_t kind;   /* TRIREME_OPERAND or TRIREME_RESULT */
  int32_t type;   /* trireme_type */
  int32_t needed; /* 0: nothing reads it, and it may be left out */
  int32_t rank;
  int64_t shape[8]; /* what a view is expected to have */
} trireme_plan_array;
TRIREME_C_API trireme_status trireme_plan_array_count(const trireme_plan* plan, size_t* count);
TRIREME_C_API trireme_status trireme_plan_array_at(const trireme_plan* plan, size_t index, trireme_plan_array* array);

TRIREME_C_API trireme_status trireme_plan_prepare(const trireme_plan* plan);
TRIREME_C_API trireme_status trireme_plan_destroy(trireme_plan* plan);

/* The arrays of a call; used by one thread at a time. Plans may be shared. */
TRIREME_C_API trireme_status trireme_args_create(const trireme_plan* plan, trireme_args** args);
TRIREME_C_API trireme_status trireme_args_set(trireme_args* args, const char* name, const trireme_view* view);
/* The same by the array's place among the plan's: nothing is looked up. */
TRIREME_C_API trireme_status trireme_args_set_at(trireme_args* args, size_t index, const trireme_view* view);
TRIREME_C_API trireme_status trireme_args_destroy(trireme_args* args);

TRIREME_C_API trireme_status trireme_plan_check(const trireme_plan* plan, trireme_args* args);
/* `stream`: the device's (a cudaStream_t or CUstream; null is the default stream), null on a CPU. Arrays and workspace
 * lie in the device's memory; the workspace begins at a multiple of 256 bytes. On a GPU nobody waits for the run to
 * end. */
TRIREME_C_API trireme_status trireme_plan_run(const trireme_plan* plan, trireme_args* args, void* stream,
                                              void* workspace, size_t workspace_bytes);

/* Memory of the plan's device for it, where the caller has none of its own. Runs that overlap need one each; on a GPU,
 * destroying one waits for who uses it. Without a need for one, memory is null and bytes are 0. */
typedef struct trireme_workspace trireme_workspace;
TRIREME_C_API trireme_status trireme_workspace_create(const trireme_plan* plan, trireme_workspace** workspace);
TRIREME_C_API trireme_status trireme_workspace_memory(const trireme_workspace* workspace, void** memory, size_t* bytes);
TRIREME_C_API trireme_status trireme_workspace_destroy(trireme_workspace* workspace);

/* ---- kernels without plans: text and bytes for those who launch them themselves (docs/plans.md) ---- */

typedef struct trireme_emit_options {
  size_t struct_size;
  const char* target;    /* "ptx", "x86", "wasm": as 'trireme emit --help' names them */
  const char* arch;      /* "sm_90", "avx512", "relaxed"; null: the target's default */
  int64_t rows, columns; /* 0: 4096; code may be made for these columns, rows are what a schedule may count on */
  const trireme_named_type* types;
  size_t type_count;
  const trireme_named_value* constants;
  size_t constant_count;
  const char* const* absent; /* operands that take their defaults, and results that are not stored */
  size_t absent_count;
  const char* config; /* a schedule; null: chosen */
} trireme_emit_options;

/* Strings and bytes live as long as the emission. */
typedef struct trireme_emission_view {
  size_t struct_size;
  const void* bytes; /* PTX text, machine code, or a module */
  size_t byte_count;
  const char* arch;
  const char* config;
  const char* description; /* for people, a line each: entries, arguments, grid, scratch, workspace */
  const char* manifest;    /* the same for programs, as JSON */
  const char* c_constants; /* arguments and sizes as constants of C */
} trireme_emission_view;

typedef struct trireme_emission trireme_emission;
TRIREME_C_API trireme_status trireme_emit(const trireme_program* program, const trireme_emit_options* options,
                                          trireme_emission** emission);
TRIREME_C_API trireme_status trireme_emission_get(const trireme_emission* emission, trireme_emission_view* view);
TRIREME_C_API trireme_status trireme_emission_destroy(trireme_emission* emission);

/* ---- kernels of your own: CUDA C++ and PTX (docs/jit.md) ---- */

typedef struct trireme_jit_header {
  const char* name; /* for #include <name> */
  const char* text;
} trireme_jit_header;

/* All zero but struct_size: the first GPU, its own architecture, NVRTC where it is found. */
typedef struct trireme_jit_options {
  size_t struct_size;
  int32_t device; /* the GPU that the kernel is for */
  int32_t reserved;
  const char* arch;         /* "sm_90"; null: the device's */
  const char* const* flags; /* NVRTC's: "-DWIDTH=4", "-I/a/folder" */
  size_t flag_count;
  const trireme_jit_header* headers;
  size_t header_count;
  const char* file;  /* what messages call the source; #include "..." looks beside it. Null: "kernel.cu" */
  const char* nvrtc; /* the library's path; null: searched for */
} trireme_jit_options;

/* What the compiler made of a kernel; -1: not known. */
typedef struct trireme_jit_facts {
  size_t struct_size;
  int32_t registers;    /* a thread */
  int32_t local_bytes;  /* a thread: spills, and arrays that found no registers */
  int32_t spill_stores; /* bytes */
  int32_t spill_loads;
  int32_t shared_bytes;    /* static */
  int32_t parameter_count; /* -1: not known */
  const int32_t* parameter_bytes;
} trireme_jit_facts;

/* What compiling gave. Texts end in a 0 byte; everything lives as long as the handle that it was asked of. */
typedef struct trireme_jit_compiled {
  size_t struct_size;
  const char* name; /* as the code has it: mangled where it is C++'s */
  const char* arch;
  const char* ptx;
  const void* cubin; /* null where the driver compiles the PTX */
  size_t cubin_bytes;
  const char* log;      /* warnings */
  const char* not_kept; /* why the cache does not keep it; empty if it does */
  int32_t from_cache;
  int32_t reserved;
} trireme_jit_compiled;

/* CUDA C++ to PTX and cubin. Where options->arch is said no GPU is needed. `name`: of an extern "C" kernel, or a C++
 * name as one writes it, such as "scale<float>". `options` may be null. A compiler's error is TRIREME_INVALID_PROGRAM,
 * and its log the message. */
typedef struct trireme_jit_code trireme_jit_code;
TRIREME_C_API trireme_status trireme_jit_compile(const char* source, size_t bytes, const char* name,
                                                 const trireme_jit_options* options, trireme_jit_code** code);
TRIREME_C_API trireme_status trireme_jit_code_compiled(const trireme_jit_code* code, trireme_jit_compiled* compiled);
TRIREME_C_API trireme_status trireme_jit_code_facts(const trireme_jit_code* code, trireme_jit_facts* facts);
TRIREME_C_API trireme_status trireme_jit_code_describe(const trireme_jit_code* code, const char** text);
TRIREME_C_API trireme_status trireme_jit_code_destroy(trireme_jit_code* code);

/* A kernel on a GPU, from CUDA C++ (compiled once and kept) or from PTX. It may be shared by threads. */
typedef struct trireme_jit_kernel trireme_jit_kernel;
TRIREME_C_API trireme_status trireme_jit_compile_cached(const char* source, size_t bytes, const char* name,
                                                        const trireme_jit_options* options,
                                                        trireme_jit_kernel** kernel);
TRIREME_C_API trireme_status trireme_jit_from_ptx(const char* text, size_t bytes, const char* name,
                                                  const trireme_jit_options* options, trireme_jit_kernel** kernel);
TRIREME_C_API trireme_status trireme_jit_kernel_facts(const trireme_jit_kernel* kernel, trireme_jit_facts* facts);
/* Registers, spills, shared memory, occupancy. */
TRIREME_C_API trireme_status trireme_jit_kernel_describe(const trireme_jit_kernel* kernel, const char** text);
TRIREME_C_API trireme_status trireme_jit_kernel_blocks(const trireme_jit_kernel* kernel, uint32_t block_threads,
                                                       uint32_t shared_bytes, int32_t* blocks_per_multiprocessor);

typedef struct trireme_jit_launch {
  size_t struct_size;
  int64_t grid[3];  /* blocks; 0 along y and z is taken as 1 */
  int64_t block[3]; /* threads, likewise */
  void* stream;     /* a cudaStream_t or CUstream; null is the default one */
  uint32_t shared_bytes;
  uint32_t reserved;
} trireme_jit_launch;

typedef struct trireme_jit_argument {
  const void* data; /* where the value lies: for a pointer, the address of the pointer */
  size_t bytes;
} trireme_jit_argument;

/* Puts the kernel on the stream and does not wait. The arguments are copied, and must have their parameters' number and
 * sizes. */
TRIREME_C_API trireme_status trireme_jit_kernel_launch(const trireme_jit_kernel* kernel,
                                                       const trireme_jit_launch* launch,
                                                       const trireme_jit_argument* arguments, size_t argument_count);
TRIREME_C_API trireme_status trireme_jit_kernel_destroy(trireme_jit_kernel* kernel);

/* ---- checking ---- */

#define TRIREME_DIGEST_BYTES 33

/* Runs a problem line on samples, and gives the digest of its results' bits: 32 hex digits and a 0. `text`: the
 * program, where it is not one of the operators; else null. `threads`: 0 as in plans. */
TRIREME_C_API trireme_status trireme_digest(const char* line, const char* text, const char* device, int32_t threads,
                                            char digest[TRIREME_DIGEST_BYTES]);

/* ---- kernel modules that nobody trusts (docs/kernel-abi.md) ---- */

typedef struct trireme_wasm_host trireme_wasm_host;
typedef struct trireme_wasm_kernel trireme_wasm_kernel;

/* wasmtime's library, opened at run time. `library`: its path; null: where TRIREME_WASMTIME says, else the wheel
 * `wasmtime` of a Python here, else libwasmtime.so. TRIREME_NO_DEVICE: there is none. */
TRIREME_C_API trireme_status trireme_wasm_host_open(const char* library, trireme_wasm_host** host);
TRIREME_C_API trireme_status trireme_wasm_host_library(const trireme_wasm_host* host, const char** path,
                                                       int32_t* version);
TRIREME_C_API trireme_status trireme_wasm_host_destroy(trireme_wasm_host* host);

/* A field that is 0 has its default, which stands behind it. Beyond memory, seconds and stack: what a module may have,
 * counted before it is compiled. */
typedef struct trireme_wasm_limits {
  size_t struct_size;
  int64_t memory_bytes;                /* 1 GiB; at most 4 GiB */
  double seconds;                      /* 10; for one call, and for loading once compiled */
  int64_t stack_bytes;                 /* 512 KiB; 64 KiB to 1 MiB */
  int64_t module_bytes;                /* 4 MiB */
  int64_t declarations;                /* 1000: types, globals, exports, data segments, element segments, of each */
  int64_t parameters;                  /* 32, of a function type */
  int64_t table_elements;              /* 10000 */
  int64_t functions;                   /* 1000 */
  int64_t code_bytes, function_bytes;  /* 256 KiB, 64 KiB: of all functions together, and of any one */
  int64_t locals, function_locals;     /* 16384, 2048 */
  int64_t branches, function_branches; /* 4096, 512 */
  int64_t crossings;                   /* 262144: branches x locals that live across them */
  int64_t merges, function_merges;     /* 32768, 8192: values that meet where control flow joins */
  int64_t function_bulk_operations;    /* 16: memory.copy, memory.fill */
  int64_t nesting;                     /* 256, of blocks */
} trireme_wasm_limits;

/* `limits`: null for the defaults. The kernel keeps what it needs of the host; it is used by one thread at a time.
 * TRIREME_INVALID_PROGRAM: no kernel module, or one beyond a limit. TRIREME_UNSUPPORTED: of another version than 1.x.
 */
TRIREME_C_API trireme_status trireme_wasm_kernel_load(const trireme_wasm_host* host, const void* module,
                                                      size_t module_bytes, const trireme_wasm_limits* limits,
                                                      trireme_wasm_kernel** kernel);

typedef struct trireme_wasm_info {
  size_t struct_size;
  const char* name;
  int32_t version[3];
  int32_t supports_backward;
} trireme_wasm_info;
TRIREME_C_API trireme_status trireme_wasm_kernel_info(const trireme_wasm_kernel* kernel, trireme_wasm_info* info);

/* Of version 1.1: an operand (`input`) or a result (`output`), not both. Its offset and size are written into params,
 * from byte `params_at` on. */
typedef struct trireme_wasm_region {
  size_t params_at;
  const void* input;
  size_t input_bytes;
  void* output;
  size_t output_bytes;
} trireme_wasm_region;

/* Arrays are copied in, and results out: the module never sees the caller's memory. */
typedef struct trireme_wasm_call {
  size_t struct_size;
  const void* a;
  size_t a_bytes;
  const void* b;
  size_t b_bytes;
  void* output;
  size_t output_bytes;
  void* scratch; /* may be null */
  size_t scratch_bytes;
  const void* params;
  size_t params_bytes;
  const trireme_wasm_region* regions;
  size_t region_count;
} trireme_wasm_call;

/* kernel_init, the entry, kernel_cleanup. Results are written if all of them return 0, else nothing is.
 * TRIREME_INVALID_ARGUMENT: the module refused. TRIREME_OUT_OF_MEMORY: the limit, or the module says so.
 * TRIREME_INVALID_PROGRAM: a trap, the time limit; the kernel starts afresh with its next call.
 * TRIREME_UNSUPPORTED: it has no backward, or does not know regions. */
TRIREME_C_API trireme_status trireme_wasm_kernel_forward(trireme_wasm_kernel* kernel, const trireme_wasm_call* call);
TRIREME_C_API trireme_status trireme_wasm_kernel_backward(trireme_wasm_kernel* kernel, const trireme_wasm_call* call);
TRIREME_C_API trireme_status trireme_wasm_kernel_destroy(trireme_wasm_kernel* kernel);

#ifdef __cplusplus
}
#endif
#include "trireme/receipts.h"
#endif
