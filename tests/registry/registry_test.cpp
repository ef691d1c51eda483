// Changes of rows, on both databases.
#include <algorithm>

#include "registry/fixture.hpp"
#include "registry/schema.hpp"

namespace fairlead::registry::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Databases, RegistryTest, testing::Values(Kind::sqlite, Kind::postgresql), kind_name);

TEST_P(RegistryTest, NewDatabaseHasEndpointsDefaultsAndSeed) {
  Server demo;
  demo.name = demo.spec.name = "demo";
  pool::Program program;
  program.command = "fairlead";
  demo.spec.transport = program;
  options.seed.push_back(demo);
  RegistryHandle registry = open();
  ASSERT_TRUE(registry->state().endpoints.find_by_name("default"));
  EXPECT_EQ(registry->state().endpoints.find_by_name("default")->mode, EndpointMode::direct);
  ASSERT_TRUE(registry->state().endpoints.find_by_name("discover"));
  EXPECT_EQ(registry->state().endpoints.find_by_name("discover")->mode, EndpointMode::discover);
  ASSERT_TRUE(registry->state().servers.find_by_name("demo"));
  EXPECT_EQ(registry->state().configuration->integer("mcp.max_stdio_processes"), 50);
  EXPECT_EQ(registry->state().revision, 1);
  const std::string id = registry->state().servers.find_by_name("demo")->id;
  EXPECT_TRUE(wait(registry->remove_server(admin, id, std::nullopt)));
  registry = reopen(std::move(registry));
  EXPECT_EQ(registry->state().servers.size(), 0u) << "the seed is for new databases only";
  EXPECT_EQ(registry->state().endpoints.size(), 2u);
}

TEST_P(RegistryTest, RowsSurviveARestart) {
  RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  EXPECT_EQ(server->version, 1);
  EXPECT_EQ(registry->state().servers.find(server->id), registry->state().servers.find_by_name("files"));
  const UserPtr user = add_user(*registry, "ann");
  const NewToken token = add_token(*registry, user);
  const Result<GroupPtr> group =
      wait(registry->create_group(admin, raw(R"({"name":"team","members":[")" + user->id + R"("]})")));
  ASSERT_TRUE(group) << group.error().to_string();
  const Result<EndpointPtr> endpoint = wait(registry->create_endpoint(
      admin, raw(R"({"name":"work","servers":["fi*"],"groups":[")" + (*group)->id + R"("]})")));
  ASSERT_TRUE(endpoint) << endpoint.error().to_string();
  ASSERT_TRUE(wait(registry->set_config(admin, "mcp.max_stdio_processes", raw("7"))));
  const std::int64_t revision = registry->state().revision;

  registry = reopen(std::move(registry));
  const State& state = registry->state();
  EXPECT_EQ(state.revision, revision);
  ASSERT_TRUE(state.servers.find_by_name("files"));
  EXPECT_EQ(to_json(*state.servers.find_by_name("files")).text(), to_json(*server).text());
  EXPECT_EQ(to_json(*state.users.find(user->id)).text(), to_json(*user).text());
  EXPECT_EQ(to_json(*state.groups.find((*group)->id)).text(), to_json(**group).text());
  EXPECT_EQ(to_json(*state.endpoints.find((*endpoint)->id)).text(), to_json(**endpoint).text());
  ASSERT_TRUE(state.tokens_by_sha256.contains(token.token->sha256));
  EXPECT_EQ(to_json(*state.tokens.find(token.token->id)).text(), to_json(*token.token).text());
  EXPECT_EQ(state.configuration->integer("mcp.max_stdio_processes"), 7);
}

