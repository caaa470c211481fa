// Calls into the driver with a device's primary context current.
#pragma once
#include "devices/cuda/functions.hpp"

namespace trireme::cuda {

// The driver does not survive a fork, and may even hang: in a child of a process that had opened it, nothing is called.
extern bool in_forked_child;

// Makes a device's context current, and at the end what was current before.
class Current {
 public:
  explicit Current(const Device& device) : cu_(device.cu_) {
    if (in_forked_child) {
      code_ = ErrorNotInitialized;
      return;
    }
    ContextHandle now = nullptr;
    if (cu_.context_get.call(&now) == Success && now == device.context_) return;
    code_ = cu_.context_push.call(device.context_);
    pushed_ = code_ == Success;
  }
  ~Current() {
    ContextHandle ours;
    if (pushed_) cu_.context_pop.call(&ours);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  template <typename... Parameters, typename... Arguments>
  Status operator()(const Entry<int(Parameters...)>& entry, Arguments... arguments) const {
    if (code_ != Success) return cu_.failure(cu_.context_push.name, code_);
    return cu_(entry, arguments...);
  }

 private:
  const Functions& cu_;
  int code_ = Success;
  bool pushed_ = false;
};

}  // namespace trireme::cuda
