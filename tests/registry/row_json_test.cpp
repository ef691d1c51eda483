#include <gtest/gtest.h>

#include "base/rfc3339.hpp"
#include "registry/codes.hpp"
#include "registry/json.hpp"

namespace fairlead::registry {
namespace {

const Time kNow = *parse_rfc3339("2026-07-28T10:00:00.5Z");

template <class T>
std::string pointer_of(const Result<T>& row) {
  return row ? "no error" : row.error().detail().pointer;
}

json::View view(std::string_view text) {
  return json::View(text);
}

TEST(EndpointJsonTest, EveryMemberSurvivesWritingAndReading) {
  Endpoint row;
  row.id = "i";
  row.name = "team_a";
  row.title = "Team";
  row.description = "For\nthe team";
  row.enabled = false;
  row.mode = EndpointMode::discover;
  row.servers = {"file*"};
  row.tags = {"t"};
  row.tools = {"a__*"};
  row.deny = {"*__x"};
  row.rename = {{"a__b", "b"}};
  row.pinned = {"a__c"};
  row.users = {"u1", "u2"};
  row.groups = {"g"};
  row.created_at = row.updated_at = kNow;
  row.version = 3;
  const json::Raw text = to_json(row);
  const Result<Endpoint> read = parse_endpoint(json::View(text));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read).text(), text.text());
  EXPECT_EQ(read->rename, row.rename);
  EXPECT_EQ(read->users, row.users);
  EXPECT_EQ(read->mode, row.mode);
  EXPECT_FALSE(read->enabled);
  EXPECT_FALSE(to_json(row, Redaction::secrets).text().contains("u1"));
}

TEST(EndpointJsonTest, ErrorHasThePointerOfTheMember) {
  EXPECT_EQ(pointer_of(new_endpoint(view(R"({"name":"a/b"})"))), "/name");
  EXPECT_EQ(pointer_of(new_endpoint(view(R"({"name":""})"))), "/name");
  EXPECT_EQ(pointer_of(new_endpoint(view(R"({"name":"a","mode":"x"})"))), "/mode");
  EXPECT_EQ(pointer_of(new_endpoint(view(R"({"name":"a","servers":"x"})"))), "/servers");
  EXPECT_EQ(pointer_of(new_endpoint(view(R"({"name":"a","rename":{"b":"c d"}})"))), "/rename/b");
  EXPECT_EQ(pointer_of(new_endpoint(view(R"({"name":"a","users":[""]})"))), "/users/0");
  EXPECT_EQ(pointer_of(new_endpoint(view(R"({"name":"a","owner":"x"})"))), "/owner");
  EXPECT_EQ(pointer_of(new_endpoint(view(R"({"name":"a","users":["x"]})"))), "no error");
}

TEST(AccountJsonTest, UsersAndGroupsSurviveWritingAndReading) {
  User user;
  user.id = "u1";
  user.name = "ann@example.org";
  user.role = Role::admin;
  user.enabled = false;
  user.created_at = user.updated_at = kNow;
  const Result<User> read = parse_user(json::View(to_json(user)));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read).text(), to_json(user).text());
  EXPECT_EQ(read->role, Role::admin);
  Group group;
  group.id = "g";
  group.name = "Team A";
  group.members = {"u1"};
  const Result<Group> read_group = parse_group(json::View(to_json(group)));
  ASSERT_TRUE(read_group);
  EXPECT_EQ(to_json(*read_group).text(), to_json(group).text());
}

TEST(AccountJsonTest, NamesHaveNoMetacharacters) {
  for (const char* bad :
       {"'; DROP TABLE users; --", "$1", "%s", "?", "`", "a\\\\b", "\\\"", "{}", "<b>", "ü", "a/b", "a,b"}) {
    const std::string body = R"({"name":")" + std::string(bad) + "\"}";
    EXPECT_EQ(pointer_of(new_user(json::View(body))), "/name") << body;
    EXPECT_EQ(pointer_of(new_group(json::View(body))), "/name") << body;
  }
  EXPECT_EQ(pointer_of(new_user(view(R"({"name":"Ann B. Lee-Smith_2+x@example.org"})"))), "no error");
}

