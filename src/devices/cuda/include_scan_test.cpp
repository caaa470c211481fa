// What a text may include, one rule a line. NVRTC's own answer to the same texts is compared in jit_includes_test.cpp.
#include "devices/cuda/include_scan.hpp"

#include <gtest/gtest.h>

namespace trireme::cuda {
namespace {

std::string names_in(std::string_view text) {
  std::string names;
  for (const IncludeScan::Name& each : scan_includes(text).names)
    names += (names.empty() ? "" : " ") + (each.quoted ? "\"" + each.text + "\"" : "<" + each.text + ">");
  return names;
}

std::string doubt_in(std::string_view text) {
  const IncludeScan scan = scan_includes(text);
  return unsure_of({&scan, 1});
}

TEST(IncludeScan, fault_39_DirectivesAreFound) {
  EXPECT_EQ(names_in("#include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in(" # include<a.h>\n\t#\tinclude\t\"b/c.h\" // and so on\n"), "<a.h> \"b/c.h\"");
  EXPECT_EQ(names_in("/* one */ # /* two\n */ include /* three */ \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("%:include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("#include_next <a.h>\n#import \"b.h\""), "<a.h> \"b.h\"");
  EXPECT_EQ(names_in("#inc\\\nlude \"a\\\r\n.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("#if 0\n#include \"a.h\"\n#endif"), "\"a.h\"");
  EXPECT_EQ(names_in("#include \"a\\b.h\""), "\"a\\b.h\"");
  EXPECT_EQ(names_in("\v\f#\v\finclude\f\"a.h\""), "\"a.h\"");
}

TEST(IncludeScan, fault_39_OtherTextIsNot) {
  EXPECT_EQ(names_in("// #include \"a.h\""), "");
  EXPECT_EQ(names_in("// one \\\n#include \"a.h\""), "");
  EXPECT_EQ(names_in("// one \\ \n#include \"a.h\""), "\"a.h\"");  // no splice for NVRTC
  EXPECT_EQ(names_in("/*\n#include \"a.h\"\n*/"), "");
  EXPECT_EQ(names_in("int x; #include \"a.h\""), "");
  EXPECT_EQ(names_in("#define X #include \"a.h\""), "");
  EXPECT_EQ(names_in("const char* s = R\"x(\n#include \"a.h\"\n)x\";"), "");
  EXPECT_EQ(names_in("a\r#include \"a.h\""), "");  // a carriage return alone ends no line
}

TEST(IncludeScan, fault_39_LiteralsHideNothing) {
  EXPECT_EQ(names_in("s = R\"(/*)\";\n#include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("s = u8R\"x()\"/*)x\";\n#include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("s = R\"x()x\\\n\" )x\";\n#include \"a.h\""), "\"a.h\"");  // splices are none in there
  EXPECT_EQ(names_in("s = FOOR\"(\";\n#include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("s = \"/*\";\n#include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("s = \"\\\"/*\";\n#include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("s = '\"'; t = '/*';\n#include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("n = 1'000; /* ' */\n#include \"a.h\""), "\"a.h\"");
  EXPECT_EQ(names_in("#if 0\ndon't /*\n#endif\n#include \"a.h\"\n// */"), "\"a.h\"");
  EXPECT_EQ(names_in("#if 0\nsay \" /*\n#endif\n#include \"a.h\"\n// */"), "\"a.h\"");
  EXPECT_EQ(names_in("#define S \"a\\\"b /* \"\n#include \"a.h\""), "\"a.h\"");
}

TEST(IncludeScan, fault_39_QuestionsAreIncludesToo) {
  EXPECT_EQ(names_in("#if __has_include(<a.h>) && __has_include( \"b.h\" )"), "<a.h> \"b.h\"");
  EXPECT_EQ(names_in("#if defined(__has_include)\n#elif __has_include(<a.h>)"), "<a.h>");
  EXPECT_EQ(doubt_in("#if defined(__has_include)\n#elif __has_include(<a.h>)"), "");
  EXPECT_EQ(doubt_in("#ifdef __has_include\n#endif"), "");
  const char* through = "#define HAS(x) __has_include(x)\n#define HAVE(x) (1 && HAS(x))\n";
  EXPECT_EQ(names_in(std::string(through) + "#if HAVE(<a.h>)"), "<a.h>");
  EXPECT_EQ(doubt_in(std::string(through) + "#if HAVE(<a.h>)"), "");
  EXPECT_EQ(doubt_in(std::string(through) + "#if HAVE(FILE)"), "it asks with HAVE for a file that a macro names");
  EXPECT_EQ(doubt_in(std::string(through) + "#if OTHER(FILE)"), "");
}

TEST(IncludeScan, fault_39_WhatCannotBeToldIsSaid) {
  EXPECT_EQ(doubt_in("#include \"a.h\"\nint x = __LINE__;"), "");
  EXPECT_EQ(doubt_in("#include NAME"), "it includes what a macro names");
  EXPECT_EQ(doubt_in("#include\n"), "");  // an error of the compiler's
  EXPECT_EQ(doubt_in("// #include NAME\ns = \"__DATE__\";"), "");
  EXPECT_EQ(doubt_in("#include \"a.h\n"), "the name of a file does not end");
  EXPECT_EQ(doubt_in("#if __has_include(NAME)"), "it asks with __has_include for a file that a macro names");
  EXPECT_EQ(doubt_in("#define ASK __has_include"), "it gives __has_include another name");
  EXPECT_EQ(doubt_in("#define ASK(x) __has_include(<sub/x>)"),
            "it asks with __has_include for a file that a macro names");
  EXPECT_EQ(doubt_in("#define ASK(x) __has_include(#x)"), "it asks with __has_include for a file that a macro names");
  EXPECT_EQ(doubt_in("const char* s = __TIME__;"), "it asks for the date (__TIME__)");
  EXPECT_EQ(doubt_in("// what?"
                     "?/\n#include \"a.h\""),
            "it has trigraphs, which count or not as the C++ version says");
  EXPECT_EQ(doubt_in("s = R\"x(never\n"), "a raw string does not end");
}

}  // namespace
}  // namespace trireme::cuda
