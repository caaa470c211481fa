// asmjit's Builder, with as many registers as one likes: a linear scan gives each a machine register for its whole
// life, or a place on the stack. (asmjit's own Compiler takes 0.6 µs an instruction, most of the time a kernel took to
// make.)
#pragma once
#include <asmjit/x86.h>

#include <string>
#include <vector>

#include "support/few.hpp"

namespace trireme::x86 {

class Compiler : public asmjit::x86::Builder {
 public:
  using Gp = asmjit::x86::Gp;
  using Mem = asmjit::x86::Mem;

  // Where it could not be attached asmjit leaves it believing that it was, and asserts when it is destroyed.
  void not_attached() { _code = nullptr; }
  // Attached to a holder: a new function, in the memory of the last one.
  void begin(bool avx512);

  asmjit::x86::Xmm newXmm() { return asmjit::x86::Xmm(fresh(Group::Vector)); }
  asmjit::x86::Ymm newYmm() { return asmjit::x86::Ymm(fresh(Group::Vector)); }
  asmjit::x86::Zmm newZmm() { return asmjit::x86::Zmm(fresh(Group::Vector)); }
  asmjit::x86::KReg newK() { return asmjit::x86::KReg(fresh(Group::Mask)); }
  Gp newInt64() { return asmjit::x86::gpq(fresh(Group::General)); }
  asmjit::Label newLabel() override;
  Mem newConst(const void* data, std::size_t bytes);
  Mem newStack(std::uint32_t bytes, std::uint32_t alignment);

  // One function of four integers. rax and rdx are nobody's registers, for instructions that want them.
  void enter(const Gp (&arguments)[4]);
  void leave();
  // What is seldom needed goes behind the function's end. `emit` begins with a label and ends with a jump back; its
  // registers live as if it stood here.
  template <typename Emit>
  void aside(Emit emit) {
    asmjit::BaseNode* before = cursor();
    emit();
    asides_.push_back({before->next(), cursor()});
  }
  // A comment that ends with where these registers' values then are: "; rstd: f17 in zmm3". Not yet made, or no longer
  // needed: nowhere.
  void comment_with_places(std::string text, std::vector<std::uint32_t> ids);
  // Gives registers and encodes.
  asmjit::Error finish();

 private:
  enum Group : std::uint8_t { General, Vector, Mask };
  static constexpr int groups = 3;
  struct Virtual {
    Group group;
    int first = -1, last = -1;  // nodes
    float touches = 0;          // more in loops
    int machine = -1;           // its register
    int place = -1;             // where it lies on the stack, if it has none
    int next = -1;              // whose life begins at the same node
  };
  struct Aside {
    asmjit::BaseNode *first, *last;
  };
  struct Comment {
    asmjit::BaseNode* node;
    int next;  // of nodes_, the one behind it
    std::string text;
    std::vector<std::uint32_t> ids;
  };
  // How an instruction gets at what lies on the stack: one operand may be there, others pass through spare registers.
  struct Spill {
    struct Passing {
      std::uint32_t id;
      bool read, written;
      int spare = -1;
    };
    int node = -1;
    int in_memory = -1;
    std::uint32_t memory_bytes = 0;
    Few<Passing, 4> passing;
  };

  std::uint32_t fresh(Group group);
  static bool is_virtual(std::uint32_t id) { return id >= asmjit::Operand::kVirtIdMin; }
  Virtual& of(std::uint32_t id) { return virtuals_[id - asmjit::Operand::kVirtIdMin]; }
  bool on_stack(std::uint32_t id) { return is_virtual(id) && of(id).place >= 0; }
  std::uint32_t bytes_of(Group group) const { return group != Vector ? 8 : avx512_ ? 64 : 32; }
  static asmjit::InstNode* instruction(asmjit::BaseNode* node) {
    return node->isInst() ? node->as<asmjit::InstNode>() : nullptr;
  }
  template <typename Each>
  static void each_register(asmjit::InstNode* node, Each each);  // each(id), which may be changed

  std::vector<int> find_loops() const;
  void measure_lives();
  void give_registers();
  void give_one(int index, int at);
  int wished(int index, int at);
  bool touches_stack(asmjit::InstNode* node);
  Spill spill_of(asmjit::InstNode* node);
  bool keep_enough_spares();
  void give_places();
  void complete_comments();
  void rewrite();
  void pass_through_spares(const Spill& spill);
  void move_spare(Group group, int spare, int place, bool load);
  void enclose();

  bool avx512_ = false;
  asmjit::Zone zone_{4096};
  asmjit::ConstPool constants_{&zone_};
  asmjit::Label constants_at_;
  std::vector<Virtual> virtuals_;
  std::vector<Aside> asides_;
  std::vector<Comment> comments_;  // in the order of their nodes
  asmjit::BaseNode* exit_ = nullptr;
  std::uint32_t stack_bytes_ = 0;

  std::vector<asmjit::BaseNode*> nodes_;
  std::vector<int> begins_;             // for each node: the first whose life begins there
  std::vector<int> registers_[groups];  // those to give, best first
  std::vector<int> spares_[groups];     // those that nobody gets, for what lies on the stack
  int owners_[groups][32];              // who has a register, or had it last
  int until_[groups][32];               // to which node
  float prices_[groups][32];            // what it would cost to have it lie on the stack
  bool spills_ = false;                 // something lies on the stack
  std::vector<Spill> on_stack_;         // the nodes that touch it, in order
};

template <typename Each>
void Compiler::each_register(asmjit::InstNode* node, Each each) {
  for (std::uint32_t k = 0; k < node->opCount(); ++k) {
    asmjit::Operand_& operand = node->op(k);
    if (operand.isReg()) each(operand._baseId);
    if (!operand.isMem()) continue;
    Mem& memory = operand.as<Mem>();
    if (memory.hasBaseReg()) each(memory._baseId);
    if (memory.hasIndexReg()) each(memory._data[Mem::kDataMemIndexId]);
  }
  if (node->hasExtraReg()) each(node->extraReg()._id);
}

}  // namespace trireme::x86
