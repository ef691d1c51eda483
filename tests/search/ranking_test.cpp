#include "search/ranking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <random>

namespace fairlead::search {
namespace {

class RankingTest : public testing::Test {
 protected:
  void put(DocumentNumber number, std::string name, std::string description = "") {
    Document document;
    document.number = number;
    document.text.name = std::move(name);
    document.text.description = std::move(description);
    ASSERT_TRUE(store_->put(std::span(&document, 1)));
  }
  void remove(DocumentNumber number) { ASSERT_TRUE(store_->remove(std::span(&number, 1))); }
  Hits search(std::string text, std::shared_ptr<const DocumentSet> visible = nullptr, std::size_t limit = 10,
              std::size_t offset = 0) {
    Query query;
    query.text = std::move(text);
    query.visible = std::move(visible);
    query.limit = limit;
    query.offset = offset;
    Result<Hits> hits = ranking_.search(query);
    EXPECT_TRUE(hits) << hits.error().message();
    return hits ? *hits : Hits();
  }
  std::vector<DocumentNumber> numbers(const Hits& hits) {
    std::vector<DocumentNumber> found;
    for (const Hit& hit : hits.hits) found.push_back(hit.number);
    return found;
  }
  static std::shared_ptr<DocumentSet> set_of(std::initializer_list<DocumentNumber> numbers) {
    auto set = std::make_shared<DocumentSet>();
    for (const DocumentNumber number : numbers) set->insert(number);
    return set;
  }

