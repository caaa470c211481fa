// contract/vectors are what the reference makes of the cases, digit for digit: from version 1 on a change of them is a
// change of the contract. BLESS=1 test_contract adds cases to the files, and rewrites them where src/ir/contract.hpp
// has a new version.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "contract/vector_for_test.hpp"
#include "devices/arguments.hpp"
#include "ir/contract.hpp"
#include "language/parse.hpp"
#include "layout/elements.hpp"
#include "passes/passes.hpp"
#include "plan/devices_for_test.hpp"
#include "problem/digest.hpp"
#include "reference/reference.hpp"
#include "support/json.hpp"

namespace trireme::vectors {
namespace {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') out += "\\n";
    else if (c == '"' || c == '\\') out += {'\\', c};
    else out += c;
  }
  return out + '"';
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(between)) + part;
  return text;
}

void fill(const Buffer& buffer, const Rule& rule, const std::string& name) {
  const Array& array = buffer.array;
  if (const auto* samples = std::get_if<Samples>(&rule))
    return fill_samples(array, buffer.row_extent, buffer.column_extent, samples->seed, name, samples->range);
  std::uint64_t k = 0;
  for (std::int64_t r = 0; r < buffer.row_extent; ++r)
    for (std::int64_t c = 0; c < buffer.column_extent; ++c, ++k) {
      const auto* list = std::get_if<Bits>(&rule);
      const auto* count = std::get_if<Count>(&rule);
      set_bits_at(array, r, c, list ? (*list)[k % list->size()] : count->first + k * count->step);
    }
}

std::string text_of(const Rule& rule) {
  if (const auto* samples = std::get_if<Samples>(&rule))
    return fmt::format("\"samples\": [{}, \"{}\", \"{}\", {}]", samples->seed, samples->range.low, samples->range.high,
                       samples->range.integer ? 1 : 0);
  if (const auto* count = std::get_if<Count>(&rule))
    return fmt::format("\"count\": [\"{:x}\", \"{:x}\"]", count->first, count->step);
  std::vector<std::string> list;
  for (std::uint64_t bits : std::get<Bits>(rule)) list.push_back(fmt::format("\"{:x}\"", bits));
  return "\"bits\": [" + joined(list, ", ") + "]";
}

// The first digits of the digest of each row of entries.
std::string digests_of_rows(const Buffer& buffer) {
  std::string text;
  const Array bytes = in_bytes(buffer.array);
  for (std::int64_t r = 0; r < buffer.row_extent; ++r) {
    DigestPart row{bytes, 1, columns_in_bytes(buffer.array.type, buffer.column_extent)};
    row.array.data = bytes.entry(r, 0);
    text += digest(std::span(&row, 1)).substr(0, 8);
  }
  return text;
}

struct Ready {
  PreparedProgram program;
  Buffers buffers;
  std::map<std::string, Rule> rules;
};

Result<Ready> prepared(const Case& each) {
  TRIREME_TRY(program, parse(each.program));
  Binding binding{.types = each.types, .constants = each.constants, .wanted = std::set<std::string>()};
  binding.columns = each.columns;
  for (const Operand& operand : program.operands)
    if (!operand.constant && !each.types.contains(operand.name)) binding.absent.insert(operand.name);
  for (const Output& result : program.results)
    if (each.types.contains(result.name)) {
      binding.wanted->insert(result.name);
      if (each.before.contains(result.name)) binding.accumulate.insert(result.name);
    }
  binding.row_block = each.row_block;
  TRIREME_TRY(made, prepare(program, binding));
  std::map<std::string, Placement> placements;
  for (const auto& [name, rows] : each.table_rows) placements[name].rows = rows;
  TRIREME_TRY(buffers, make_buffers(made.bound, {each.rows, each.columns}, 1, placements));
  Ready ready{std::move(made), std::move(buffers), each.rules};
  for (std::size_t k = 0; k < ready.program.bound.operands.size(); ++k) {
    const Operand& operand = ready.program.bound.operands[k];
    if (operand.constant) continue;
    const Rule& rule = ready.rules.try_emplace(operand.name, Samples{default_range(*operand.type)}).first->second;
    fill(ready.buffers.operands[k], rule, operand.name);
  }
  return ready;
}

// What stands in the results' memory before a run.
void reset_results(const Case& each, Ready& ready) {
  for (std::size_t k = 0; k < ready.buffers.results.size(); ++k) {
    Buffer& buffer = ready.buffers.results[k];
    std::fill(buffer.memory.begin(), buffer.memory.end(), std::byte{0});
    const std::string& name = ready.program.bound.results[k].name;
    if (const auto rule = each.before.find(name); rule != each.before.end()) fill(buffer, rule->second, name);
  }
}