TEST_P(RegistryTest, PatchChangesOnlyItsMembersAndCountsTheVersion) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  const Result<ServerPtr> patched =
      patch_server(*registry, server, R"({"title":"Files","config":{"args":["-n"]}})", 1);
  ASSERT_TRUE(patched) << patched.error().to_string();
  EXPECT_EQ((*patched)->title, "Files");
  EXPECT_EQ((*patched)->version, 2);
  EXPECT_EQ((*patched)->id, server->id);
  EXPECT_EQ((*patched)->created_at, server->created_at);
  EXPECT_EQ(registry->state().servers.find(server->id)->title, "Files");
}

TEST_P(RegistryTest, PatchThatChangesNothingIsNoChange) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  const std::int64_t revision = registry->state().revision;
  int changes = 0;
  const auto subscription = registry->on_change([&](const Change&) { ++changes; });
  const Result<ServerPtr> patched = patch_server(*registry, server, R"({"name":"files"})");
  ASSERT_TRUE(patched);
  EXPECT_EQ((*patched)->version, 1);
  EXPECT_EQ(registry->state().revision, revision);
  EXPECT_EQ(changes, 0);
}

TEST_P(RegistryTest, StaleVersionIsRefused) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  ASSERT_TRUE(patch_server(*registry, server, R"({"title":"1"})", 1));
  const Result<ServerPtr> stale = patch_server(*registry, server, R"({"title":"2"})", 1);
  EXPECT_EQ(code_of(stale), kVersionMismatch);
  EXPECT_EQ(code_of(wait(registry->remove_server(admin, server->id, 1))), kVersionMismatch);
  EXPECT_TRUE(wait(registry->remove_server(admin, server->id, 2)));
  EXPECT_EQ(registry->state().servers.size(), 0u);
}

TEST_P(RegistryTest, NamesThatDifferOnlyInCaseAreRefused) {
  const RegistryHandle registry = open();
  add_server(*registry, "Files");
  const Result<ServerPtr> same = wait(registry->create_server(admin, server_body("Files")));
  const Result<ServerPtr> similar = wait(registry->create_server(admin, server_body("files")));
  EXPECT_EQ(code_of(same), kNameTaken);
  EXPECT_EQ(code_of(similar), kNameTaken);
  EXPECT_NE(similar.error().message().find("`Files`"), std::string::npos);
  const ServerPtr other = add_server(*registry, "other");
  EXPECT_EQ(code_of(patch_server(*registry, other, R"({"name":"FILES"})")), kNameTaken);
  const ServerPtr files = registry->state().servers.find_by_name("Files");
  EXPECT_TRUE(patch_server(*registry, files, R"({"name":"files"})")) << "a row may change its own case";
  EXPECT_FALSE(registry->state().servers.find_by_name("Files"));
  EXPECT_TRUE(registry->state().servers.find_by_name("files"));
}

TEST_P(RegistryTest, ServerThatEndpointsOrTokensNameIsNotRenamed) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  const auto rename = [&](const char* to) {
    return code_of(patch_server(*registry, registry->state().servers.find(server->id),
                                R"({"name":")" + std::string(to) + R"("})"));
  };
  for (const char* const member : {R"("servers":["files"])", R"("deny":["files__delete*"])",
                                   R"("tools":["files__read"])", R"("rename":{"files__a":"a"})"}) {
    const auto endpoint =
        wait(registry->create_endpoint(admin, raw(R"({"name":"work",)" + std::string(member) + "}")));
    ASSERT_TRUE(endpoint) << endpoint.error().to_string();
    EXPECT_EQ(rename("other"), kInUse) << member;
    ASSERT_TRUE(wait(registry->remove_endpoint(admin, (*endpoint)->id, std::nullopt)));
  }
  add_user(*registry, "ann");
  const auto token = wait(registry->create_token(admin, raw(R"({"user":"ann","scopes":["server:files"]})")));
  ASSERT_TRUE(token) << token.error().to_string();
  EXPECT_EQ(rename("other"), kInUse);
  ASSERT_TRUE(wait(registry->revoke_token(admin, token->token->id)));
  EXPECT_EQ(rename("other"), "success");
}

