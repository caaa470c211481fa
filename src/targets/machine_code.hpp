// What targets of machine code (Target::Form::Code) have in common.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "targets/targets.hpp"

namespace trireme {

struct MachineCode {
  std::vector<std::uint8_t>
      bytes;            // entry at offset 0: void(const std::uint64_t* args, i64 first, i64 last, i64 total)
  std::string listing;  // assembler text with the kernel's structure as comments; only if asked for
};

// Kernels one after the other, each at a cache line, `filler` in between. emit(kernel): Result<MachineCode>.
template <typename Emit>
Result<Artifact> artifact_of(const Kernels& kernels, std::uint8_t filler, Emit&& emit) {
  TRIREME_TRY(rows, emit(kernels.rows));
  Artifact artifact{std::move(rows.bytes)};
  for (const Kernel& kernel : kernels.columns) {
    TRIREME_TRY(columns, emit(kernel));
    artifact.bytes.resize((artifact.bytes.size() + 63) / 64 * 64, filler);
    artifact.columns_entry = static_cast<std::int64_t>(artifact.bytes.size());
    artifact.bytes.insert(artifact.bytes.end(), columns.bytes.begin(), columns.bytes.end());
  }
  return artifact;
}

template <typename Emit>
Result<std::string> listing_of(const Kernels& kernels, Emit&& emit) {
  TRIREME_TRY(rows, emit(kernels.rows));
  std::string text = std::move(rows.listing);
  for (const Kernel& kernel : kernels.columns) {
    TRIREME_TRY(columns, emit(kernel));
    text += "\n" + columns.listing;
  }
  return text;
}

inline std::string entries_of(const Artifact& artifact, std::string_view convention) {
  std::string text = fmt::format(
      "entry at byte 0: void rows(const uint64_t* args, int64_t first, int64_t last, int64_t total), {}\n", convention);
  if (artifact.columns_entry >= 0)
    text += fmt::format("entry at byte {}: columns, the same way, once all rows are done\n", artifact.columns_entry);
  return text;
}

}  // namespace trireme
