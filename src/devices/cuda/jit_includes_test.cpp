// Kernels of the cache are never stale: NVRTC itself compiles each text before and after a header changes, and the
// cache must give what NVRTC gives.
#include "devices/cuda/jit_includes.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "devices/cuda/fake_driver_for_test.hpp"
#include "devices/cuda/jit_kernel.hpp"

namespace trireme::cuda {
namespace {

namespace fs = std::filesystem;

class JitIncludes : public FakeDriver {
 protected:
  void SetUp() override {
    if (Result<const Nvrtc*> there = Nvrtc::open(""); !there) GTEST_SKIP() << there.error().message;
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  // The source stands in src/, and -I names inc/ and more/.
  JitRequest request(const std::string& text, std::vector<std::string> flags = {}) {
    for (const char* each : {"inc", "more"}) flags.insert(flags.begin(), "-I" + (folder / each).string());
    std::swap(flags[0], flags[1]);
    return {text + "\nextern \"C\" __global__ void k(int* p) { *p = VALUE; }\n",
            "k",
            "compute_80",
            {.flags = std::move(flags), .file = (folder / "src/kernel.cu").string()}};
  }
  // The number that the kernel stores.
  static std::string value(const jit::Compiled& compiled) {
    const std::size_t move = compiled.ptx.find("mov."), comma = compiled.ptx.find(", ", compiled.ptx.find("%r1", move));
    return compiled.ptx.substr(comma + 2, compiled.ptx.find(';', comma) - comma - 2);
  }
  std::string cached(const JitRequest& asked) {
    Result<jit::Compiled> compiled = compile_in(kept, asked);
    return compiled ? value(*compiled) : compiled.error().message;
  }
  static std::string define(int number) { return "#undef VALUE\n#define VALUE " + std::to_string(number) + "\n"; }

  KernelCache kept{{.folder = (folder / "cache").string()}};
};

TEST_F(JitIncludes, fault_39_NothingIsStale) {
  struct Case {
    const char* text;
    const char* header;  // what changes
    std::vector<std::string> flags = {};
    bool is_kept = true;
  };
  const Case cases[] = {
      {"#include \"x.h\"", "src/x.h"},
      {"#include \"x.h\"", "inc/x.h"},
      {"#include <x.h>", "inc/x.h"},
      {"#include <x.h>", "more/x.h"},
      {"#include \"../other/x.h\"", "other/x.h"},
      {"/* one */ # /* two */ include /* three */ \"x.h\"", "src/x.h"},
      {"#inc\\\nlude \"x\\\n.h\"", "src/x.h"},
      {"%:include \"x.h\"", "src/x.h"},
      {"#define S R\"(/*)\"\n#include \"x.h\"\n//*/", "src/x.h"},
      {"#if 0\ndon't /*\n#endif\n#include \"x.h\"\n// */", "src/x.h"},
      {"", "inc/x.h", {"-include=x.h"}},
      {"", "inc/x.h", {"--pre-include", "x.h"}},
      {"", "inc/x.h", {" -include", " x.h"}},
      {"#define FILE \"x.h\"\n#include FILE", "src/x.h", {}, false},
      {"#define FILE <x.h>\n#if __has_include(FILE)\n#include FILE\n#endif", "inc/x.h", {}, false},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(std::string(each.text) + " of " + each.header);
    for (const char* part : {"src", "inc", "more", "other", "cache"}) fs::remove_all(folder / part);
    fs::create_directories(folder / "src");
    KernelCache disk({.folder = (folder / "cache").string()});
    const JitRequest asked = request(each.text, each.flags);
    auto compiled = [&] { return compile_in(disk, asked).value(); };
    write(each.header, define(11));
    EXPECT_EQ(value(compiled()), "11");
    EXPECT_EQ(compiled().from_cache, each.is_kept);
    EXPECT_EQ(compiled().not_kept.empty(), each.is_kept);
    write(each.header, define(22));
    EXPECT_EQ(value(compiled()), "22");
    EXPECT_EQ(compiled().from_cache, each.is_kept);
    write(each.header, define(11));
    EXPECT_EQ(value(compiled()), "11");
  }
}

// A file of the same name in another place: NVRTC does not look beside the source for <x.h>, and so neither do we.
TEST_F(JitIncludes, fault_39_FilesThatNvrtcDoesNotReadDoNotCount) {
  write("inc/x.h", define(1));
  write("src/x.h", define(2));
  const JitRequest angled = request("#include <x.h>"), quoted = request("#include \"x.h\"");
  EXPECT_EQ(cached(angled), "1");
  EXPECT_EQ(cached(quoted), "2");
  write("src/x.h", define(3));
  EXPECT_TRUE(compile_in(kept, angled).value().from_cache);
  EXPECT_EQ(cached(angled), "1");
  EXPECT_EQ(cached(quoted), "3");
  write("inc/x.h", define(4));
  EXPECT_EQ(cached(angled), "4");
}

TEST_F(JitIncludes, fault_39_FilesThatComeAndGo) {
  write("more/x.h", define(1));
  const JitRequest including = request("#include <x.h>");
  EXPECT_EQ(cached(including), "1");
  write("inc/x.h", define(2));  // comes before
  EXPECT_EQ(cached(including), "2");
  const JitRequest asking = request("#if __has_include(<y.h>)\n#define VALUE 5\n#else\n#define VALUE 6\n#endif");
  EXPECT_EQ(cached(asking), "6");
  write("inc/y.h", "");
  EXPECT_EQ(cached(asking), "5");
  fs::remove(folder / "inc/y.h");
  EXPECT_EQ(cached(asking), "6");
  const JitRequest through =
      request("#define HAS(x) __has_include(x)\n#if HAS(<y.h>)\n#define VALUE 7\n#else\n#define VALUE 8\n#endif");
  EXPECT_EQ(cached(through), "8");
  write("inc/y.h", "");
  EXPECT_EQ(cached(through), "7");
  EXPECT_TRUE(compile_in(kept, through).value().from_cache);
}

TEST_F(JitIncludes, fault_39_IncludesOfIncludes) {
  write("inc/a.h", "#include \"b.h\"\n");
  write("inc/b.h", "#include <deep/c.h>\n");
  write("more/deep/c.h", "#pragma once\n#include \"../deep/c.h\"\n" + define(1));
  const JitRequest asked = request("#include <a.h>");
  EXPECT_EQ(cached(asked), "1");
  write("more/deep/c.h", "#pragma once\n#include \"../deep/c.h\"\n" + define(2));
  EXPECT_EQ(cached(asked), "2");
  JitRequest with_text = request("#include \"given.h\"");
  with_text.options.headers.push_back({"given.h", "#include <deep/c.h>\n"});
  EXPECT_EQ(cached(with_text), "2");
  write("more/deep/c.h", define(3));
  EXPECT_EQ(cached(with_text), "3");
}

TEST_F(JitIncludes, fault_39_OnlyRegularFilesAreRead) {
  fs::create_directories(folder / "src");
  ASSERT_EQ(::mkfifo((folder / "src/x.h").c_str(), 0600), 0);
  EXPECT_EQ(cached(request("#include \"x.h\"")),
            "'" + (folder / "src/x.h").string() + "', which is included, is not a regular file");
  // A folder of that name is passed over, as NVRTC does.
  fs::create_directories(folder / "inc/y.h");
  write("more/y.h", define(9));
  EXPECT_EQ(cached(request("#include <y.h>")), "9");
}

TEST_F(JitIncludes, fault_39_FlagsThatReadFilesAreNotTrusted) {
  auto why = [](std::vector<std::string> flags) { return included_by("", {.flags = std::move(flags)}).value().unsure; };
  EXPECT_EQ(why({"-DX=1", "-D", "Y", "--use_fast_math", "-std=c++17", "--maxrregcount=32", "-I", "/a", "-lineinfo"}),
            "");
  EXPECT_EQ(why({"--use-pch=x.pch"}), "what --use-pch reads is not known");
  EXPECT_EQ(why({"--something-new"}), "what --something-new reads is not known");
  EXPECT_EQ(why({"-std=c++03"}), "C++03 reads its text otherwise");
}

// Files that change while the compiler reads them: what it made of them is not kept under the old ones' key.
TEST_F(JitIncludes, fault_39_FilesThatChangeMeanwhile) {
  write("inc/x.h", define(1));
  const JitRequest asked = request("#include <x.h>");
  const Nvrtc& nvrtc = *Nvrtc::open("").value();
  int made = 0;
  JitArtifact artifact = artifact_of(nvrtc, asked, [&](const CacheKey& key, const KernelCache::Make& make) {
                           if (++made == 1) write("inc/x.h", define(2));
                           return kept.get_or_make(key, make);
                         }).value();
  EXPECT_EQ(made, 2);
  EXPECT_EQ(value(read_artifact(*artifact.bytes).value()), "2");
  EXPECT_EQ(kept.disk()->list().size(), 1u);
  write("inc/x.h", define(1));
  EXPECT_EQ(cached(asked), "1");
}

TEST_F(JitIncludes, fault_39_WhatIsNotKeptIsLoadedAnew) {
  std::string library = fake("");
  ASSERT_NE(library, "") << "no C compiler to build the fake driver";
  auto driver = Driver::load(library.c_str(), kept).value();
  const Device& device = *driver->device(0).value();
  write("src/x.h", define(1));
  JitRequest asked = request("#define FILE \"x.h\"\n#include FILE");
  for (int k = 0; k < 2; ++k) {
    jit::Kernel kernel = kernel_from_source(device, asked.source, "k", asked.options).value();
    EXPECT_NE(kernel.describe().find("compiled now"), std::string::npos) << kernel.describe();
  }
}

}  // namespace
}  // namespace trireme::cuda