TEST_P(RegistryTest, EndpointThatTokensNameIsNotRenamed) {
  const RegistryHandle registry = open();
  const auto endpoint = wait(registry->create_endpoint(admin, raw(R"({"name":"work"})")));
  ASSERT_TRUE(endpoint);
  add_user(*registry, "ann");
  ASSERT_TRUE(wait(registry->create_token(admin, raw(R"({"user":"ann","scopes":["endpoint:work"]})"))));
  const auto patch = raw(R"({"name":"other"})");
  EXPECT_EQ(code_of(wait(registry->patch_endpoint(admin, (*endpoint)->id, patch, std::nullopt))), kInUse);
}

TEST_P(RegistryTest, NameThatIsTakenTellsUsersNothingAboutTheOtherRow) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "hiddenOne");
  ASSERT_TRUE(patch_server(*registry, server, R"({"visibility":"hidden"})"));
  const PrincipalPtr ann = principal_of(*add_user(*registry, "ann"), nullptr, {});
  const auto taken = wait(registry->create_server(
      ann, raw(R"({"name":"HIDDENONE","transport":"http","config":{"url":"https://example.com/mcp"}})")));
  EXPECT_EQ(code_of(taken), kNameTaken);
  EXPECT_EQ(taken.error().message().find("hiddenOne"), std::string::npos);
}

TEST_P(RegistryTest, MissingRowsAreNotFound) {
  const RegistryHandle registry = open();
  const std::string id = "0190a0b0-0000-7000-8000-000000000000";
  EXPECT_EQ(code_of(wait(registry->patch_server(admin, id, raw("{}"), std::nullopt))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->remove_server(admin, "' or 1=1 --", std::nullopt))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->remove_endpoint(admin, id, std::nullopt))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->remove_user(admin, id, std::nullopt))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->remove_group(admin, id, std::nullopt))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->revoke_token(admin, id))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->resolve_drift(admin, id, DriftStatus::approved))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->set_config(admin, "mcp.nonsense", raw("1")))), kNotFound);
  EXPECT_EQ(code_of(wait(registry->store_lists(id, tools({})))), kNotFound);
}

TEST_P(RegistryTest, InvalidBodiesAreRefusedWithAPointer) {
  const RegistryHandle registry = open();
  const std::int64_t revision = registry->state().revision;
  const std::vector<std::string> bodies = {
      R"({"name":"a","transport":"stdio","config":{"command":"x"},"nonsense":1})",
      R"([])",
      R"("x")",
      R"({"name":5,"transport":"stdio","config":{"command":"x"}})",
      R"({"name":"a","transport":"stdio","config":{"command":["x"]}})",
      R"({"name":"a\u0000b","transport":"stdio","config":{"command":"x"}})",
      R"({"name":")" + std::string(1u << 20, 'a') + R"(","transport":"stdio","config":{"command":"x"}})"};
  for (const std::string& body : bodies) {
    const Result<ServerPtr> created = wait(registry->create_server(admin, raw(body)));
    EXPECT_EQ(code_of(created), kInvalidRow) << body.substr(0, 200);
  }
  EXPECT_EQ(registry->state().revision, revision);
}

