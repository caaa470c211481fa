// The body is walked twice along its operand stack. The first walk finds what each value of the stack is, a float or an
// integer, of 32 or 64 bits, and how it is used; the second writes, and turns one into the other where they differ.
#include "targets/wasm/one_lane.hpp"

#include <algorithm>

#include "targets/wasm/lane_writer.hpp"

namespace trireme::wasm {
namespace {

// A local of v128, where it holds 32 bits and where 64: each a local of its own.
struct Place {
  std::uint32_t local;
  bool wide;
  auto operator<=>(const Place&) const = default;
};
struct Uses {
  int floats = 0, integers = 0;
  bool only_truths = true;
  std::optional<std::uint32_t> index;  // of the local that is made

  Form form(bool wide) const {
    if (only_truths) return Form::Truth;
    return floats > integers ? (wide ? Form::F64 : Form::F32) : integer(wide);
  }
};

struct Held {
  enum class Kind : std::uint8_t { Made, Constant, Loaded, Local } kind = Kind::Made;
  Form form = Form::I32;
  bool wide = false;          // of v128: 64 bits
  bool known = true;          // constants: whether it is known how wide it is
  std::optional<Form> want;   // what its one reader takes
  std::optional<Place> into;  // or the local it goes into
  std::uint64_t bits[2] = {};
  MemArg at;
};

class OneLane : LaneWriter {
 public:
  OneLane(const Body& body, Type value) : body_(body), value_(form_of(value)) {
    out_.name = body.name;
    out_.signature.result = scalar(body.signature.result);
    out_.globals = body.globals;
    out_.callees = body.callees;
    for (Callee& each : out_.callees) {
      for (Type& parameter : each.signature.parameters) parameter = scalar(parameter);
      each.signature.result = scalar(each.signature.result);
    }
    find_constants();
  }

  Result<Body> run() {
    walk();
    if (!reason_.empty()) return refusal();
    declare_locals();
    writes_ = true;
    walk();
    if (!reason_.empty()) return refusal();
    TRIREME_CHECK(check(out_));
    return std::move(out_);
  }

 private:
  Type scalar(Type type) const { return type == Type::V128 ? type_of(value_) : type; }
  Error refusal() const {
    return {trireme::Code::Internal, fmt::format("wasm function {} has no form of one lane: {}", body_.name, reason_)};
  }

  // Locals that are set once, from a constant, which then stands where it is read.
  void find_constants() {
    std::vector<int> sets(body_.locals.size());
    for (const Body::Item& item : body_.items)
      if (item.instruction->name == "local.set" || item.instruction->name == "local.tee") ++sets[item.a];
    for (std::size_t k = 0; k + 1 < body_.items.size(); ++k) {
      const Body::Item &from = body_.items[k], &to = body_.items[k + 1];
      if (from.instruction->name == "v128.const" && to.instruction->name == "local.set" && sets[to.a] == 1)
        constants_[static_cast<std::uint32_t>(to.a)] = {from.a, from.b};
    }
  }

  void declare_locals() {
    kept_.resize(body_.locals.size());
    for (std::uint32_t k = 0; k < body_.signature.parameters.size(); ++k) {
      const Type type = scalar(body_.locals[k].type);
      out_.signature.parameters.push_back(type);
      kept_[k] = k;
      if (body_.locals[k].type == Type::V128) places_[{k, is_wide(value_)}].index = k;
      out_.locals.push_back({type, body_.locals[k].name});
    }
    std::vector<std::pair<Type, std::string>> made;
    const auto parameters = body_.signature.parameters.size();
    for (Type type : {Type::I32, Type::I64, Type::F32, Type::F64}) {  // locals of a type side by side take fewer bytes
      for (std::uint32_t k = static_cast<std::uint32_t>(parameters); k < body_.locals.size(); ++k)
        if (body_.locals[k].type == type) kept_[k] = declare(type, body_.locals[k].name);
      for (auto& [place, uses] : places_)
        if (!uses.index && type_of(form(place)) == type)
          uses.index = declare(type, body_.locals[place.local].name + (place.wide == is_wide(value_) ? "" : ".wide"));
      for (auto& [key, index] : temporaries_)
        if (key.first == type) index = declare(type, fmt::format("one.{}.{}", name(type), key.second));
    }
  }

