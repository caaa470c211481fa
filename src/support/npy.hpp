// The head of NumPy's .npy files (NEP 1): type, order and shape of the values that follow it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/result.hpp"

namespace trireme {

struct NpyHead {
  std::string type;  // NumPy's: "<f4", "<f8", "<f2", "<i4", "<u2", "|i1", "|u1"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;

  std::int64_t count() const;
};

struct NpyFile {
  NpyHead head;
  std::span<const std::byte> values;  // the rest of the file; as many bytes as the head says
};

Result<NpyFile> parse_npy(std::span<const std::byte> file);
std::string npy_head(const NpyHead& head);  // what stands before the values

}  // namespace trireme
