// The compiler behind one call. JavaScript writes a request into memory that `request` lends: words, each ended by a
// NUL, the first of them a verb of the table below. `call` answers with a text (JSON, or an error's message) and with
// bytes, both of which stay until the next call. The module has no imports and one thread.
//
// Memory that runs out, and a fault of the compiler's own, end in a trap: the instance is then thrown away, and the
// next request made of a new one (js/compiler.mjs).
#include <cstdlib>

#include "devices/device.hpp"
#include "verbs.hpp"

namespace trireme {

void fail(const Error&) { std::abort(); }  // a value() where there is none

Result<Timing> Executable::time(const Placed&, const TimeOptions&) {
  return Error{Code::Unsupported, "nothing is timed in here"};
}

}  // namespace trireme

// What the C++ library says before it gives up, and what asmjit's loggers of files would write to: nowhere. The texts
// and formats of printf that they would bring along are not needed, and the module imports nothing.
_LIBCPP_BEGIN_NAMESPACE_STD
void __libcpp_verbose_abort(const char*, ...) { __builtin_trap(); }
_LIBCPP_END_NAMESPACE_STD
extern "C" {
int __imported_wasi_snapshot_preview1_fd_close(int) { return 8; }  // "bad descriptor"
int __imported_wasi_snapshot_preview1_fd_seek(int, long long, int, int) { return 8; }
int __imported_wasi_snapshot_preview1_fd_write(int, int, int, int) { return 8; }
}

namespace trireme::web {
namespace {

std::string request_text;
Answer answer;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\0', at);
    words.push_back(text.substr(at, end - at));
    at = end == text.npos ? text.size() : end + 1;
  }
  return words;
}

Result<Answer> run(const std::vector<std::string_view>& words) {
  if (words.empty()) return Error{Code::InvalidArgument, "an empty request"};
  for (const Verb& verb : verbs())
    if (verb.name == words[0]) {
      const std::span<const std::string_view> rest(words.begin() + 1, words.end());
      if (rest.size() != verb.words)
        return Error{Code::InvalidArgument,
                     fmt::format("{} takes {} words, got {}", verb.name, verb.words, rest.size())};
      return verb.run(rest);
    }
  return Error{Code::InvalidArgument, fmt::format("no verb '{}'", words[0])};
}

}  // namespace

#define TRIREME_EXPORT(name) extern "C" __attribute__((export_name(name)))

TRIREME_EXPORT("request") char* trireme_request(std::size_t bytes) {
  request_text.assign(bytes, '\0');
  return request_text.data();
}

// 0: answered; else 1 + the number of an error code, and the text is its message.
TRIREME_EXPORT("call") int trireme_call() {
  answer = {};
  Result<Answer> made = run(words_of(request_text));
  request_text.clear();
  request_text.shrink_to_fit();
  if (made) {
    answer = std::move(*made);
    return 0;
  }
  answer.text = made.error().message;
  return 1 + static_cast<int>(made.error().code);
}

TRIREME_EXPORT("text") const char* trireme_text() { return answer.text.data(); }
TRIREME_EXPORT("text_bytes") std::size_t trireme_text_bytes() { return answer.text.size(); }
TRIREME_EXPORT("bytes") const std::uint8_t* trireme_bytes() { return answer.bytes.data(); }
TRIREME_EXPORT("bytes_bytes") std::size_t trireme_bytes_bytes() { return answer.bytes.size(); }

}  // namespace trireme::web