  // Parameters are what callers give.
  Form form(const Place& place) {
    if (place.local < body_.signature.parameters.size() && place.wide == is_wide(value_)) return value_;
    return places_[place].form(place.wide);
  }

  // ---- the stack ----

  Held& top(std::size_t below = 0) { return values_[stack_[stack_.size() - 1 - below]]; }
  bool has(std::size_t count) {
    if (stack_.size() < count) refuse("the stack is empty");
    return stack_.size() >= count;
  }

  // In the second walk a value is known when it is made: what its reader wants stands behind it at once.
  Held& push(Held value) {
    stack_.push_back(next_);
    if (next_ == values_.size()) values_.push_back(value);
    Held& made = values_[next_++];
    if (!writes_) return made;
    Form want = made.into ? form(*made.into) : made.want.value_or(made.form);
    if (made.kind == Held::Kind::Local) made.form = value.form;
    switch (made.kind) {
      case Held::Kind::Constant:
        if (want == Form::Truth) return put_constant(Form::I32, made.bits[0] != 0), made;
        if (want == Form::Unsigned) want = Form::I64, made.bits[0] &= 0xffffffff;
        put_constant(want, made.bits[0]);
        return made;
      case Held::Kind::Loaded: {
        const Form as = is_float(want) ? want : integer(made.wide);
        put(find_named(fmt::format("{}.load", name(type_of(as)))), made.at.offset, *made.at.align_log2);
        convert(as, want);
        return made;
      }
      case Held::Kind::Made:
      case Held::Kind::Local: convert(made.form, want); return made;
    }
    return made;
  }
  void push(Form form) { push(Held{.form = form, .wide = is_wide(form)}); }

  Held pop(std::optional<Form> want = {}) {
    if (!has(1)) return {};
    Held& value = top();
    if (want) value.want = want;
    stack_.pop_back();
    return value;
  }
  void drop() {  // what is the last item, or a few bytes more
    Held& value = top();
    value.want.reset();
    stack_.pop_back();
    const bool is_last = writes_ && (out_.items.back().instruction->name == "local.get" ||
                                     out_.items.back().instruction->immediate == Immediate::Const);
    if (is_last && value.kind != Held::Kind::Made && value.kind != Held::Kind::Loaded) out_.items.pop_back();
    else put("drop");
  }

  // ---- instructions ----

  void get(std::uint32_t local) {
    if (const auto known = constants_.find(local); known != constants_.end())
      return void(push({.kind = Held::Kind::Constant, .known = false, .bits = {known->second[0], known->second[1]}}));
    const auto last = last_wide_.find(local);
    const Place place{local, last == last_wide_.end() ? is_wide(value_) : last->second};
    if (writes_) access("local.get", *places_[place].index);
    else places_[place];
    push({.kind = Held::Kind::Local, .form = form(place), .wide = place.wide});
    from_[next_ - 1] = place;
  }
  void set(std::uint32_t local, bool tee) {
    if (!has(1)) return;
    if (constants_.contains(local)) {
      stack_.pop_back();
      if (writes_) out_.items.pop_back();
      return;
    }
    Held& value = top();
    const bool wide = value.kind == Held::Kind::Constant && !value.known ? is_wide(value_) : value.wide;
    const Place place{local, wide};
    last_wide_[local] = wide;
    value.into = place;
    stack_.pop_back();
    if (writes_) {
      access(tee ? "local.tee" : "local.set", *places_[place].index);
      // A constant of either width: whoever reads the local next may take it for the other.
      if (const auto other = places_.find({local, !wide});
          value.kind == Held::Kind::Constant && !value.known && !tee && other != places_.end()) {
        put_constant(form(other->first), value.bits[0]);
        access("local.set", *other->second.index);
      }
    } else {
      Uses& uses = places_[place];
      uses.only_truths &= value.form == Form::Truth && value.kind == Held::Kind::Made;
      uses.floats += value.kind != Held::Kind::Constant && is_float(value.form);
      uses.integers += value.kind == Held::Kind::Made && !is_float(value.form);
    }
    if (!tee) return;
    push({.kind = Held::Kind::Local, .form = form(place), .wide = place.wide});
    from_[next_ - 1] = place;
  }

