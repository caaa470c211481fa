// Emitters put every value into a local. Here a value that is read once, where it was made, stays on the stack; a
// local that only ever holds a constant, or another local that stands, gives way to it; and sums with 0 go.
#include "targets/wasm/shrink.hpp"

#include <algorithm>

namespace trireme::wasm {
namespace {

bool is(const Body::Item& item, std::string_view name) { return item.instruction && item.instruction->name == name; }
bool is_integer(const Body::Item& item) { return is(item, "i32.const") || is(item, "i64.const"); }

std::int64_t number(const Body::Item& item) {
  return is(item, "i32.const") ? static_cast<std::int32_t>(item.a) : static_cast<std::int64_t>(item.a);
}
// Of the instruction, in bytes.
std::int64_t size_of(const Body::Item& constant) {
  std::int64_t bytes = 2;
  for (std::int64_t value = number(constant); value < -64 || value > 63; value >>= 7) ++bytes;
  return bytes;
}
bool is_commutative(std::string_view name) {
  const std::string_view op = name.substr(name.find('.') + 1);
  return op == "add" || op == "mul" || op == "and" || op == "or" || op == "xor";
}

class Shrinking {
 public:
  explicit Shrinking(Body body) : body_(std::move(body)) {}

  Body run() {
    constexpr int most_rounds = 16;  // each takes away what the one before it made superfluous
    for (int round = 0; round < most_rounds; ++round) {
      const std::size_t before = body_.items.size();
      changed_ = false;
      fold_constants();
      close_gaps();
      forward_copies();
      close_gaps();
      keep_on_stack();
      close_gaps();
      if (!changed_ && body_.items.size() == before) break;
    }
    drop_locals();
    return std::move(body_);
  }

 private:
  std::vector<Body::Item>& items() { return body_.items; }
  void remove(std::size_t k) { items()[k].instruction = nullptr; }

  void close_gaps() {
    std::vector<Body::Item> kept;
    std::size_t comment = 0;
    for (std::size_t k = 0; k < items().size(); ++k) {
      for (; comment < body_.comments.size() && body_.comments[comment].first <= k; ++comment)
        body_.comments[comment].first = kept.size();
      if (items()[k].instruction) kept.push_back(items()[k]);
    }
    for (; comment < body_.comments.size(); ++comment) body_.comments[comment].first = kept.size();
    items() = std::move(kept);
    count();
  }

  struct Local {
    int gets = 0, sets = 0;
    std::size_t set = 0, first_get = SIZE_MAX, last_get = 0;
  };
  void count() {
    locals_.assign(body_.locals.size(), {});
    for (std::size_t k = 0; k < items().size(); ++k) {
      if (items()[k].instruction->immediate != Immediate::Local) continue;
      Local& local = locals_[items()[k].a];
      if (is(items()[k], "local.get")) ++local.gets, local.first_get = std::min(local.first_get, k), local.last_get = k;
      else ++local.sets, local.set = k;
    }
  }
  bool is_parameter(std::uint64_t local) const { return local < body_.signature.parameters.size(); }

  // Where the block ends in which item k stands.
  std::size_t block_end(std::size_t k) {
    int depth = 0;
    for (++k; k < items().size(); ++k) {
      if (!items()[k].instruction) continue;
      const Immediate immediate = items()[k].instruction->immediate;
      if (immediate == Immediate::Block) ++depth;
      if (depth == 0 && (immediate == Immediate::End || immediate == Immediate::Else)) return k;
      if (immediate == Immediate::End) --depth;
    }
    return k;
  }
  // Is the local set once, and read only where that has happened?
  bool is_set_once(std::uint64_t local) {
    const Local& uses = locals_[local];
    return !is_parameter(local) && uses.sets == 1 && is(items()[uses.set], "local.set") &&
           (uses.gets == 0 || (uses.first_get > uses.set && uses.last_get < block_end(uses.set)));
  }

  void fold_constants() {
    if (locals_.empty()) count();
    for (std::size_t k = 0; k + 1 < items().size(); ++k) {
      Body::Item &first = items()[k], &second = items()[k + 1];
      if (!is_integer(first)) continue;
      if (is(second, "i32.wrap_i64")) {
        first = {find_named("i32.const"), first.a & 0xffffffff};
        remove(k + 1), ++k;
      } else if (number(first) == 0 && (is(second, "i32.add") || is(second, "i64.add"))) {
        remove(k), remove(k + 1), ++k;
      } else if (number(first) == 1 && (is(second, "i32.mul") || is(second, "i64.mul"))) {
        remove(k), remove(k + 1), ++k;
      } else if (k > 0 && number(first) == 0 && (is(second, "i32.mul") || is(second, "i64.mul")) &&
                 is(items()[k - 1], "local.get")) {
        remove(k - 1), remove(k + 1), ++k;
      }
    }
  }

