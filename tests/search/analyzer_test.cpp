#include "search/analyzer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "search/parameter_text.hpp"

namespace fairlead::search {
namespace {

class AnalyzerTest : public testing::Test {
 protected:
  std::vector<std::string> document(std::string_view text) const {
    std::vector<std::string> stems;
    analyzer_.each_document_stem(text, [&stems](std::string_view stem, StemKind kind) {
      if (kind != StemKind::filler) stems.emplace_back(stem);
    });
    return stems;
  }
  bool query_has(std::string_view text, std::string_view stem) const {
    const std::vector<QueryStem> stems = analyzer_.query_stems(text);
    return std::any_of(stems.begin(), stems.end(),
                       [&](const QueryStem& found) { return found.stem == stem; });
  }

  SqliteDatabase database_ = open_in_memory().value();
  Analyzer analyzer_ = Analyzer::create(database_.get()).value();
};

using Stems = std::vector<std::string>;

TEST_F(AnalyzerTest, IdentifiersAreSplitAndKeptWhole) {
  EXPECT_EQ(document("getUserName"), (Stems{"get", "user", "name", "getusernam"}));
  EXPECT_EQ(document("list_open-issues.v2"), (Stems{"list", "open", "issu", "v2"}));
  EXPECT_EQ(document("HTTPServer"), (Stems{"http", "server", "httpserver"}));
  EXPECT_EQ(document("URLs"), (Stems{"url"}));
}

TEST_F(AnalyzerTest, FillersAreMarked) {
  EXPECT_EQ(document("the contents of a file"), (Stems{"content", "file"}));
  Stems fillers;
  analyzer_.each_filler("say hello to the world",
                        [&fillers](std::string_view stem) { fillers.emplace_back(stem); });
  EXPECT_EQ(fillers, (Stems{"hello", "to", "the"}));
}

TEST_F(AnalyzerTest, DirectionsAreWords) {
  EXPECT_EQ(document("turn_off"), (Stems{"turn", "off"}));
  EXPECT_TRUE(query_has("log in", "login"));
  EXPECT_TRUE(analyzer_.is_weak("off"));
}

TEST_F(AnalyzerTest, UnspacedScriptsAreIndexedAsCharactersAndPairs) {
  EXPECT_EQ(document("天气x"), (Stems{"x", "天", "气", "天气"}));
  EXPECT_TRUE(query_has("北京天气", "天气"));
  EXPECT_FALSE(query_has("北京天气", "天"));
  EXPECT_TRUE(query_has("天", "天"));
}

TEST_F(AnalyzerTest, OtherScriptsAreFoldedToLowerCaseWithoutAccents) {
  EXPECT_EQ(document("Café ÜBER Поиск"), (Stems{"cafe", "uber", "поиск"}));
}

TEST_F(AnalyzerTest, AdjacentWordsAreAlsoSearchedForAsOne) {
  EXPECT_TRUE(query_has("git hub", "github"));
}

TEST_F(AnalyzerTest, SynonymsOfAWordAreOtherWords) {
  const std::vector<std::string>& synonyms = analyzer_.synonyms("remov");
  EXPECT_NE(std::find(synonyms.begin(), synonyms.end(), "delet"), synonyms.end());
  EXPECT_EQ(std::find(synonyms.begin(), synonyms.end(), "remov"), synonyms.end());
  EXPECT_TRUE(analyzer_.synonyms("unheard").empty());
}

TEST_F(AnalyzerTest, AnyBytesAreAnalyzed) {
  const std::string bytes("\xff\xfe\0\xc3(\x80 zip\0zap \xf0\x9f\x98\x80", 18);
  const std::vector<std::string> stems = document(bytes);
  EXPECT_NE(std::find(stems.begin(), stems.end(), "zip"), stems.end());
  EXPECT_TRUE(document(std::string(100'000, 'a')).empty());  // longer than any word
}

TEST(ParameterTextTest, ContainsNamesAndDescriptionsOfNestedParameters) {
  const json::Raw schema = *json::Raw::parse(
      R"({"properties":{"pa\u0074h":{"description":"where to look"},"filter":{"properties":{"author":{}}},)"
      R"("tags":{"items":{"properties":{"label":{"description":5}}}}}})");
  EXPECT_EQ(parameter_text(json::View(schema), 1000), "path where to look filter author tags label");
  EXPECT_EQ(parameter_text(json::View(schema), 9), "path wher");
}

TEST(ParameterTextTest, IsEmptyForValuesThatAreNoSchema) {
  for (const std::string_view text :
       {"", "null", "5", "[]", "true", R"({"properties":7})", R"({"items":{}})"})
    EXPECT_EQ(parameter_text(json::View(text), 1000), "") << text;
}

TEST(ParameterTextTest, StopsAtDeepNesting) {
  std::string schema = "{}";
  for (int i = 0; i < 200; ++i) schema = R"({"properties":{"p":)" + schema + "}}";
  EXPECT_LT(parameter_text(json::View(schema), 1000).size(), 20u);
}

}  // namespace
}  // namespace fairlead::search