  // How its reader takes it counts for the local it comes from.
  void take(Form want) {
    if (!has(1)) return;
    if (!writes_)
      if (const auto from = from_.find(stack_.back()); from != from_.end()) {
        Uses& uses = places_[from->second];
        uses.only_truths &= want == Form::Truth;
        uses.floats += is_float(want);
        uses.integers += !is_float(want) && want != Form::Truth;
      }
    pop(want);
  }

  void bitwise(std::string_view op, int operands) {
    if (!has(static_cast<std::size_t>(operands))) return;
    bool truths = true, wide = is_wide(value_);
    for (int k = operands; k-- > 0;) {
      const Held& each = top(static_cast<std::size_t>(k));
      truths &= each.form == Form::Truth && each.kind == Held::Kind::Made;
    }
    for (int k = operands; k-- > 0;)
      if (const Held& each = top(static_cast<std::size_t>(k)); each.known) wide = each.wide;
    const Form form = writes_ ? values_[next_].form : truths ? Form::Truth : integer(wide);
    for (int k = 0; k < operands; ++k) take(form);
    const std::string family = type_of(form) == Type::I64 ? "i64." : "i32.";
    if (op == "not") {
      if (form == Form::Truth) put("i32.eqz");
      else put_constant(form, ~std::uint64_t{0}), put(family + "xor");
    } else if (op == "andnot") {
      if (form == Form::Truth) put("i32.eqz"), put("i32.and");
      else put_constant(form, ~std::uint64_t{0}), put(family + "xor"), put(family + "and");
    } else {
      put(family + std::string(op));
    }
    push({.form = form, .wide = wide});
  }

  void choose() {
    if (!has(3)) return;
    Form form = value_;
    bool known = false;
    for (std::size_t k : {2u, 1u})
      if (const Held& each = top(k); each.kind != Held::Kind::Constant || each.known)
        if (!known || is_float(each.form))
          form = each.form == Form::Truth ? integer(each.wide) : each.form, known = true;
    if (writes_) form = values_[next_].form;
    take(Form::Truth), take(form), take(form);
    put("select");
    push(form);
  }

  // min and max of integers: both operands are read twice.
  void integer_extremum(std::string_view op, bool wide) {
    const Form form = integer(wide);
    take(form), take(form);
    const std::uint32_t a = temporary(type_of(form), 0), b = temporary(type_of(form), 1);
    access("local.set", b), access("local.set", a);
    for (int times = 0; times < 2; ++times) access("local.get", a), access("local.get", b);
    put(fmt::format("{}.{}_{}", wide ? "i64" : "i32", op.starts_with("min") ? "lt" : "gt", op.back())), put("select");
    push(form);
  }

  // Of an f64 on the stack, without the instructions that saturate: 0 for NaN.
  void truncate(bool to_i64) {
    const std::uint32_t value = temporary(Type::F64);
    const auto get = [&] { access("local.get", value); };
    access("local.tee", value), put_f64(0), get(), get(), put("f64.eq"), put("select");
    if (!to_i64) return put_f64(-0x1p31), put("f64.max"), put_f64(0x1p31 - 1), put("f64.min"), put("i32.trunc_f64_s");
    access("local.tee", value), put_f64(-0x1p63), put("f64.max");
    put_f64(0x1.fffffffffffffp62), put("f64.min"), put("i64.trunc_f64_s");
    put_constant(Form::I64, (std::uint64_t{1} << 63) - 1), get(), put_f64(0x1p63), put("f64.lt"), put("select");
  }

