// Lives, registers and the frame; what found no register is spill.cpp's.
#include "targets/x86/compiler.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::x86 {

namespace {

using asmjit::BaseNode;
using asmjit::InstNode;
using asmjit::x86::gpq;
using asmjit::x86::ptr;
using asmjit::x86::rbp;
using asmjit::x86::rsp;
namespace Inst = asmjit::x86::Inst;

constexpr int rax = 0, rcx = 1, rdx = 2, rbx = 3;
constexpr bool callers(int general) { return general == rbx || general >= 12; }  // to be given back as it was

// From one register to another of its kind.
bool is_move(const InstNode* node) {
  const bool moves = node->id() == Inst::kIdMov || node->id() == Inst::kIdVmovaps || node->id() == Inst::kIdVmovups ||
                     node->id() == Inst::kIdKmovq;
  return moves && node->opCount() == 2 && node->op(0).isReg() && node->op(1).isReg() && !node->hasExtraReg() &&
         node->op(0).signature() == node->op(1).signature();
}

}  // namespace

void Compiler::begin(bool avx512) {
  avx512_ = avx512;
  zone_.reset();
  constants_.reset(&zone_);
  constants_at_ = newLabel();
  virtuals_.clear();
  asides_.clear();
  comments_.clear();
  nodes_.clear();
  stack_bytes_ = 0;
  registers_[General] = {rcx, 6, 7, 8, 9, 10, 11, rbx, 12, 13, 14, 15};  // rsp and rbp are the frame's
  spares_[General] = {rax, rdx};
  registers_[Vector].resize(avx512 ? 32 : 16);
  std::iota(registers_[Vector].begin(), registers_[Vector].end(), 0);
  registers_[Mask] = {1, 2, 3, 4, 5, 6, 7};  // k0 masks nothing
  spares_[Vector].clear();
  spares_[Mask].clear();
}

// asmjit makes room for one label too few and then takes it for granted, which ends the process where there is none.
asmjit::Label Compiler::newLabel() {
  const std::uint32_t wanted = static_cast<std::uint32_t>(code()->labelCount()) + 1 - _labelNodes.size();
  if (asmjit::Error error = _labelNodes.willGrow(code()->allocator(), wanted)) {
    reportError(error);
    return {};
  }
  return Builder::newLabel();
}

std::uint32_t Compiler::fresh(Group group) {
  virtuals_.push_back({.group = group});
  return asmjit::Operand::kVirtIdMin + static_cast<std::uint32_t>(virtuals_.size()) - 1;
}

Compiler::Mem Compiler::newConst(const void* data, std::size_t bytes) {
  std::size_t offset = 0;
  if (asmjit::Error error = constants_.add(data, bytes, offset)) reportError(error);
  return ptr(constants_at_, static_cast<std::int32_t>(offset), static_cast<std::uint32_t>(bytes));
}

Compiler::Mem Compiler::newStack(std::uint32_t bytes, std::uint32_t alignment) {
  const std::uint32_t at = (stack_bytes_ + alignment - 1) / alignment * alignment;
  stack_bytes_ = at + bytes;
  return ptr(rsp, static_cast<std::int32_t>(at), bytes);
}

void Compiler::enter(const Gp (&arguments)[4]) {
  mov(arguments[0], asmjit::x86::rdi);
  mov(arguments[1], asmjit::x86::rsi);
  mov(arguments[3], asmjit::x86::rcx);  // rdx can wait: it is nobody's
  mov(arguments[2], asmjit::x86::rdx);
}

void Compiler::leave() { exit_ = cursor(); }

asmjit::Error Compiler::finish() {
  // Comments take no place: where lives begin and end, and so the code, is the same with them and without.
  auto comment = comments_.begin();
  for (BaseNode* node = firstNode(); node; node = node->next()) {
    if (comment != comments_.end() && node == comment->node) comment++->next = static_cast<int>(nodes_.size());
    if (!node->isComment()) nodes_.push_back(node);
  }
  measure_lives();
  do give_registers();
  while (!keep_enough_spares());
  give_places();
  complete_comments();
  rewrite();
  enclose();
  return finalize();
}

// For each node where a loop begins, its last one: a jump back.
std::vector<int> Compiler::find_loops() const {
  std::vector<int> labels(code()->labelCount(), -1), ends(nodes_.size(), -1);
  for (int at = 0; at < static_cast<int>(nodes_.size()); ++at) {
    if (nodes_[at]->isLabel()) labels[nodes_[at]->as<asmjit::LabelNode>()->labelId()] = at;
    InstNode* node = instruction(nodes_[at]);
    if (node && node->opCount() == 1 && node->op(0).isLabel() && labels[node->op(0).id()] >= 0)
      ends[labels[node->op(0).id()]] = at;
  }
  return ends;
}

// From the first touch to the last, and to the end of a loop that is entered alive.
void Compiler::measure_lives() {
  struct Loop {
    int begin, end;
    float times;
  };
  std::vector<Loop> open = {{-1, static_cast<int>(nodes_.size()), 1}};
  const std::vector<int> ends = find_loops();
  begins_.assign(nodes_.size(), -1);
  std::size_t aside = 0;
  bool seldom = false;
  for (int at = 0; at < static_cast<int>(nodes_.size()); ++at) {
    while (open.back().end < at) open.pop_back();
    if (ends[at] >= 0) open.push_back({at, ends[at], open.back().times * 8});
    seldom |= aside < asides_.size() && asides_[aside].first == nodes_[at];
    auto touch = [&](std::uint32_t id) {
      if (!is_virtual(id)) return;
      Virtual& touched = of(id);
      if (touched.first < 0) {
        touched.first = at;
        touched.next = begins_[at];
        begins_[at] = static_cast<int>(&touched - virtuals_.data());
      }
      touched.last = std::max(touched.last, at);
      if (!seldom) touched.touches += open.back().times;
      for (const Loop& loop : open)
        if (loop.begin > touched.first) {
          touched.last = std::max(touched.last, loop.end);
          break;
        }
    };
    if (InstNode* node = instruction(nodes_[at])) each_register(node, touch);
    if (seldom && asides_[aside].last == nodes_[at]) seldom = false, ++aside;
  }
}

