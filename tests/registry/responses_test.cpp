// Stored responses to requests with an Idempotency-Key.
#include "registry/fixture.hpp"

namespace fairlead::registry::test {
namespace {

class ResponsesTest : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Databases, ResponsesTest, testing::Values(Kind::sqlite, Kind::postgresql),
                         kind_name);

TEST_P(ResponsesTest, ResponsesAreFoundByActorAndKey) {
  options.max_stored_responses = 3;
  RegistryHandle registry = open();
  StoredResponse response;
  response.request_sha256 = "abc";
  response.status = 201;
  response.body = "{}";
  response.location = "/servers/1";
  const auto store = [&](const std::string& actor, const std::string& key) {
    const auto claimed = wait(registry->claim_response(actor, key, "abc"));
    ASSERT_TRUE(claimed);
    EXPECT_FALSE(*claimed);
    ASSERT_TRUE(wait(registry->store_response(actor, key, response)));
  };
  const auto is_stored = [&](const std::string& actor, const std::string& key) {
    const auto found = wait(registry->claim_response(actor, key, "abc"));
    if (found && !*found) {
      EXPECT_TRUE(wait(registry->forget_request(actor, key)));
    }
    return found && *found && (*found)->status == 201;
  };
  store("bob", "1");
  for (const std::string key : {"1", "2", "3"}) store("ann", key);
  registry = reopen(std::move(registry));
  const auto found = wait(registry->claim_response("ann", "3", "abc"));
  ASSERT_TRUE(found);
  ASSERT_TRUE(*found);
  EXPECT_EQ((*found)->status, 201);
  EXPECT_EQ((*found)->location, "/servers/1");
  EXPECT_TRUE(is_stored("bob", "1")) << "the client that has most loses its oldest";
  EXPECT_FALSE(is_stored("bob", "2"));
  EXPECT_EQ(code_of(wait(registry->claim_response("ann", std::string(256, 'k'), "abc"))), kInvalidRow);
  EXPECT_EQ(code_of(wait(registry->claim_response("ann", "a b", "abc"))), kInvalidRow);
  response.body.assign(100u << 10, 'x');
  EXPECT_FALSE(wait(registry->store_response("ann", "6", response)));
}

TEST_P(ResponsesTest, RequestInProgressIsFoundUntilItIsForgotten) {
  RegistryHandle registry = open();
  const auto claim = [&] {
    const auto found = wait(registry->claim_response("ann", "1", "abc"));
    EXPECT_TRUE(found);
    return found ? *found : std::nullopt;
  };
  EXPECT_FALSE(claim());
  registry = reopen(std::move(registry));
  const std::optional<StoredResponse> in_progress = claim();
  ASSERT_TRUE(in_progress);
  EXPECT_EQ(in_progress->status, 0);
  EXPECT_EQ(in_progress->request_sha256, "abc");
  EXPECT_TRUE(wait(registry->forget_request("ann", "1")));
  EXPECT_FALSE(claim());
}

}  // namespace
}  // namespace fairlead::registry::test