  void load(const Body::Item& item, bool wide) {
    take(Form::I32);
    push({.kind = Held::Kind::Loaded,
          .form = integer(wide),
          .wide = wide,
          .at = {static_cast<std::uint32_t>(item.a), static_cast<std::uint8_t>(item.b & 0xff)}});
  }

  void shuffle(const Body::Item& item) {
    if (!has(2)) return;
    const auto bytes = std::bit_cast<std::array<std::uint8_t, 16>>(std::array{item.a, item.b});
    const std::uint8_t first = bytes[0];
    for (std::uint8_t k = 0; k < 4; ++k)
      if (bytes[k] != first + k) return refuse("a shuffle of bytes");
    drop();
    const bool wide = top().wide;
    // The low word or the high one of 64 bits; or all 32, or 64, of the first operand.
    const bool whole = bytes[4] == 4 && first == 0;
    if (whole || (!wide && first == 0)) {
      const Form form = writes_ ? values_[next_].form : top().form;
      take(form), push(form);
    } else if (wide && (first == 0 || first == 4)) {
      take(Form::I64);
      if (first == 4) put_constant(Form::I64, 32), put("i64.shr_u");
      put("i32.wrap_i64"), push(Form::I32);
    } else {
      refuse("a shuffle of lanes");
    }
  }

  void replace_lane(const Instruction& instruction) {
    const Form form = form_of(instruction.signature[1]);
    take(form);
    access("local.set", temporary(type_of(form)));
    if (!has(1)) return;
    drop();
    access("local.get", temporary(type_of(form)));
    push(form);
  }

  void walk() {
    stack_.clear(), next_ = 0, last_wide_.clear();
    for (std::size_t k = 0; k < body_.items.size() && reason_.empty(); ++k) {
      if (writes_)
        for (; comment_ < body_.comments.size() && body_.comments[comment_].first <= k; ++comment_)
          out_.comments.emplace_back(out_.items.size(), body_.comments[comment_].second);
      step(body_.items[k]);
    }
    if (body_.signature.result != Type::None && !stack_.empty()) take(form_of(scalar(body_.signature.result)));
  }

  void step(const Body::Item& item) {
    const Instruction& instruction = *item.instruction;
    switch (instruction.immediate) {
      case Immediate::Local:
        if (body_.locals[item.a].type == Type::V128) {
          const auto local = static_cast<std::uint32_t>(item.a);
          return instruction.name == "local.get" ? get(local) : set(local, instruction.name == "local.tee");
        }
        return keep_local(item);
      case Immediate::Block:
        if (static_cast<Type>(item.b) != Type::None) return refuse("a block with a result");
        if (instruction.name == "if") take(Form::I32);
        return put(&instruction, item.a, item.b);
      case Immediate::Branch:
        if (instruction.name == "br_if") take(Form::I32);
        return put(&instruction, item.a, item.b);
      case Immediate::Return:
        if (body_.signature.result != Type::None) take(form_of(scalar(body_.signature.result)));
        return put(&instruction);
      case Immediate::Else:
      case Immediate::End: return put(&instruction, item.a, item.b);
      case Immediate::Call: return call(item);
      case Immediate::Shuffle: return shuffle(item);
      default: break;
    }
    if (instruction.name == "v128.const")
      return void(push({.kind = Held::Kind::Constant, .known = false, .bits = {item.a, item.b}}));
    if (instruction.signature.find('v') != std::string_view::npos) return vector(item);
    if (instruction.name.find("trunc_sat_f") != std::string_view::npos) {
      const bool from_f32 = instruction.signature[0] == 'f', to_i64 = instruction.signature.back() == 'l';
      if (instruction.name.ends_with("u")) return refuse(std::string(instruction.name));
      take(form_of(instruction.signature[0]));
      if (from_f32) put("f64.promote_f32");
      truncate(to_i64);
      return push(to_i64 ? Form::I64 : Form::I32);
    }
    if (instruction.name == "select" || instruction.name == "drop") return keep_any(instruction);
    plain(instruction, item);
  }

