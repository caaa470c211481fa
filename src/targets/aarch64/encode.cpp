// Instructions on machine registers as words and text.
#include <fmt/format.h>

#include <algorithm>

#include "targets/aarch64/assembler.hpp"

namespace trireme::aarch64 {

namespace {

constexpr int shift_of(char field) { return field == 'd' ? 0 : field == 'n' ? 5 : field == 'm' ? 16 : 10; }

std::uint32_t word_of(const Form& form, const std::array<int, 4>& registers, const Assembler::Extra& extra) {
  std::uint32_t word = form.bits | extra.bits | (extra.of_2d ? bit_of_2d : 0);
  for (std::size_t k = 0; k < 4 && registers[k] >= 0; ++k) {
    const auto number = static_cast<std::uint32_t>(registers[k]);
    if (form.fields[k] == 'b') word |= number << shift_of('n') | number << shift_of('m');
    else word |= number << shift_of(form.fields[k]);
  }
  return word;
}

}  // namespace

void Assembler::encode(const Instruction& instruction) {
  const std::uint32_t word =
      instruction.form ? word_of(*instruction.form, instruction.registers, instruction.extra) : 0;
  encoded_.push_back({instruction, word});
}

// Loads what is read from the stack into spare registers, and stores what was written.
void Assembler::encode_through_spares(Instruction instruction) {
  struct Passing {
    int id, spare;
    bool read, written;
  };
  std::vector<Passing> passing;
  int used[groups] = {};
  for (std::size_t k = 0; instruction.form && k < 4; ++k) {
    int& id = instruction.registers[k];
    if (!is_virtual(id)) continue;
    if (of(id).place < 0) {
      id = of(id).machine;
      continue;
    }
    const char use = instruction.form->uses[k];
    auto known = std::find_if(passing.begin(), passing.end(), [&](const Passing& each) { return each.id == id; });
    if (known == passing.end()) {
      const Group group = of(id).group;
      const int spare = (group == General ? 13 : 29) + used[group]++;
      known = passing.insert(passing.end(), {id, spare, false, false});
    }
    known->read |= use != 'w';
    known->written |= use != 'r';
    id = known->spare;
  }
  auto move = [&](const Passing& each, bool load) {
    const bool general = of(each.id).group == General;
    const Form& how = general ? load ? form::load_x_sp : form::store_x_sp : load ? form::load_q_sp : form::store_q_sp;
    frame(how, of(each.id).place, general ? 8 : 16, each.spare);
  };
  for (const Passing& each : passing)
    if (each.read) move(each, true);
  encode(instruction);
  for (const Passing& each : passing)
    if (each.written) move(each, false);
}

void Assembler::frame(const Form& form, std::int64_t amount, std::int64_t unit, int machine) {
  encode({.form = &form,
          .registers = {machine, -1, -1, -1},
          .extra = {.shown = amount, .bits = static_cast<std::uint32_t>(amount / unit) << 10}});
}

void Assembler::enclose(bool begin) {
  auto move_stack = [&] {
    const std::int64_t pages = stack_bytes_ / 4096, rest = stack_bytes_ % 4096;
    if (pages) frame(begin ? form::sub_sp_pages : form::add_sp_pages, pages, 1);
    if (rest) frame(begin ? form::sub_sp : form::add_sp, rest, 1);
  };
  if (begin) move_stack();
  std::int64_t at = saved_at_;
  for (int machine : callee_saved_[General]) frame(begin ? form::store_x_sp : form::load_x_sp, at, 8, machine), at += 8;
  for (int machine : callee_saved_[Vector]) frame(begin ? form::store_d_sp : form::load_d_sp, at, 8, machine), at += 8;
  if (begin) return;
  move_stack();
  encode({.form = &form::ret});
}

std::optional<MachineCode> Assembler::finish(bool with_listing) {
  measure_lives();
  if (!give_registers(false)) give_registers(true);
  give_places();
  complete_comments();
  if (stack_bytes_ > 32760) return std::nullopt;  // beyond what an offset of 8 bytes times 4095 reaches
  encoded_.clear();
  enclose(true);
  int comment = 0;
  for (int at = 0; at <= static_cast<int>(body_.size()); ++at) {
    for (; comment < static_cast<int>(comments_.size()) && comments_[static_cast<std::size_t>(comment)].next == at;
         ++comment)
      encode({.comment = comment});
    if (at == exit_) enclose(false);
    if (at == static_cast<int>(body_.size())) break;
    const Instruction& each = body_[static_cast<std::size_t>(at)];
    const bool moves = each.form == &form::mov_x || each.form == &form::mov_v;
    auto machine = [&](int id) { return is_virtual(id) ? of(id).machine : id; };
    if (moves && machine(each.registers[0]) >= 0 && machine(each.registers[0]) == machine(each.registers[1])) continue;
    encode_through_spares(each);
  }
  return assembled(with_listing);
}

// Distances, in words: of branches to labels, of loads to the constants behind the code.
bool Assembler::aim_branches() {
  std::vector<std::int64_t> bound(static_cast<std::size_t>(labels_), -1);
  std::int64_t words = 0;
  for (const Encoded& each : encoded_) {
    if (each.instruction.form) ++words;
    else if (each.instruction.extra.label.id >= 0)
      bound[static_cast<std::size_t>(each.instruction.extra.label.id)] = words;
  }
  const std::int64_t constants = (words + 3) / 4 * 4;
  std::int64_t at = 0;
  for (Encoded& each : encoded_) {
    const Form* form = each.instruction.form;
    if (!form) continue;
    const Extra& extra = each.instruction.extra;
    if (extra.label.id >= 0 || extra.constant >= 0) {
      const std::int64_t there =
          extra.constant >= 0 ? constants + 4 * extra.constant : bound[static_cast<std::size_t>(extra.label.id)];
      const bool is_tbz = form == &form::tbz_w || form == &form::tbz_x, is_b = form == &form::b;
      const int bits = is_b ? 26 : is_tbz ? 14 : 19;
      const std::int64_t distance = there - at, reach = std::int64_t{1} << (bits - 1);
      if (there < 0 || distance < -reach || distance >= reach) return false;
      each.word |= static_cast<std::uint32_t>(distance & ((std::int64_t{1} << bits) - 1)) << (is_b ? 0 : 5);
    }
    ++at;
  }
  return true;
}

std::optional<MachineCode> Assembler::assembled(bool with_listing) {
  if (!aim_branches()) return std::nullopt;
  MachineCode code;
  auto append = [&](const void* from, std::size_t bytes) {
    const auto* first = static_cast<const std::uint8_t*>(from);
    code.bytes.insert(code.bytes.end(), first, first + bytes);
  };
  for (const Encoded& each : encoded_) {
    if (each.instruction.form) append(&each.word, 4);
    if (with_listing) code.listing += text_of(each.instruction) + "\n";
  }
  if (!constants_.empty()) code.bytes.resize((code.bytes.size() + 15) / 16 * 16);
  for (const Constant& each : constants_) {
    if (with_listing)
      code.listing += fmt::format(".C{}: .word {:#x}, {:#x}, {:#x}, {:#x}\n", constant_of_.at(each), each[0], each[1],
                                  each[2], each[3]);
    append(each.data(), sizeof each);
  }
  return code;
}

std::string Assembler::text_of(const Instruction& instruction) const {
  const Extra& extra = instruction.extra;
  if (instruction.comment >= 0) return comments_[static_cast<std::size_t>(instruction.comment)].text;
  if (!instruction.form) return fmt::format(".L{}:", extra.label.id);
  std::string text;
  const std::string_view form = instruction.form->text;
  for (std::size_t at = 0; at < form.size(); ++at) {
    const std::size_t next = std::min(form.find('%', at), form.size());
    text += form.substr(at, next - at);
    if (next == form.size()) break;
    const char what = form[at = next + 1];
    if (what == 't') text += extra.of_2d ? "2d" : "4s";
    else if (what == 'i') text += std::to_string(extra.shown);
    else if (what == 'l')
      text += extra.constant >= 0 ? fmt::format(".C{}", extra.constant) : fmt::format(".L{}", extra.label.id);
    else text += std::to_string(instruction.registers[static_cast<std::size_t>(what - '0')]);
  }
  return text;
}

}  // namespace trireme::aarch64
