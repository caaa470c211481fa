// Whatever Python calls an array, seen as a pointer, a type, a shape and strides.
#pragma once
#include <cstdint>

#include "dlpack.hpp"
#include "python.hpp"
#include "trireme.h"

namespace trireme::python {

inline constexpr int max_rank = 8;

// Beside trireme_type: integers that a call's `types` may name (bf16 as uint16, f8 as uint8).
enum RawType : std::int32_t { Raw16 = 101 };

enum class Family : std::uint8_t {
  NumPy,     // and other buffers
  Exchange,  // torch and others with __dlpack_c_exchange_api__
  CudaInterface,
  Dlpack,  // __dlpack__ alone
};

struct Where {
  bool cuda = false;
  std::int32_t index = 0;
  friend bool operator==(const Where&, const Where&) = default;
};

// Borrowed for the time of a call; gives back what was lent.
struct Array {
  void* data = nullptr;
  std::int32_t type = TRIREME_F32;
  std::int32_t rank = 0;
  bool contiguous = true;
  bool read_only = false;
  Family family = Family::NumPy;
  Where where;
  std::int64_t shape[max_rank], strides[max_rank];
  const dlpack::Exchange* exchange = nullptr;
  Ref dtype;  // of a NumPy array whose type NumPy itself does not have (ml_dtypes' bfloat16)
  void* stream = nullptr;
  bool has_stream = false;  // of its own to be waited for
  bool is_torch = false;

  Array() = default;
  Array(const Array&) = delete;
  ~Array() {
    if (buffer_.obj) PyBuffer_Release(&buffer_);
    if (managed_) managed_->deleter(managed_);
    if (versioned_) versioned_->deleter(versioned_);
  }

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (int k = 0; k < rank; ++k) count *= shape[k];
    return count;
  }
  trireme_view view() const {
    return {.struct_size = sizeof(trireme_view),
            .data = data,
            .type = type,
            .rank = rank,
            .shape = shape,
            .strides = contiguous ? nullptr : strides,
            .bytes = TRIREME_UNKNOWN_BYTES};
  }

  // False with a Python error. `what`: the parameter's name, for messages.
  bool load(PyObject* object, const char* what, bool writable);
  bool take_tensor(const dlpack::Tensor& tensor, const char* what);
  // What its bytes are. Of f4e2m1 they are pairs of columns, and `shape` and `strides` count columns from then on.
  void take_type(std::int32_t is);

 private:
  bool load_buffer(PyObject* object, const char* what, bool writable);
  bool load_custom_dtype(PyObject* object, const char* what, bool writable);
  bool load_exchange(PyObject* object, const char* what, bool writable);
  bool load_cuda_interface(PyObject* object, const char* what);
  bool load_dlpack(PyObject* object, const char* what, bool writable);
  bool take_strides(const Py_ssize_t* strides, Py_ssize_t item_bytes, const char* what);
  void find_contiguous();

  Py_buffer buffer_ = {};
  dlpack::Managed* managed_ = nullptr;
  dlpack::ManagedVersioned* versioned_ = nullptr;
  Ref held_;
};

int type_bytes(std::int32_t type);
const char* type_name(std::int32_t type);
std::int32_t type_named(const char* name);  // -1: none
dlpack::DataType dlpack_type(std::int32_t type);

// A module once imported, never given back; null with a Python error.
PyObject* numpy();

// torch.get_num_threads(), which OMP_NUM_THREADS and torch.set_num_threads() rule. False with a Python error.
bool torch_threads(std::int32_t& threads);

}  // namespace trireme::python