  // As it stands, with operands and results that are no vectors.
  void plain(const Instruction& instruction, const Body::Item& item) {
    const std::string_view signature = instruction.signature;
    const std::size_t colon = signature.find(':');
    if (instruction.immediate == Immediate::Global) {
      if (colon) take(Form::I32);
      put(&instruction, item.a, item.b);
      if (!colon) push(Form::I32);
      return;
    }
    for (std::size_t k = colon; k-- > 0;) take(form_of(signature[k]));
    put(&instruction, item.a, item.b);
    for (char letter : signature.substr(colon + 1))
      if (letter != '!') push(form_of(letter));
  }
  void keep_local(const Body::Item& item) {
    const Form form = form_of(body_.locals[item.a].type);
    if (item.instruction->name != "local.get") take(form);
    if (writes_) put(item.instruction, kept_[item.a], item.b);
    if (item.instruction->name != "local.set") push(form);
  }
  void keep_any(const Instruction& instruction) {
    if (instruction.name == "drop") return has(1) ? drop() : void();
    take(Form::I32);
    if (!has(2)) return;
    const Form form = top(1).form;
    take(form), take(form);
    put(&instruction);
    push(form);
  }
  void call(const Body::Item& item) {
    const Signature& wanted = out_.callees[item.a].signature;
    for (std::size_t k = wanted.parameters.size(); k-- > 0;) take(form_of(wanted.parameters[k]));
    put(item.instruction, item.a, item.b);
    if (wanted.result != Type::None) push(form_of(wanted.result));
  }

  void vector(const Body::Item& item) {
    const Instruction& instruction = *item.instruction;
    const std::string_view name = instruction.name, op = name.substr(name.find('.') + 1);
    const auto lane = instruction.immediate == Immediate::Lane ? item.a : item.b >> 8;
    if ((instruction.immediate == Immediate::Lane || instruction.immediate == Immediate::MemoryLane) && lane != 0)
      return refuse("another lane than 0");
    if (name == "v128.bitselect") return choose();
    if (name == "v128.not") return bitwise("not", 1);
    if (name == "v128.and" || name == "v128.or" || name == "v128.xor" || name == "v128.andnot") return bitwise(op, 2);
    if (op == "any_true" || op == "all_true") {
      if (!has(1)) return;
      take(Form::Truth);
      const Instruction& next = *(&item)[1].instruction;  // something reads it
      if (next.name != "if" && next.name != "br_if") put_constant(Form::I32, 0), put("i32.ne");
      return push(Form::I32);
    }
    if (name == "v128.load32_zero" || name == "v128.load32_splat") return load(item, false);
    if (name == "v128.load64_zero" || name == "v128.load64_splat") return load(item, true);
    if (name == "v128.load16_splat" || name == "v128.load8_splat") {
      take(Form::I32);
      put(find_named(op.starts_with("load8") ? "i32.load8_u" : "i32.load16_u"), item.a, item.b & 0xff);
      return push(Form::I32);
    }
    if (op.starts_with("load") && op.ends_with("_lane")) return load_lane(item, op);
    if (op.starts_with("store") && op.ends_with("_lane")) return store_lane(item, op);
    if (op.starts_with("extend_low_i16x8_u") || op.starts_with("extend_low_i8x16_u"))
      return take(Form::I32), push(Form::I32);
    if (op.starts_with("narrow_i")) return has(2) ? (drop(), take(Form::I32), push(Form::I32)) : void();
    if (op.starts_with("extmul_")) return take(Form::Unsigned), take(Form::Unsigned), put("i64.mul"), push(Form::I64);
    if (op == "splat" || op == "extract_lane") {
      const char letter = op == "splat" ? instruction.signature[0] : instruction.signature.back();
      return take(form_of(letter)), push(form_of(letter));
    }
    if (op == "replace_lane") return replace_lane(instruction);
    if (op.starts_with("trunc_sat_f") && op.find("_s") != std::string_view::npos) {
      const bool from_f32 = op.find("f32x4") != std::string_view::npos;
      take(from_f32 ? Form::F32 : Form::F64);
      if (from_f32) put("f64.promote_f32");
      return truncate(false), push(Form::I32);
    }
    if (name == "f32x4.demote_f64x2_zero") return take(Form::F64), put("f32.demote_f64"), push(Form::F32);
    if (name == "f64x2.promote_low_f32x4") return take(Form::F32), put("f64.promote_f32"), push(Form::F64);
    if (name == "f32x4.convert_i32x4_s") return take(Form::I32), put("f32.convert_i32_s"), push(Form::F32);
    if (name == "f64x2.convert_low_i32x4_s") return take(Form::I32), put("f64.convert_i32_s"), push(Form::F64);
    const bool wide = name.find("x2.") != std::string_view::npos;
    if (name[0] == 'i' && (op.starts_with("min_") || op.starts_with("max_"))) return integer_extremum(op, wide);
    // pmin and pmax stand where one side is a number other than 0: there they are min and max.
    const std::string plain_name =
        op == "pmin" || op == "pmax" ? fmt::format("{}{}", name.substr(0, 6), op.substr(1)) : std::string(name);
    const Instruction* twin = scalar_twin(plain_name);
    if (!twin) return refuse(std::string(name));
    const std::size_t operands = twin->signature.find(':');
    for (std::size_t k = operands; k-- > 0;)
      take(k == 1 && instruction.signature[1] == 'i' && wide ? Form::Unsigned : form_of(twin->signature[k]));
    put(twin);
    push(is_comparison(name) ? Held{.form = Form::Truth, .wide = wide}
                             : Held{.form = form_of(twin->signature.back()), .wide = wide});
  }

