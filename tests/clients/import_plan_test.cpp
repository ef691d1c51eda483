#include "clients/import_plan.hpp"

#include <gtest/gtest.h>

#include "clients/row_strings.hpp"
#include "fairlead/json/view.hpp"
#include "registry/json.hpp"

namespace fairlead::clients {
namespace {

json::Raw raw_json(const std::string& text) {
  Result<json::Raw> parsed = json::Raw::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : json::Raw();
}

ImportedServer imported(const std::string& row) {
  ImportedServer server;
  server.row = raw_json(row);
  server.name = json::View(server.row)["name"].as_string().value_or("");
  return server;
}

ImportedFile file_of(std::vector<ImportedServer> servers) {
  ImportedFile file;
  file.servers = std::move(servers);
  return file;
}

// Returns the row as the admin API shows it.
json::Raw stored(const std::string& row) {
  const json::Raw body = raw_json(row);
  Result<registry::Server> server = registry::new_server(json::View(body));
  EXPECT_TRUE(server) << row;
  if (!server) return json::Raw();
  server->id = "0190f5fe-7c00-7000-8000-000000000001";
  server->version = 7;
  return registry::to_json(*server);
}

std::vector<PlannedServer> planned(const ImportedFile& file, const std::vector<json::Raw>& existing,
                                   const ImportChoices& choices = ImportChoices()) {
  Result<std::vector<PlannedServer>> plan = plan_import(file, existing, choices);
  EXPECT_TRUE(plan);
  return plan ? *plan : std::vector<PlannedServer>();
}

constexpr char kFiles[] = R"({"name":"files","config":{"command":"npx","args":["-y","srv","/data"]}})";

TEST(ImportPlanTest, NewServersAreAdded) {
  const std::vector<PlannedServer> plan = planned(file_of({imported(kFiles)}), {});
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].action, ImportAction::add);
  EXPECT_EQ(plan[0].body.text(), kFiles);
  EXPECT_EQ(plan[0].changes,
            (std::vector<std::string>{"name: \"files\"", "config.command: \"npx\"", "config.args[0]: \"-y\"",
                                      "config.args[1]: \"srv\"", "config.args[2]: \"/data\""}));
}

TEST(ImportPlanTest, EqualServersAreUnchanged) {
  const std::vector<PlannedServer> plan = planned(file_of({imported(kFiles)}), {stored(kFiles)});
  EXPECT_EQ(plan.at(0).action, ImportAction::unchanged);
}

TEST(ImportPlanTest, MembersThatTheFileDoesNotHaveAreNotCompared) {
  const std::vector<PlannedServer> plan =
      planned(file_of({imported(kFiles)}),
              {stored(R"({"name":"Files","title":"Mine","tags":["x"],"visibility":"hidden",
                          "config":{"command":"npx","args":["-y","srv","/data"]}})")});
  EXPECT_EQ(plan.at(0).action, ImportAction::unchanged);
}

TEST(ImportPlanTest, DifferentServersAreUpdatedOnlyOnRequest) {
  const ImportedFile file = file_of({imported(kFiles)});
  const std::vector<json::Raw> existing = {
      stored(R"({"name":"files","config":{"command":"npx","args":["-y","srv"],"env":{"A":"private"}}})")};
  const std::vector<PlannedServer> plan = planned(file, existing);
  EXPECT_EQ(plan.at(0).action, ImportAction::differs);
  EXPECT_EQ(plan.at(0).changes,
            (std::vector<std::string>{R"(config.args: ["-y","srv"] -> ["-y","srv","/data"])",
                                      R"(config.env: "***" -> (removed))"}));
  ImportChoices choices;
  choices.update = true;
  const std::vector<PlannedServer> update = planned(file, existing, choices);
  EXPECT_EQ(update.at(0).action, ImportAction::update);
  EXPECT_EQ(update.at(0).existing_etag, "\"7\"");
  const Result<json::Raw> merged_row =
      registry::merge_patch(json::View(existing[0]), json::View(update.at(0).patch));
  ASSERT_TRUE(merged_row);
  EXPECT_EQ(json::View(*merged_row)["config"]["args"].text(), R"(["-y","srv","/data"])");
  EXPECT_TRUE(json::View(*merged_row)["config"]["env"].absent());
}

TEST(ImportPlanTest, SkippedInvalidAndRepeatedServersAreNotAdded) {
  ImportedServer own = imported(R"({"name":"fairlead","config":{"command":"fairlead"}})");
  own.skip_reason = "this is the gateway itself";
  const std::vector<PlannedServer> plan = planned(
      file_of({own, imported(R"({"name":"bad","config":{}})"), imported(kFiles), imported(kFiles)}), {});
  ASSERT_EQ(plan.size(), 4u);
  EXPECT_EQ(plan[0].action, ImportAction::skip);
  EXPECT_EQ(plan[0].reason, "this is the gateway itself");
  EXPECT_EQ(plan[1].action, ImportAction::skip);
  EXPECT_EQ(plan[2].action, ImportAction::add);
  EXPECT_EQ(plan[3].action, ImportAction::skip);
}

TEST(ImportPlanTest, NamesSelectServersByPattern) {
  ImportChoices choices;
  choices.names = {"fi*"};
  const std::vector<PlannedServer> plan = planned(
      file_of({imported(kFiles), imported(R"({"name":"other","config":{"command":"x"}})")}), {}, choices);
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].name, "files");
}

