#include "devices/wasm/node_host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "devices/find_on_path.hpp"
#include "devices/wasm/node_script.hpp"

extern char** environ;

namespace trireme::wasm {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "trireme-XXXXXX").string();
    if (!error && mkdtemp(name.data())) path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  explicit operator bool() const { return !path_.empty(); }
  std::string file(std::string_view name) const { return (path_ / name).string(); }
  std::string name() const { return path_.string(); }

 private:
  fs::path path_;
};

// The file of bytes, and where in it each buffer lies (-1: it has no data).
struct Data {
  std::ofstream file;
  std::int64_t size = 0;

  std::int64_t append(std::span<const std::uint8_t> bytes) {
    const std::int64_t position = size;
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    size += static_cast<std::int64_t>(bytes.size());
    return position;
  }
  std::string place(std::span<const std::uint8_t> bytes) {
    const std::int64_t position = append(bytes);
    return fmt::format("[{}, {}]", position, bytes.size());
  }
};

std::string describe(const Job& job, Data& data, std::vector<std::int64_t>& positions) {
  std::string slots, relocations, buffers, calls;
  const auto comma = [](const std::string& list) { return list.empty() ? "" : ", "; };
  for (std::uint64_t slot : job.slots) slots += fmt::format("{}\"{}\"", comma(slots), slot);
  for (const auto& each : job.relocations)
    relocations += fmt::format("{}[{}, {}, {}]", comma(relocations), each.slot, each.buffer, each.offset_bytes);
  for (const JobBuffer& buffer : job.buffers) {
    positions.push_back(buffer.data.empty() ? -1 : data.append(buffer.data));
    buffers += fmt::format("{}{{\"position\": {}, \"length\": {}}}", comma(buffers), positions.back(),
                           buffer.data.empty() ? buffer.bytes : buffer.data.size());
  }
  for (const auto& call : job.calls) {
    const bool rows = call.entry == Job::Call::Entry::Rows;
    calls += fmt::format("{}[\"{}\", \"{}\", \"{}\"", comma(calls), rows ? "rows" : "columns", call.first, call.last);
    calls += rows ? fmt::format(", \"{}\"]", call.total) : "]";
  }
  return fmt::format(
      "{{\"module\": {}, \"relaxed\": {}, \"slots\": [{}], \"relocations\": [{}], \"buffers\": [{}], \"calls\": [{}]}}",
      data.place(job.module), job.relaxed, slots, relocations, buffers, calls);
}

// Standard output and error go to files of these names in the folder.
Status run_process(const std::string& program, const TemporaryFolder& folder, int timeout_seconds) {
  std::string script = folder.file("run_jobs.mjs"), name = folder.name(), called = program;
  char* arguments[] = {called.data(), script.data(), name.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, folder.file("output").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, folder.file("error").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t process = 0;
  const int failed = posix_spawn(&process, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return Error{trireme::Code::Driver, fmt::format("{} does not start: error {}", program, failed)};

  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(timeout_seconds);
  int status = 0;
  for (auto pause = std::chrono::microseconds(500); waitpid(process, &status, WNOHANG) == 0;) {
    if (Clock::now() > deadline) {
      kill(process, SIGKILL);
      waitpid(process, &status, 0);
      return Error{trireme::Code::Driver, fmt::format("node was stopped after {} seconds", timeout_seconds)};
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(2 * pause, std::chrono::milliseconds(20));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Done{};
  std::ifstream errors(folder.file("error"));
  std::string text((std::istreambuf_iterator<char>(errors)), {});
  return Error{trireme::Code::Driver, "node failed: " + text.substr(0, 2000)};
}

Status parse_outcome(const std::string& line) {
  if (line == "ok") return Done{};
  for (trireme::Code code : {trireme::Code::Unsupported, trireme::Code::OutOfMemory, trireme::Code::Internal}) {
    const std::string prefix = std::string(name(code)) + " ";
    if (line.starts_with(prefix)) return Error{code, "wasm in node: " + line.substr(prefix.size())};
  }
  return Error{trireme::Code::Driver, "node stopped before this job was done"};
}

}  // namespace

std::string node_missing() { return find_on_path("node") ? "" : "node is not on PATH"; }

std::vector<Status> run_in_node(std::span<const Job> jobs, const NodeOptions& options) {
  const auto all = [&](trireme::Code code, std::string message) {
    return std::vector<Status>(jobs.size(), Error{code, std::move(message)});
  };
  const auto node = find_on_path("node");
  if (!node) return all(trireme::Code::NoDevice, node_missing());
  const TemporaryFolder folder;
  if (!folder) return all(trireme::Code::Driver, "no folder for temporary files can be made");

  std::vector<std::int64_t> positions;
  Data data{.file = std::ofstream(folder.file("data"), std::ios::binary)};
  std::string list;
  for (const Job& job : jobs) list += (list.empty() ? "" : ",\n") + describe(job, data, positions);
  const std::string multiply = data.place(multiply_probe()), madd = data.place(madd_probe());
  std::ofstream manifest(folder.file("jobs.json"));
  manifest << fmt::format("{{\"multiply\": {}, \"madd\": {}, \"jobs\": [\n{}\n]}}\n", multiply, madd, list);
  std::ofstream script(folder.file("run_jobs.mjs"));
  script << node_script;
  for (std::ofstream* file : {&data.file, &manifest, &script}) file->close();
  if (!data.file || !manifest || !script) return all(trireme::Code::Driver, "cannot write to " + folder.name());

  const Status ran = run_process(*node, folder, options.timeout_seconds);
  std::vector<Status> outcomes;
  std::ifstream output(folder.file("output")), results(folder.file("data"), std::ios::binary);
  std::size_t next = 0;
  for (const Job& job : jobs) {
    std::string line;
    std::getline(output, line);
    outcomes.push_back(line.empty() && !ran ? ran : parse_outcome(line));
    for (const JobBuffer& buffer : job.buffers) {
      const std::int64_t position = positions[next++];
      if (position < 0 || !outcomes.back()) continue;
      results.seekg(position);
      results.read(reinterpret_cast<char*>(buffer.data.data()), static_cast<std::streamsize>(buffer.data.size()));
      if (!results) outcomes.back() = Error{trireme::Code::Driver, "cannot read " + folder.file("data")};
    }
  }
  return outcomes;
}

}  // namespace trireme::wasm
