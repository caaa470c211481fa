// Types the operand stack of a body, so that an emitter's fault is found where it was made and without an engine.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {
namespace {

constexpr Type Unknown = Type::None;  // what unreachable code pops from an empty stack

Type type_of(char letter, Type variable) {
  switch (letter) {
    case 'i': return Type::I32;
    case 'l': return Type::I64;
    case 'f': return Type::F32;
    case 'd': return Type::F64;
    case 'v': return Type::V128;
  }
  return variable;
}

class Checker {
 public:
  explicit Checker(const Body& body) : body_(body) { frames_.push_back({nullptr, body.signature.result, 0}); }

  // Empty when all is well, else the reason why this item cannot stand here.
  const std::string& step(const Body::Item& item) {
    const Instruction& instruction = *item.instruction;
    switch (instruction.immediate) {
      case Immediate::None:
      case Immediate::Const: apply(instruction.signature); break;
      case Immediate::Memory:
      case Immediate::MemoryLane:
        require((item.b & 0xff) <= instruction.argument, "alignment above the natural one");
        require(instruction.immediate == Immediate::Memory || item.b >> 8 < 16u >> instruction.argument,
                "no such lane");
        apply(instruction.signature);
        break;
      case Immediate::Lane:
        require(item.a < instruction.argument, "no such lane");
        apply(instruction.signature);
        break;
      case Immediate::Shuffle:
        require(((item.a | item.b) & 0xe0e0e0e0e0e0e0e0) == 0, "no such lane");
        apply(instruction.signature);
        break;
      case Immediate::Local:
        if (item.a >= body_.locals.size() || body_.locals[item.a].type != static_cast<Type>(item.b)) {
          refuse("a local of another function");
        } else {
          apply(instruction.signature, body_.locals[item.a].type);
        }
        break;
      case Immediate::Global:
        require(instruction.name == "global.get" || body_.globals[item.a].is_mutable, "the global is not mutable");
        apply(instruction.signature, Type::I32);
        break;
      case Immediate::Block:
        apply(instruction.signature);
        frames_.push_back({&item, static_cast<Type>(item.b), stack_.size()});
        break;
      case Immediate::Else:
        if (!close(item)) break;
        require(frames_.back().opener->instruction->name == "if", "belongs to an if without else");
        frames_.back() = {&item, frames_.back().result, stack_.size()};
        break;
      case Immediate::End:
        if (!close(item)) break;
        require(frames_.back().result == Type::None || frames_.back().opener->instruction->name != "if",
                "an if with a result has an else");
        push_result(frames_.back().result);
        frames_.pop_back();
        break;
      case Immediate::Branch: branch(item); break;
      case Immediate::Return: pop_result(body_.signature.result); break;
      case Immediate::Call: {
        const Signature& signature = body_.callees[item.a].signature;
        for (std::size_t k = signature.parameters.size(); k-- > 0;) pop(signature.parameters[k]);
        push_result(signature.result);
        break;
      }
    }
    if (instruction.signature.ends_with('!')) stack_.resize(frames_.back().height), frames_.back().unreachable = true;
    return reason_;
  }

  const std::string& finish() {
    if (frames_.size() == 1) leave_frame();
    require(frames_.size() == 1, "a block is still open");
    return reason_;
  }

 private:
  struct Frame {
    const Body::Item* opener;  // block, loop, if or else; null for the function
    Type result;
    std::size_t height;  // of the stack below the frame
    bool unreachable = false;
  };

  void refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }
  void require(bool holds, const char* reason) {
    if (!holds) refuse(reason);
  }

  void push_result(Type type) {
    if (type != Type::None) stack_.push_back(type);
  }
  void pop_result(Type type) {
    if (type != Type::None) pop(type);
  }

  Type pop(Type wanted) {
    const Frame& frame = frames_.back();
    if (stack_.size() == frame.height) {
      if (!frame.unreachable) refuse(fmt::format("wants {}, and the stack is empty", name(wanted)));
      return wanted;
    }
    const Type got = stack_.back();
    stack_.pop_back();
    if (got == Unknown || wanted == Unknown) return got == Unknown ? wanted : got;
    if (got != wanted) refuse(fmt::format("wants {}, and the stack has {}", name(wanted), name(got)));
    return wanted;
  }

  void apply(std::string_view signature, Type variable = Unknown) {
    const std::size_t colon = signature.find(':');
    for (std::size_t k = colon; k-- > 0;) {
      const Type got = pop(type_of(signature[k], variable));
      if (signature[k] == '?') variable = got;
    }
    for (char letter : signature.substr(colon + 1)) {
      if (letter != '!') stack_.push_back(type_of(letter, variable));
    }
  }

  void leave_frame() {
    pop_result(frames_.back().result);
    const std::size_t left = stack_.size() - frames_.back().height;
    if (left != 0) refuse(fmt::format("{} left on the stack", left));
  }

  bool close(const Body::Item& item) {
    require(frames_.size() > 1 && frames_.back().opener->a == item.a, "does not belong to the innermost block");
    if (reason_.empty()) leave_frame();
    return reason_.empty();
  }

  void branch(const Body::Item& item) {
    apply(item.instruction->signature);
    const auto target = std::find_if(frames_.rbegin(), frames_.rend() - 1,
                                     [&](const Frame& frame) { return frame.opener->a == item.a; });
    if (target == frames_.rend() - 1) return refuse("its label is not open here");
    const Type carried = target->opener->instruction->name == "loop" ? Type::None : target->result;
    pop_result(carried), push_result(carried);
  }

  const Body& body_;
  std::vector<Type> stack_;
  std::vector<Frame> frames_;
  std::string reason_;
};

}  // namespace

Status check(const Body& body) {
  Checker checker(body);
  for (std::size_t k = 0; k < body.items.size(); ++k) {
    const std::string& reason = checker.step(body.items[k]);
    if (reason.empty()) continue;
    return Error{Code::Internal, fmt::format("wasm function {}, instruction {} ({}): {}", body.name, k,
                                             body.items[k].instruction->name, reason)};
  }
  const std::string& reason = checker.finish();
  if (!reason.empty()) return Error{Code::Internal, fmt::format("wasm function {}, at its end: {}", body.name, reason)};
  return Done{};
}

}  // namespace trireme::wasm
