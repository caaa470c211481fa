#include "receipt/report.hpp"

namespace trireme::receipts {
namespace {

json::Json json_of(const std::vector<CheckedArray>& arrays) {
  json::List list;
  for (const CheckedArray& each : arrays) {
    json::Object found;
    found["name"].value = each.name;
    switch (each.state) {
      case CheckedArray::State::Same: found["state"].value = std::string("same"); break;
      case CheckedArray::State::LeftOut:
        found["state"].value = std::string("left out");
        found["reason"].value = each.reason;
        break;
      case CheckedArray::State::Different:
        found["state"].value = std::string("different");
        found["rows"].value = json::List{{each.first_row}, {each.last_row}};
        if (each.element.empty()) break;
        found["element"].value = each.element;
        found["got"].value = each.got;
        found["computed"].value = each.want;
        break;
    }
    list.push_back({std::move(found)});
  }
  return {std::move(list)};
}

}  // namespace

json::Object report_of(const CheckReport& report, std::string_view device) {
  json::Object made;
  made["device"].value = std::string(device);
  made["rows"].value = json::List{{report.first_row}, {report.last_row}};
  made["operands"] = json_of(report.operands);
  made["given"] = json_of(report.given);
  made["results"] = json_of(report.results);
  made["verdict"].value = std::string(report.passed() ? "holds" : "fails");
  return made;
}

}  // namespace trireme::receipts
