// The part of the C ABI about receipts.
#include "c_api/guard.hpp"
#include "plan/threads.hpp"
#include "receipt/check.hpp"
#include "receipt/from_views.hpp"
#include "receipt/report.hpp"
#include "receipt/view_rows.hpp"

namespace trireme::c_api {
namespace {

struct ReceiptObject {
  receipts::Receipt receipt;
  std::string json, signed_form;
};
struct ReportObject {
  bool passed = false;
  std::string json;
};
using Receipts = Handles<ReceiptObject>;
using Reports = Handles<ReportObject>;

Status give_receipt(receipts::Receipt receipt, trireme_receipt** out) {
  auto object = std::make_unique<ReceiptObject>();
  object->json = receipts::print(receipt);
  object->signed_form = receipts::signed_form(receipt);
  object->receipt = std::move(receipt);
  *out = static_cast<trireme_receipt*>(Receipts::add(std::move(object)));
  return Done{};
}

Result<std::map<std::string, View>> views_of(const trireme_named_view* arrays, std::size_t count) {
  std::map<std::string, View> views;
  TRIREME_CHECK(each_of(arrays, count, "arrays", [&](const trireme_named_view& each) -> Status {
    TRIREME_CHECK(given(each.name, "a name in arrays"));
    TRIREME_TRY(view, view_of(each.view));
    if (!views.emplace(each.name, view).second) return invalid(std::string(each.name) + " is given twice");
    return Done{};
  }));
  return views;
}

}  // namespace
}  // namespace trireme::c_api

using namespace trireme;
using namespace trireme::c_api;

int64_t trireme_block_rows(int64_t rows) { return receipts::block_rows(std::max<int64_t>(rows, 0)); }

trireme_status trireme_block_digests(const trireme_view* array, int32_t axes, const char* hash, char* digests,
                                     size_t bytes) {
  return guarded([&]() -> Status {
    TRIREME_TRY(view, view_of(array));
    TRIREME_CHECK(given(digests, "digests"));
    TRIREME_TRY(kind, receipts::hash_named(hash ? hash : "xxh3-128"));
    TRIREME_TRY(rows, receipts::rows_of(view, axes));
    receipts::ArrayDigests made{.type = rows.type, .rows = rows.rows, .columns = rows.columns};
    TRIREME_CHECK(receipts::take_digests(kind, made, rows.read));
    std::string text = made.digest + "\n";
    for (const std::string& leaf : made.leaves) text += leaf + "\n";
    if (text.size() >= bytes) {
      Error error{Code::BufferTooSmall,
                  std::to_string(text.size() + 1) + " bytes are needed, and the buffer has " + std::to_string(bytes)};
      error.needed = static_cast<std::int64_t>(text.size() + 1), error.got = static_cast<std::int64_t>(bytes);
      return error;
    }
    std::memcpy(digests, text.c_str(), text.size() + 1);
    return Done{};
  });
}

trireme_status trireme_receipt_make(const trireme_program* program, const trireme_named_view* arrays,
                                    size_t array_count, const trireme_receipt_options* options,
                                    trireme_receipt** receipt) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Programs::get(program, "program"));
    TRIREME_CHECK(given(receipt, "receipt"));
    receipts::ReceiptOptions how;
    if (options) {
      TRIREME_TRY(raw, versioned(options, "options", sizeof(trireme_receipt_options)));
      TRIREME_TRY(hash, receipts::hash_named(raw.hash ? raw.hash : "xxh3-128"));
      how.hash = hash;
      if (raw.axes) how.axes = raw.axes;
      TRIREME_CHECK(read_constants(raw.constants, raw.constant_count, how.constants));
    }
    TRIREME_TRY(views, views_of(arrays, array_count));
    TRIREME_TRY(made, receipts::receipt_of(object->text, views, how));
    return give_receipt(std::move(made), receipt);
  });
}

trireme_status trireme_receipt_parse(const char* json, size_t bytes, trireme_receipt** receipt) {
  return guarded([&]() -> Status {
    TRIREME_CHECK(given(json, "json"));
    TRIREME_CHECK(given(receipt, "receipt"));
    TRIREME_TRY(made, receipts::parse_receipt({json, bytes}));
    return give_receipt(std::move(made), receipt);
  });
}

trireme_status trireme_receipt_print(const trireme_receipt* receipt, const char** json, const char** signed_form) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Receipts::get(receipt, "receipt"));
    if (json) *json = object->json.c_str();
    if (signed_form) *signed_form = object->signed_form.c_str();
    return Done{};
  });
}

trireme_status trireme_receipt_sign(const trireme_receipt* receipt, const char* key, const char* value,
                                    trireme_receipt** with_signature) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Receipts::get(receipt, "receipt"));
    TRIREME_CHECK(given(key, "key"));
    TRIREME_CHECK(given(value, "value"));
    TRIREME_CHECK(given(with_signature, "with_signature"));
    receipts::Receipt made = object->receipt;
    made.signature = receipts::Signature{key, value};
    TRIREME_CHECK(receipts::check_signature(made));
    return give_receipt(std::move(made), with_signature);
  });
}

trireme_status trireme_receipt_destroy(trireme_receipt* receipt) {
  return guarded([&] { return Receipts::remove(receipt, "receipt"); });
}

trireme_status trireme_receipt_check(const trireme_receipt* receipt, const trireme_named_view* arrays,
                                     size_t array_count, const trireme_receipt_check_options* options,
                                     trireme_receipt_report** report) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Receipts::get(receipt, "receipt"));
    TRIREME_CHECK(given(report, "report"));
    trireme_receipt_check_options raw = {};
    if (options) {
      TRIREME_TRY(said, versioned(options, "options", sizeof(trireme_receipt_check_options)));
      raw = said;
    }
    TRIREME_TRY(device, Device::named(raw.device ? raw.device : "cpu"));
    receipts::CheckOptions how;
    if (raw.first_row || raw.last_row) how.rows = {raw.first_row, raw.last_row};
    TRIREME_TRY(threads, threads_asked(raw.threads));
    how.run.threads = threads;
    TRIREME_TRY(views, views_of(arrays, array_count));
    TRIREME_TRY(readers, receipts::readers_of(object->receipt, views));
    TRIREME_TRY(found, receipts::check_receipt(object->receipt, readers, device.entry(), how));
    auto made = std::make_unique<ReportObject>();
    made->passed = found.passed();
    made->json = json::canonical({receipts::report_of(found, device.name())});
    *report = static_cast<trireme_receipt_report*>(Reports::add(std::move(made)));
    return Done{};
  });
}

trireme_status trireme_receipt_report_get(const trireme_receipt_report* report, int32_t* passed, const char** json) {
  return guarded([&]() -> Status {
    TRIREME_TRY(object, Reports::get(report, "report"));
    if (passed) *passed = object->passed;
    if (json) *json = object->json.c_str();
    return Done{};
  });
}

trireme_status trireme_receipt_report_destroy(trireme_receipt_report* report) {
  return guarded([&] { return Reports::remove(report, "report"); });
}