void Compiler::give_registers() {
  spills_ = false;
  for (Virtual& each : virtuals_) each.machine = each.place = -1;
  for (auto& group : owners_) std::fill(std::begin(group), std::end(group), -1);
  for (auto& group : until_) std::fill(std::begin(group), std::end(group), -1);
  for (int at = 0; at < static_cast<int>(nodes_.size()); ++at)
    for (int index = begins_[at]; index >= 0; index = virtuals_[index].next) give_one(index, at);
}

// A move from what ends here is none if both have the same register.
int Compiler::wished(int index, int at) {
  InstNode* move = instruction(nodes_[at]);
  if (!is_move(move) || &of(move->op(0).id()) != &virtuals_[index]) return -1;
  const std::uint32_t from = move->op(1).id();
  if (!is_virtual(from)) return static_cast<int>(from);
  return of(from).last == at ? of(from).machine : -1;
}

// What ends where another begins may share its register: instructions read before they write. Where none is free, the
// one that is touched least for its length goes to the stack.
void Compiler::give_one(int index, int at) {
  Virtual& wanting = virtuals_[index];
  int *owners = owners_[wanting.group], *until = until_[wanting.group];
  auto free = [&](int machine) { return until[machine] <= at; };
  const std::vector<int>& all = registers_[wanting.group];
  auto best = std::find(all.begin(), all.end(), wished(index, at));
  if (best == all.end() || !free(*best)) best = std::find_if(all.begin(), all.end(), free);
  float* prices = prices_[wanting.group];
  const float price = wanting.touches / static_cast<float>(wanting.last - wanting.first + 1);
  if (best == all.end()) {
    best = std::min_element(all.begin(), all.end(), [&](int a, int b) { return prices[a] < prices[b]; });
    Virtual& cheapest = virtuals_[owners[*best]];
    const bool cheaper = prices[*best] < price;
    spills_ = true;
    (cheaper ? cheapest : wanting).place = 0;
    if (!cheaper) return;
    cheapest.machine = -1;
  }
  wanting.machine = *best;
  owners[*best] = index;
  until[*best] = wanting.last;
  prices[*best] = price;
}

void Compiler::comment_with_places(std::string text, std::vector<std::uint32_t> ids) {
  comment("", 0);
  comments_.push_back({cursor(), -1, std::move(text), std::move(ids)});
}

void Compiler::complete_comments() {
  for (Comment& each : comments_) {
    asmjit::String places;
    for (std::uint32_t id : each.ids) {
      const Virtual& held = of(id);
      if (held.first < 0 || held.first >= each.next || held.last < each.next) continue;
      const asmjit::RegType type = held.group == General ? asmjit::RegType::kX86_Gpq
                                   : held.group == Mask  ? asmjit::RegType::kX86_KReg
                                   : avx512_             ? asmjit::RegType::kX86_Zmm
                                                         : asmjit::RegType::kX86_Ymm;
      places.append(places.empty() ? " in " : ", ");
      if (held.place >= 0) places.appendFormat("[rsp+%d]", held.place);
      else
        asmjit::Formatter::formatRegister(places, asmjit::FormatFlags::kNone, this, arch(), type,
                                          static_cast<std::uint32_t>(held.machine));
    }
    each.text += places.data();
    each.node->setInlineComment(each.text.c_str());
  }
}

void Compiler::rewrite() {
  for (const Spill& spill : on_stack_) pass_through_spares(spill);
  for (BaseNode* each : nodes_) {
    InstNode* node = instruction(each);
    if (!node) continue;
    each_register(node, [&](std::uint32_t& id) {
      if (is_virtual(id)) id = static_cast<std::uint32_t>(of(id).machine);
    });
    const bool whole = node->opCount() && node->op(0).isReg() && node->op(0).size() >= (avx512_ ? 64u : 32u);
    if (is_move(node) && node->op(0).id() == node->op(1).id() && (whole || node->op(0).as<asmjit::x86::Reg>().isGpq()))
      removeNode(node);
  }
}

void Compiler::enclose() {
  std::vector<int> saved;
  for (int general : registers_[General])
    if (callers(general) && owners_[General][general] >= 0) saved.push_back(general);
  setCursor(firstNode());  // the section
  push(rbp);
  mov(rbp, rsp);
  for (int general : saved) push(gpq(static_cast<std::uint32_t>(general)));
  sub(rsp, stack_bytes_);
  and_(rsp, -64);
  setCursor(exit_);
  vzeroupper();
  lea(rsp, ptr(rbp, -8 * static_cast<std::int32_t>(saved.size())));
  for (std::size_t k = saved.size(); k-- > 0;) pop(gpq(static_cast<std::uint32_t>(saved[k])));
  pop(rbp);
  ret();
  BaseNode* end = cursor();
  for (const Aside& aside : asides_)
    for (BaseNode *node = aside.first, *next = nullptr, *last = aside.last; node;
         node = node == last ? nullptr : next) {
      next = node->next();
      removeNode(node);
      end = addAfter(node, end);
    }
  setCursor(end);
  if (!constants_.empty()) embedConstPool(constants_at_, constants_);
}

}  // namespace trireme::x86
