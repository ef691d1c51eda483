// Runs the official test suite of JSON Schema: every required test of both dialects, except those that need a
// document which is not part of the schema. Skipped where the suite is not installed; schema_test.cpp has a
// selection.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/json/schema.hpp"
#include "fairlead/json/view.hpp"

#ifndef FAIRLEAD_SHARED_DIR
#define FAIRLEAD_SHARED_DIR ""
#endif

namespace fairlead::json {
namespace {

// A group of tests whose schema refers to a document on the HTTP server of the suite, or to a dialect defined
// by such a document. compile() must reject the schema with an error that names the document. An empty
// `group` means all groups of the file.
struct Exempted {
  std::string_view file;
  std::string_view group;
};
constexpr std::array kNeedRemoteDocument = {
    Exempted{"draft2020-12/refRemote.json", ""},
    Exempted{"draft2020-12/vocabulary.json", ""},
    Exempted{"draft2020-12/dynamicRef.json", "strict-tree schema, guards against misspelled properties"},
    Exempted{"draft2020-12/dynamicRef.json", "tests for implementation dynamic anchor and reference link"},
    Exempted{"draft2020-12/dynamicRef.json",
             "$ref and $dynamicAnchor are independent of order - $defs first"},
    Exempted{"draft2020-12/dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first"},
    Exempted{"draft2020-12/dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor"},
    Exempted{"draft7/refRemote.json", ""},
};

bool is_exempted(std::string_view file, std::string_view group) {
  return std::ranges::any_of(kNeedRemoteDocument, [&](const Exempted& exempted) {
    return exempted.file == file && (exempted.group.empty() || exempted.group == group);
  });
}

std::filesystem::path suite() {
  const char* set = std::getenv("FAIRLEAD_SHARED");
  return std::filesystem::path(set != nullptr ? set : FAIRLEAD_SHARED_DIR) / "data" / "json-schema" / "tests";
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Score {
  int passed = 0;
  int failed = 0;
  int exempted = 0;
};

void run_group(const std::string& file, View group, SchemaDialect dialect, Score& score) {
  const std::string name = file + ": " + group["description"].as_string().value();
  const auto schema = Schema::compile(group["schema"].text(), {.dialect = dialect});
  if (is_exempted(file, group["description"].as_string().value())) {
    score.exempted += static_cast<int>(group["tests"].size());
    EXPECT_TRUE(!schema && schema.error().message().find("localhost:1234") != std::string::npos) << name;
    return;
  }
  if (!schema) {
    score.failed += static_cast<int>(group["tests"].size());
    ADD_FAILURE() << name << ": " << schema.error().message();
    return;
  }
  group["tests"].each_element([&](View test) {
    const auto violation = schema->validate(test["data"].text());
    const bool right = violation.has_value() != test["valid"].as_bool().value();
    ++(right ? score.passed : score.failed);
    EXPECT_TRUE(right) << name << ": " << test["description"].as_string().value() << ": "
                       << (violation ? violation->message : "accepted");
    const auto several = schema->violations(test["data"].text(), 100);
    EXPECT_EQ(several.empty(), !violation.has_value()) << name;
    EXPECT_EQ(several.empty() ? "" : several.front().message, violation ? violation->message : "") << name;
    return true;
  });
}

Score run_draft(const std::string& draft, SchemaDialect dialect) {
  Score score;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(suite() / draft)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const auto& path : files) {
    const std::string text = text_of(path);
    const std::string file = draft + "/" + path.filename().string();
    View(text).each_element([&](View group) { return run_group(file, group, dialect, score), true; });
  }
  return score;
}

void check_draft(const std::string& draft, SchemaDialect dialect, int at_least) {
  if (!std::filesystem::is_directory(suite() / draft)) GTEST_SKIP() << "no " << suite() / draft;
  const Score score = run_draft(draft, dialect);
  EXPECT_EQ(score.failed, 0);
  EXPECT_GE(score.passed, at_least);  // the suite was found and read
  std::cout << draft << ": " << score.passed << " passed, " << score.failed << " failed, " << score.exempted
            << " exempted\n";
}

TEST(SchemaSuiteTest, PassesDraft202012) {
  check_draft("draft2020-12", SchemaDialect::draft2020_12, 1200);
}

TEST(SchemaSuiteTest, PassesDraft7) {
  check_draft("draft7", SchemaDialect::draft7, 850);
}

}  // namespace
}  // namespace fairlead::json
