// Where two traces first part: aligned events whose outputs differ, whether their inputs did, and what is to blame.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "drift/elements.hpp"
#include "drift/trace.hpp"

namespace trireme::drift {

// Some rows of every array that has `of` rows, against as many of the other run: a token alone and in a batch.
struct Rows {
  std::int64_t first = 0, last = 0;  // the last is behind
  std::optional<std::int64_t> of;    // as most of the modules' outputs have unless said
};

struct CompareOptions {
  std::optional<Rows> rows[2];           // of both or none
  std::optional<std::int64_t> calls[2];  // the events of one call of the outermost module; all unless said
  std::size_t limit = 1;                 // of events that are described
  std::function<void(double)> progress = [](double) {};
};

// Unknown: not digested, or rows that lie inside a block, or arrays that have other rows.
enum class Likeness : std::uint8_t { Same, Different, Unknown };

// Who wrote an array last: nobody whom the trace saw, or an event, which the other run may not have.
struct Source {
  const Event* event = nullptr;
  bool aligned = false;
};

struct ArrayDifference {
  std::string name;
  std::string reason = {};                   // "f32 against bf16", "[2, 3] against [2, 4]"; empty where values differ
  std::int64_t first_row = 0, last_row = 0;  // the first block of rows that differs; one row where that is known
  std::int64_t first_row_b = 0;              // the same in the second run
  std::int64_t blocks = 0, of_blocks = 0;    // that differ
  std::optional<ElementDifferences> elements = {};  // where both traces keep them
  const TracedArray *a = nullptr, *b = nullptr;
  Source from[2] = {};  // of an input
};

// Inside: of a module, the event that was found before it.
enum class Blame : std::uint8_t { Parameter, Input, Arguments, Random, Operator, Module, Inside };
const char* name(Blame blame);
const char* name(Event::Kind kind);

struct Parting {
  const Event *a = nullptr, *b = nullptr;
  std::vector<ArrayDifference> outputs = {}, inputs = {};  // that differ
  std::size_t unknown_inputs = 0;
  Blame blame = Blame::Operator;
};

struct CompareReport {
  std::size_t events[2] = {}, looked_at[2] = {};  // in the traces; of the chosen calls
  std::size_t aligned = 0, same = 0, different = 0, unknown = 0;
  std::size_t by_operators = 0;      // of those that differ, where equal inputs gave other outputs
  std::int64_t rows_of[2] = {};      // of --rows: how many rows the compared arrays have
  std::vector<Parting> partings;     // in order, the first `limit`
  const Event* last_same = nullptr;  // before the first parting, in a
};

Result<CompareReport> compare(const Trace& a, const Trace& b, const CompareOptions& options);

}  // namespace trireme::drift