std::string text_of(const Case& each, const Ready& ready) {
  std::vector<std::string> constants, operands, results;
  for (const auto& [name, value] : each.constants) constants.push_back(fmt::format("\"{}\": \"{}\"", name, value));
  const Program& bound = ready.program.bound;
  for (std::size_t k = 0; k < bound.array_count(); ++k) {
    const Program::Array array = bound.array(k);
    if (!array.type) continue;
    const std::size_t count = bound.operands.size();
    const Buffer& buffer = k < count ? ready.buffers.operands[k] : ready.buffers.results[k - count];
    std::string text = fmt::format("{{\"name\": \"{}\", \"type\": \"{}\", \"entries\": [{}, {}]", array.name,
                                   name(*array.type), buffer.row_extent, buffer.column_extent);
    const std::map<std::string, Rule>& rules = k < count ? ready.rules : each.before;
    if (const auto rule = rules.find(std::string(array.name)); rule != rules.end())
      text += ", " + text_of(rule->second);
    if (k < count) operands.push_back(text + '}');
    else
      results.push_back(text + fmt::format(", \"digest\": \"{}\", \"rows\": \"{}\"}}", digest(std::span(&buffer, 1)),
                                           digests_of_rows(buffer)));
  }
  return fmt::format(
      "  {{\"name\": {}, \"rows\": {}, \"columns\": {},{}\n   \"program\": {},\n   \"constants\": {{{}}},\n"
      "   \"operands\": [\n    {}],\n   \"results\": [\n    {}],\n   \"digest\": \"{}\"}}",
      json_text(each.name), each.rows, each.columns,
      each.row_block ? fmt::format(" \"row_block\": {},", each.row_block) : "", json_text(each.program),
      joined(constants, ", "), joined(operands, ",\n    "), joined(results, ",\n    "), digest(ready.buffers.results));
}

const std::filesystem::path folder = std::filesystem::path(TRIREME_SOURCE_DIR) / "contract";

// Digests by all that a case says of its plan and inputs; nothing where the text is of another version.
std::optional<std::map<std::string, std::string>> published(const std::string& text) {
  std::map<std::string, std::string> digests;
  const Result<json::Json> read = json::parse(text);
  const auto* file = read ? std::get_if<json::Object>(&read->value) : nullptr;
  if (!file || std::get<std::int64_t>(file->at("contract").value) != contract::version) return std::nullopt;
  if (const auto blocks = file->find("row_block"); blocks != file->end())
    for (const json::Json& each : std::get<json::List>(blocks->second.value)) {
      const auto& list = std::get<json::List>(each.value);
      digests[json::canonical({json::List{list[0], list[1]}})] = json::canonical(list[2]);
    }
  if (const auto cases = file->find("cases"); cases != file->end())
    for (const json::Json& each : std::get<json::List>(cases->second.value)) {
      json::Object inputs = std::get<json::Object>(each.value);
      const std::string digest = std::get<std::string>(inputs.at("digest").value);
      inputs.erase("digest"), inputs.erase("results");
      digests[json::canonical({inputs})] = digest;
    }
  return digests;
}

// Why `text` may not take the place of what is known, or nothing: what a version gave for a case, it gives for ever.
std::string refusal(const std::string& known, const std::string& text) {
  if (known.empty()) return "no such file; a new one begins as {\"contract\": N, \"cases\": []}";
  const auto before = published(known), after = published(text);
  if (before)
    for (const auto& [inputs, digest] : *before) {
      const auto same = after->find(inputs);
      if (same == after->end()) return "lost: " + inputs;
      if (same->second != digest) return fmt::format("gives {}, not {}, for {}", same->second, digest, inputs);
    }
  return "";
}

// What other devices make of a case has the same digest.
// WebAssembly's engines take longer to compile than to run, and get some of the cases.
void check_devices(const Case& each, Ready& ready, const std::string& wanted, bool on_wasm) {
  for (const DeviceEntry* device : devices_here(30)) {
    if (device->target == "wasm" && !on_wasm) continue;
    reset_results(each, ready);
    const std::vector<Array> arrays = ready.buffers.arrays();
    const Problem2d problem{each.rows, each.columns, ready.program.constants, arrays};
    auto made = device->compile(ready.program.expanded, facts_of(ready.program.expanded, problem));
    ASSERT_TRUE(made) << device->name << ' ' << each.name << ": " << made.error().message;
    const auto ran = (*made)->run(problem, {.threads = 1});
    ASSERT_TRUE(ran) << device->name << ' ' << each.name << ": " << ran.error().message;
    EXPECT_EQ(digest(ready.buffers.results), wanted) << device->name << ' ' << each.name << '\n' << each.program;
  }
}

