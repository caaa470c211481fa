// What the contract's row_block costs on a CPU: norm backwards with blocks of several sizes, one thread, best of 15.
//
//   row_block_cpu [ROWS COLUMNS]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "devices/arguments.hpp"
#include "devices/cpu/code_memory.hpp"
#include "devices/cpu/isa.hpp"
#include "ir/contract.hpp"
#include "plan/check.hpp"
#include "schedule/lower.hpp"
#include "targets/x86/emit.hpp"

using namespace trireme;
using Entry = void(const std::uint64_t* args, std::int64_t first, std::int64_t last, std::int64_t total);

int main(int argc, char** argv) {
  std::string shape = argc > 2 ? fmt::format("{}x{}", argv[1], argv[2]) : "256x65536";
  bool wide = cpu::why_not(x86::Isa::Avx512, cpu::read_cpuid()).empty();
  x86::Isa isa = wide ? x86::Isa::Avx512 : x86::Isa::Avx2;
  for (const char* op : {"rms_norm", "layer_norm"})
    for (const char* type : {"f32", "bf16"}) {
      Prepared prepared =
          prepare_problem(parse_problem(fmt::format("{} {} x={} backward", op, shape, type)).value()).value();
      Problem2d problem = prepared.view();
      Machine machine{.simd = true, .register_bytes = wide ? 64 : 32};
      Config config = choose_config(prepared.program, machine, facts_of(prepared.program, problem));
      Kernels kernels = lower(prepared.program, config).value();
      cpu::CodeMemory rows = cpu::CodeMemory::create(x86::emit(kernels.rows, isa).value().bytes).value();
      cpu::CodeMemory columns = cpu::CodeMemory::create(x86::emit(kernels.columns[0], isa).value().bytes).value();
      std::vector<std::byte> scratch(scratch_bytes(kernels, problem.columns) + 64);
      fmt::print("{:<10} {} {:<4} chosen {}:", op, shape, type, contract::row_block(problem.rows, problem.columns));
      for (std::int64_t block : {1, 2, 4, 8, 9, 16, 32, 64, 128, 256}) {
        if (block > problem.rows) continue;
        Blocks blocks = cut_rows(kernels, problem.rows, problem.columns, block);
        std::vector<std::byte> workspace(blocks.workspace_bytes + 64);
        auto line = [](std::vector<std::byte>& bytes) {
          return (reinterpret_cast<std::uint64_t>(bytes.data()) + 63) / 64 * 64;
        };
        std::vector<std::uint64_t> args(kernels.rows.slots.size());
        fill_slots(kernels, prepared.program, problem, blocks, {.partials = line(workspace), .scratch = line(scratch)},
                   args.data());
        double best = 1e9;
        for (int k = 0; k < 15; ++k) {
          auto start = std::chrono::steady_clock::now();
          rows.entry<Entry>()(args.data(), 0, problem.rows, problem.rows);
          columns.entry<Entry>()(args.data(), 0, problem.columns, problem.rows);
          best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        }
        fmt::print("  {}: {:.1f} ms", block, best * 1e3);
      }
      fmt::print("\n");
    }
}
