// Handles that notice when they are null, of another kind, or already destroyed.
//
// What a caller holds is a small cell that points to the object. Destroying frees the object and empties the cell; the
// cell itself is used again only after many others were given back, so a stale handle meets an empty cell.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>

#include "devices/fork_mutex.hpp"
#include "trireme/result.hpp"

namespace trireme::c_api {

inline constexpr std::size_t resting_cells = 4096;

template <typename T>
class Handles {
 public:
  struct Cell {
    std::atomic<std::uint64_t> mark = 0;
    std::unique_ptr<T> object;
  };

  static void* add(std::unique_ptr<T> object) {
    Handles& all = instance();
    std::lock_guard lock(all.mutex_);
    Cell* cell = nullptr;
    if (all.resting_.size() < resting_cells) {
      cell = &all.cells_.emplace_back();
    } else {
      cell = all.resting_.front();
      all.resting_.pop_front();
    }
    cell->object = std::move(object);
    cell->mark = alive();
    return cell;
  }

  static Result<T*> get(const void* handle, const char* what) {
    const Cell* cell = static_cast<const Cell*>(handle);
    if (!cell) return Error{Code::InvalidArgument, std::string(what) + ": a null handle"};
    if (cell->mark != alive()) return Error{Code::InvalidArgument, std::string(what) + ": the handle was destroyed"};
    return cell->object.get();
  }

  static Status remove(void* handle, const char* what) {
    if (!handle) return Done{};  // as free()
    Cell* cell = static_cast<Cell*>(handle);
    std::uint64_t expected = alive();
    if (!cell->mark.compare_exchange_strong(expected, 0)) return get(handle, what).error();
    Handles& all = instance();
    std::unique_ptr<T> object;  // freed after the lock
    std::lock_guard lock(all.mutex_);
    object = std::move(cell->object);
    try {
      all.resting_.push_back(cell);
    } catch (const std::bad_alloc&) {  // then it rests for ever
    }
    return Done{};
  }

 private:
  static Handles& instance() {
    static Handles* handles = new Handles;  // never destroyed: threads may outlive main
    return *handles;
  }
  static std::uint64_t alive() { return reinterpret_cast<std::uint64_t>(&instance()); }  // differs by kind

  ForkMutex mutex_;
  std::deque<Cell> cells_;
  std::deque<Cell*> resting_;
};

}  // namespace trireme::c_api