ImportedServer with_literal_secret() {
  ImportedServer server = imported(
      R"({"name":"issues","config":{"url":"https://a.example/mcp","headers":{"Authorization":"Bearer s3cret"}}})");
  server.literal_secrets.push_back(
      {"/config/headers/Authorization", "ISSUES_TOKEN", "s3cret", "Bearer ${secret:ISSUES_TOKEN}"});
  return server;
}

TEST(ImportPlanTest, LiteralSecretsAreMovedOnRequestAndNeverShown) {
  ImportChoices choices;
  choices.move_secrets = true;
  const ImportedFile file = file_of({with_literal_secret()});
  const std::vector<PlannedServer> plan = planned(file, {}, choices);
  EXPECT_EQ(json::View(plan.at(0).body)["config"]["headers"]["Authorization"].as_string(),
            "Bearer ${secret:ISSUES_TOKEN}");
  ASSERT_EQ(plan.at(0).secrets.size(), 1u);
  EXPECT_EQ(plan.at(0).secrets[0].name, "ISSUES_TOKEN");
  EXPECT_EQ(plan.at(0).secrets[0].value, "s3cret");
  const std::vector<PlannedServer> kept = planned(file, {});
  EXPECT_TRUE(kept.at(0).secrets.empty());
  EXPECT_EQ(kept.at(0).changes.back(), "config.headers.Authorization: \"***\"");
}

TEST(ImportPlanTest, SecretsThatWereMovedBeforeStayMoved) {
  const ImportedFile file = file_of({with_literal_secret()});
  const json::Raw existing = stored(R"({"name":"issues","config":{"url":"https://a.example/mcp",
                 "headers":{"Authorization":"Bearer ${secret:ISSUES_TOKEN}"}}})");
  const std::vector<PlannedServer> plan = planned(file, {existing});
  EXPECT_EQ(plan.at(0).action, ImportAction::unchanged);
  EXPECT_EQ(json::View(plan.at(0).body)["config"]["headers"]["Authorization"].as_string(),
            "Bearer ${secret:ISSUES_TOKEN}");
}

TEST(ImportPlanTest, SecretsOfEqualRowsAreStoredAgainByAnUpdate) {
  const ImportedFile file = file_of({with_literal_secret()});
  const json::Raw existing = stored(R"({"name":"issues","config":{"url":"https://a.example/mcp",
                 "headers":{"Authorization":"Bearer ${secret:ISSUES_TOKEN}"}}})");
  ImportChoices choices;
  choices.update = true;
  for (const bool move : {false, true}) {
    choices.move_secrets = move;
    const std::vector<PlannedServer> plan = planned(file, {existing}, choices);
    EXPECT_EQ(plan.at(0).action, ImportAction::update) << move;
    EXPECT_TRUE(plan.at(0).changes.empty());
    ASSERT_EQ(plan.at(0).secrets.size(), 1u);
    EXPECT_EQ(plan.at(0).secrets[0].value, "s3cret");
  }
  choices.update = false;
  EXPECT_EQ(planned(file, {existing}, choices).at(0).action, ImportAction::unchanged);
  EXPECT_EQ(planned(file, {existing}, choices).at(0).secrets.size(), 1u) << "they may differ";
}

