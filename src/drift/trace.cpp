#include "drift/trace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "drift/elements.hpp"
#include "receipt/receipt.hpp"
#include "support/json.hpp"

namespace trireme::drift {
namespace {

using json::Json, json::List, json::Object;

constexpr std::int64_t format_version = 1;

Error wrong(const std::string& what) { return {Code::InvalidArgument, what}; }

// The fields of an object; those that are not there are empty, or 0.
class Fields {
 public:
  static Result<Fields> of(const Json& json) {
    const Object* object = std::get_if<Object>(&json.value);
    if (!object) return wrong("expected an object");
    return Fields(*object);
  }
  bool has(const char* name) const { return object_->contains(name); }
  template <typename T>
  Result<T> get(const char* name, const char* kind) const {
    const auto found = object_->find(name);
    if (found == object_->end()) return T{};
    const T* value = std::get_if<T>(&found->second.value);
    if (!value) return wrong(fmt::format("'{}' is {}", name, kind));
    return *value;
  }
  Result<std::string> text(const char* name) const { return get<std::string>(name, "a text"); }
  Result<List> list(const char* name) const { return get<List>(name, "a list"); }
  Result<std::int64_t> whole(const char* name) const {
    TRIREME_TRY(found, get<std::int64_t>(name, "a whole number"));
    if (found < 0) return wrong(fmt::format("'{}' is negative", name));
    return found;
  }
  Result<std::optional<std::int64_t>> maybe(const char* name) const {
    if (!has(name)) return std::optional<std::int64_t>();
    TRIREME_TRY(found, whole(name));
    return std::optional(found);
  }

 private:
  explicit Fields(const Object& object) : object_(&object) {}
  const Object* object_;
};

Result<std::vector<TracedArray>> arrays_in(const Fields& event, const char* which) {
  TRIREME_TRY(list, event.list(which));
  std::vector<TracedArray> made;
  for (const Json& each : list) {
    TRIREME_TRY(fields, Fields::of(each));
    TracedArray array;
    TRIREME_TRY(name, fields.text("name"));
    TRIREME_TRY(type, fields.text("type"));
    TRIREME_TRY(shape, fields.list("shape"));
    std::int64_t elements = 1;
    for (const Json& extent : shape) {
      const std::int64_t* size = std::get_if<std::int64_t>(&extent.value);
      if (!size || *size < 0 || __builtin_mul_overflow(elements, *size, &elements) || elements > json::max_whole)
        return wrong("a shape is a list of whole numbers, whose product is below 2^53");
      array.shape.push_back(*size);
    }
    TRIREME_TRY(digests, fields.maybe("rows"));
    TRIREME_TRY(from, fields.maybe("from"));
    TRIREME_TRY(at, fields.maybe("at"));
    TRIREME_TRY(unset, fields.whole("unset"));
    array.name = std::move(name), array.type = std::move(type);
    array.digests = digests, array.from = from, array.elements = at, array.unset = unset != 0;
    made.push_back(std::move(array));
  }
  return made;
}

Result<Event> event_in(const Fields& fields) {
  Event event;
  TRIREME_TRY(kind, fields.text("kind"));
  if (kind == "state") event.kind = Event::Kind::State;
  else if (kind == "operator") event.kind = Event::Kind::Operator;
  else if (kind == "module") event.kind = Event::Kind::Module;
  else return wrong("an event is a state, an operator or a module, not '" + kind + "'");
  TRIREME_TRY(call, fields.whole("call"));
  TRIREME_TRY(phase, fields.text("phase"));
  TRIREME_TRY(path, fields.text("path"));
  TRIREME_TRY(name, fields.text("name"));
  TRIREME_TRY(arguments, fields.text("with"));
  TRIREME_TRY(random, fields.whole("random"));
  TRIREME_TRY(in, arrays_in(fields, "in"));
  TRIREME_TRY(out, arrays_in(fields, "out"));
  event.call = call, event.random = random != 0;
  event.phase = std::move(phase), event.path = std::move(path), event.name = std::move(name);
  event.arguments = std::move(arguments);
  event.in = std::move(in), event.out = std::move(out);
  return event;
}

Result<int> open_file(const std::string& path, std::int64_t& bytes) {
  struct stat found = {};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, &found) != 0) return wrong(path + ": " + std::strerror(errno));
  bytes = found.st_size;
  return file;
}

Status read_at(int file, std::int64_t at, std::span<std::byte> bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = pread(file, bytes.data() + done, bytes.size() - done, at + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return wrong(std::string("a trace: ") + std::strerror(errno));
    if (got == 0) return wrong("a trace's file has become shorter");
    done += static_cast<std::size_t>(got);
  }
  return Done{};
}

