// What `show` and `emit` have in common: a program, the shape and the types it is compiled for.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "plan/check.hpp"
#include "schedule/config.hpp"

namespace trireme::cli {

struct ProgramOptions {
  std::string program;
  bool backward = false;
  std::int64_t rows = 4096, columns = 4096;
  std::vector<std::string> types, constants, absent;
  std::string gradients;  // "loss,lse"; empty: those that arrive unless said
  std::string config;     // chosen, if empty
};

// "loss,lse" as names; nothing for the empty text.
std::optional<std::set<std::string>> names_listed(std::string_view text);
inline constexpr char gradients_help[] =
    "Results whose gradients arrive in the backward, as loss,lse; unless said, every [i,j] result and every other that "
    "no result uses; a colmax takes none, since how many elements share it is known when all rows are done";

std::vector<std::string> type_words();  // the storage types, for completion

void add_program_options(Command& verb, ProgramOptions& options);

// The program bound and expanded, and what a compiler may rely on: arrays without gaps that begin at 16 bytes.
struct BoundProgram {
  Prepared prepared;
  Facts facts;
};
Result<BoundProgram> bind_program(const ProgramOptions& options);

}  // namespace trireme::cli
