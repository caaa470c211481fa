// trireme doctor: what this machine offers, what is missing and how to get it, and whether each device keeps the
// contract.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "device_choice.hpp"
#include "devices/arguments.hpp"
#include "devices/cache/kernel_cache.hpp"
#include "devices/cpu/isa.hpp"
#include "devices/cuda/nvrtc.hpp"
#include "ir/contract.hpp"
#include "plan/ops.hpp"
#include "plan/threads.hpp"
#include "self_test.hpp"
#include "support/environment.hpp"
#include "trireme/device.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

struct Advice {
  std::string_view device, text;
};
constexpr Advice advices[] = {
    {"cpu", "needs an x86 processor with AVX2, FMA and F16C (2013 and later); the reference serves without"},
    {"cuda", "needs an NVIDIA GPU of compute capability 8.0 or more, and its driver's libcuda.so.1; no toolkit"},
    {"wasm",
     "needs wasmtime's library (pip install wasmtime, or its path in TRIREME_WASMTIME), or node (Debian: apt install "
     "nodejs)"},
};

std::string_view advice_for(std::string_view device) {
  for (const Advice& each : advices)
    if (device.starts_with(each.device)) return each.text;
  return {};
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown processor";
}

std::string processor_features() {
  std::string text = cpu::features_of(cpu::read_cpuid());
  return text.empty() ? "no vector extensions that kernels use" : text;
}

std::string platform() {
  utsname names;
  if (uname(&names) != 0) return "unknown platform";
  return fmt::format("{} {} on {}, glibc {}", names.sysname, names.release, names.machine, gnu_get_libc_version());
}

void print_fact(std::string_view name, std::string_view state, std::string_view what) {
  fmt::print("{:<12} {:<8} {}\n", name, state, what);
}

// What a device calls itself: "AVX-512", "NVIDIA H200".
std::string own_name(const DeviceEntry& device) {
  Result<Problem> problem = parse_problem("rms_norm 1x32");
  Result<Prepared> prepared = prepare_problem(*problem);
  if (!prepared) return {};
  Result<std::unique_ptr<Executable>> made =
      device.compile(prepared->program, facts_of(prepared->program, prepared->view()));
  if (!made) return {};
  std::string text = (*made)->describe();
  return text.substr(0, text.find(',')) + "; ";
}

// What is set in this environment. True if all settings take their values.
bool print_variables() {
  bool right = true;
  for (char** each = environ; *each; ++each) {
    const std::string_view text = *each, name = text.substr(0, text.find('='));
    if (!name.starts_with("TRIREME_")) continue;
    const auto setting = std::ranges::find(environment::settings(), name, &environment::Setting::name);
    if (setting == environment::settings().end()) {
      print_fact("environment", "unknown", text);
      continue;
    }
    const Status status = setting->check();
    print_fact("environment", status ? "" : "wrong", status ? text : status.error().message);
    right = right && status;
  }
  return right;
}

void print_nvrtc() {
  Result<const cuda::Nvrtc*> nvrtc = cuda::Nvrtc::open("");
  if (nvrtc) return print_fact("nvrtc", "ready", (*nvrtc)->name() + ", " + (*nvrtc)->path());
  print_fact("nvrtc", "missing", nvrtc.error().message.substr(0, nvrtc.error().message.find('\n')));
  fmt::print("{:21} needed for CUDA C++ of your own only (docs/jit.md)\n", "");
}

Result<int> doctor() {
  fmt::print("trireme {}, contract version {}, {} operators\n", TRIREME_VERSION, contract::version,
             operator_texts().size());
  fmt::print("platform:  {}\n", platform());
  Result<int> threads = threads_asked(0);  // what is wrong with the setting stands below
  fmt::print("processor: {}{}\n           {}\n", processor_name(), threads ? fmt::format(", {} threads", *threads) : "",
             processor_features());
  TRIREME_TRY(all, choose_devices({}));
  int code = fine;
  for (const DeviceEntry* device : all) {
    auto row = [&](std::string_view state, std::string_view what) { print_fact(device->name, state, what); };
    if (std::string reason = device->missing(); !reason.empty()) {
      row("missing", reason);
      if (std::string_view advice = advice_for(device->name); !advice.empty()) fmt::print("{:21} {}\n", "", advice);
      continue;
    }
    if (device == &reference_device()) {
      row("ready", "what all others are compared with");
      continue;
    }
    Result<std::string> difference = self_test(*device);
    if (difference && difference->empty()) {
      row("ready", own_name(*device) +
                       "self-test passed: no contraction, zeros, subnormals, infinities and NaNs as the contract says");
      continue;
    }
    code = check_failed;
    row("FAILED", difference ? "self-test " + *difference : difference.error().message);
  }
  if (Result<Device> cpu = Device::cpu()) fmt::print("plans for 'cpu' run on {}\n", cpu->name());
  print_nvrtc();
  KernelCache cache(KernelCache::from_environment());
  bool writable = cache.disk() && cache.disk()->folder().writable();
  print_fact("cache",
             writable       ? "ready"
             : cache.disk() ? "reads"
                            : "off",
             cache.disk() ? cache.disk()->folder().path() + (writable ? "" : " is read-only") : cache.off_reason());
  return print_variables() ? code : check_failed;
}

}  // namespace

Command doctor_verb() {
  return {.name = "doctor",
          .summary = "Versions, devices, what is missing and how to get it; a self-test",
          .footer = "Exits with 1 if a device is there but does not give the reference's bits, or a setting is wrong.",
          .run = doctor,
          .takes_wrong_settings = true};  // it shows them
}

}  // namespace trireme::cli
