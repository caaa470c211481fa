#include "devices/cpu/compiled.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <type_traits>

#include "devices/fork_mutex.hpp"
#include "targets/targets.hpp"

namespace trireme::cpu {
namespace {

Result<std::shared_ptr<const Compiled>> compile_anew(const Program& program, const Config& config,
                                                     const InstructionSet& set) {
  TRIREME_TRY(made, trireme::compile(program, config, *set.target, set.arch));
  Kernels& kernels = made.kernels;
  const std::span<const std::uint8_t> bytes = made.artifact.bytes;
  std::vector<CodeMemory::Function> functions = {{bytes, kernels.rows.name}};
  if (made.artifact.columns_entry >= 0) {
    const auto rows = static_cast<std::size_t>(made.artifact.columns_entry);
    functions = {{bytes.first(rows), kernels.rows.name}, {bytes.subspan(rows), kernels.columns[0].name}};
  }
  TRIREME_TRY(memory, CodeMemory::create(functions));
  kernels.rows.body = {};  // plans only ask for arguments and sizes, and live long
  for (Kernel& each : kernels.columns) each.body = {};
  return std::make_shared<const Compiled>(Compiled{std::move(kernels), made.artifact.hash(), std::move(memory)});
}

// Everything that `lower` and `emit` look at, as bytes: printing a program took a twentieth of the time that
// its code takes.
class Key {
 public:
  Key(const Program& program, const Config& config, const InstructionSet& set) {
    put(program.compute, program.size());
    text(set.arch);
    text(program.name);
    text(print(config));
    for (NodeId id = 0; id < program.size(); ++id) {
      const Node& node = program[id];
      put(node.op, node.args, node.payload);
    }
    for (const Operand& each : program.operands) {
      put(each.constant, each.type);
      spread(each.spread);
    }
    for (const Output& each : program.results) {
      put(each.value, each.type, each.accumulate, each.row_block);
      spread(each.spread);
    }
    for (const ArrayLayout& each : config.layout.arrays)
      put(each.strided, each.row_jumps, each.column_jumps, each.backwards);
    for (bool over : config.layout.over_operands) put(over);
  }
  std::string bytes;

 private:
  template <typename... Parts>
  void put(const Parts&... parts) {
    (put_one(parts), ...);
  }
  template <typename Part>
  void put_one(const Part& part) {
    static_assert(std::has_unique_object_representations_v<Part>);
    bytes.append(reinterpret_cast<const char*>(&part), sizeof part);
  }
  void put_one(const std::optional<Type>& type) { bytes.push_back(type ? static_cast<char>(*type) : '?'); }
  void text(std::string_view part) {
    put(part.size());
    bytes += part;
  }
  void spread(const Spread& each) {
    for (const Axis& axis : {each.row, each.column}) put(axis.present, axis.divide, axis.wrap);
  }
};

// What is in use. Entries whose code is gone are swept out when their number has doubled.
class Shelf {
 public:
  std::shared_ptr<const Compiled> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : it->second.lock();
  }

  // What stands there already, if another thread was faster.
  std::shared_ptr<const Compiled> put(std::string key, std::shared_ptr<const Compiled> made) {
    std::lock_guard lock(mutex_);
    if (entries_.size() >= limit_) {
      std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
      limit_ = 2 * entries_.size() + 64;
    }
    std::weak_ptr<const Compiled>& entry = entries_[std::move(key)];
    if (std::shared_ptr<const Compiled> there = entry.lock()) return there;
    entry = made;
    return made;
  }

 private:
  ForkMutex mutex_;
  std::map<std::string, std::weak_ptr<const Compiled>> entries_;
  std::size_t limit_ = 64;
};

Shelf& shelf() {
  static auto* made = new Shelf;  // never destroyed: plans may outlive main
  return *made;
}

}  // namespace

Result<std::shared_ptr<const Compiled>> compiled(const Program& program, const Config& config,
                                                 const InstructionSet& set) {
  std::string key = Key(program, config, set).bytes;
  if (std::shared_ptr<const Compiled> found = shelf().find(key)) return found;
  TRIREME_TRY(made, compile_anew(program, config, set));
  return shelf().put(std::move(key), std::move(made));
}

}  // namespace trireme::cpu
