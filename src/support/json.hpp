// The JSON that receipts and traces are written in: objects, lists, texts and whole numbers below 2^53. Its canonical
// form has sorted keys and no blanks, and texts as JavaScript's JSON.stringify writes them, so that equal values are
// equal bytes.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::json {

struct Json;
using List = std::vector<Json>;
using Object = std::map<std::string, Json>;
struct Json {
  std::variant<std::int64_t, std::string, List, Object> value;
};

inline constexpr std::size_t max_bytes = std::size_t{64} << 20;
inline constexpr int max_depth = 8;
inline constexpr std::int64_t max_whole = (std::int64_t{1} << 53) - 1;  // what every language's numbers hold

bool is_utf8(std::string_view text);  // without overlong forms and surrogates: what texts of JSON are made of
Result<Json> parse(std::string_view text);
std::string canonical(const Json& json);

}  // namespace trireme::json
