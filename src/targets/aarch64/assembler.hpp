// An assembler of A64 code with as many registers as one likes. A linear scan gives each a machine register from its
// first touch to its last, or a place on the stack.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "targets/aarch64/forms.hpp"
#include "targets/machine_code.hpp"

namespace trireme::aarch64 {

// Below 32 a register of the machine, from there on one of as many as one likes.
struct Register {
  int id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const Register&) const = default;
};
struct Gp : Register {};
struct Vec : Register {};
struct Label {
  int id = -1;
};
using Constant = std::array<std::uint32_t, 4>;  // 16 bytes, lowest first

class Assembler {
 public:
  Gp new_gp() { return {fresh(General)}; }
  Vec new_vec() { return {fresh(Vector)}; }
  Label new_label() { return {labels_++}; }

  struct Extra {
    std::int64_t shown = 0;  // what stands for %i
    std::uint32_t bits = 0;
    bool of_2d = false;
    Label label = {};
    int constant = -1;
  };
  void put(const Form& form, std::initializer_list<Register> registers, const Extra& extra);
  void put(const Form& form, std::initializer_list<Register> registers) { put(form, registers, Extra{}); }
  void bind(Label label);
  void load_constant(Vec dst, const Constant& value);
  Vec constant(const Constant& value);  // in a register that is filled once, before everything else
  void comment(std::string text);
  // A comment that ends with where these registers' values then are: "; rstd: f17 in v3". No longer needed: nowhere.
  void comment_with_places(std::string text, std::vector<Register> registers);

  // The arguments of a function, at its begin; leave() at its end.
  void enter(const std::array<Gp, 4>& arguments);
  void leave();

  // Gives registers and encodes. None where the code outgrows what branches reach.
  std::optional<MachineCode> finish(bool with_listing);

 private:
  enum Group : std::uint8_t { General, Vector };
  static constexpr int groups = 2, machine_registers = 32;
  struct Instruction {
    const Form* form = nullptr;  // none: a label or a comment
    std::array<int, 4> registers = {-1, -1, -1, -1};
    Extra extra = {};
    int comment = -1;
  };
  // Comments take no place among instructions: where lives begin and end, and so the code, is the same without them.
  struct Comment {
    int next;  // of body_, the instruction behind it
    std::string text;
    std::vector<Register> registers;  // whose places it is to say
  };
  struct Virtual {
    Group group;
    int first = -1, last = -1;  // instructions
    float touches = 0;          // more in loops
    int machine = -1;           // its register
    int place = -1;             // bytes from the stack pointer, if it has none
  };

  int fresh(Group group);
  static bool is_virtual(int id) { return id >= machine_registers; }
  Virtual& of(int id) { return virtuals_[static_cast<std::size_t>(id - machine_registers)]; }
  void measure_lives();
  void complete_comments();
  bool give_registers(bool keep_spares);  // false: something lies on the stack
  int wished(const Virtual& wanting) const;
  void give_places();
  void encode(const Instruction& instruction);
  void encode_through_spares(Instruction instruction);
  void enclose(bool begin);
  void frame(const Form& form, std::int64_t amount, std::int64_t unit, int machine = -1);
  std::optional<MachineCode> assembled(bool with_listing);
  bool aim_branches();
  std::string text_of(const Instruction& instruction) const;

  std::vector<Instruction> body_;
  std::vector<Virtual> virtuals_;
  std::vector<int> by_first_;  // virtual registers in order of their first touch
  std::vector<Comment> comments_;
  std::vector<Constant> constants_;
  std::map<Constant, int> constant_of_;
  std::map<Constant, Vec> kept_;
  int labels_ = 0, exit_ = -1;
  std::vector<int> callee_saved_[groups];  // those in use
  std::int64_t stack_bytes_ = 0, saved_at_ = 0;

  // Encoded: machine registers alone.
  struct Encoded {
    Instruction instruction;
    std::uint32_t word;
  };
  std::vector<Encoded> encoded_;
};

}  // namespace trireme::aarch64
