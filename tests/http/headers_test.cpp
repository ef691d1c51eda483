#include "fairlead/http/headers.hpp"

#include <gtest/gtest.h>

namespace fairlead::http {
namespace {

TEST(HttpHeaders, NamesCompareWithoutCaseAndValuesAreTrimmed) {
  Headers headers{{"Content-Type", " application/json\t"}};
  EXPECT_EQ(headers.get("content-TYPE"), "application/json");
  EXPECT_TRUE(headers.has("CONTENT-TYPE"));
  EXPECT_FALSE(headers.has("Content-Typ"));
}

TEST(HttpHeaders, SetReplacesEveryFieldOfThatName) {
  Headers headers{{"A", "1"}, {"a", "2"}, {"B", "3"}};
  EXPECT_EQ(headers.count("A"), 2U);
  headers.set("a", "4");
  EXPECT_EQ(headers.count("A"), 1U);
  EXPECT_EQ(headers.get("A"), "4");
  EXPECT_EQ(headers.get("B"), "3");
}

TEST(HttpHeaders, AnEmptyValueIsThere) {
  const Headers headers{{"Empty", "  "}};
  EXPECT_TRUE(headers.has("Empty"));
  EXPECT_EQ(headers.get("Empty"), "");
}

}  // namespace
}  // namespace fairlead::http
