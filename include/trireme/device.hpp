// The machines that plans are made for.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/export.hpp"
#include "trireme/result.hpp"

namespace trireme {

struct DeviceEntry;

class TRIREME_API Device {
 public:
  struct Listed {
    std::string name;
    std::string missing;  // empty, or why it cannot be used here
  };
  static std::vector<Listed> list();

  // The widest instructions this processor has, or those that TRIREME_ISA names (avx2, avx512); the reference where
  // neither goes or the system forbids executable memory. name() says which, why() says why.
  static Result<Device> cpu();
  static Device reference();                    // the contract, executed literally: right, slow, and it allocates
  static Result<Device> cuda(int ordinal = 0);  // an NVIDIA GPU, by the driver's numbering
  static Result<Device> named(std::string_view name);  // "cpu", a name of list(), or a further GPU: "cuda:1"

  const std::string& name() const;
  const std::string& why() const { return why_; }  // why cpu() chose this one; empty where it was named
  const DeviceEntry& entry() const { return *entry_; }

 private:
  explicit Device(const DeviceEntry& entry, std::string why = {}) : entry_(&entry), why_(std::move(why)) {}
  const DeviceEntry* entry_;
  std::string why_;
};

}  // namespace trireme