void check_file(const std::string& file, const std::vector<Case>& cases) {
  std::vector<std::string> texts;
  for (const Case& each : cases) {
    Result<Ready> ready = prepared(each);
    ASSERT_TRUE(ready) << each.name << ": " << ready.error().message << '\n' << each.program;
    const std::vector<Array> arrays = ready->buffers.arrays();
    reset_results(each, *ready);
    const Status ran =
        run_reference(ready->program.expanded, {each.rows, each.columns, ready->program.constants, arrays});
    ASSERT_TRUE(ran) << each.name << ": " << ran.error().message;
    texts.push_back(text_of(each, *ready));
    check_devices(each, *ready, digest(ready->buffers.results), std::getenv("LONG") || texts.size() % 5 == 1);
  }
  compare("vectors/" + file,
          fmt::format("{{\"contract\": {}, \"cases\": [\n{}\n]}}\n", contract::version, joined(texts, ",\n")));
}

TEST(Vectors, functions_f32) { check_file("functions_f32.json", function_cases(Type::F32)); }
TEST(Vectors, functions_f64) { check_file("functions_f64.json", function_cases(Type::F64)); }
TEST(Vectors, types) { check_file("types.json", type_cases()); }
TEST(Vectors, specials) { check_file("specials.json", special_cases()); }
TEST(Vectors, sums) { check_file("sums.json", sum_cases()); }
TEST(Vectors, groups) { check_file("groups.json", group_cases()); }
TEST(Vectors, folds) { check_file("folds.json", fold_cases()); }
TEST(Vectors, columns) { check_file("columns.json", column_cases()); }
TEST(Vectors, places) { check_file("places.json", place_cases()); }
TEST(Vectors, random) { check_file("random.json", random_cases()); }
TEST(Vectors, operators) { check_file("operators.json", operator_cases(false)); }
TEST(Vectors, backwards) { check_file("backwards.json", operator_cases(true)); }

TEST(Vectors, nothing_published_is_lost) {
  const auto file = [](int version, const std::string& cases) {
    return fmt::format("{{\"contract\": {}, \"cases\": [{}]}}", version, cases);
  };
  const std::string one = R"({"name": "a", "results": [], "digest": "12"})", two = R"({"name": "b", "digest": "34"})";
  const std::string both = file(contract::version, one + ", " + two);
  EXPECT_EQ(refusal(file(contract::version, ""), both), "");
  EXPECT_EQ(refusal(file(contract::version, two), both), "");
  EXPECT_EQ(refusal(both, file(contract::version, two)), R"(lost: {"name":"a"})");
  EXPECT_EQ(refusal(file(contract::version, R"({"name": "b", "digest": "35"})"), both),
            R"(gives 34, not 35, for {"name":"b"})");
  EXPECT_EQ(refusal(file(contract::version - 1, R"({"name": "b", "digest": "35"})"), both), "");
  EXPECT_NE(refusal("", both), "");
  const auto blocks = [](const std::string& list) {
    return fmt::format("{{\"contract\": {}, \"row_block\": [{}]}}", contract::version, list);
  };
  EXPECT_EQ(refusal(blocks("[1,2,3]"), blocks("[1,2,3], [4,5,6]")), "");
  EXPECT_EQ(refusal(blocks("[1,2,3], [4,5,6]"), blocks("[1,2,3]")), "lost: [4,5]");
  EXPECT_EQ(refusal(blocks("[1,2,3]"), blocks("[1,2,4]")), "gives 4, not 3, for [1,2]");
}

TEST(Vectors, row_block) {
  std::vector<std::string> list;
  for (std::int64_t rows : {0, 1, 127, 128, 129, 2047, 2048, 2049, 100000, 10000000})
    for (std::int64_t entries :
         {0, 1, 127, 128, 129, 1000, 2880, 4096, 7168, 8192, 8193, 16384, 100000, 245760, 300000})
      list.push_back(fmt::format("[{}, {}, {}]", rows, entries, contract::row_block(rows, entries)));
  compare("vectors/row_block.json",
          fmt::format("{{\"contract\": {}, \"row_block\": [\n  {}\n]}}\n", contract::version, joined(list, ", ")));
}

}  // namespace

bool compare(const std::string& file, const std::string& text) {
  std::stringstream known;
  known << std::ifstream(folder / file).rdbuf();
  if (known.str() == text) return true;
  const std::string reason = refusal(known.str(), text);
  if (reason.empty() && std::getenv("BLESS")) return bool(std::ofstream(folder / file) << text);
  ADD_FAILURE() << "contract/" << file << ", contract version " << contract::version << ": "
                << (reason.empty() ? "other cases; BLESS=1 test_contract rewrites it"
                                   : reason + "\nOther bits are another version (src/ir/contract.hpp)");
  return false;
}

}  // namespace trireme::vectors
