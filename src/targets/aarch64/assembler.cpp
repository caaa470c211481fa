// Lives, registers and places on the stack; what is written down is encode.cpp's.
#include "targets/aarch64/assembler.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::aarch64 {

namespace {

// The procedure call standard: x18 is the platform's, x19 to x28 and the low halves of v8 to v15 are given back as
// they were. x16 and x17 are nobody's.
constexpr int general_order[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                 13, 14, 15, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28};
constexpr int vector_order[] = {0,  1,  2,  3,  4,  5,  6,  7,  16, 17, 18, 19, 20, 21, 22, 23,
                                24, 25, 26, 27, 28, 29, 30, 31, 8,  9,  10, 11, 12, 13, 14, 15};
constexpr int argument_count = 4;
constexpr bool callee_saved(bool general, int machine) {
  return general ? machine >= 19 && machine <= 28 : machine >= 8 && machine <= 15;
}
// Where something lies on the stack, instructions reach it through these; none touches more than three of a kind.
constexpr bool is_spare(bool general, int machine) { return general ? machine >= 13 && machine <= 15 : machine >= 29; }

}  // namespace

int Assembler::fresh(Group group) {
  virtuals_.push_back({.group = group});
  return machine_registers + static_cast<int>(virtuals_.size()) - 1;
}

void Assembler::put(const Form& form, std::initializer_list<Register> registers, const Extra& extra) {
  Instruction instruction{.form = &form, .extra = extra};
  std::size_t k = 0;
  for (Register each : registers) instruction.registers[k++] = each.id;
  body_.push_back(instruction);
}

void Assembler::bind(Label label) { body_.push_back({.extra = {.label = label}}); }

void Assembler::comment(std::string text) { comment_with_places(std::move(text), {}); }

void Assembler::comment_with_places(std::string text, std::vector<Register> registers) {
  comments_.push_back({static_cast<int>(body_.size()), std::move(text), std::move(registers)});
}

void Assembler::complete_comments() {
  for (Comment& comment : comments_) {
    std::string places;
    for (Register each : comment.registers) {
      const Virtual& held = of(each.id);
      if (held.first < 0 || held.first >= comment.next || held.last < comment.next) continue;
      places += places.empty() ? " in " : ", ";
      if (held.place >= 0) places += fmt::format("[sp, #{}]", held.place);
      else places += fmt::format("{}{}", held.group == General ? 'x' : 'v', held.machine);
    }
    comment.text += places;
  }
}

void Assembler::load_constant(Vec dst, const Constant& value) {
  if (value == Constant{}) return put(form::movi_0, {dst});
  auto [found, is_new] = constant_of_.try_emplace(value, static_cast<int>(constants_.size()));
  if (is_new) constants_.push_back(value);
  put(form::ldr_literal, {dst}, {.constant = found->second});
}

Vec Assembler::constant(const Constant& value) {
  auto [found, is_new] = kept_.try_emplace(value);
  if (is_new) found->second = new_vec();
  return found->second;
}

void Assembler::enter(const std::array<Gp, 4>& arguments) {
  for (int k = 0; k < argument_count; ++k) put(form::mov_x, {arguments[static_cast<std::size_t>(k)], Gp{k}});
}

void Assembler::leave() {
  std::vector<Instruction> body = std::move(body_);
  body_.assign(body.begin(), body.begin() + argument_count);
  for (const auto& [value, kept] : kept_) load_constant(kept, value);
  const int moved = static_cast<int>(body_.size()) - argument_count;
  for (Comment& each : comments_) each.next += moved;
  body_.insert(body_.end(), body.begin() + argument_count, body.end());
  exit_ = static_cast<int>(body_.size());
}

// From the first touch to the last, and to the end of a loop that is entered alive.
void Assembler::measure_lives() {
  struct Loop {
    int begin, end;
    float times;
  };
  const int count = static_cast<int>(body_.size());
  std::vector<int> bound(static_cast<std::size_t>(labels_), -1), ends(body_.size(), -1);
  for (int at = 0; at < count; ++at) {
    const Instruction& each = body_[static_cast<std::size_t>(at)];
    if (each.extra.label.id < 0) continue;
    int& place = bound[static_cast<std::size_t>(each.extra.label.id)];
    if (!each.form) place = at;
    else if (place >= 0) ends[static_cast<std::size_t>(place)] = at;  // a jump back
  }
  std::vector<Loop> open = {{-1, count, 1}};
  for (int at = 0; at < count; ++at) {
    while (open.back().end < at) open.pop_back();
    const int end = ends[static_cast<std::size_t>(at)];
    if (end >= 0) open.push_back({at, end, open.back().times * 8});
    for (int id : body_[static_cast<std::size_t>(at)].registers) {
      if (!is_virtual(id)) continue;
      Virtual& touched = of(id);
      if (touched.first < 0) {
        touched.first = at;
        by_first_.push_back(id);
      }
      touched.last = std::max(touched.last, at);
      touched.touches += open.back().times;
      for (const Loop& loop : open)
        if (loop.begin > touched.first) {
          touched.last = std::max(touched.last, loop.end);
          break;
        }
    }
  }
}

