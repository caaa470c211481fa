// The structures of DLPack 1.x (dmlc.github.io/dlpack), those parts that are used here.
#pragma once
#include <cstdint>

namespace trireme::dlpack {

enum DeviceType : std::int32_t { Cpu = 1, Cuda = 2, CudaHost = 3, CudaManaged = 13 };
enum TypeCode : std::uint8_t {
  Int = 0,
  UInt = 1,
  Float = 2,
  Bfloat = 4,
  Bool = 6,
  Float8E4M3Fn = 10,
  Float8E5M2 = 12,
  Float8E8M0Fnu = 14,
  Float4E2M1Fn = 17
};

struct Device {
  std::int32_t type;
  std::int32_t index;
};
struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t rank;
  DataType type;
  std::int64_t *shape, *strides;  // in elements; null strides: contiguous
  std::uint64_t byte_offset;
};
struct Version {
  std::uint32_t major, minor;
};

struct Managed {  // capsules named "dltensor"
  Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};
struct ManagedVersioned {  // "dltensor_versioned"
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};
inline constexpr std::uint64_t read_only = 1;

// `type(x).__dlpack_c_exchange_api__`: what frameworks offer those who launch kernels on their tensors.
struct ExchangeHeader {
  Version version;
  ExchangeHeader* previous;
};
using SetError = void(void* context, const char* kind, const char* message);
struct Exchange {
  ExchangeHeader header;
  int (*allocate)(Tensor* prototype, ManagedVersioned** made, void* context, SetError* set_error);
  int (*managed_from_object)(void* object, ManagedVersioned** made);
  int (*object_from_managed)(ManagedVersioned* stolen, void** object);
  int (*tensor_from_object)(void* object, Tensor* lent);  // may be null
  int (*current_stream)(std::int32_t device_type, std::int32_t index, void** stream);
};

}  // namespace trireme::dlpack
