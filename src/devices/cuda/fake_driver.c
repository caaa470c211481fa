// A libcuda without a GPU: device memory is the host's, contexts are a stack per thread, a launch is written down and
// runs nothing. Tests compile it as they need:
//   -DVERSION=12080 -DDEVICES=2 -DINIT=0 (the code that cuInit returns) -DMAJOR=9 (of the compute capability)
//   -DPARAMETERS=8,4 (a driver that can tell the sizes of a kernel's parameters, and these it tells)
//   -DSLOW='"file"' (loading takes a moment, until the file is there)
//   -DLINKED_MORE=0 (registers that linked code needs more than loaded code)
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef SLOW
#include <fcntl.h>
#include <unistd.h>
#endif

#ifndef VERSION
#define VERSION 12080
#endif
#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef LINKED_MORE
#define LINKED_MORE 0
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef MAJOR
#define MAJOR 9
#endif

static _Thread_local void* stack[16];
static _Thread_local int depth;
static int live;  // handles and memory not yet released
static char object;

static int loads, links;  // how often code was loaded, and PTX linked
static int capturing;     // some stream
static int broken;        // what every launch returns, once set
static uint64_t foreign, unknown;

struct fake_launch {
  char name[48];
  unsigned numbers[7];  // grid, block, shared bytes
  void* stream;
  int64_t first, last, total;
};
static struct fake_launch launches[64];
static int launch_count;

int fake_live(void) { return live; }
int fake_loads(void) { return loads; }
int fake_links(void) { return links; }
int fake_depth(void) { return depth; }
void fake_break(int code) { broken = code; }
void fake_place(uint64_t on_device_1, uint64_t on_none) { foreign = on_device_1, unknown = on_none; }
const struct fake_launch* fake_launches(void) { return launches; }
int fake_launch_count(void) { return launch_count; }
void fake_forget(void) { launch_count = 0; }

int cuDriverGetVersion(int* version) { return *version = VERSION, 0; }
#ifndef ONLY_VERSION
int cuInit(unsigned flags) { return (void)flags, INIT; }
int cuGetErrorName(int code, const char** name) {
  switch (code) {
    case 2: return *name = "CUDA_ERROR_OUT_OF_MEMORY", 0;
    case 3: return *name = "CUDA_ERROR_NOT_INITIALIZED", 0;
    case 100: return *name = "CUDA_ERROR_NO_DEVICE", 0;
    case 200: return *name = "CUDA_ERROR_INVALID_IMAGE", 0;
    case 201: return *name = "CUDA_ERROR_INVALID_CONTEXT", 0;
    case 218: return *name = "CUDA_ERROR_INVALID_PTX", 0;
    case 222: return *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 0;
    case 500: return *name = "CUDA_ERROR_NOT_FOUND", 0;
    case 700: return *name = "CUDA_ERROR_ILLEGAL_ADDRESS", 0;
  }
  return 1;
}
int cuGetErrorString(int code, const char** text) {
  const char* name;
  if (cuGetErrorName(code, &name)) return 1;
  return *text = "what it means", 0;
}
int cuDeviceGetCount(int* count) { return *count = DEVICES, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int size, int device) { return (void)device, strncpy(name, "Fake GPU", size), 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return (void)device, *value = attribute == 75 ? MAJOR : attribute == 76 ? 0 : attribute, 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return (void)device, *bytes = (size_t)1 << 36, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &object + device + 1, 0; }
int cuCtxGetCurrent(void** context) { return *context = depth ? stack[depth - 1] : 0, 0; }
int cuCtxPushCurrent_v2(void* context) { return stack[depth++] = context, 0; }
int cuCtxPopCurrent_v2(void** context) { return *context = stack[--depth], 0; }
int cuCtxSynchronize(void) { return depth ? 0 : 201; }