// A move from what ends here is none if both have the same register.
int Assembler::wished(const Virtual& wanting) const {
  const Instruction& at = body_[static_cast<std::size_t>(wanting.first)];
  if (at.form != &form::mov_x && at.form != &form::mov_v) return -1;
  const int from = at.registers[1];
  if (!is_virtual(from)) return from;
  const Virtual& source = virtuals_[static_cast<std::size_t>(from - machine_registers)];
  return source.group == wanting.group && source.last == wanting.first ? source.machine : -1;
}

// What ends where another begins may share its register: instructions read before they write. Where none is free, the
// one that is touched least for its length goes to the stack.
bool Assembler::give_registers(bool keep_spares) {
  struct Owner {
    int id = -1, until = -1;
    float price = 0;
  };
  std::array<std::array<Owner, machine_registers>, groups> owners;
  std::vector<int> orders[groups];
  for (int each : general_order)
    if (!keep_spares || !is_spare(true, each)) orders[General].push_back(each);
  for (int each : vector_order)
    if (!keep_spares || !is_spare(false, each)) orders[Vector].push_back(each);
  for (int k = 0; k < argument_count; ++k)
    owners[General][static_cast<std::size_t>(k)].until = k;  // arguments, until they moved
  bool all = true;
  for (Virtual& each : virtuals_) each.machine = each.place = -1;
  for (int id : by_first_) {
    Virtual& wanting = of(id);
    const std::vector<int>& order = orders[wanting.group];
    auto& owner = owners[wanting.group];
    auto free = [&](int machine) { return owner[static_cast<std::size_t>(machine)].until <= wanting.first; };
    auto best = std::find(order.begin(), order.end(), wished(wanting));
    if (best == order.end() || !free(*best)) best = std::find_if(order.begin(), order.end(), free);
    const float price = wanting.touches / static_cast<float>(wanting.last - wanting.first + 1);
    if (best == order.end()) {
      all = false;
      best = std::min_element(order.begin(), order.end(), [&](int a, int b) {
        return owner[static_cast<std::size_t>(a)].price < owner[static_cast<std::size_t>(b)].price;
      });
      Virtual& cheapest = of(owner[static_cast<std::size_t>(*best)].id);
      const bool cheaper = owner[static_cast<std::size_t>(*best)].price < price;
      (cheaper ? cheapest : wanting).place = 0;
      if (!cheaper) continue;
      cheapest.machine = -1;
    }
    wanting.machine = *best;
    owner[static_cast<std::size_t>(*best)] = {id, wanting.last, price};
  }
  for (int group : {General, Vector}) {
    callee_saved_[group].clear();
    for (int machine : orders[group])
      if (callee_saved(group == General, machine) &&
          owners[static_cast<std::size_t>(group)][static_cast<std::size_t>(machine)].id >= 0)
        callee_saved_[group].push_back(machine);
  }
  return all;
}

// Vectors first, from the stack pointer on; places are used again.
void Assembler::give_places() {
  struct Place {
    std::int64_t at;
    int until;
  };
  stack_bytes_ = 0;
  for (Group group : {Vector, General}) {
    std::vector<Place> places;
    for (int id : by_first_) {
      Virtual& each = of(id);
      if (each.place < 0 || each.group != group) continue;
      auto free =
          std::find_if(places.begin(), places.end(), [&](const Place& place) { return place.until < each.first; });
      if (free == places.end()) {
        free = places.insert(places.end(), {stack_bytes_, 0});
        stack_bytes_ += group == Vector ? 16 : 8;
      }
      each.place = static_cast<int>(free->at);
      free->until = each.last;
    }
  }
  saved_at_ = stack_bytes_;
  stack_bytes_ += 8 * static_cast<std::int64_t>(callee_saved_[General].size() + callee_saved_[Vector].size());
  stack_bytes_ = (stack_bytes_ + 15) / 16 * 16;
}

}  // namespace trireme::aarch64
