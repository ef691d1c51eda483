// ClientCache: which results are cached, for how long, and what invalidates them.
#include "mcp/client_cache.hpp"

#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

json::IndexedRaw indexed(const std::string& text) {
  return json::IndexedRaw(test::raw(text), json::MemberIndex::of(json::View(text)));
}

class ClientCacheTest : public ::testing::Test {
 public:
  ClientCache cache;
  ClientCache::Time now{1000h};

  void store(const std::string& method, const std::string& params, const std::string& body) {
    cache.store(method, json::View(params), indexed(body), now, cache.generation());
  }
  bool has(const std::string& method, const std::string& params = "{}") const {
    return cache.find(method, json::View(params), now).has_value();
  }
};

const char* const kFresh = R"({"resultType":"complete","ttlMs":1000,"cacheScope":"private"})";

TEST_F(ClientCacheTest, ResultIsCachedUntilItsTtlExpires) {
  for (const char* method : {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}) {
    store(method, "{}", kFresh);
    EXPECT_TRUE(has(method)) << method;
  }
  now += 999ms;
  EXPECT_TRUE(has("tools/list"));
  now += 1ms;
  EXPECT_FALSE(has("tools/list"));
}

TEST_F(ClientCacheTest, OtherMethodsAndUncacheableResultsAreNotCached) {
  for (const char* method : {"tools/call", "prompts/get", "server/discover", "completion/complete"}) {
    store(method, "{}", kFresh);
    EXPECT_FALSE(has(method)) << method;
  }
  for (const char* body :
       {R"({"resultType":"complete"})", R"({"ttlMs":0})", R"({"ttlMs":-5})", R"({"ttlMs":"1000"})",
        R"({"ttlMs":1.5})", R"({"resultType":"input_required","ttlMs":1000})"}) {
    store("tools/list", "{}", body);
    EXPECT_FALSE(has("tools/list")) << body;
  }
  for (const char* params : {R"({"uri":"a","requestState":"x"})", R"({"uri":"a","inputResponses":{}})",
                             R"({"uri":"a","new":1})", R"({"uri":7})"}) {
    store("resources/read", params, kFresh);
    EXPECT_FALSE(has("resources/read", params)) << params;
  }
  EXPECT_EQ(cache.entry_count(), 0u);
}

TEST_F(ClientCacheTest, ResultsAreKeyedByCursorAndUri) {
  store("tools/list", "{}", kFresh);
  EXPECT_FALSE(has("tools/list", R"({"cursor":""})"));
  EXPECT_TRUE(has("tools/list", R"({"_meta":{"x":1}})"));
  EXPECT_TRUE(has("tools/list", ""));
  store("resources/read", R"({"uri":"a"})", kFresh);
  EXPECT_TRUE(has("resources/read", R"({"uri":"\u0061"})"));
  EXPECT_FALSE(has("resources/read", R"({"uri":"b"})"));
}

TEST_F(ClientCacheTest, TtlIsCappedAtOneDay) {
  store("tools/list", "{}", R"({"ttlMs":9223372036854775807})");
  now += 24h - 1ms;
  EXPECT_TRUE(has("tools/list"));
  now += 1ms;
  EXPECT_FALSE(has("tools/list"));
}

TEST_F(ClientCacheTest, ChangeNotificationErasesAffectedResults) {
  const auto fill = [&] {
    for (const char* method : {"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
      store(method, "{}", kFresh);
    store("tools/list", R"({"cursor":"2"})", kFresh);
    store("resources/read", R"({"uri":"a"})", kFresh);
    store("resources/read", R"({"uri":"ab"})", kFresh);
  };
  fill();
  cache.invalidate_by_notification("notifications/tools/list_changed", json::View());
  EXPECT_FALSE(has("tools/list") || has("tools/list", R"({"cursor":"2"})"));
  EXPECT_TRUE(has("prompts/list") && has("resources/list"));
  cache.invalidate_by_notification("notifications/resources/list_changed", json::View());
  EXPECT_FALSE(has("resources/list") || has("resources/templates/list"));
  cache.invalidate_by_notification("notifications/resources/updated", json::View(R"({"uri":"a"})"));
  EXPECT_FALSE(has("resources/read", R"({"uri":"a"})"));
  EXPECT_TRUE(has("resources/read", R"({"uri":"ab"})"));
  cache.invalidate_by_notification("notifications/prompts/list_changed", json::View());
  cache.invalidate_by_notification("notifications/resources/updated", json::View("{}"));
  EXPECT_EQ(cache.entry_count(), 0u);
  EXPECT_EQ(cache.byte_count(), 0u);
  fill();
  cache.erase_pages("tools/list");
  EXPECT_FALSE(has("tools/list") || has("tools/list", R"({"cursor":"2"})"));
}

TEST_F(ClientCacheTest, UpdateOfUriOverLimitErasesAllResources) {
  cache = ClientCache(3);
  store("resources/read", R"({"uri":"abc"})", kFresh);
  store("resources/read", R"({"uri":"x"})", kFresh);
  cache.invalidate_by_notification("notifications/resources/updated", json::View(R"({"uri":"abc"})"));
  EXPECT_FALSE(has("resources/read", R"({"uri":"abc"})"));
  EXPECT_TRUE(has("resources/read", R"({"uri":"x"})"));
  cache.invalidate_by_notification("notifications/resources/updated", json::View(R"({"uri":"abcd"})"));
  EXPECT_FALSE(has("resources/read", R"({"uri":"x"})"));
}

TEST_F(ClientCacheTest, ResultRequestedBeforeChangeIsNotCached) {
  const std::uint64_t request_generation = cache.generation();
  cache.invalidate_by_notification("notifications/tools/list_changed", json::View());
  cache.store("tools/list", json::View("{}"), indexed(kFresh), now, request_generation);
  EXPECT_FALSE(has("tools/list"));
}

TEST_F(ClientCacheTest, EntriesAndBytesAreBounded) {
  for (int i = 0; i < 3000; ++i)
    store("resources/read", R"({"uri":")" + std::to_string(i) + R"("})",
          R"({"ttlMs":)" + std::to_string(1000 + i) + "}");
  EXPECT_EQ(cache.entry_count(), ClientCache::kMaxEntries);
  EXPECT_TRUE(has("resources/read", R"({"uri":"2999"})"));
  EXPECT_FALSE(has("resources/read", R"({"uri":"0"})"));
  const std::string big(1u << 20, 'x');
  for (int i = 0; i < 40; ++i)
    store("resources/read", R"({"uri":"big)" + std::to_string(i) + R"("})",
          R"({"ttlMs":9000,"x":")" + big + "\"}");
  EXPECT_LE(cache.byte_count(), ClientCache::kMaxBytes);
  store("resources/read", R"({"uri":"huge"})", R"({"ttlMs":9000,"x":")" + std::string(5u << 20, 'x') + "\"}");
  EXPECT_FALSE(has("resources/read", R"({"uri":"huge"})"));
}

}  // namespace
}  // namespace fairlead::mcp