TEST_P(RegistryTest, SqlMetacharactersAreStoredAsText) {
  RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  const std::string text = R"('; drop table servers; -- $1 %s \\ \" `x` ? :a @b {} \u00e9 \ud83d\ude00)";
  const Result<ServerPtr> patched =
      patch_server(*registry, server, R"({"title":")" + text + R"(","tags":["'","''","\\"]})");
  ASSERT_TRUE(patched) << patched.error().to_string();
  const std::string expected = to_json(**patched).text().data();
  registry = reopen(std::move(registry));
  EXPECT_EQ(registry->state().servers.find(server->id)->title, (*patched)->title);
  EXPECT_EQ(registry->state().servers.find(server->id)->tags, (*patched)->tags);
}

TEST_P(RegistryTest, ReferencesMustExist) {
  const RegistryHandle registry = open();
  const auto group = wait(registry->create_group(admin, raw(R"({"name":"g","members":["nobody"]})")));
  ASSERT_FALSE(group);
  EXPECT_EQ(code_of(group), kInvalidRow);
  EXPECT_EQ(group.error().detail().pointer, "/members/0");
  const auto endpoint = wait(registry->create_endpoint(admin, raw(R"({"name":"e1","groups":["nobody"]})")));
  EXPECT_EQ(code_of(endpoint), kInvalidRow);
  const auto token = wait(registry->create_token(admin, raw(R"({"user":"nobody"})")));
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().detail().pointer, "/user");
  const ServerPtr server = add_server(*registry, "files");
  EXPECT_EQ(code_of(patch_server(*registry, server, R"({"owner":"nobody"})")), kInvalidRow);
}

TEST_P(RegistryTest, UserWithServersOrEndpointsIsNotRemoved) {
  const RegistryHandle registry = open();
  const UserPtr user = add_user(*registry, "ann");
  const ServerPtr server = add_server(*registry, "files");
  ASSERT_TRUE(patch_server(*registry, server, R"({"owner":")" + user->id + R"(","visibility":"user"})"));
  const Result<void> refused = wait(registry->remove_user(admin, user->id, std::nullopt));
  EXPECT_EQ(code_of(refused), kInUse);
  EXPECT_NE(refused.error().message().find("`files`"), std::string::npos);
  ASSERT_TRUE(wait(registry->remove_server(admin, server->id, std::nullopt)));
  const Result<EndpointPtr> endpoint =
      wait(registry->create_endpoint(admin, raw(R"({"name":"hers","users":[")" + user->id + R"("]})")));
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(code_of(wait(registry->remove_user(admin, user->id, std::nullopt))), kInUse);
  ASSERT_TRUE(wait(registry->remove_endpoint(admin, (*endpoint)->id, std::nullopt)));
  EXPECT_TRUE(wait(registry->remove_user(admin, user->id, std::nullopt)));
}

TEST_P(RegistryTest, RemovingAUserRemovesTokensAndMemberships) {
  const RegistryHandle registry = open();
  const UserPtr user = add_user(*registry, "ann");
  const NewToken token = add_token(*registry, user);
  const Result<GroupPtr> group =
      wait(registry->create_group(admin, raw(R"({"name":"team","members":[")" + user->id + R"("]})")));
  ASSERT_TRUE(group);
  ASSERT_TRUE(wait(registry->remove_user(admin, user->id, std::nullopt)));
  EXPECT_FALSE(registry->state().tokens.find(token.token->id));
  EXPECT_FALSE(registry->state().tokens_by_sha256.contains(token.token->sha256));
  EXPECT_TRUE(registry->state().groups.find((*group)->id)->members.empty());
}

TEST_P(RegistryTest, DefaultEndpointStays) {
  const RegistryHandle registry = open();
  const std::string id = registry->state().endpoints.find_by_name("default")->id;
  EXPECT_EQ(code_of(wait(registry->remove_endpoint(admin, id, std::nullopt))), kInUse);
  EXPECT_EQ(code_of(wait(registry->patch_endpoint(admin, id, raw(R"({"name":"x"})"), std::nullopt))),
            kInvalidRow);
  const std::string discover = registry->state().endpoints.find_by_name("discover")->id;
  EXPECT_TRUE(wait(registry->remove_endpoint(admin, discover, std::nullopt)));
}