// A "cubin" is "\177ELF" and the text it was made from; one from an older build of this driver is "\177ELF old".
struct function {
  char name[48];
  int linked, dynamic_shared;
};
struct module {
  struct function functions[8];
};
static int complain(const char* text, unsigned count, int* options, void** values) {
  if (!depth) return 201;
  if (strstr(text, "too new")) return 222;
  if (!strstr(text, "bad")) return capturing ? 900 : 0;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == 5) strcpy(values[i], "ptxas application ptx input, line 7; fatal   : Parsing error\n");
  return 218;
}
int cuModuleLoadDataEx(void** module, const char* text, unsigned count, int* options, void** values) {
  int code = complain(text, count, options, values);
  if (code) return code;
  if (!strncmp(text, "\177ELF old", 8)) return 200;
#ifdef SLOW  // a file that has a byte for each time "text" was compiled; as a driver's own cache, it is looked at first
  if (!strcmp(text, "text") && access(SLOW, F_OK)) {
    usleep(50000);
    int file = open(SLOW, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(file, "x", 1) != 1) return 1;
    close(file);
  }
#endif
  struct module* made = calloc(1, sizeof *made);
  for (int k = 0; k < 8; ++k)
    made->functions[k].linked = !strncmp(text, "\177ELF", 4), made->functions[k].dynamic_shared = 108;
  return ++loads, ++live, *module = made, 0;
}
int cuModuleUnload(void* module) { return free(module), --live, 0; }

struct link {
  unsigned count;
  int options[4];
  void* values[4];
  char* cubin;
};
int cuLinkCreate_v2(unsigned count, int* options, void** values, struct link** link) {
  struct link* made = calloc(1, sizeof *made);
  made->count = count;
  memcpy(made->options, options, count * sizeof *options);
  memcpy(made->values, values, count * sizeof *values);
  return ++live, *link = made, depth && count <= 4 ? 0 : 201;
}
int cuLinkAddData_v2(struct link* link, int type, const char* text, size_t size, const char* name, unsigned count,
                     int* options, void** values) {
  (void)name, (void)options, (void)values;
  if (type != 1 || count || text[size - 1]) return 1;
  link->cubin = malloc(size + 4);
  memcpy(link->cubin, "\177ELF", 4);
  memcpy(link->cubin + 4, text, size);
  return complain(text, link->count, link->options, link->values);
}
int cuLinkComplete(struct link* link, void** cubin, size_t* size) {
  return ++links, *cubin = link->cubin, *size = strlen(link->cubin), 0;
}
int cuLinkDestroy(struct link* link) { return free(link->cubin), free(link), --live, 0; }

int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (!strcmp(name, "missing")) return 500;
  struct function* at = ((struct module*)module)->functions;
  while (*at->name && strcmp(at->name, name)) ++at;
  strncpy(at->name, name, sizeof at->name - 1);
  return *function = at, 0;
}
int cuFuncGetAttribute(int* value, int attribute, struct function* function) {
  *value = attribute == 8 ? function->dynamic_shared : 100 + attribute;
  if (attribute == 4 && function->linked) *value += LINKED_MORE;
  return 0;
}
#ifdef PARAMETERS  // their sizes: -DPARAMETERS=8,4
int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* size) {
  static const size_t sizes[] = {PARAMETERS};
  if (!function || index >= sizeof sizes / sizeof *sizes) return 1;
  return *offset = 8 * index, *size = sizes[index], 0;
}
#endif
int cuFuncSetAttribute(struct function* function, int attribute, int value) {
  if (attribute == 8) function->dynamic_shared = value;
  return (attribute == 8 || attribute == 14) && value >= 0 ? 0 : 1;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t shared) {
  return (void)function, (void)shared, *blocks = 2048 / threads, 0;
}