  std::unique_ptr<DocumentStore> store_ = DocumentStore::create().value();
  Ranking ranking_{*store_};
};

using Numbers = std::vector<DocumentNumber>;

TEST_F(RankingTest, BestMatchIsFirst) {
  put(0, "read_file", "Returns the contents of a file.");
  put(1, "send_mail", "Sends a message.");
  put(2, "list_files", "Lists the files of a directory.");
  const Hits hits = search("read a file");
  ASSERT_FALSE(hits.hits.empty());
  EXPECT_EQ(hits.hits.front().number, 0u);
  EXPECT_GT(hits.hits.front().score, hits.hits.back().score);
}

TEST_F(RankingTest, SynonymsAndBeginningsOfWordsAreFound) {
  put(7, "delete_directory");
  put(9, "kubernetes_status");
  EXPECT_EQ(numbers(search("remove folder")), Numbers{7});
  EXPECT_EQ(numbers(search("kube")), Numbers{9});
}

TEST_F(RankingTest, DirectionsDistinguishTools) {
  put(0, "turn_on", "Turns on a device.");
  put(1, "turn_off", "Turns off a device.");
  EXPECT_EQ(numbers(search("turn off")), (Numbers{1, 0}));
  EXPECT_EQ(numbers(search("turn on")), (Numbers{0, 1}));
}

TEST_F(RankingTest, NameOfFillersIsFoundByAQueryWithoutOtherMatches) {
  put(0, "hello");
  put(1, "who_am_i", "Returns the name of the user.");
  put(2, "read_the_file", "Reads a file: you say where.");
  EXPECT_EQ(numbers(search("hello")), Numbers{0});
  EXPECT_EQ(numbers(search("greet hello")), Numbers{0});
  EXPECT_EQ(numbers(search("who am I")), Numbers{1});
  EXPECT_EQ(numbers(search("who am I", set_of({0, 2}))), Numbers());
  EXPECT_EQ(numbers(search("where")), Numbers());  // not part of a name
  EXPECT_EQ(numbers(search("hello file")), Numbers{2});
}

TEST_F(RankingTest, WeakSynonymCountsLessThanTheWeakWordItself) {
  put(0, "read");
  put(1, "get");
  const Hits by_synonym = search("read", set_of({1}));
  const Hits by_word = search("get", set_of({1}));
  ASSERT_EQ(numbers(by_synonym), Numbers{1});
  ASSERT_EQ(numbers(by_word), Numbers{1});
  EXPECT_LT(by_synonym.hits[0].score, by_word.hits[0].score);
}

TEST_F(RankingTest, RareSynonymDoesNotOutweighACommonWordOfTheQuery) {
  for (DocumentNumber i = 0; i < 8; ++i) put(i, "delete");
  put(8, "erase");
  put(9, "alpha");
  const Hits hits = search("delete");
  ASSERT_EQ(hits.hits.size(), 9u);
  EXPECT_EQ(hits.hits.back().number, 8u);
}

TEST_F(RankingTest, CharacterPairsDoNotLengthenADocument) {
  put(0, "alpha", "天气预报");
  put(1, "alpha", "red blue green gray");
  const Hits hits = search("alpha");
  ASSERT_EQ(hits.hits.size(), 2u);
  EXPECT_DOUBLE_EQ(hits.hits[0].score, hits.hits[1].score);
}

TEST_F(RankingTest, ReplacedTextIsNoLongerFound) {
  put(3, "alpha");
  put(3, "beta");
  EXPECT_TRUE(search("alpha").hits.empty());
  EXPECT_EQ(numbers(search("beta")), Numbers{3});
  EXPECT_EQ(store_->document_count(), 1u);
}

TEST_F(RankingTest, RemovedDocumentIsNoLongerFound) {
  put(0, "alpha");
  put(1, "alpha");
  remove(0);
  remove(0);
  remove(1'000'000);
  EXPECT_EQ(numbers(search("alpha")), Numbers{1});
  remove(1);
  EXPECT_TRUE(search("alpha").hits.empty());
  EXPECT_EQ(store_->total_length(), 0u);
}

TEST_F(RankingTest, WordsOfRemovedDocumentsAreForgotten) {
  for (int i = 0; i < 1000; ++i) put(0, "word" + std::to_string(i));
  EXPECT_LE(store_->vocabulary().number_bound(), 4u);
}

TEST_F(RankingTest, LastOfTwoDocumentsWithTheSameNumberCounts) {
  std::vector<Document> documents(2);
  documents[0].text.name = "alpha";
  documents[1].text.name = "beta";
  ASSERT_TRUE(store_->put(documents));
  EXPECT_TRUE(search("alpha").hits.empty());
  EXPECT_EQ(numbers(search("beta")), Numbers{0});
}

TEST_F(RankingTest, PagesContinueWhereTheyEnded) {
  for (DocumentNumber i = 0; i < 25; ++i) put(i, "alpha");
  const Hits first = search("alpha", nullptr, 10, 0);
  const Hits last = search("alpha", nullptr, 10, 20);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(first.hits.front().number, 0u);
  EXPECT_FALSE(last.more);
  EXPECT_EQ(last.hits.size(), 5u);
  EXPECT_TRUE(search("alpha", nullptr, 10, 1000).hits.empty());
}

TEST_F(RankingTest, HiddenDocumentsTakeNoPlaceAmongTheHits) {
  for (DocumentNumber i = 0; i < 100; ++i) put(i, "alpha");
  const Hits hits = search("alpha", set_of({5, 50, 99}), 3);
  EXPECT_EQ(numbers(hits), (Numbers{5, 50, 99}));
  EXPECT_FALSE(hits.more);
}

TEST_F(RankingTest, ScoresDoNotDependOnHiddenDocuments) {
  put(0, "alpha beta", "one");
  put(1, "alpha gamma", "two words");
  const auto visible = set_of({0, 1});
  const Hits before = search("alpha beta", visible);
  for (DocumentNumber i = 2; i < 50; ++i) put(i, "beta alpha beta", "a hidden text about beta");
  const Hits after = search("alpha beta", visible);
  ASSERT_EQ(numbers(after), numbers(before));
  for (std::size_t i = 0; i < before.hits.size(); ++i)
    EXPECT_DOUBLE_EQ(after.hits[i].score, before.hits[i].score);
}

// Compares the time of queries with and without a visible set, which need not be accurate: they differ by two
// orders of magnitude.
TEST_F(RankingTest, HiddenDocumentsDoNotSlowDownAQuery) {
  std::vector<Document> documents(5'000);
  for (DocumentNumber i = 0; i < documents.size(); ++i) {
    documents[i].number = i;
    documents[i].text.name = "alpha beta gamma delta";
  }
  ASSERT_TRUE(store_->put(documents));
  const auto visible = set_of({7, 77, 777});
  const auto time_of = [this](const std::shared_ptr<const DocumentSet>& set) {
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 10; ++i) {
      const std::clock_t begin = std::clock();
      search("alpha beta gamma delta", set);
      least = std::min(least, std::clock() - begin);
    }
    return least;
  };
  EXPECT_EQ(numbers(search("alpha", visible)), (Numbers{7, 77, 777}));
  EXPECT_LT(time_of(visible), time_of(nullptr) / 5);
}

TEST_F(RankingTest, HiddenWordsDoNotStopACompletion) {
  put(0, "kubernetes");
  put(1, "kube");  // hidden
  EXPECT_EQ(numbers(search("kube", set_of({0}))), Numbers{0});
}

TEST_F(RankingTest, NothingIsFoundInAnEmptyIndexOrForAnEmptyQuery) {
  EXPECT_TRUE(search("alpha").hits.empty());
  put(0, "alpha");
  for (const char* const text : {"", " ", "?!", "the of and"}) EXPECT_TRUE(search(text).hits.empty()) << text;
  EXPECT_TRUE(search("alpha", set_of({})).hits.empty());
}

TEST_F(RankingTest, QuerySyntaxOfSqlAndFtsHasNoMeaning) {
  put(0, "alpha");
  for (const char* const text : {"alpha\"", "alpha' OR 1=1 --", "NEAR(alpha", "alpha AND", "NOT alpha",
                                 "alpha*", "stems:alpha", "-alpha", "^alpha", "(alpha", "{stems}: alpha",
                                 "alpha + ", "postings MATCH alpha; DROP TABLE postings"})
    EXPECT_EQ(numbers(search(text)), Numbers{0}) << text;
}

TEST_F(RankingTest, RandomBytesAreSearchedForWithoutAnError) {
  std::mt19937 random(1);
  for (DocumentNumber i = 0; i < 50; ++i) {
    std::string text(200, ' ');
    for (char& c : text) c = static_cast<char>(random());
    put(i, text, text);
    search(text);
  }
}

TEST_F(RankingTest, HugeQueryIsAnsweredQuickly) {
  for (DocumentNumber i = 0; i < 2000; ++i) put(i, "alpha beta gamma" + std::to_string(i));
  std::string text = "gamma77 ";
  while (text.size() < 1u << 20) text += "alpha beta w" + std::to_string(text.size()) + " ";
  const auto begin = std::chrono::steady_clock::now();
  const Hits hits = search(text);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  ASSERT_FALSE(hits.hits.empty());
  EXPECT_EQ(hits.hits.front().number, 77u);
}

TEST_F(RankingTest, QueryIsCutBetweenCharacters) {
  put(0, "天气");
  std::string text(Ranking::kMaxQueryBytes - 7, ' ');
  EXPECT_EQ(numbers(search(text + "天气预报")), Numbers{0});
}

TEST_F(RankingTest, LongTextIsIndexedUpToTheLimit) {
  put(0, "alpha", std::string(DocumentStore::kMaxDocumentBytes, ' ') + "omega");
  EXPECT_EQ(numbers(search("alpha")), Numbers{0});
  EXPECT_TRUE(search("omega").hits.empty());
}

}  // namespace
}  // namespace fairlead::search