TEST_P(RegistryTest, LastAdministratorLeavesOnlyByTheBootstrapAdministrator) {
  const RegistryHandle registry = open();
  const UserPtr ann = add_user(*registry, "ann", "admin");
  const UserPtr bob = add_user(*registry, "bob", "admin");
  const PrincipalPtr as_ann = principal_of(*ann, nullptr, {});
  ASSERT_TRUE(wait(registry->patch_user(as_ann, bob->id, raw(R"({"enabled":false})"), std::nullopt)));
  for (const char* const patch : {R"({"role":"user"})", R"({"enabled":false})"}) {
    const auto refused = wait(registry->patch_user(as_ann, ann->id, raw(patch), std::nullopt));
    EXPECT_EQ(code_of(refused), kLastAdministrator);
  }
  EXPECT_EQ(code_of(wait(registry->remove_user(as_ann, ann->id, std::nullopt))), kLastAdministrator);
  EXPECT_TRUE(registry->state().users.find(ann->id)->enabled);
  EXPECT_TRUE(wait(registry->remove_user(admin, ann->id, std::nullopt)));
}

TEST_P(RegistryTest, ChangesOfADisabledUserAreRefused) {
  const RegistryHandle registry = open();
  const UserPtr ann = add_user(*registry, "ann", "admin");
  const PrincipalPtr as_ann = principal_of(*ann, nullptr, {});
  EXPECT_TRUE(wait(registry->create_server(as_ann, server_body("a"))));
  ASSERT_TRUE(wait(registry->patch_user(admin, ann->id, raw(R"({"enabled":false})"), std::nullopt)));
  EXPECT_FALSE(wait(registry->create_server(as_ann, server_body("b"))));
  EXPECT_FALSE(registry->state().servers.find_by_name("b"));
}

TEST_P(RegistryTest, UserCannotCreateAProcessAndDoesNotSeeHiddenServers) {
  const RegistryHandle registry = open();
  const PrincipalPtr ann = principal_of(*add_user(*registry, "ann"), nullptr, {});
  EXPECT_EQ(code_of(wait(registry->create_server(ann, server_body("mine")))), kForbidden);
  const ServerPtr server = add_server(*registry, "files");
  ASSERT_TRUE(patch_server(*registry, server, R"({"visibility":"hidden"})"));
  const auto hidden = wait(registry->patch_server(ann, server->id, raw("{}"), std::nullopt));
  const std::string other_id = "0190a0b0-0000-7000-8000-000000000000";
  const auto missing = wait(registry->patch_server(ann, other_id, raw("{}"), std::nullopt));
  ASSERT_FALSE(hidden);
  ASSERT_FALSE(missing);
  EXPECT_EQ(code_of(hidden), kNotFound);
  std::string text = hidden.error().message();
  text.replace(text.find(server->id), server->id.size(), other_id);
  EXPECT_EQ(text, missing.error().message());
}

TEST_P(RegistryTest, TokenIsFoundByItsDigestUntilItIsRevoked) {
  RegistryHandle registry = open();
  const UserPtr user = add_user(*registry, "ann");
  const NewToken created = add_token(*registry, user);
  EXPECT_TRUE(created.text.starts_with(created.token->prefix));
  EXPECT_EQ(registry->state().tokens_by_sha256.at(created.token->sha256)->user, user->id);
  const Result<TokenPtr> revoked = wait(registry->revoke_token(admin, created.token->id));
  ASSERT_TRUE(revoked);
  EXPECT_TRUE((*revoked)->revoked_at);
  registry = reopen(std::move(registry));
  EXPECT_TRUE(registry->state().tokens_by_sha256.at(created.token->sha256)->revoked_at);
}

TEST_P(RegistryTest, UserDoesNotLearnWhichOtherUsersExist) {
  const RegistryHandle registry = open();
  const PrincipalPtr ann = principal_of(*add_user(*registry, "ann"), nullptr, {});
  add_user(*registry, "bob");
  const auto of_bob = wait(registry->create_token(ann, raw(R"({"user":"bob"})")));
  const auto of_nobody = wait(registry->create_token(ann, raw(R"({"user":"nobody"})")));
  ASSERT_FALSE(of_bob);
  ASSERT_FALSE(of_nobody);
  EXPECT_EQ(of_bob.error().to_string(), of_nobody.error().to_string());
  EXPECT_EQ(code_of(of_bob), code_of(of_nobody));
  EXPECT_EQ(of_bob.error().detail().pointer, of_nobody.error().detail().pointer);
}