TEST(AccountJsonTest, BadAccountsAreRejected) {
  EXPECT_EQ(pointer_of(new_user(view(R"({"name":" ann"})"))), "/name");
  EXPECT_EQ(pointer_of(new_user(view(R"({"name":"a\nb"})"))), "/name");
  EXPECT_EQ(pointer_of(new_user(view(R"({"role":"user"})"))), "/name");
  EXPECT_EQ(pointer_of(new_user(view(R"({"name":"a","role":"root"})"))), "/role");
  EXPECT_EQ(pointer_of(new_user(view(R"({"name":"a","role":7})"))), "/role");
  EXPECT_EQ(pointer_of(new_user(view(R"({"name":"a","password":"x"})"))), "/password");
  EXPECT_EQ(pointer_of(new_group(view(R"({"name":"a","members":[1]})"))), "/members/0");
  const User row = new_user(view(R"({"name":"a"})")).value();
  EXPECT_EQ(pointer_of(patched(row, view(R"({"role":"admin"})"))), "no error");
  EXPECT_EQ(pointer_of(patched(row, view(R"({"version":9})"))), "/version");
}

TEST(TokenJsonTest, DigestIsOnlyInTheStoredForm) {
  Token row;
  row.id = "t";
  row.name = "laptop";
  row.user = "u1";
  row.sha256 = std::string(64, 'a');
  row.prefix = "fl_abcdefgh";
  row.scopes = {"mcp", "admin:servers:read"};
  row.expires_at = kNow;
  row.revoked_at = kNow;
  row.last_used_at = kNow;
  row.created_at = kNow;
  EXPECT_FALSE(to_json(row).text().contains(row.sha256));
  const Result<Token> read = parse_token(json::View(to_stored_json(row)));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_stored_json(*read).text(), to_stored_json(row).text());
  EXPECT_EQ(read->sha256, row.sha256);
  EXPECT_EQ(read->expires_at, row.expires_at);
}

TEST(TokenJsonTest, ExpiryIsATimeOrADuration) {
  const auto expiry = [](std::string_view text) {
    const std::string body = R"({"user":"ann","expires":)" + std::string(text) + "}";
    const Result<Token> row = new_token(json::View(body), kNow);
    return row ? row->expires_at : std::nullopt;
  };
  EXPECT_EQ(expiry("\"2026-07-29T10:00:00.5Z\""), kNow + std::chrono::hours(24));
  EXPECT_EQ(expiry("\"90d\""), kNow + std::chrono::days(90));
  EXPECT_EQ(expiry("\"12h\""), kNow + std::chrono::hours(12));
  for (const char* bad :
       {"\"2026-07-28T09:00:00Z\"", "\"soon\"", "\"d\"", "\"-1d\"", "\"99999999999d\"", "5", "\"0s\""})
    EXPECT_EQ(pointer_of(new_token(json::View(R"({"user":"a","expires":)" + std::string(bad) + "}"), kNow)),
              "/expires")
        << bad;
}

TEST(TokenJsonTest, ScopesAreChecked) {
  EXPECT_EQ(pointer_of(new_token(view(R"({"user":"a","scopes":["mcp","admin:server"]})"), kNow)),
            "/scopes/1");
  EXPECT_EQ(pointer_of(new_token(view(R"({"user":"a","scopes":["mcp","admin:servers:read"]})"), kNow)),
            "no error");
  EXPECT_EQ(pointer_of(new_token(view(R"({"scopes":[]})"), kNow)), "/user");
  EXPECT_EQ(pointer_of(new_token(view(R"({"user":"a","sha256":"x"})"), kNow)), "/sha256");
}

TEST(DriftJsonTest, DriftSurvivesWritingAndReading) {
  Drift row;
  row.id = "d";
  row.server_id = "s";
  row.kind = "tool";
  row.name =
      "re\x01"
      "ad";
  row.after = json::Raw::parse(R"({"name":"read","name":"x"})").value();
  row.quarantined = true;
  row.status = DriftStatus::reverted;
  row.detected_at = kNow;
  row.resolved_at = kNow;
  row.resolved_by = "u";
  const Result<Drift> read = parse_drift(json::View(to_json(row)));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read).text(), to_json(row).text());
  EXPECT_TRUE(read->before.absent());
  EXPECT_EQ(read->after.text(), row.after.text());
}

TEST(DriftJsonTest, ListedEntryHasItsTimes) {
  ListedEntry entry;
  entry.entry = json::Raw::parse(R"({"name":"read"})").value();
  entry.first_seen = entry.last_seen = kNow;
  EXPECT_EQ(to_json(entry).text(), R"({"entry":{"name":"read"},"firstSeen":"2026-07-28T10:00:00.500Z",)"
                                   R"("lastSeen":"2026-07-28T10:00:00.500Z","quarantined":false})");
}

}  // namespace
}  // namespace fairlead::registry