  void load_lane(const Body::Item& item, std::string_view op) {
    if (!has(2)) return;
    drop();  // other lanes
    if (op == "load32_lane" || op == "load64_lane") return load(item, op == "load64_lane");
    take(Form::I32);
    put(find_named(op == "load8_lane" ? "i32.load8_u" : "i32.load16_u"), item.a, item.b & 0xff);
    push(Form::I32);
  }
  void store_lane(const Body::Item& item, std::string_view op) {
    if (!has(2)) return;
    const bool wide = op == "store64_lane", small = op == "store8_lane" || op == "store16_lane";
    const Form now = writes_ ? *top().want : top().form;
    const Form form = is_float(now) && !small ? now : integer(wide);
    take(form), take(Form::I32);
    const std::string name = small ? fmt::format("i32.store{}", op == "store8_lane" ? "8" : "16")
                                   : fmt::format("{}.store", wasm::name(type_of(form)));
    put(find_named(name), item.a, item.b & 0xff);
  }

  const Body& body_;
  const Form value_;
  std::vector<Held> values_;        // in the order they are made, the same in both walks
  std::vector<std::size_t> stack_;  // of them
  std::size_t next_ = 0, comment_ = 0;
  std::map<std::uint32_t, std::array<std::uint64_t, 2>> constants_;  // by local
  std::map<std::uint32_t, bool> last_wide_;                          // by local: what was last set is 64 bits wide
  std::map<Place, Uses> places_;
  std::map<std::size_t, Place> from_;  // by value: the local it was read from
  std::vector<std::uint32_t> kept_;    // by local of other types: its number now
};

}  // namespace

Result<Body> one_lane(const Body& body, Type value) { return OneLane(body, value).run(); }

Callee with_vectors(Callee callee) {
  for (Type& parameter : callee.signature.parameters) parameter = Type::V128;
  callee.signature.result = Type::V128;
  return callee;
}

}  // namespace trireme::wasm
