#include "device_choice.hpp"

#include <algorithm>

#include "devices/arguments.hpp"
#include "devices/parallel.hpp"
#include "plan/devices.hpp"

namespace trireme::cli {
namespace {

bool means(const std::string& name, const DeviceEntry& device) {
  return device.name == name || device.name.starts_with(name + ":");
}

}  // namespace

Result<std::vector<const DeviceEntry*>> choose_devices(const std::vector<std::string>& names) {
  std::vector<const DeviceEntry*> chosen;
  std::string known;
  for (const DeviceEntry& device : devices()) {
    known += (known.empty() ? "" : ", ") + device.name;
    if (names.empty() || std::any_of(names.begin(), names.end(), [&](const auto& name) { return means(name, device); }))
      chosen.push_back(&device);
  }
  for (const std::string& name : names)
    if (const DeviceEntry* further = find_device(name);
        further && std::find(chosen.begin(), chosen.end(), further) == chosen.end())
      chosen.push_back(further);
  for (const std::string& name : names)
    if (std::none_of(chosen.begin(), chosen.end(), [&](const auto* device) { return means(name, *device); }))
      return Error{Code::InvalidArgument, "no device named '" + name + "'; there are: " + known};
  return chosen;
}

std::vector<std::string> device_words() {
  std::vector<std::string> words;
  auto add = [&](const std::string& word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  };
  for (const DeviceEntry& device : devices()) {
    add(device.name.substr(0, device.name.find(':')));
    add(device.name);
  }
  return words;
}

const DeviceEntry& reference_device() { return devices().front(); }

Status run_once(const DeviceEntry& device, Prepared& prepared, const RunOptions& options) {
  TRIREME_TRY(executable, device.compile(prepared.program, facts_of(prepared.program, prepared.view())));
  poison_results(prepared);
  return executable->run(prepared.view(), options);
}

void add_threads(Command& verb, int& threads, const std::string& help) {
  threads = 0;
  verb.option("--threads", threads, help + "; TRIREME_THREADS, or one per core, unless said",
              {.type = "N", .whole = {{1, max_parts}}});
}

}  // namespace trireme::cli