TEST_P(RegistryTest, TokenDoesNotOutliveTheTokenThatCreatesIt) {
  const RegistryHandle registry = open();
  const UserPtr ann = add_user(*registry, "ann");
  const Result<NewToken> first =
      wait(registry->create_token(admin, raw(R"({"user":"ann","expires":"24h"})")));
  ASSERT_TRUE(first);
  const PrincipalPtr actor = principal_of(*ann, first->token.get(), {});
  const Result<NewToken> open_ended = wait(registry->create_token(actor, raw(R"({"user":"ann"})")));
  ASSERT_TRUE(open_ended) << open_ended.error().to_string();
  EXPECT_EQ(open_ended->token->expires_at, first->token->expires_at);
  EXPECT_TRUE(wait(registry->create_token(actor, raw(R"({"user":"ann","expires":"1h"})"))));
  const auto longer = wait(registry->create_token(actor, raw(R"({"user":"ann","expires":"48h"})")));
  EXPECT_EQ(code_of(longer), kForbidden);
}

TEST_P(RegistryTest, TextOfATokenIsNotStored) {
  RegistryHandle registry = open();
  const NewToken created = add_token(*registry, add_user(*registry, "ann"));
  close(std::move(registry));
  const auto database = wait(sql::Database::open(loop, address(), migrations(), options.database));
  ASSERT_TRUE(database);
  std::move_only_function<Result<std::vector<sql::Row>>(sql::Transaction&)> job =
      [](sql::Transaction& transaction) { return transaction.execute("select * from tokens"); };
  const auto rows = wait(sql::query<std::vector<sql::Row>>(**database, std::move(job)));
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1u);
  std::string content;
  for (const sql::Value& value : rows->front()) content += sql::text(value) + "\n";
  EXPECT_NE(content.find(created.token->sha256), std::string::npos);
  EXPECT_EQ(content.find(created.text), std::string::npos);
}

TEST_P(RegistryTest, LastUseOfATokenIsWrittenAtClose) {
  RegistryHandle registry = open();
  const NewToken created = add_token(*registry, add_user(*registry, "ann"));
  int changes = 0;
  const auto subscription = registry->on_change([&](const Change&) { ++changes; });
  registry->note_token_use(created.token->id);
  registry->note_token_use(created.token->id);
  registry->note_token_use("no such token");
  const auto used = registry->state().tokens.find(created.token->id)->last_used_at;
  ASSERT_TRUE(used);
  registry = reopen(std::move(registry));
  EXPECT_EQ(registry->state().tokens.find(created.token->id)->last_used_at, used);
  EXPECT_EQ(changes, 0);
}

TEST_P(RegistryTest, LastUsesAreWrittenInOneBatchWhileTheGatewayRuns) {
  options.token_use_interval = 20ms;
  const RegistryHandle registry = open();
  const UserPtr user = add_user(*registry, "ann");
  const NewToken first = add_token(*registry, user);
  const NewToken second = add_token(*registry, user);
  const std::int64_t revision = registry->state().revision;
  registry->note_token_use(first.token->id);
  registry->note_token_use(second.token->id);
  EXPECT_TRUE(eventually([&] { return registry->state().revision == revision + 1; }));
}

