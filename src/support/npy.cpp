#include "support/npy.hpp"

#include <optional>

namespace trireme {
namespace {

constexpr NpyType npy_types[] = {{"<f8", "float64", 8},
                                 {"<f4", "float32", 4},
                                 {"<f2", "float16", 2},
                                 {"<u2", "uint16", 2},
                                 {"|u1", "uint8", 1},
                                 {"|i1", "int8", 1},
                                 {"<i4", "int32", 4},
                                 {"<i8", "int64", 8},
                                 {"|b1", "bool", 1},
                                 // What NumPy writes for bfloat16 and float8 of the package ml_dtypes.
                                 {"<V2", "a 2-byte type", 2},
                                 {"|V2", "a 2-byte type", 2},
                                 {"<V1", "a 1-byte type", 1},
                                 {"|V1", "a 1-byte type", 1}};

Error wrong(std::string message) { return {Code::InvalidArgument, std::move(message)}; }

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<NpyHeader> run() {
    if (!accept('{')) return malformed("'{'");
    while (!accept('}')) {
      TRIREME_TRY(key, string());
      if (!accept(':')) return malformed("':'");
      if (key == "descr" && !descr_) {
        if (peek() == '[') return wrong("it holds records; only arrays of numbers are read");
        TRIREME_TRY(descr, string());
        descr_ = descr;
      } else if (key == "fortran_order" && !fortran_) {
        TRIREME_TRY(fortran, truth());
        fortran_ = fortran;
      } else if (key == "shape" && !shape_) {
        TRIREME_TRY(shape, dims());
        shape_ = shape;
      } else {
        return malformed("'descr', 'fortran_order' and 'shape', each once");
      }
      if (!accept(',') && peek() != '}') return malformed("',' or '}'");
    }
    skip_blanks();
    if (at_ != text_.size()) return malformed("nothing behind '}'");
    if (!descr_ || !fortran_ || !shape_) return malformed("'descr', 'fortran_order' and 'shape'");
    return header();
  }

 private:
  Result<NpyHeader> header() const {
    NpyHeader header;
    TRIREME_TRY(type, type_of(*descr_));
    header.type = type;
    header.shape = *shape_;
    // Even an array without elements must be one whose strides can be counted.
    std::int64_t size = static_cast<std::int64_t>(type.bytes);
    for (std::int64_t extent : header.shape) {
      if (extent > 0 && __builtin_mul_overflow(size, extent, &size))
        return wrong("its shape has more elements than 64 bits can count");
      header.elements *= extent;
    }
    if (*fortran_ && header.shape.size() > 1)
      return wrong("it is in Fortran order; save numpy.ascontiguousarray(array)");
    return header;
  }

  static Result<NpyType> type_of(std::string_view descr) {
    for (const NpyType& each : npy_types)
      if (each.descr == descr || (each.descr.substr(1) == descr.substr(std::min<std::size_t>(1, descr.size())) &&
                                  (descr[0] == '=' || (each.bytes == 1 && (descr[0] == '<' || descr[0] == '>')))))
        return each;
    if (descr.starts_with('>'))
      return wrong("it is big-endian (" + printable(descr) + "); save array.astype(array.dtype.newbyteorder('<'))");
    return wrong(
        "its elements are " + printable(descr) +
        "; float64, float32, float16, int8, int32, int64, uint8 and bool are read, bf16 as uint16 and f8 as uint8");
  }

  static std::string printable(std::string_view text) {
    std::string shown = "'";
    for (char c : text.substr(0, 32)) shown += c >= ' ' && c < 127 ? c : '?';
    return shown + "'";
  }

  Error malformed(const std::string& expected) const {
    return wrong("its header is not NumPy's: expected " + expected + " at byte " + std::to_string(at_) + " of it");
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Result<std::string> string() {
    char quote = peek();
    std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) return malformed("a string");
    std::string found(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return found;
  }

  Result<bool> truth() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    return malformed("True or False");
  }

  Result<std::vector<std::int64_t>> dims() {
    std::vector<std::int64_t> shape;
    if (!accept('(')) return malformed("'('");
    while (!accept(')')) {
      if (peek() < '0' || peek() > '9') return malformed("an extent");
      std::int64_t extent = 0;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
        if (__builtin_mul_overflow(extent, 10, &extent) || __builtin_add_overflow(extent, text_[at_] - '0', &extent))
          return wrong("an extent of its shape does not fit into 64 bits");
      accept('L');  // Python 2 wrote it
      shape.push_back(extent);
      if (shape.size() > 8) return wrong("it has more than 8 axes");
      if (!accept(',') && peek() != ')') return malformed("',' or ')'");
    }
    return shape;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::int64_t>> shape_;
};

constexpr std::string_view magic = "\x93NUMPY";

}  // namespace

Result<NpyHeader> read_npy_header(std::string_view file) {
  if (!file.starts_with(magic)) return wrong("it does not begin as an .npy file does; numpy.save writes such");
  if (file.size() < 8) return wrong("it ends within its header");
  auto byte = [&](std::size_t k) { return static_cast<std::size_t>(static_cast<unsigned char>(file[k])); };
  if (byte(6) < 1 || byte(6) > 3) return wrong("its format version is " + std::to_string(byte(6)) + ", not 1, 2 or 3");
  std::size_t start = byte(6) == 1 ? 10 : 12;
  if (file.size() < start) return wrong("it ends within its header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (byte(6) > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > max_npy_header_bytes - start)
    return wrong("its header has " + std::to_string(length) + " bytes; at most " +
                 std::to_string(max_npy_header_bytes - start) + " are read");
  if (file.size() < start + length) return wrong("it ends within its header");
  TRIREME_TRY(header, HeaderParser(file.substr(start, length)).run());
  header.data_offset = start + length;
  return header;
}

std::string npy_header(const NpyType& type, const std::vector<std::int64_t>& shape) {
  std::string dims;
  for (std::int64_t extent : shape) dims += std::to_string(extent) + ", ";
  if (shape.size() > 1) dims.resize(dims.size() - 2);
  if (shape.size() == 1) dims.resize(dims.size() - 1);  // (3,)
  std::string text = "{'descr': '" + std::string(type.descr) + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  constexpr std::size_t start = 10, alignment = 64;
  text.append((alignment - (start + text.size() + 1) % alignment) % alignment, ' ');
  text += '\n';
  std::string header(magic);
  header += {1, 0, static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return header + text;
}

const NpyType& npy_type_for(Type type) {
  for (const NpyType& each : npy_types)
    if (each.name == facts(type).numpy) return each;
  return npy_types[0];
}

Result<Type> storage_type_of(const NpyType& type) {
  if (type.name == "bool") return Type::U8;
  for (const TypeFacts& each : type_facts)
    if (each.is_numpy && each.numpy == type.name) return each.type;
  return wrong("it holds " + std::string(type.name) +
               "; say what that stands for, as in --type NAME=" + (type.bytes == 2 ? "bf16" : "f8e4m3"));
}

Status check_holds(const NpyType& type, Type storage) {
  const NpyType& wanted = npy_type_for(storage);
  if (type.name == "bool" && storage == Type::U8) return Done{};
  bool opaque = type.descr[1] == 'V' && wanted.descr[1] == 'u' && type.bytes == wanted.bytes;
  if (wanted.descr == type.descr || opaque) return Done{};
  return wrong("it holds " + std::string(type.name) + ", and " + std::string(name(storage)) + " travels as " +
               std::string(wanted.name));
}

}  // namespace trireme
