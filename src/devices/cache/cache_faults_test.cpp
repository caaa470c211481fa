// The cache on bad days: faults 17 to 21.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "devices/cache/test_folder.hpp"

namespace trireme {
namespace {

using From = Cached::From;
using namespace std::chrono_literals;

constexpr uid_t nobody = 65534;

class CacheFaults : public CacheTest {
 protected:
  // What a fresh process gets: 0 if that is right.
  int ask(const std::string& wanted, std::chrono::milliseconds takes = 0ms) const {
    KernelCache cache(options());
    Result<Cached> got = cache.get_or_make(key, [&]() -> Result<std::string> {
      std::this_thread::sleep_for(takes);
      return making(wanted)();
    });
    return got && *got->bytes == wanted ? 0 : 1;
  }
};

TEST_F(CacheFaults, fault_17_many_processes_make_it_once) {
  for (int processes : {2, 64}) {
    std::filesystem::remove_all(folder);
    std::filesystem::remove(root / "made");
    std::vector<pid_t> children;
    for (int k = 0; k < processes; ++k)
      children.push_back(in_child([&] { return ask(std::string(50000, 'k'), 50ms); }));
    for (pid_t child : children) EXPECT_EQ(exit_code(child), 0);
    EXPECT_EQ(times_made(), 1u) << processes;
    EXPECT_EQ(files(".entry").size(), 1u);
    EXPECT_TRUE(files(".tmp").empty());
  }
}

TEST_F(CacheFaults, fault_17_whoever_waits_too_long_makes_it_itself) {
  KernelCache::Options hurried = options();
  hurried.patience = 50ms;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t stuck = in_child([&] {
    return KernelCache(options()).get_or_make(key,
                                              [&]() -> Result<std::string> {
                                                (void)!::write(ready[1], "x", 1);
                                                for (;;) ::pause();
                                              })
               ? 0
               : 1;
  });
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(*KernelCache(hurried).get_or_make(key, making("mine")).value().bytes, "mine");
  // The entry is there now: nobody waits for the lock.
  EXPECT_EQ(KernelCache(options()).get_or_make(key, making("other")).value().from, From::Disk);
  ::kill(stuck, SIGKILL);
  exit_code(stuck);
}

TEST_F(CacheFaults, fault_18_broken_entries_are_made_again) {
  ASSERT_EQ(ask("the artifact"), 0);
  std::filesystem::path file = files(".entry").at(0);
  const std::string whole = content(file);
  std::size_t made = 1;
  auto expect_made_again = [&](const std::string& bytes, const std::string& why, const std::string& how) {
    put(file, bytes);
    EXPECT_EQ(KernelCache(options()).disk()->list().at(0).broken, why) << how;
    EXPECT_EQ(ask("the artifact"), 0) << how;
    EXPECT_EQ(times_made(), ++made) << how;
    EXPECT_EQ(content(file), whole) << how;
  };
  expect_made_again("", "empty", "empty");
  for (std::size_t length = 1; length < whole.size(); length += 7)
    expect_made_again(whole.substr(0, length), "truncated", "truncated to " + std::to_string(length));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] ^= static_cast<char>(1 << at % 8);
    EXPECT_FALSE(decode_entry(flipped)) << at;
  }
  std::string flipped = whole;
  flipped.back() ^= 1;
  expect_made_again(flipped, "changed: its hash does not fit", "one bit flipped");
  std::string other_version = whole;
  other_version[8] = 99;
  expect_made_again(other_version, "of another version", "of another version");
  expect_made_again(std::string(1000, 'x'), "not a cache entry", "another file");

  // An entry of another architecture under this one's name, whole in itself.
  auto elsewhere = CacheKey("test", "artifact").with("architecture", 80);
  std::string stranger = encode_entry(elsewhere.hash(), elsewhere.title(), "another artifact");
  expect_made_again(stranger, "under another entry's name", "of another architecture");
}

