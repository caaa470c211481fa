// trireme check: a receipt's results, computed again.
#include "receipt/check.hpp"

#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "device_choice.hpp"
#include "ed25519.hpp"
#include "files.hpp"
#include "npy_file.hpp"
#include "plan/threads.hpp"
#include "receipt/report.hpp"
#include "trireme/device.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

using receipts::CheckedArray;

struct CheckVerbOptions {
  std::string receipt, device = "cpu", rows, key;
  std::vector<std::string> inputs, outputs;
  int threads = 1;
  bool json = false;
};

Error misuse(const std::string& what) { return {Code::InvalidArgument, what}; }

Result<std::pair<std::int64_t, std::int64_t>> rows_in(const std::string& text) {
  std::int64_t first = 0, last = 0;
  const char* end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, first);
  if (error != std::errc{} || colon == end || *colon != ':')
    return misuse("--rows " + text + ": expected A:B, as 32:48");
  const auto [stop, other] = std::from_chars(colon + 1, end, last);
  if (other != std::errc{} || stop != end) return misuse("--rows " + text + ": expected A:B, as 32:48");
  return std::pair(first, last);
}

// A file that holds an array of the receipt.
Result<receipts::ReadRows> reader_of(const std::string& path, const receipts::ArrayDigests& array) {
  TRIREME_TRY(opened, NpyFile::open(path));
  auto file = std::make_shared<NpyFile>(std::move(opened));
  if (Status holds = check_holds(file->header().type, array.type); !holds)
    return misuse(path + ": " + holds.error().message);
  if (file->header().data_bytes() != array.rows * array.row_bytes())
    return misuse(fmt::format("{}: {} takes {} bytes, and the receipt's '{}' has {} rows of {} bytes", path,
                              shape_text(file->header().shape), file->header().data_bytes(), array.name, array.rows,
                              array.row_bytes()));
  return receipts::ReadRows([file, bytes = array.row_bytes()](std::int64_t first, std::span<std::byte> rows) {
    return file->read(rows, first * bytes);
  });
}

Status add_files(const char* option, const std::vector<std::string>& given,
                 const std::vector<receipts::ArrayDigests>& arrays,
                 std::map<std::string, receipts::ReadRows>& readers) {
  TRIREME_TRY(files, values_by_name(option, given, "NAME=FILE, as in x=x.npy"));
  for (const auto& [name, path] : files) {
    const receipts::ArrayDigests* found = nullptr;
    for (const receipts::ArrayDigests& each : arrays)
      if (each.name == name) found = &each;
    if (!found) return misuse(fmt::format("{}: the receipt has no '{}'", option, name));
    TRIREME_TRY(reader, reader_of(path, *found));
    readers.emplace(name, reader);
  }
  return Done{};
}

std::string rows_named(const CheckedArray& array) {
  return array.last_row == array.first_row + 1 ? fmt::format("row {}", array.first_row)
                                               : fmt::format("rows {}:{}", array.first_row, array.last_row);
}

void print_array(const CheckedArray& array, const char* same, const char* different) {
  std::string what = same;
  if (array.state == CheckedArray::State::LeftOut) what = "left out: " + array.reason;
  if (array.state == CheckedArray::State::Different) what = fmt::format("{}: {}", different, rows_named(array));
  if (!array.element.empty()) what += fmt::format(", {} is {}, computed {}", array.element, array.got, array.want);
  fmt::print("  {:<12} {}\n", array.name, what);
}

struct SignatureFinding {
  std::string state, key,
      what;  // "none", "verified", "not verified", "wrong", "another key", "missing"; of whom; in words
  bool passed() const { return state == "none" || state == "verified" || state == "not verified"; }
};

// With a key the receipt must be signed by it. Without one a signature that is there must be right, where that can be
// found out.
Result<SignatureFinding> check_signature(const receipts::Receipt& receipt, const std::string& wanted) {
  if (!receipt.signature)
    return wanted.empty() ? SignatureFinding{"none", "", ""}
                          : SignatureFinding{"missing", "", "MISSING: the receipt is not signed, and --key wants it"};
  SignatureFinding found{"verified", receipt.signature->key, "by the key of " + receipt.signature->key};
  if (!wanted.empty()) {
    TRIREME_TRY(key, public_key(wanted));
    if (key != receipt.signature->key)
      return SignatureFinding{"another key", found.key, "BY ANOTHER KEY: " + found.key + ", wanted " + key};
  }
  const Result<bool> right = verify(*receipt.signature, receipts::signed_form(receipt));
  if (!right) {
    if (!wanted.empty() || right.error().code != Code::NoDevice) return right.error();
    return SignatureFinding{"not verified", found.key, "not verified: " + right.error().message};
  }
  if (!*right) return SignatureFinding{"wrong", found.key, "WRONG: not of this receipt by the key of " + found.key};
  return found;
}

