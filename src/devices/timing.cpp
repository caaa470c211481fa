#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "devices/device.hpp"
#include "devices/parallel.hpp"
#include "support/processor.hpp"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr std::size_t line = 64;

// Plain stores read a cache line before they write it; a kernel with streaming stores is measured against a copy of its
// kind.
void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

// Two pieces of memory, each thread's part first touched by itself.
class Copier {
 public:
  Copier(std::int64_t bytes, int threads)
      : lines_((static_cast<std::size_t>(bytes) + line - 1) / line), threads_(threads), from_(make()), to_(make()) {
    each_part([](std::byte* to, std::byte* from, std::size_t bytes) {
      std::memset(to, 0, bytes);
      std::memset(from, 1, bytes);
    });
  }
  ~Copier() {
    for (std::byte* memory : {from_, to_}) ::operator delete(memory, std::align_val_t(line));
  }
  Copier(const Copier&) = delete;

  template <typename Copy>
  void each_part(Copy copy) {
    in_parallel(threads_, [&](int worker) {
      std::size_t first = lines_ * worker / threads_ * line, last = lines_ * (worker + 1) / threads_ * line;
      copy(to_ + first, from_ + first, last - first);
    });
  }

 private:
  std::byte* make() const {
    return static_cast<std::byte*>(::operator new(std::max<std::size_t>(lines_, 1) * line, std::align_val_t(line)));
  }
  std::size_t lines_;
  int threads_;
  std::byte *from_, *to_;
};

}  // namespace

Result<Timing> Executable::time(const Placed& placed, const TimeOptions& options) {
  const Problem2d& problem = placed.problem;
  Copier copier(options.bytes / 2, options.threads);
  Timing timing;
  auto timed = [](auto&& work) {
    Clock::time_point start = Clock::now();
    work();
    return seconds_since(start);
  };
  struct Way {
    const char* name;
    void (*copy)(std::byte*, const std::byte*, std::size_t);
  };
  std::vector<Way> ways = {{"memcpy", copy_plain}};
  if (has_streaming_stores) ways.push_back({"streaming copy", copy_streaming});
  for (const Way& way : ways) timing.copies.push_back({way.name, {}});
  const RunOptions run_options{.threads = options.threads};
  // As plans do: memory is made once.
  std::shared_ptr<std::byte> memory;
  Lent lent;
  if (direct()) {
    DirectExecutable::MemoryBytes bytes = direct()->memory_bytes(problem.rows, problem.columns, run_options);
    TRIREME_TRY(made, direct()->allocate(whole_lines(bytes.workspace) + bytes.own));
    memory = std::move(made);
    lent = {.workspace = memory.get(), .own = memory.get() + whole_lines(bytes.workspace)};
  }
  auto once = [&] { return direct() ? direct()->run_in(problem, run_options, lent) : run(problem, run_options); };
  Status status = once();  // pages, caches and the clock get warm
  Clock::time_point start = Clock::now();
  for (double spent = 0; status && (timing.runs.size() < 3 || spent < options.seconds); spent = seconds_since(start)) {
    if (options.progress) options.progress(std::min(1.0, spent / options.seconds));
    timing.runs.push_back(timed([&] { status = once(); }));
    for (std::size_t k = 0; k < timing.copies.size(); ++k)
      timing.copies[k].seconds.push_back(timed([&] { copier.each_part(ways[k].copy); }));
  }
  if (!status) return status.error();
  return timing;
}

}  // namespace trireme
