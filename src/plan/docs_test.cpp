// The documents that programs and tables can check: docs/operators.md is generated, so is the table of functions in
// docs/language.md, and every ```row example there parses. BLESS=1 test_plan rewrites what is generated.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "language/parse.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"
#include "plan/operators_page.hpp"

namespace trireme {
namespace {

const std::string docs = std::string(TRIREME_SOURCE_DIR) + "/docs/";

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void compare(const std::string& file, const std::string& wanted) {
  if (std::getenv("BLESS")) std::ofstream(docs + file) << wanted;
  EXPECT_EQ(text_of(docs + file), wanted) << "BLESS=1 test_plan rewrites docs/" << file;
}

// The text between lines of ```KIND and ```.
std::vector<std::string> blocks(const std::string& text, const std::string& kind) {
  std::vector<std::string> found;
  const std::string opening = "```" + kind + "\n";
  for (std::size_t at = text.find(opening); at != text.npos; at = text.find(opening, at)) {
    at += opening.size();
    std::size_t end = text.find("```", at);
    found.push_back(text.substr(at, end - at));
  }
  return found;
}

TEST(Docs, list_the_operators) {
  Result<std::string> page = operators_markdown();
  ASSERT_TRUE(page) << page.error().message;
  compare("operators.md", *page);
}

TEST(Docs, list_functions_and_reductions) {
  std::string text = text_of(docs + "language.md");
  auto fill = [&](const std::string& first, const std::string& last, const std::string& table) {
    std::size_t from = text.find(first), to = text.find(last);
    ASSERT_TRUE(from != text.npos && to != text.npos) << first;
    from += first.size();
    text = text.substr(0, from) + table + text.substr(to);
  };
  fill("<!-- generated: functions -->\n", "<!-- end -->\n", function_table_markdown());
  fill("<!-- generated: reductions -->\n", "<!-- end of reductions -->\n", reduction_table_markdown());
  compare("language.md", text);
}

// What is measured anew takes the place of what was: the page is read, not searched.
TEST(Docs, performance_is_a_short_page) {
  const std::string text = text_of(docs + "performance.md");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 250);
}

TEST(Docs, have_examples_that_parse) {
  for (const char* file : {"language.md", "numerics.md"})
    for (const std::string& example : blocks(text_of(docs + file), "row")) {
      Result<Program> program = parse(example);
      EXPECT_TRUE(program) << file << ":\n" << example << program.error().message;
    }
  EXPECT_GE(blocks(text_of(docs + "language.md"), "row").size(), 10u);
}

// ```error blocks: a program, a line of dashes, what the parser says.
TEST(Docs, have_errors_that_occur) {
  std::vector<std::string> examples = blocks(text_of(docs + "language.md"), "error");
  EXPECT_GE(examples.size(), 2u);
  for (const std::string& example : examples) {
    std::size_t line = example.find("----\n");
    ASSERT_NE(line, example.npos) << example;
    Result<Program> program = parse(example.substr(0, line));
    ASSERT_FALSE(program) << example;
    EXPECT_EQ(program.error().message + "\n", example.substr(line + 5));
  }
}

}  // namespace
}  // namespace trireme