TEST(ImportPlanTest, ServerThatIsDisabledOnlyInTheRegistryStaysSoAndIsNamed) {
  const json::Raw existing =
      stored(R"({"name":"files","enabled":false,"config":{"command":"npx","args":["-y","srv","/data"]}})");
  const std::vector<PlannedServer> plan = planned(file_of({imported(kFiles)}), {existing});
  EXPECT_EQ(plan.at(0).action, ImportAction::unchanged);
  ASSERT_EQ(plan.at(0).remarks.size(), 1u);
  EXPECT_EQ(plan.at(0).remarks[0].message, "it is disabled in the gateway: `fairlead servers enable files`");
}

ImportInput text_input(const std::string& name) {
  ImportInput input;
  input.name = name;
  input.placeholder = "${input:" + name + "}";
  return input;
}

TEST(ImportPlanTest, InputsAreFilledIn) {
  ImportedServer server = imported(
      R"({"name":"s","config":{"command":"x","args":["--root","${input:root}"],"env":{"KEY":"${secret:KEY}"}}})");
  server.inputs.push_back(text_input("root"));
  ImportInput key = text_input("KEY");
  key.secret = true;
  key.placeholder = "${secret:KEY}";
  server.inputs.push_back(key);
  ImportChoices choices;
  choices.inputs["root"] = {"/a", "/b"};
  EXPECT_FALSE(plan_import(file_of({server}), {}, choices)) << "it can have only one value";
  choices.inputs["root"] = {"/srv/$n"};
  const std::vector<PlannedServer> without = planned(file_of({server}), {}, choices);
  EXPECT_EQ(json::View(without.at(0).body)["config"]["args"].text(), R"(["--root","/srv/$$n"])");
  ASSERT_EQ(without.at(0).missing_secrets.size(), 1u);
  choices.inputs["KEY"] = {"k"};
  const std::vector<PlannedServer> with = planned(file_of({server}), {}, choices);
  EXPECT_TRUE(with.at(0).missing_secrets.empty());
  EXPECT_EQ(with.at(0).secrets.at(0).value, "k");
  EXPECT_EQ(json::View(with.at(0).body)["config"]["env"]["KEY"].as_string(), "${secret:KEY}");
}

TEST(ImportPlanTest, OnlyTheServerWhoseInputHasNoValueIsSkipped) {
  ImportedServer server =
      imported(R"({"name":"s","config":{"command":"x","args":["--root","${input:root}/a"]}})");
  server.inputs.push_back(text_input("root"));
  ImportChoices choices;
  const std::vector<PlannedServer> plan = planned(file_of({server, imported(kFiles)}), {}, choices);
  EXPECT_EQ(plan.at(0).action, ImportAction::skip);
  EXPECT_EQ(plan.at(0).reason, "it needs a value: pass --input root=VALUE");
  EXPECT_EQ(plan.at(1).action, ImportAction::add);
  choices.dry_run = true;
  const std::vector<PlannedServer> shown = planned(file_of({server, imported(kFiles)}), {}, choices);
  EXPECT_EQ(shown.at(0).action, ImportAction::add);
  EXPECT_EQ(shown.at(0).changes.back(), R"(config.args[1]: "<root>/a")");
  ASSERT_EQ(shown.at(0).missing_inputs.size(), 1u);
  EXPECT_EQ(shown.at(0).missing_inputs[0].name, "root");
}

TEST(RowStringsTest, PointersNameMembersAndElements) {
  const json::Raw document = raw_json(R"({"a/b":["x",{"c~d":"y"}],"n":1})");
  EXPECT_EQ(value_at(json::View(document), "/a~1b/0").as_string(), "x");
  EXPECT_EQ(value_at(json::View(document), "/a~1b/1/c~0d").as_string(), "y");
  EXPECT_TRUE(value_at(json::View(document), "/a~1b/2").absent());
  EXPECT_TRUE(value_at(json::View(document), "/n/x").absent());
  std::vector<std::string> pointers;
  const json::Raw changed =
      change_strings(json::View(document), [&](const std::string& pointer, const std::string& text) {
        pointers.push_back(pointer);
        return text == "y" ? std::optional<std::string>("\"z\"") : std::nullopt;
      });
  EXPECT_EQ(changed.text(), R"({"a/b":["x",{"c~d":"\"z\""}],"n":1})");
  EXPECT_EQ(pointers, (std::vector<std::string>{"/a~1b/0", "/a~1b/1/c~0d"}));
}

}  // namespace
}  // namespace fairlead::clients