  void forward_copies() {
    std::vector<Body::Item> instead(locals_.size(), Body::Item{nullptr});
    for (std::size_t local = 0; local < locals_.size(); ++local) {
      const Local& uses = locals_[local];
      if (uses.sets != 1 || uses.set == 0 || !is_set_once(local)) continue;
      const Body::Item& value = items()[uses.set - 1];
      if (is_integer(value)) {
        if (size_of(value) * uses.gets > size_of(value) + 2 + 2 * uses.gets) continue;
      } else if (is(value, "local.get")) {
        const Local& other = locals_[value.a];
        const bool stands = is_parameter(value.a) ? other.sets == 0 : is_set_once(value.a);
        // What is itself to be replaced waits for the next round.
        if (!stands || instead[value.a].instruction || body_.locals[value.a].type != body_.locals[local].type) continue;
        if (!is_parameter(value.a) && block_end(other.set) < uses.last_get) continue;
      } else {
        continue;
      }
      instead[local] = value;
      remove(uses.set - 1), remove(uses.set);
      changed_ = true;
    }
    for (Body::Item& item : items())
      if (is(item, "local.get"))
        for (int chain = 0; chain < 8 && is(item, "local.get") && instead[item.a].instruction; ++chain)
          item = instead[item.a];
  }

  void keep_on_stack() {
    for (std::size_t k = 0; k + 1 < items().size(); ++k) {
      if (!items()[k].instruction || items()[k].instruction->immediate != Immediate::Local) continue;
      Body::Item &item = items()[k], &next = items()[k + 1];
      const Local& uses = locals_[item.a];
      const bool once = uses.gets == 1 && uses.sets == 1 && !is_parameter(item.a);
      if (is(item, "local.tee")) {
        if (uses.gets == 0) remove(k);
      } else if (is(item, "local.set")) {
        if (is(next, "local.get") && next.a == item.a) {
          if (once) remove(k);
          else item.instruction = find_named("local.tee");
          remove(k + 1);
          changed_ = true;
          ++k;
        } else if (k + 3 < items().size() && once && (is(next, "local.get") || is_integer(next)) &&
                   is(items()[k + 2], "local.get") && items()[k + 2].a == item.a && items()[k + 3].instruction &&
                   is_commutative(items()[k + 3].instruction->name)) {
          remove(k), remove(k + 2);
          k += 2;
        } else if (uses.gets == 0) {
          const bool pure =
              k > 0 && items()[k - 1].instruction &&
              (is(items()[k - 1], "local.get") || items()[k - 1].instruction->immediate == Immediate::Const);
          if (pure) remove(k - 1), remove(k);
          else item = {find_named("drop")}, changed_ = true;
        }
      }
    }
  }

  // Those that nothing names; of each type the most used ones first.
  void drop_locals() {
    std::vector<std::uint32_t> order, place(body_.locals.size());
    const auto parameters = static_cast<std::uint32_t>(body_.signature.parameters.size());
    std::vector<int> of_type(256);
    const auto uses = [&](std::uint32_t k) { return locals_[k].gets + locals_[k].sets; };
    for (std::uint32_t k = parameters; k < body_.locals.size(); ++k) {
      if (uses(k) > 0) order.push_back(k);
      of_type[static_cast<std::size_t>(body_.locals[k].type)] += uses(k);
    }
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const auto type_a = static_cast<std::size_t>(body_.locals[a].type);
      const auto type_b = static_cast<std::size_t>(body_.locals[b].type);
      if (type_a != type_b)
        return of_type[type_a] != of_type[type_b] ? of_type[type_a] > of_type[type_b] : type_a < type_b;
      return uses(a) > uses(b);
    });
    std::vector<Body::Variable> locals(body_.locals.begin(), body_.locals.begin() + parameters);
    for (std::uint32_t k = 0; k < parameters; ++k) place[k] = k;
    for (std::uint32_t k : order) {
      place[k] = static_cast<std::uint32_t>(locals.size());
      locals.push_back(body_.locals[k]);
    }
    body_.locals = std::move(locals);
    for (Body::Item& item : items())
      if (item.instruction->immediate == Immediate::Local) item.a = place[item.a];
  }

  Body body_;
  std::vector<Local> locals_;
  bool changed_ = false;
};

}  // namespace

Body shrink(Body body) { return Shrinking(std::move(body)).run(); }

}  // namespace trireme::wasm
