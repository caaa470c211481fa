// The cache on good days; cache_faults_test.cpp has the others.
#include "devices/cache/kernel_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "devices/cache/test_folder.hpp"

namespace trireme {
namespace {

using From = Cached::From;

TEST(CacheKey, EveryPartCountsAndTheTitleDoesNot) {
  auto base = CacheKey("cubin", "a").with("text", "ptx").with("architecture", 90);
  EXPECT_EQ(base.hash(), CacheKey("cubin", "b").with("text", "ptx").with("architecture", 90).hash());
  EXPECT_NE(base.hash(), CacheKey("other", "a").with("text", "ptx").with("architecture", 90).hash());
  EXPECT_NE(base.hash(), CacheKey("cubin", "a").with("text", "ptx").with("architecture", 80).hash());
  EXPECT_NE(base.hash(), CacheKey("cubin", "a").with("text", "ptx").with("driver", 90).hash());
  EXPECT_NE(base.hash(), CacheKey("cubin", "a").with("text", "ptx").hash());
  EXPECT_NE(CacheKey("cubin", "").with("a", "bc").hash(), CacheKey("cubin", "").with("ab", "c").hash());
}

TEST(CacheEntry, ComesBackAsItWas) {
  Hash128 key = CacheKey("k", "").hash();
  std::string artifact("\0\1binary\xff", 9);
  CacheEntry entry = decode_entry(encode_entry(key, "a title", artifact)).value();
  EXPECT_EQ(entry.key, key);
  EXPECT_EQ(entry.title, "a title");
  EXPECT_EQ(entry.artifact, artifact);
  EXPECT_EQ(decode_entry(encode_entry(key, "", "")).value().artifact, "");
}

TEST_F(CacheTest, MadeOnceThenFromMemoryThenFromDisk) {
  KernelCache first(options());
  EXPECT_EQ(first.off_reason(), "");
  Cached made = first.get_or_make(key, making("bytes")).value();
  EXPECT_EQ(made.from, From::Made);
  EXPECT_EQ(*made.bytes, "bytes");
  EXPECT_EQ(first.get_or_make(key, making("other")).value().from, From::Memory);
  Cached read = KernelCache(options()).get_or_make(key, making("other")).value();
  EXPECT_EQ(read.from, From::Disk);
  EXPECT_EQ(*read.bytes, "bytes");
  EXPECT_EQ(times_made(), 1u);

  auto other = CacheKey("test", "artifact").with("number", 2);
  EXPECT_EQ(*first.get_or_make(other, making("second")).value().bytes, "second");
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(files(".tmp").empty());

  first.forget(key);
  EXPECT_EQ(*first.get_or_make(key, making("again")).value().bytes, "again");
}

TEST_F(CacheTest, LookingMakesNothing) {
  KernelCache cache(options());
  std::size_t before = files("").size();
  EXPECT_FALSE(cache.find(key));
  EXPECT_EQ(files("").size(), before);  // no lock, no entry
  cache.get_or_make(key, making("bytes")).value();
  EXPECT_EQ(cache.find(key), "bytes");
  EXPECT_EQ(KernelCache(options()).find(key), "bytes");  // another process's
  EXPECT_EQ(times_made(), 1u);
  cache.forget(key);
  EXPECT_FALSE(cache.find(key));
}

TEST_F(CacheTest, AnErrorIsNotKept) {
  KernelCache cache(options());
  auto refused = cache.get_or_make(key, []() -> Result<std::string> { return Error{Code::Driver, "no"}; });
  EXPECT_EQ(refused.error().message, "no");
  EXPECT_THROW((void)cache.get_or_make(key, []() -> Result<std::string> { throw std::runtime_error("thrown"); }),
               std::runtime_error);
  EXPECT_EQ(*cache.get_or_make(key, making("bytes")).value().bytes, "bytes");
}

TEST_F(CacheTest, ThreadsThatAskAtOnceMakeOnce) {
  for (bool disk : {true, false}) {
    KernelCache cache(disk ? options() : KernelCache::Options{});
    std::atomic<int> made = 0, right = 0;
    std::vector<std::thread> threads;
    for (int k = 0; k < 32; ++k)
      threads.emplace_back([&] {
        Result<Cached> got = cache.get_or_make(key, [&]() -> Result<std::string> {
          ++made;
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
          return std::string("bytes");
        });
        right += got && *got->bytes == "bytes";
      });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(made, 1);
    EXPECT_EQ(right, 32);
  }
}

TEST_F(CacheTest, MemoryIsBounded) {
  KernelCache cache({.memory_bytes = 1000});
  auto numbered = [](int k) { return CacheKey("test", "").with("number", k); };
  for (int k = 0; k < 10; ++k) {
    (void)cache.get_or_make(numbered(k), making(std::string(300, 'x')));
    (void)cache.get_or_make(numbered(0), making("used again and again"));
  }
  EXPECT_EQ(cache.get_or_make(numbered(0), making("")).value().from, From::Memory);
  EXPECT_EQ(cache.get_or_make(numbered(9), making("")).value().from, From::Memory);
  EXPECT_EQ(cache.get_or_make(numbered(1), making("")).value().from, From::Made);
}

TEST_F(CacheTest, TheDiskIsBoundedAndWhatWasUsedLastStays) {
  for (DiskLimits limits : {DiskLimits{.entries = 16}, DiskLimits{.bytes = 16 * 1100}}) {
    std::filesystem::remove_all(folder);
    auto disk = DiskCache::open(folder.string(), limits).value();
    auto numbered = [](int k) { return CacheKey("test", "").with("number", k); };
    for (int k = 0; k < 60; ++k) {
      ASSERT_TRUE(disk->write(numbered(k), std::string(1000, 'x')));
      // The system's clock may stand still for milliseconds; later files are later here.
      timespec when[2] = {{1'000'000 + k, 0}, {1'000'000 + k, 0}};
      ::utimensat(AT_FDCWD, (folder / (hex(numbered(k).hash()) + ".entry")).c_str(), when, 0);
      EXPECT_TRUE(disk->read(numbered(0))) << k;  // reading makes it the last used
    }
    EXPECT_LE(disk->list().size(), 18u);
    EXPECT_GE(disk->list().size(), 13u);
    EXPECT_TRUE(disk->read(numbered(59)));
    EXPECT_FALSE(disk->read(numbered(1)));
    // Larger than all: kept only where that fits.
    EXPECT_EQ(disk->write(numbered(60), std::string(1 << 20, 'x')).has_value(), limits.bytes > 2 << 20);
    EXPECT_TRUE(disk->read(numbered(0)));
  }
}

TEST_F(CacheTest, ListsVerifiesAndClears) {
  KernelCache cache(options());
  (void)cache.get_or_make(key, making("bytes"));
  put(folder / "notes.txt", "somebody's");
  ASSERT_EQ(cache.disk()->list().size(), 1u);
  EXPECT_EQ(cache.disk()->list()[0].title, "test artifact");
  EXPECT_EQ(cache.disk()->list()[0].broken, "");
  put(files(".entry")[0], "bytes");
  EXPECT_EQ(cache.disk()->list()[0].broken, "truncated");
  EXPECT_EQ(cache.disk()->clear(), 1);
  EXPECT_EQ(cache.disk()->list().size(), 0u);
  EXPECT_EQ(content(folder / "notes.txt"), "somebody's");
}

TEST_F(CacheTest, fault_50_TheEnvironmentNamesTheFolder) {
  struct Case {
    const char *cache, *xdg, *home;
    std::string folder, off;
  };
  const Case cases[] = {
      {"/a/b", "/xdg", "/home/me", "/a/b", ""},
      {"off", "/xdg", "/home/me", "", "TRIREME_CACHE=off"},
      {"OFF", "/xdg", "/home/me", "", "TRIREME_CACHE=OFF"},
      {"~/x", "/xdg", "/home/me", "/home/me/x", ""},
      {"on", "/xdg", "/home/me", "/xdg/trireme", ""},
      {"none", "/xdg", "/home/me", "", "TRIREME_CACHE is a folder (with a slash: ./here), on or off, not 'none'"},
      {"", "/xdg", "/home/me", "/xdg/trireme", ""},
      {nullptr, "relative", "/home/me", "/home/me/.cache/trireme", ""},
      {nullptr, nullptr, nullptr, "", "HOME is not set; TRIREME_CACHE can name a folder"}};
  for (const Case& each : cases) {
    int code = exit_code(in_child([&] {
      auto set = [](const char* name, const char* value) { value ? setenv(name, value, 1) : unsetenv(name); };
      set("TRIREME_CACHE", each.cache), set("XDG_CACHE_HOME", each.xdg), set("HOME", each.home);
      KernelCache::Options got = KernelCache::from_environment();
      return got.folder == each.folder && got.off_reason == each.off ? 0 : 1;
    }));
    EXPECT_EQ(code, 0) << each.folder << each.off;
  }
}

}  // namespace
}  // namespace trireme