TEST_P(RegistryTest, ConfigurationIsValidatedAndReset) {
  const RegistryHandle registry = open();
  const std::string key = "mcp.max_stdio_processes";
  const ConfigurationPtr before = registry->state().configuration;
  EXPECT_EQ(code_of(wait(registry->set_config(admin, key, raw("0")))), kInvalidRow);
  EXPECT_EQ(code_of(wait(registry->set_config(admin, key, raw("\"many\"")))), kInvalidRow);
  const Result<ConfigurationPtr> changed = wait(registry->set_config(admin, key, raw("60")));
  ASSERT_TRUE(changed);
  EXPECT_EQ((*changed)->integer(key), 60);
  EXPECT_EQ(before->integer(key), 50) << "snapshots do not change";
  const Result<ConfigurationPtr> reset = wait(registry->set_config(admin, key, json::Raw()));
  ASSERT_TRUE(reset);
  EXPECT_EQ((*reset)->integer(key), 50);
  const PrincipalPtr user = principal_of(*add_user(*registry, "ann"), nullptr, {});
  EXPECT_FALSE(wait(registry->set_config(user, key, raw("60"))));
}

TEST_P(RegistryTest, SubscribersSeeChangesInOrderAndAfterTheState) {
  const RegistryHandle registry = open();
  std::vector<std::string> seen;
  auto subscription = registry->on_change([&](const Change& change) {
    const auto* const server = std::get_if<RowChange<Server>>(&change);
    if (!server) return;
    if (!server->before) seen.push_back("+" + server->after->name);
    if (!server->after) seen.push_back("-" + server->before->name);
    if (server->before && server->after) {
      seen.push_back("=" + server->after->title);
      EXPECT_EQ(registry->state().servers.find(server->after->id), server->after);
    }
  });
  const ServerPtr server = add_server(*registry, "a");
  ASSERT_TRUE(patch_server(*registry, server, R"({"title":"1"})"));
  ASSERT_TRUE(patch_server(*registry, server, R"({"title":"2"})"));
  ASSERT_TRUE(wait(registry->remove_server(admin, server->id, std::nullopt)));
  EXPECT_EQ(seen, (std::vector<std::string>{"+a", "=1", "=2", "-a"}));
  subscription.reset();
  add_server(*registry, "b");
  EXPECT_EQ(seen.size(), 4u);
}

TEST_P(RegistryTest, RevokedTokenMakesNoChangeEvenIfTheRequestWasAuthenticatedBefore) {
  const RegistryHandle registry = open();
  const UserPtr ann = add_user(*registry, "ann", "admin");
  const NewToken token = add_token(*registry, ann);
  const PrincipalPtr actor = principal_of(*ann, token.token.get(), {});
  EXPECT_TRUE(wait(registry->create_token(actor, raw(R"({"user":"ann"})"))));
  ASSERT_TRUE(wait(registry->revoke_token(admin, token.token->id)));
  EXPECT_EQ(code_of(wait(registry->create_token(actor, raw(R"({"user":"ann"})")))), kForbidden);
  EXPECT_EQ(code_of(wait(registry->create_server(actor, server_body("a")))), kForbidden);
}

TEST_P(RegistryTest, ChangesAfterCloseFail) {
  const RegistryHandle registry = open();
  close(registry);
  const Result<ServerPtr> created = wait(registry->create_server(admin, server_body("a")));
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().kind(), ErrorKind::closed);
}

TEST_P(RegistryTest, ConcurrentChangesAreAllApplied) {
  const RegistryHandle registry = open();
  constexpr int kServers = 40;
  int done = 0;
  for (int i = 0; i < kServers; ++i) {
    loop.spawn([](RegistryHandle to, PrincipalPtr actor, int number, int& count) -> Task<void> {
      const std::string name = "s" + std::to_string(number);
      const Result<ServerPtr> created = co_await to->create_server(actor, server_body(name));
      EXPECT_TRUE(created);
      // The answer comes after the change is part of the state.
      EXPECT_TRUE(to->state().servers.find_by_name(name));
      ++count;
    }(registry, admin, i, done));
  }
  EXPECT_TRUE(eventually([&] { return done == kServers; }));
  EXPECT_EQ(registry->state().servers.size(), static_cast<std::size_t>(kServers));
}

}  // namespace
}  // namespace fairlead::registry::test
