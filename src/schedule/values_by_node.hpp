// What a chunk has evaluated so far, by node. Looked up several times for every instruction that is lowered, so by
// number and not by hash.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/kernel.hpp"

namespace trireme {

class ValuesByNode {
 public:
  const Values* find(NodeId id) const { return place(id) ? &entries_[place(id) - 1].second : nullptr; }

  void put(NodeId id, Values values) {
    if (id >= places_.size()) places_.resize(id + 1);
    if (place(id)) {
      entries_[place(id) - 1].second = std::move(values);
      return;
    }
    entries_.emplace_back(id, std::move(values));
    places_[id] = static_cast<std::uint32_t>(entries_.size());
  }

  template <typename Stays>
  void keep(Stays&& stays) {
    auto before = std::exchange(entries_, {});
    for (auto& [id, values] : before) places_[id] = 0;
    for (auto& [id, values] : before)
      if (stays(id)) put(id, std::move(values));
  }
  void clear() {
    for (const auto& entry : entries_) places_[entry.first] = 0;
    entries_.clear();
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::uint32_t place(NodeId id) const { return id < places_.size() ? places_[id] : 0; }

  std::vector<std::pair<NodeId, Values>> entries_;
  std::vector<std::uint32_t> places_;  // by node: where its entry stands, from 1 on; 0: nowhere
};

}  // namespace trireme
