#include "support/environment.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "support/environment_for_test.hpp"

namespace trireme::environment {
namespace {

// What `read` says where the variable holds each of the values.
template <typename Read>
auto with(const char* name, std::optional<std::string> value, Read read) {
  trireme::Environment set(name, std::move(value));
  return read();
}

template <typename Read>
void refused(const char* name, std::initializer_list<const char*> values, Read read, const std::string& takes) {
  for (const char* each : values) {
    auto result = with(name, each, read);
    ASSERT_FALSE(result) << name << "=" << each;
    EXPECT_EQ(result.error().code, Code::InvalidArgument);
    EXPECT_EQ(result.error().message, std::string(name) + " is " + takes + ", not '" + each + "'");
    EXPECT_EQ(with(name, each, check).error().message, result.error().message);  // all settings in turn
  }
}

TEST(Settings, HiddenInstructionSetsAreWords) {
  using Names = std::vector<std::string>;
  auto names = [](std::optional<std::string> value) { return with("TRIREME_HIDE", value, hidden).value(); };
  EXPECT_EQ(names(std::nullopt), Names());
  EXPECT_EQ(names(""), Names());
  EXPECT_EQ(names("AVX512"), Names({"avx512"}));
  EXPECT_EQ(names("avx512_bf16, Avx2"), Names({"avx512_bf16", "avx2"}));
  refused("TRIREME_HIDE", {"avx512,", ",", "avx2;avx512", "a b"}, hidden, "a list of instruction sets, between commas");
}

TEST(Settings, fault_50_ThreadsAreANumber) {
  EXPECT_EQ(with("TRIREME_THREADS", std::nullopt, threads).value(), std::nullopt);
  EXPECT_EQ(with("TRIREME_THREADS", "", threads).value(), std::nullopt);
  EXPECT_EQ(with("TRIREME_THREADS", "4096", threads).value(), 4096);
  refused("TRIREME_THREADS", {"abc", "0", "-1", "4097", "2 ", " 2", "1e2", "99999999999999999999", "2x"}, threads,
          "a number from 1 to 4096");
}

TEST(Settings, fault_50_WordsCountInAnyCase) {
  for (const char* off : {"off", "OFF", "Off", "0", "no", "FALSE"}) {
    EXPECT_TRUE(with("TRIREME_CACHE", off, cache).value().off) << off;
    EXPECT_FALSE(with("TRIREME_VERBOSE", off, verbose).value()) << off;
    EXPECT_FALSE(with("TRIREME_PERF", off, perf_map).value()) << off;
  }
  for (const char* on : {"on", "1", "YES", "True"}) {
    CachePlace place = with("TRIREME_CACHE", on, cache).value();
    EXPECT_TRUE(!place.off && place.folder.empty()) << on;
    EXPECT_TRUE(with("TRIREME_VERBOSE", on, verbose).value()) << on;
  }
  EXPECT_TRUE(with("TRIREME_PERF", "Map", perf_map).value());
  EXPECT_EQ(with("TRIREME_ISA", "AVX2", isa).value(), "avx2");
  refused("TRIREME_VERBOSE", {"maybe", "2", "o n"}, verbose, "on or off");
  refused("TRIREME_PERF", {"on", "maps"}, perf_map, "map or off");
  refused("TRIREME_ISA", {"cpu:avx2", "avx 2", "avx2,"}, isa, "the name of an instruction set");
  refused("TRIREME_CACHE", {"none", "disabled", "Offf"}, cache, "a folder (with a slash: ./here), on or off");
}

TEST(Settings, fault_50_HomesInPaths) {
  trireme::Environment home("HOME", "/home/me");
  EXPECT_EQ(with("TRIREME_CACHE", "~/x", cache).value().folder, "/home/me/x");
  EXPECT_EQ(with("TRIREME_CACHE", "~", cache).value().folder, "/home/me");
  EXPECT_EQ(with("TRIREME_CACHE", "/a/~/x", cache).value().folder, "/a/~/x");
  EXPECT_EQ(with("TRIREME_CACHE", "./here", cache).value().folder, "./here");
  EXPECT_EQ(with("TRIREME_NVRTC", "~/lib/libnvrtc.so", nvrtc).value(), "/home/me/lib/libnvrtc.so");
  EXPECT_EQ(with("TRIREME_WASMTIME", "libwasmtime.so", wasmtime).value(), "libwasmtime.so");
  const char* takes = "a path, and of its beginnings with ~ only ~/, the home of the caller, is understood";
  refused("TRIREME_NVRTC", {"~you/x", "~x"}, nvrtc, takes);
  refused("TRIREME_WASMTIME", {"~you/x", "~x"}, wasmtime, takes);
  trireme::Environment none("HOME", std::nullopt);
  refused("TRIREME_CACHE", {"~/x"}, cache, "a path, and HOME, which ~ stands for, is not set");
}

TEST(Settings, EachIsDocumented) {
  std::ifstream file(TRIREME_SOURCE_DIR "/docs/plans.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  for (const Setting& each : settings())
    EXPECT_NE(page.find("`" + std::string(each.name) + "="), std::string::npos) << each.name;
}

}  // namespace
}  // namespace trireme::environment
