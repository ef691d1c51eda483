#include <gtest/gtest.h>

#include <filesystem>

#include "search/data_set.hpp"

namespace fairlead::search {
namespace {

// Fails if fewer of the labelled tools are among the first five than `required`.
void expect_recall(const std::string& path, double required) {
  const std::optional<DataSet> data = read_data_set(path);
  if (!data && !std::filesystem::exists(FAIRLEAD_SHARED_DIR))
    GTEST_SKIP() << "the directory of shared data sets is not present";
  ASSERT_TRUE(data) << path << " is missing";
  EXPECT_GE(recall(*data, 5), required);
}

TEST(SearchQualityTest, OwnDataSet) {
  ASSERT_TRUE(read_data_set(FAIRLEAD_SOURCE_DIR "/tests/search/office.json"));
  expect_recall(FAIRLEAD_SOURCE_DIR "/tests/search/office.json", 0.94);
}

TEST(SearchQualityTest, ReferenceServers) {
  expect_recall(FAIRLEAD_SHARED_DIR "/data/tool-search/reference-servers.json", 0.74);
}

TEST(SearchQualityTest, MetaTool) {
  expect_recall(FAIRLEAD_SHARED_DIR "/data/tool-search/metatool.json", 0.60);
}

}  // namespace
}  // namespace fairlead::search