int print_json(receipts::CheckReport report, const std::string& device, const SignatureFinding& signature) {
  json::Object all = receipts::report_of(report, device), made;
  made["state"].value = signature.state;
  if (!signature.key.empty()) made["key"].value = signature.key;
  all["signature"].value = std::move(made);
  const bool passed = report.passed() && signature.passed();
  all["verdict"].value = std::string(passed ? "holds" : "fails");
  json::Json whole;
  whole.value = std::move(all);
  fmt::print("{}\n", json::canonical(whole));
  return passed ? fine : check_failed;
}

Result<int> check_the_receipt(const CheckVerbOptions& options) {
  TRIREME_TRY(device, Device::named(options.device));
  TRIREME_TRY(bytes, read_file(options.receipt));
  auto named = [&](const Error& error) { return Error{error.code, options.receipt + ": " + error.message}; };
  Result<receipts::Receipt> receipt =
      receipts::parse_receipt({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!receipt) return named(receipt.error());
  TRIREME_TRY(signature, check_signature(*receipt, options.key));
  if (!options.json && !signature.what.empty()) fmt::print("  {:<12} {}\n", "signature", signature.what);
  if (!signature.passed()) return options.json ? print_json({}, device.name(), signature) : check_failed;
  receipts::CheckOptions how;
  if (!options.rows.empty()) {
    TRIREME_TRY(rows, rows_in(options.rows));
    how.rows = rows;
  }
  TRIREME_TRY(threads, threads_asked(options.threads));
  how.run.threads = threads;
  std::map<std::string, receipts::ReadRows> readers;
  TRIREME_CHECK(add_files("--in", options.inputs, receipt->operands, readers));
  TRIREME_CHECK(add_files("--out", options.outputs, receipt->results, readers));
  Result<receipts::CheckReport> report = receipts::check_receipt(*receipt, readers, device.entry(), how);
  if (!report) return named(report.error());
  if (options.json) return print_json(*report, device.name(), signature);
  for (const CheckedArray& each : report->operands)
    print_array(each, "matches the receipt", "DIFFERS FROM THE RECEIPT");
  for (const CheckedArray& each : report->given) print_array(each, "matches the receipt", "DIFFERS FROM THE RECEIPT");
  for (const CheckedArray& each : report->results) {
    print_array(each, "computed again: same bits", "OTHER BITS");
    if (each.state == CheckedArray::State::Different && each.last_row > each.first_row + 1 &&
        !readers.contains(each.name))
      fmt::print("  {:<12} these rows have one digest; --out {}=FILE, the result that was stored, names the row\n", "",
                 each.name);
  }
  if (report->passed())
    fmt::print("rows {}:{} on {}: the receipt holds\n", report->first_row, report->last_row, device.name());
  return report->passed() ? fine : check_failed;
}

}  // namespace

Command check_verb() {
  auto options = std::make_shared<CheckVerbOptions>();
  Command verb{.name = "check", .summary = "Computes a receipt's results again and compares their bits"};
  verb.option("receipt", options->receipt, "A receipt, as 'run --receipt' writes it",
              {.type = "FILE", .required = true});
  verb.option("--in", options->inputs, "An operand; repeatable", {.type = "NAME=FILE"});
  verb.option("--out", options->outputs, "A result that is at hand, to name the first element that differs; repeatable",
              {.type = "NAME=FILE"});
  verb.option("--rows", options->rows, "Only these rows, widened to whole blocks; the last is B - 1", {.type = "A:B"});
  verb.option("--key", options->key, "Whose signature the receipt must bear: a public key in PEM, or its 64 hex digits",
              {.type = "FILE"});
  verb.option("--json", options->json, "JSON instead of lines (docs/json.md)");
  verb.option("--device", options->device,
              "Where they are computed: cpu, cuda, wasm, reference, or a name that 'doctor' lists",
              {.type = "NAME", .show_default = true, .words = device_words});
  add_threads(verb, options->threads, "Threads on CPUs; the bits do not depend on it");
  verb.footer =
      "Operands are compared with the receipt first. With --rows, results that run over all rows are left out.\n"
      "  trireme check r.json --in x=x.npy --in gamma=g.npy --rows 32:48 --device reference\n"
      "Exits with 1 if an array is not the receipt's or a bit differs, and names the first row, or block of rows of an "
      "array\n"
      "that has more than 1024; --out names the row and the element, however many rows there are (docs/receipts.md).";
  verb.run = [options] { return check_the_receipt(*options); };
  return verb;
}

}  // namespace trireme::cli