TEST_F(CacheFaults, fault_19_a_folder_that_cannot_be_written_to) {
  ASSERT_EQ(ask("kept"), 0);
  auto other = CacheKey("test", "artifact").with("number", 2);
  auto reads_but_does_not_write = [&] {
    if (geteuid() == 0 && ::setuid(nobody) != 0) return 9;
    KernelCache cache(options());
    if (!cache.disk() || cache.disk()->folder().writable()) return 2;
    if (cache.get_or_make(key, [] { return Result<std::string>("other"); }).value().from != From::Disk) return 3;
    return *cache.get_or_make(other, [] { return Result<std::string>("made"); }).value().bytes == "made" ? 0 : 4;
  };
  if (geteuid() == 0) {  // root may write anywhere, so somebody else is asked
    for (const auto& each : {root, folder, files(".entry").at(0)}) ASSERT_EQ(::chown(each.c_str(), nobody, nobody), 0);
  }
  std::filesystem::permissions(folder, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(exit_code(in_child(reads_but_does_not_write)), 0);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  EXPECT_EQ(files(".entry").size(), 1u);
}

TEST_F(CacheFaults, fault_19_the_disk_full_in_mid_write) {
  testing::internal::CaptureStderr();
  int code = exit_code(in_child([&] {
    setenv("TRIREME_VERBOSE", "1", 1);
    rlimit small = {20000, 20000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    KernelCache cache(options());
    for (int k = 0; k < 3; ++k) {
      auto numbered = CacheKey("test", "").with("number", k);
      Result<Cached> got = cache.get_or_make(numbered, [] { return Result<std::string>(std::string(100000, 'x')); });
      if (!got || got->bytes->size() != 100000) return 1;
    }
    return 0;
  }));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trireme: compiled kernels are not kept on disk: " + folder.string() + ": File too large\n");
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(files(".tmp").empty());
  EXPECT_TRUE(files(".entry").empty());
}

// Where the signal of a limit on file sizes is ignored, nothing waits for it, and what asks for it fails with a reason
// of its own. Nor does a write that fails take away what was there.
TEST_F(CacheFaults, fault_42_the_reason_is_the_writes_own) {
  int code = exit_code(in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    KernelCache cache(options());
    if (!cache.put(key, "small")) return 1;
    rlimit small = {20000, 20000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    Status kept = cache.put(key, std::string(100000, 'x'));
    if (kept || kept.error().message != folder.string() + ": File too large") return 2;
    return cache.find(key) == "small" && KernelCache(options()).find(key) == "small" ? 0 : 3;
  }));
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(files(".tmp").empty());
}

TEST_F(CacheFaults, fault_42_what_is_not_kept_is_said) {
  KernelCache small({.folder = folder.string(), .disk = {.bytes = 1000}});
  EXPECT_TRUE(small.put(key, "bytes"));
  EXPECT_EQ(small.put(key, std::string(500, 'x')).error().message,
            folder.string() + ": 569 bytes are more than the 500 that an entry may have");
  EXPECT_EQ(KernelCache({.off_reason = "no home"}).put(key, "bytes").error().message, "no home");
}

// A file of a terabyte that takes no room: nobody reads it, and it is made again.
TEST_F(CacheFaults, fault_41_a_huge_entry) {
  KernelCache(options()).get_or_make(key, making("bytes")).value();
  const auto entry = files(".entry").at(0);
  std::filesystem::resize_file(entry, std::uintmax_t{1} << 40);
  KernelCache cache(options());
  EXPECT_EQ(cache.disk()->list().at(0).broken, "larger than any entry");
  EXPECT_EQ(cache.find(key), std::nullopt);
  Cached again = cache.get_or_make(key, making("bytes")).value();
  EXPECT_EQ(again.from, From::Made);
  EXPECT_EQ(times_made(), 2u);
  EXPECT_LT(std::filesystem::file_size(entry), 1000u);
  EXPECT_EQ(KernelCache(options()).get_or_make(key, making("bytes")).value().from, From::Disk);
}

// One that nobody asks for goes when the folder is next looked through, and takes no other with it.
TEST_F(CacheFaults, fault_41_a_huge_entry_pushes_out_no_others) {
  KernelCache(options()).get_or_make(key, making("bytes")).value();
  std::ofstream(folder / "00112233445566778899aabbccddeeff.entry") << "";
  std::filesystem::resize_file(folder / "00112233445566778899aabbccddeeff.entry", std::uintmax_t{1} << 40);
  KernelCache(options()).get_or_make(CacheKey("test", "").with("number", 2), making("other")).value();  // looks
  EXPECT_EQ(files(".entry").size(), 2u);
  EXPECT_EQ(KernelCache(options()).get_or_make(key, making("bytes")).value().from, From::Disk);
}

TEST_F(CacheFaults, fault_19_no_home) {
  testing::internal::CaptureStderr();
  int code = exit_code(in_child([&] {
    for (const char* name : {"TRIREME_CACHE", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
    setenv("TRIREME_VERBOSE", "1", 1);
    KernelCache cache(KernelCache::from_environment());
    bool made = *cache.get_or_make(key, [] { return Result<std::string>("bytes"); }).value().bytes == "bytes";
    return made && cache.get_or_make(key, making("other")).value().from == From::Memory && !cache.disk() ? 0 : 1;
  }));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trireme: compiled kernels are not kept on disk: HOME is not set; TRIREME_CACHE can name a folder\n");
  EXPECT_EQ(code, 0);
}

TEST_F(CacheFaults, fault_20_killed_while_holding_the_lock) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t maker = in_child([&] {
    return KernelCache(options()).get_or_make(key,
                                              [&]() -> Result<std::string> {
                                                (void)!::write(ready[1], "x", 1);
                                                for (;;) ::pause();
                                              })
               ? 0
               : 1;
  });
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  pid_t waiting = in_child([&] { return ask("bytes"); });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(times_made(), 0u);  // it does wait
  ::kill(maker, SIGKILL);
  exit_code(maker);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(exit_code(waiting), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);  // not the twenty of its patience
  EXPECT_EQ(times_made(), 1u);
}

// A child writes entry after entry and is killed somewhere; what is there afterwards is whole.
TEST_F(CacheFaults, fault_20_killed_while_writing) {
  for (int round = 0; round < 12; ++round) {
    pid_t writer = in_child([&] {
      auto disk = DiskCache::open(folder.string(), {}).value();
      for (int k = 0;; ++k) (void)disk->write(CacheKey("killed", "").with("number", k % 4), std::string(4 << 20, 'x'));
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + 5 * round % 17));
    ::kill(writer, SIGKILL);
    exit_code(writer);
    if (!std::filesystem::exists(folder)) continue;
    for (const DiskCache::Listed& each : DiskCache::open(folder.string(), {}).value()->list())
      EXPECT_EQ(each.broken, "") << each.file.name;
  }
  ASSERT_EQ(ask("bytes"), 0);
  EXPECT_TRUE(files(".tmp").empty());  // what the dead left is gone
}

TEST_F(CacheFaults, fault_20_only_the_dead_are_tidied_up_after) {
  ASSERT_EQ(ask("bytes"), 0);
  put(folder / "00112233445566778899aabbccddeeff.entry.1.0.tmp", "half an en");
  std::filesystem::path alive = folder / "ffeeddccbbaa99887766554433221100.entry.2.0.tmp";
  put(alive, "half an en");
  Descriptor writer(::open(alive.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX | LOCK_NB), 0);
  KernelCache(options()).get_or_make(CacheKey("test", "").with("number", 2), making("other")).value();
  EXPECT_EQ(files(".tmp"), std::vector{alive});
}

TEST_F(CacheFaults, fault_21_a_symbolic_link_is_refused) {
  std::filesystem::create_directory(root / "elsewhere");
  for (const char* target : {"elsewhere", "missing"}) {
    std::filesystem::remove(folder);
    std::filesystem::create_directory_symlink(root / target, folder);
    for (std::string path : {folder.string(), folder.string() + "/"}) {
      KernelCache cache({.folder = path});
      EXPECT_EQ(cache.disk(), nullptr);
      EXPECT_EQ(cache.off_reason(), folder.string() + " is a symbolic link; name the folder itself");
      EXPECT_EQ(*cache.get_or_make(key, making("bytes")).value().bytes, "bytes");
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(root / "elsewhere"));

  // Nor is an entry followed elsewhere.
  std::filesystem::remove(folder);
  ASSERT_EQ(ask("bytes"), 0);
  std::filesystem::path entry = files(".entry").at(0);
  std::filesystem::rename(entry, root / "elsewhere" / "entry");
  std::filesystem::create_symlink(root / "elsewhere" / "entry", entry);
  EXPECT_EQ(KernelCache(options()).get_or_make(key, making("again")).value().from, From::Made);
  EXPECT_FALSE(std::filesystem::is_symlink(entry));
}

TEST_F(CacheFaults, fault_21_a_folder_of_others_is_refused) {
  std::string strangers = "/";  // root's; for root itself, one that is given away
  uid_t owner = 0;
  if (geteuid() == 0) {
    std::filesystem::create_directory(folder);
    ASSERT_EQ(::chown(folder.c_str(), nobody, nobody), 0);
    strangers = folder.string();
    owner = nobody;
  }
  KernelCache cache({.folder = strangers});
  EXPECT_EQ(cache.disk(), nullptr);
  EXPECT_EQ(cache.off_reason(),
            strangers + " is owned by user " + std::to_string(owner) + ", not by user " + std::to_string(geteuid()));
  EXPECT_EQ(*cache.get_or_make(key, making("bytes")).value().bytes, "bytes");

  std::filesystem::path open_to_all = root / "open";
  std::filesystem::create_directory(open_to_all);
  std::filesystem::permissions(open_to_all, std::filesystem::perms::all);
  EXPECT_EQ(KernelCache({.folder = open_to_all.string()}).off_reason(),
            open_to_all.string() + " may be written to by others; chmod go-w it");

  put(root / "file", "");
  EXPECT_EQ(KernelCache({.folder = (root / "file").string()}).off_reason(),
            (root / "file").string() + ": Not a directory");
}

}  // namespace
}  // namespace trireme
