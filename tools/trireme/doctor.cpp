// trireme doctor: what this machine offers, what is missing and how to get it, and whether each device keeps the
// contract.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "device_choice.hpp"
#include "devices/arguments.hpp"
#include "devices/cache/kernel_cache.hpp"
#include "devices/cuda/nvrtc.hpp"
#include "ir/contract.hpp"
#include "machine.hpp"
#include "output.hpp"
#include "plan/devices.hpp"
#include "plan/ops.hpp"
#include "plan/settings.hpp"
#include "plan/threads.hpp"
#include "reports.hpp"
#include "self_check.hpp"
#include "trireme/device.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

std::string platform() {
  utsname names;
  if (uname(&names) != 0) return "unknown platform";
  return fmt::format("{} {} on {}, glibc {}", names.sysname, names.release, names.machine, gnu_get_libc_version());
}

using Part = DoctorReport::Part;

void print_part(const Part& part) {
  fmt::print("{:<12} {:<8} {}\n", part.name, part.state, part.what);
  if (!part.advice.empty()) fmt::print("{:21} {}\n", "", part.advice);
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

// What is set in this environment, and whether the settings take their values.
std::vector<DoctorReport::Setting> look_at_settings() {
  std::vector<DoctorReport::Setting> found;
  for (char** each = environ; *each; ++each) {
    const std::string_view text = *each, name = text.substr(0, text.find('='));
    if (!name.starts_with("TRIREME_") || name == text) continue;
    DoctorReport::Setting& variable =
        found.emplace_back(DoctorReport::Setting{std::string(name), std::string(text.substr(name.size() + 1))});
    const auto setting = std::ranges::find(environment::settings(), name, &environment::Setting::name);
    variable.known = setting != environment::settings().end();
    if (variable.known)
      if (Status status = check_setting(*setting); !status) variable.wrong = status.error().message;
  }
  return found;
}

Part look_at_nvrtc() {
  Result<const cuda::Nvrtc*> nvrtc = cuda::Nvrtc::open("");
  if (nvrtc) return {"nvrtc", "ready", (*nvrtc)->name() + ", " + (*nvrtc)->path()};
  return {"nvrtc", "missing", nvrtc.error().message.substr(0, nvrtc.error().message.find('\n')),
          "needed for CUDA C++ of your own only (docs/jit.md)"};
}

Part look_at_cache_folder() {
  KernelCache cache(KernelCache::from_environment());
  if (!cache.disk()) return {"cache", "off", cache.off_reason()};
  const std::string& path = cache.disk()->folder().path();
  if (!cache.disk()->folder().writable()) return {"cache", "reads", path + " is read-only"};
  return {"cache", "ready", path};
}

Part examine(const DeviceEntry& device) {
  if (std::string reason = device.missing(); !reason.empty())
    return {device.name, "missing", reason, std::string(device.needs)};
  if (&device == &reference_device()) return {device.name, "ready", "what all others are compared with"};
  Result<std::string> difference = self_test(device);
  if (difference && difference->empty())
    return {device.name, "ready",
            own_name(device) +
                "self-test passed: no contraction, zeros, subnormals, infinities and NaNs as the contract says"};
  return {device.name, "FAILED", difference ? "self-test " + *difference : difference.error().message};
}

std::string processor_features() {
  std::string known;
  for (const DeviceEntry& each : devices())
    if (const std::string text = each.features ? each.features() : ""; known.find(text) == std::string::npos)
      known += (known.empty() ? "" : " ") + text;
  return known;
}

// Says each thing as soon as it knows it: a driver may be broken enough to end us.
Result<int> doctor(bool json) {
  DoctorReport report{.version = TRIREME_VERSION,
                      .platform = platform(),
                      .processor = processor_name(),
                      .features = processor_features(),
                      .contract = contract::version,
                      .operators = operator_texts().size()};
  auto say = [&](const std::string& text) {
    if (!json) fmt::print("{}", text), flush_output();
  };
  auto say_part = [&](const Part& part) {
    if (!json) print_part(part), flush_output();
    return part;
  };
  say(fmt::format("trireme {}, contract version {}, {} operators\nplatform:  {}\n", report.version, report.contract,
                  report.operators, report.platform));
  if (Result<int> threads = threads_asked(0)) report.threads = *threads;  // else what is wrong stands below
  say(fmt::format("processor: {}{}\n           {}\n", report.processor,
                  report.threads ? fmt::format(", {} threads", *report.threads) : "",
                  report.features.empty() ? "no vector extensions that kernels use" : report.features));
  TRIREME_TRY(all, choose_devices({}));
  for (const DeviceEntry* device : all) {
    report.devices.push_back(say_part(examine(*device)));
    report.devices.back().about_ms = device->about_ms();
  }
  if (Result<Device> cpu = Device::cpu()) report.cpu_device = cpu->name();
  if (!report.cpu_device.empty()) say(fmt::format("plans for 'cpu' run on {}\n", report.cpu_device));
  report.nvrtc = say_part(look_at_nvrtc());
  report.cache = say_part(look_at_cache_folder());
  report.settings = look_at_settings();
  for (const DoctorReport::Setting& each : report.settings)
    say_part({"environment", each.state(), each.wrong.empty() ? each.name + "=" + each.value : each.wrong});
  if (json) fmt::print("{}", as_json(report));
  const bool failed = std::ranges::any_of(report.devices, [](const Part& each) { return each.state == "FAILED"; }) ||
                      std::ranges::any_of(report.settings, [](const auto& each) { return !each.wrong.empty(); });
  return failed ? check_failed : fine;
}

}  // namespace

Command doctor_verb() {
  auto json = std::make_shared<bool>(false);
  Command verb{
      .name = "doctor",
      .summary = "Versions, devices, what is missing and how to get it; a self-test",
      .footer = "Exits with 1 if a device is there but does not give the reference's bits, or a setting is wrong.",
      .takes_wrong_settings = true};  // it shows them
  verb.option("--json", *json, "JSON instead of lines (docs/json.md)");
  verb.run = [json] { return doctor(*json); };
  return verb;
}

}  // namespace trireme::cli