struct attribute {
  int id;
  char pad[4];
  unsigned value[16];
};
struct config {
  unsigned numbers[7];
  void* stream;
  struct attribute* attributes;
  unsigned count;
};
int cuLaunchKernelEx(const struct config* config, struct function* function, void** params, void** extra) {
  if (!depth || !function || extra) return 201;
  if (broken) return broken;
  // A test's own kernels: "rows", and whatever C++ named.
  if (strcmp(function->name, "rows") && strncmp(function->name, "_Z", 2)) {
    struct fake_launch* at = &launches[launch_count++ % 64];
    strcpy(at->name, function->name);
    memcpy(at->numbers, config->numbers, sizeof at->numbers);
    at->stream = config->stream;
    at->first = *(int64_t*)params[1], at->last = *(int64_t*)params[2], at->total = *(int64_t*)params[3];
    return 0;
  }
  unsigned* seen = *(unsigned**)params[0];  // grid, block, shared bytes; cluster; overlap
  memcpy(seen, config->numbers, sizeof config->numbers);
  for (unsigned i = 0; i < config->count; ++i) {
    if (config->attributes[i].id == 4) memcpy(seen + 7, config->attributes[i].value, 12);
    if (config->attributes[i].id == 6) seen[10] = config->attributes[i].value[0];
  }
  return 0;
}

int cuMemAlloc_v2(uint64_t* memory, size_t bytes) {
  if (!depth) return 201;
  if (bytes >> 40) return 2;
  return ++live, *memory = (uint64_t)aligned_alloc(256, (bytes + 255) / 256 * 256), 0;
}
int cuMemFree_v2(uint64_t memory) { return --live, free((void*)memory), 0; }
// As a driver does it with small copies from pageable memory: `from` is staged at once, `to` written when somebody waits.
static _Thread_local struct {
  char bytes[4096];
  void* to;
  size_t count;
} staged;
static void arrive(void) {
  if (staged.count) memcpy(staged.to, staged.bytes, staged.count);
  staged.count = 0;
}
static int stage(uint64_t to, const void* from, size_t bytes) {
  arrive();
  if (bytes > sizeof staged.bytes) return memmove((void*)to, from, bytes), 0;
  memcpy(staged.bytes, from, bytes);
  return staged.to = (void*)to, staged.count = bytes, 0;
}
int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) { return stage(to, (void*)from, bytes); }
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void* s) { return (void)s, cuMemcpy(to, from, bytes); }
int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t bytes) {
  char filled[sizeof staged.bytes];
  if (bytes > sizeof filled) return memset((void*)at, byte, bytes), 0;
  memset(filled, byte, bytes);
  return stage(at, filled, bytes);
}
int cuMemsetD8Async(uint64_t at, unsigned char b, size_t n, void* s) { return (void)s, cuMemsetD8_v2(at, b, n); }
int cuPointerGetAttribute(void* value, int what, uint64_t at) {
  return *(int*)value = at == foreign, what == 9 && at != unknown ? 0 : 1;
}

int cuStreamCreate(void** stream, unsigned flags) { return ++live, *stream = &object, flags == 1 ? 0 : 1; }
int cuStreamIsCapturing(void* stream, int* status) { return (void)stream, *status = capturing, depth ? 0 : 201; }
int cuStreamDestroy_v2(void* stream) { return (void)stream, --live, 0; }
int cuStreamSynchronize(void* stream) { return (void)stream, arrive(), depth ? 0 : 201; }
int cuEventCreate(void** event, unsigned flags) { return (void)flags, ++live, *event = &object, 0; }
int cuEventDestroy_v2(void* event) { return (void)event, --live, 0; }
int cuEventRecord(void* event, void* stream) { return (void)event, (void)stream, 0; }
int cuEventSynchronize(void* event) { return (void)event, 0; }
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  return (void)from, (void)to, *milliseconds = 1.5f, 0;
}
int cuStreamBeginCapture_v2(void* stream, int mode) { return (void)stream, ++live, capturing = 1, mode == 1 ? 0 : 1; }
int cuStreamEndCapture(void* stream, void** graph) { return (void)stream, capturing = 0, *graph = &object, 0; }
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  return (void)graph, ++live, *exec = &object, flags ? 1 : 0;
}
int cuGraphDestroy(void* graph) { return (void)graph, --live, 0; }
int cuGraphLaunch(void* exec, void* stream) { return (void)exec, (void)stream, depth ? 0 : 201; }
int cuGraphExecDestroy(void* exec) { return (void)exec, --live, 0; }
#endif