// Whether what the line says of it is in the files.
bool fits(const TracedArray& array, std::int64_t digests, std::int64_t element_bytes_there) {
  if (array.digests && (*array.digests > digests || array.blocks() > digests - *array.digests)) return false;
  if (!array.elements) return true;
  const std::optional<std::int64_t> bytes = element_bytes(array.type);
  return array.digests && bytes && *array.elements <= element_bytes_there &&
         array.rows() * array.columns() * *bytes <= element_bytes_there - *array.elements;
}

}  // namespace

std::int64_t TracedArray::columns() const { return shape.empty() ? 1 : shape.back(); }
std::int64_t TracedArray::rows() const {
  std::int64_t made = 1;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == 0) return 0;  // without elements
    if (k + 1 < shape.size()) made *= shape[k];
  }
  return made;
}
std::int64_t TracedArray::block() const { return receipts::block_rows(rows()); }
std::int64_t TracedArray::blocks() const { return (rows() + block() - 1) / block(); }

std::string Event::label() const {
  std::string made = phase;
  for (const std::string& each : {path, name})
    if (!each.empty()) made += (made.empty() ? "" : " ") + each;
  return made;
}

Trace::Trace(Trace&& other) noexcept
    : folder_(std::move(other.folder_)),
      failure_(std::move(other.failure_)),
      events_(std::move(other.events_)),
      ended_(other.ended_),
      rows_(std::exchange(other.rows_, -1)),
      arrays_(std::exchange(other.arrays_, -1)) {}

Trace::~Trace() {
  for (const int file : {rows_, arrays_})
    if (file >= 0) close(file);
}

Result<Trace> Trace::read(const std::string& folder, const std::function<void(double)>& progress) {
  Trace trace;
  trace.folder_ = folder;
  const std::string path = folder + "/trace.jsonl";
  std::int64_t bytes = 0, row_bytes = 0, array_bytes = 0;
  TRIREME_TRY(lines_file, open_file(path, bytes));
  close(lines_file);
  TRIREME_TRY(rows, open_file(folder + "/rows.bin", row_bytes));
  trace.rows_ = rows;
  TRIREME_TRY(arrays, open_file(folder + "/arrays.bin", array_bytes));
  trace.arrays_ = arrays;
  std::ifstream lines(path, std::ios::binary);
  std::int64_t number = 0, read = 0;
  // A process that was killed leaves half a line, or digests behind their line's place: there the trace is cut off.
  for (std::string line; std::getline(lines, line);) {
    if (lines.eof()) break;
    read += static_cast<std::int64_t>(line.size()) + 1;
    if (++number % 1024 == 0) progress(static_cast<double>(read) / static_cast<double>(bytes));
    auto here = [&](const Error& error) { return wrong(fmt::format("{}, line {}: {}", path, number, error.message)); };
    Result<Json> json = json::parse(line);
    if (!json) return here(json.error());
    Result<Fields> fields = Fields::of(*json);
    if (!fields) return here(fields.error());
    if (number == 1) {
      if (!fields->has("trace")) return wrong(path + " is no trace");
      Result<std::int64_t> version = fields->whole("trace");
      if (!version || *version != format_version)
        return wrong(fmt::format("{}: this version reads traces of form {}", path, format_version));
      continue;
    }
    if (trace.ended_) return here(wrong("something stands behind the end"));
    if (fields->has("end")) {
      Result<std::string> failed = fields->text("failed");
      if (!failed) return here(failed.error());
      trace.failure_ = *failed, trace.ended_ = true;
      continue;
    }
    Result<Event> event = event_in(*fields);
    if (!event) return here(event.error());
    event->number = static_cast<std::int64_t>(trace.events_.size());
    bool whole = true;
    for (const auto* list : {&event->in, &event->out})
      for (const TracedArray& each : *list) whole = whole && fits(each, row_bytes / 8, array_bytes);
    if (!whole) break;
    trace.events_.push_back(std::move(*event));
  }
  if (number == 0) return wrong(path + " is no trace");
  return trace;
}

Result<std::vector<std::uint64_t>> Trace::digests(const TracedArray& array, std::int64_t first,
                                                  std::int64_t count) const {
  std::vector<std::uint64_t> made(static_cast<std::size_t>(count));
  TRIREME_CHECK(read_at(rows_, 8 * (*array.digests + first), std::as_writable_bytes(std::span(made))));
  return made;
}

Status Trace::elements(const TracedArray& array, std::int64_t from_byte, std::span<std::byte> bytes) const {
  return read_at(arrays_, *array.elements + from_byte, bytes);
}

}  // namespace trireme::drift
