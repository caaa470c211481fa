#include "devices/reference_device.hpp"

#include "reference/reference.hpp"

namespace trireme {
namespace {

class ReferenceExecutable : public HostExecutable {
 public:
  explicit ReferenceExecutable(Program program) : program_(std::move(program)) {}
  MemoryBytes memory_bytes(std::int64_t, std::int64_t, const RunOptions&) const override { return {}; }
  Status run_in(const Problem2d& problem, const RunOptions&, const Lent&) const override {
    return run_reference(program_, problem);
  }
  std::string describe() const override { return "the reference, one row at a time"; }

 private:
  Program program_;
};

}  // namespace

std::vector<DeviceEntry> reference_devices() {
  return {{.name = "reference",
           .missing = [] { return std::string(); },
           .compile = [](const Program& program, const Facts&) -> Result<std::unique_ptr<Executable>> {
             return std::unique_ptr<Executable>(std::make_unique<ReferenceExecutable>(program));
           }}};
}

}  // namespace trireme
