// Editing the files of clients: everything but one entry stays as it is, byte for byte.
#include "clients/edit.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "clients/own_entry.hpp"
#include "fairlead/json/view.hpp"
#include "support/support.hpp"

namespace fairlead::clients {
namespace {

constexpr char kUrl[] = "http://127.0.0.1:8808/mcp";

const Client& client_named(std::string_view id) {
  const Client* const client = find_client(id);
  if (!client) throw std::invalid_argument(std::string(id));
  return *client;
}

Entry entry_for(const Client& client, const std::string& url = kUrl) {
  OwnEntry own;
  own.url = url;
  if (client.connect_by != ConnectBy::http) own.command = {"/usr/bin/fairlead", "serve", "--stdio"};
  return Entry{"fairlead", make_own_entry(client, own).value()};
}

std::string put(std::string_view id, std::string_view text, const std::string& url = kUrl) {
  const Result<std::string> result = put_entry(client_named(id), text, entry_for(client_named(id), url));
  return result ? *result : "error: " + result.error().message();
}

std::string removed(std::string_view id, std::string_view text) {
  const Result<std::string> result = remove_entry(client_named(id), text, "fairlead");
  return result ? *result : "error: " + result.error().message();
}

// ---- JSON ----

TEST(EditJsonTest, EmptyFileGetsContainerAndEntry) {
  const std::string expected =
      "{\n  \"mcpServers\": {\n    \"fairlead\": {\n      \"url\": \"http://127.0.0.1:8808/mcp\"\n    }\n  "
      "}\n}\n";
  EXPECT_EQ(put("cursor", ""), expected);
  EXPECT_EQ(put("cursor", "  \n"), "  \n" + expected);
  EXPECT_EQ(put("cursor", "// mine\n"), "// mine\n" + expected);
  EXPECT_EQ(put("cursor", "{}"), expected.substr(0, expected.size() - 1));
  EXPECT_EQ(put("cursor", "\xEF\xBB\xBF{}\n"), "\xEF\xBB\xBF" + expected);
}

TEST(EditJsonTest, CommentsTrailingCommasAndOrderAreKept) {
  const std::string head =
      "{\n  // first\n  \"z\": 1, // one\n  \"mcpServers\": {\n    \"a\": {\"url\": \"x\"}, // the last, "
      "really\n"
      "    /* end */\n";
  const std::string tail = "  },\n  \"b\": [1,2,],\n}\n";
  EXPECT_EQ(put("cursor", head + tail),
            head + "    \"fairlead\": {\n      \"url\": \"http://127.0.0.1:8808/mcp\"\n    },\n" + tail);
}

TEST(EditJsonTest, CommaIsAddedBeforeCommentOfLastMember) {
  EXPECT_EQ(put("cursor", "{\n\t\"mcpServers\": {\n\t\t\"a\": {} // note, with comma\n\t}\n}"),
            "{\n\t\"mcpServers\": {\n\t\t\"a\": {}, // note, with comma\n\t\t\"fairlead\": {\n\t\t\t\"url\": "
            "\"http://127.0.0.1:8808/mcp\"\n\t\t}\n\t}\n}");
}

TEST(EditJsonTest, LineEndsOfTheFileAreUsed) {
  EXPECT_EQ(put("cursor", "{\r\n  \"a\": 1\r\n}\r\n"),
            "{\r\n  \"a\": 1,\r\n  \"mcpServers\": {\r\n    \"fairlead\": {\r\n      \"url\": "
            "\"http://127.0.0.1:8808/mcp\"\r\n    }\r\n  }\r\n}\r\n");
}

TEST(EditJsonTest, ObjectOnOneLineStaysThere) {
  const std::string text = put("cursor", "{ \"a\": 1, \"mcpServers\": { \"b\": {} } }");
  EXPECT_TRUE(text.starts_with("{ \"a\": 1, \"mcpServers\": { \"b\": {}, \"fairlead\": {")) << text;
  EXPECT_EQ(removed("cursor", text), "{ \"a\": 1, \"mcpServers\": { \"b\": {} } }");
}

TEST(EditJsonTest, NestedAndDottedContainersAreCreated) {
  EXPECT_NE(put("amp", "{\"amp.other\": true}").find("\"amp.mcpServers\""), std::string::npos);
  EXPECT_NE(put("opencode", "{}").find("\"servers\""), std::string::npos);
  const std::string first_version = put("opencode", R"({"mcp": {"a": {"type": "local", "command": ["x"]}}})");
  EXPECT_EQ(first_version.find("\"servers\""), std::string::npos) << first_version;
  EXPECT_NE(first_version.find("\"type\": \"remote\""), std::string::npos);
}

TEST(EditJsonTest, RightEntryIsLeftAlone) {
  const std::string text =
      R"({"mcpServers":{"fairlead":{"url":"http:\/\/127.0.0.1:8808/mcp","disabled":false}}})";
  EXPECT_EQ(put("cursor", text), text);
}

TEST(EditJsonTest, OwnKeysAreReplacedAndOtherKeysOfTheEntryKept) {
  const std::string text =
      R"({"mcpServers":{"fairlead":{"command":"old","args":["a"],"autoApprove":["x"],"headers":{"Authorization":"Bearer old"}},"b":{"url":"y"}}})";
  const Result<json::Raw> entry = find_entry(client_named("cursor"), put("cursor", text), "fairlead");
  ASSERT_TRUE(entry);
  const json::View view(*entry);
  EXPECT_TRUE(view["command"].absent());
  EXPECT_TRUE(view["args"].absent());
  EXPECT_TRUE(view["headers"].absent());
  EXPECT_EQ(view["url"].as_string(), kUrl);
  EXPECT_EQ(view["autoApprove"].text(), R"(["x"])");
}

TEST(EditJsonTest, UnreadableFileFailsWithItsLine) {
  const Result<std::string> broken =
      put_entry(client_named("cursor"), "{\n  \"a\": 1,\n  \"b\" 2\n}", entry_for(client_named("cursor")));
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind(), ErrorKind::validation);
  EXPECT_NE(broken.error().message().find("line 3"), std::string::npos) << broken.error().message();
  EXPECT_TRUE(put("cursor", "[1]").starts_with("error: line 1"));
  EXPECT_TRUE(
      put("cursor", "{\n\"mcpServers\": []}").starts_with("error: line 2: `mcpServers` is not an object"));
  EXPECT_TRUE(put("cursor", "{\"a\": 1} /* unterminated").starts_with("error: "));
  EXPECT_TRUE(put("cursor", std::string(300, '{')).starts_with("error: "));
}

TEST(EditJsonTest, RepeatedContainerIsRefusedOrChangedWhereItCounts) {
  const std::string text = R"({"mcpServers": {"a": {}}, "mcpServers": {"b": {}}})";
  const std::string result = put("cursor", text);
  if (!result.starts_with("error: ")) {
    EXPECT_FALSE(find_entry(client_named("cursor"), result, "fairlead")->absent());
  }
}

TEST(EditJsonTest, RemovalRestoresTheTextExceptTheContainer) {
  for (const std::string text : {"{\n  \"mcpServers\": {\n    \"a\": {} // c\n  }\n}\n",
                                 "{\n  \"mcpServers\": {\n    \"a\": {}, // c\n  }\n}\n",
                                 "{\n\t\"mcpServers\": {}\n}", "{\"mcpServers\":{\"a\":1}}"}) {
    const std::string connected = put("cursor", text);
    ASSERT_FALSE(connected.starts_with("error: ")) << connected;
    EXPECT_EQ(removed("cursor", connected), text) << connected;
  }
  EXPECT_EQ(removed("cursor", "{\"a\": 1}"), "{\"a\": 1}");
}

TEST(EditJsonTest, EntryBetweenOthersIsRemovedWithItsComma) {
  EXPECT_EQ(removed("cursor", "{\"mcpServers\": {\n  \"fairlead\": {},\n  // b\n  \"b\": {}\n}}"),
            "{\"mcpServers\": {\n  // b\n  \"b\": {}\n}}");
  EXPECT_EQ(removed("cursor", "{\"mcpServers\": {\"a\": {}, \"fairlead\": {}, \"b\": {}}}"),
            "{\"mcpServers\": {\"a\": {}, \"b\": {}}}");
}

// ---- TOML ----

TEST(EditTomlTest, TableIsAppended) {
  EXPECT_EQ(put("codex", ""), "[mcp_servers.fairlead]\nurl = \"http://127.0.0.1:8808/mcp\"\n");
  EXPECT_EQ(put("codex", "model = \"m\" # mine"),
            "model = \"m\" # mine\n\n[mcp_servers.fairlead]\nurl = \"http://127.0.0.1:8808/mcp\"\n");
}

TEST(EditTomlTest, TableIsReplacedBetweenOthersAndOtherKeysKept) {
  const std::string before =
      "# top\n[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.fairlead]\nurl = \"http://old/mcp\"\nenabled "
      "= "
      "true\n\n# b's comment\n[mcp_servers.b]\ncommand = \"\"\"\n[mcp_servers.fairlead]\n\"\"\"\n";
  const std::string after = put("codex", before);
  EXPECT_EQ(after,
            "# top\n[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.fairlead]\nurl = "
            "\"http://127.0.0.1:8808/mcp\"\nenabled = true\n\n# b's comment\n[mcp_servers.b]\ncommand = "
            "\"\"\"\n[mcp_servers.fairlead]\n\"\"\"\n");
  EXPECT_EQ(put("codex", after), after);
  EXPECT_EQ(removed("codex", after),
            "# top\n[mcp_servers.a]\ncommand = \"x\"\n\n# b's comment\n[mcp_servers.b]\ncommand = "
            "\"\"\"\n[mcp_servers.fairlead]\n\"\"\"\n");
}

TEST(EditTomlTest, InlineTableIsReplacedInItsLine) {
  EXPECT_EQ(put("codex", "[mcp_servers]\nfairlead = { url = \"http://old\" }\nb = { command = \"y\" }\n"),
            "[mcp_servers]\nfairlead = { url = \"http://127.0.0.1:8808/mcp\" }\nb = { command = \"y\" }\n");
}

TEST(EditTomlTest, ClosedInlineContainerIsRefusedWithWhatToAdd) {
  const Result<std::string> refused = put_entry(
      client_named("codex"), "mcp_servers = { a = { command = \"x\" } }\n", entry_for(client_named("codex")));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail().remedy.find("[mcp_servers.fairlead]"), std::string::npos);
}

TEST(EditTomlTest, ArrayOfTablesGetsAnElement) {
  const std::string before = "[[mcp_servers]]\nname = \"a\"\ntransport = \"stdio\"\ncommand = \"x\"\n";
  const std::string after = put("vibe", before);
  EXPECT_EQ(after, before +
                       "\n[[mcp_servers]]\nname = \"fairlead\"\ntransport = \"streamable-http\"\nurl = "
                       "\"http://127.0.0.1:8808/mcp\"\n");
  EXPECT_EQ(put("vibe", after), after);
  EXPECT_EQ(removed("vibe", after), before);
  EXPECT_NE(put("vibe", after, "http://other/mcp").find("http://other/mcp"), std::string::npos);
}

// ---- YAML ----

TEST(EditYamlTest, MapGetsFirstChild) {
  const std::string before =
      "# goose\nGOOSE_MODEL: m  # model\nextensions:\n  # tools\n  developer:\n    enabled: true\n    type: "
      "builtin\nlast: 1\n";
  const std::string after = put("goose", before);
  EXPECT_NE(after.find("extensions:\n  fairlead:\n    type: streamable_http\n"), std::string::npos) << after;
  EXPECT_NE(after.find("    uri: \"http://127.0.0.1:8808/mcp\"\n  # tools\n  developer:\n"),
            std::string::npos)
      << after;
  EXPECT_EQ(put("goose", after), after);
  EXPECT_EQ(removed("goose", after), before);
}

TEST(EditYamlTest, EmptyMissingAndFlowContainersAreFilled) {
  for (const std::string before :
       {"a: 1\n", "a: 1", "extensions:\n", "extensions: {}\na: 1\n", "extensions: ~ # none\n",
        "extensions: {\"b\": {type: builtin}}\n", "", "# only a comment\n", "---\n"}) {
    const std::string after = put("goose", before);
    ASSERT_FALSE(after.starts_with("error: ")) << before << after;
    const Result<json::Raw> entry = find_entry(client_named("goose"), after, "fairlead");
    ASSERT_TRUE(entry) << after;
    EXPECT_EQ(json::View(*entry)["uri"].as_string(), kUrl) << after;
  }
}

TEST(EditYamlTest, ListElementIsReplacedAndRemoved) {
  const std::string before =
      "name: x\nmcpServers:\n- name: a\n  command: y\n  args:\n  - |\n    text\n- {name: b, command: "
      "z}\nmodels: []\n";
  const std::string after = put("continue", before);
  EXPECT_NE(after.find("mcpServers:\n- name: fairlead\n  type: streamable-http\n"), std::string::npos)
      << after;
  EXPECT_EQ(removed("continue", after), before);
  const std::string other = put("continue", after, "http://other/mcp");
  EXPECT_NE(other.find("  url: \"http://other/mcp\"\n- name: a\n"), std::string::npos) << other;
}

TEST(EditYamlTest, EntryAtTheEndWithBlockScalarIsRemoved) {
  EXPECT_EQ(
      removed(
          "goose",
          "extensions:\n  a:\n    cmd: x\n  fairlead:\n    description: |\n      two\n      lines\n\nz: 1\n"),
      "extensions:\n  a:\n    cmd: x\n\nz: 1\n");
  EXPECT_EQ(removed("goose", "extensions:\n  fairlead:\n    cmd: x\n"), "extensions: {}\n");
}

TEST(EditYamlTest, NonAsciiTextBeforeTheEntryDoesNotShiftIt) {
  const std::string before =
      "title: \"\xC3\xA4\xF0\x9F\x98\x80\" # \xC3\xB6\nextensions:\n  \xC3\xA4: {type: builtin}\n";
  const std::string after = put("goose", before);
  EXPECT_EQ(removed("goose", after), before);
}

TEST(EditYamlTest, UnreadableFileIsLeftAlone) {
  EXPECT_TRUE(put("goose", "a: [1\nb: 2\n").starts_with("error: "));
  EXPECT_TRUE(put("goose", "\ta: 1\n").starts_with("error: "));
  EXPECT_TRUE(put("goose", "extensions: 3\n").starts_with("error: "));
}

// ---- all clients ----

TEST(EditTest, EveryClientGetsAnEntryThatIsFoundAndRemoved) {
  for (const Client& client : clients()) {
    if (client.connect_by == ConnectBy::nothing) continue;
    const Entry entry = entry_for(client);
    const Result<std::string> text = put_entry(client, "", entry);
    ASSERT_TRUE(text) << client.id << ": " << text.error().message();
    const Result<json::Raw> found = find_entry(client, *text, "fairlead");
    ASSERT_TRUE(found) << client.id;
    EXPECT_EQ(json::View(*found).size(), json::View(entry.value).size()) << client.id << *text;
    EXPECT_EQ(put_entry(client, *text, entry).value(), *text) << client.id;
    const Result<std::string> without = remove_entry(client, *text, "fairlead");
    ASSERT_TRUE(without) << client.id << ": " << without.error().message() << *text;
    EXPECT_TRUE(find_entry(client, *without, "fairlead")->absent()) << client.id;
    EXPECT_FALSE(entry_text(client, entry).empty()) << client.id;
  }
}

// The files that the importers are tested with, in directories named after their clients.
TEST(EditTest, BytesOfGoldenFilesAreKeptAndRestored) {
  const std::filesystem::path golden = std::filesystem::path(FAIRLEAD_SOURCE_DIR) / "tests/clients/golden";
  std::set<std::string_view> edited;
  for (const auto& file : std::filesystem::recursive_directory_iterator(golden)) {
    const Client* const client = find_client(file.path().parent_path().filename().string());
    if (!client || client->connect_by == ConnectBy::nothing || !file.is_regular_file()) continue;
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const std::string before = text.str();
    const Result<json::Raw> own = find_entry(*client, before, "fairlead");
    if (!own || !own->absent()) continue;
    const Result<std::string> after = put_entry(*client, before, entry_for(*client));
    if (!after) continue;  // a file for another format of the client
    edited.insert(client->id);
    // Bytes were added and none were changed.
    std::size_t kept = 0;
    for (const char c : *after) {
      if (kept < before.size() && before[kept] == c) ++kept;
    }
    EXPECT_EQ(kept, before.size()) << file.path() << "\n" << *after;
    const std::size_t added = after->size() - before.size();
    EXPECT_LT(added, entry_text(*client, entry_for(*client)).size() + 100) << file.path() << "\n" << *after;
    EXPECT_EQ(put_entry(*client, *after, entry_for(*client)).value(), *after) << file.path();
    const Result<std::string> without = remove_entry(*client, *after, "fairlead");
    ASSERT_TRUE(without || client->format == FileFormat::yaml) << file.path() << *after;
    if (without) {
      EXPECT_EQ(*without, before) << file.path() << "\n" << *after;
    }
  }
  for (const Client& client : clients())
    EXPECT_EQ(edited.contains(client.id), client.connect_by != ConnectBy::nothing) << client.id;
}

// Returns the entry of each client as `connect` writes it into an empty file.
std::string entries_of_all_clients() {
  std::string text;
  for (const Client& client : clients())
    if (client.connect_by != ConnectBy::nothing)
      text += "# " + std::string(client.id) + "\n" + entry_text(client, entry_for(client)) + "\n";
  return text;
}

// With FAIRLEAD_UPDATE_GOLDEN the expected entries are written instead of compared.
TEST(OwnEntryTest, EveryClientGetsTheEntryThatItReads) {
  const std::filesystem::path golden =
      std::filesystem::path(FAIRLEAD_SOURCE_DIR) / "tests/clients/golden/own_entries.txt";
  if (std::getenv("FAIRLEAD_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << entries_of_all_clients();
  std::ostringstream expected;
  expected << std::ifstream(golden).rdbuf();
  EXPECT_EQ(entries_of_all_clients(), expected.str());
}

TEST(OwnEntryTest, GooseGetsEveryKeyThatItNeeds) {
  const json::Raw entry = entry_for(client_named("goose")).value;
  for (const char* key : {"name", "description", "uri", "headers", "env_keys", "timeout", "enabled"})
    EXPECT_FALSE(json::View(entry)[key].absent()) << key;
  OwnEntry own;
  own.url = kUrl;
  own.token_variable = "T";
  const json::Raw with_variable = make_own_entry(client_named("goose"), own).value();
  EXPECT_EQ(json::View(with_variable)["env_keys"].text(), R"(["T"])");
  EXPECT_EQ(json::View(with_variable)["headers"]["Authorization"].as_string(), "Bearer ${T}");
}

Entry command_entry(const Client& client, const std::string& token) {
  OwnEntry own;
  own.command = {"/usr/bin/fairlead", "serve", "--stdio"};
  own.token = token;
  return Entry{"fairlead", make_own_entry(client, own).value()};
}

TEST(OwnEntryTest, KeysOfAProcessAreRemovedWhenTheEntryGetsAUrl) {
  const Client& codex = client_named("codex");
  const std::string by_command = put_entry(codex, "", command_entry(codex, "old-token")).value();
  EXPECT_NE(by_command.find("old-token"), std::string::npos);
  EXPECT_EQ(put("codex", by_command), "[mcp_servers.fairlead]\nurl = \"http://127.0.0.1:8808/mcp\"\n");
  const Client& cursor = client_named("cursor");
  const std::string of_cursor = put_entry(cursor, "", command_entry(cursor, "old-token")).value();
  EXPECT_EQ(put("cursor", of_cursor).find("old-token"), std::string::npos);
}

TEST(OwnEntryTest, VariablesOfTheUserAreKeptBesideTheToken) {
  const Client& client = client_named("claude-desktop");
  const std::string before =
      R"({"mcpServers":{"fairlead":{"command":"old","env":{"LOG":"debug","FAIRLEAD_TOKEN":"old"}}}})";
  const std::string after = put_entry(client, before, command_entry(client, "new")).value();
  const Result<json::Raw> entry = find_entry(client, after, "fairlead");
  ASSERT_TRUE(entry);
  EXPECT_EQ(json::View(*entry)["env"]["LOG"].as_string(), "debug");
  EXPECT_EQ(json::View(*entry)["env"]["FAIRLEAD_TOKEN"].as_string(), "new");
}

TEST(OwnEntryTest, TokenIsWrittenInTheFormOfTheClient) {
  OwnEntry own;
  own.url = kUrl;
  own.token_variable = "MY_TOKEN";
  const auto entry = [&](std::string_view id) {
    const Result<json::Raw> made = make_own_entry(client_named(id), own);
    return made ? std::string(made->text()) : made.error().message();
  };
  EXPECT_NE(entry("cursor").find(R"("Bearer ${env:MY_TOKEN}")"), std::string::npos) << entry("cursor");
  EXPECT_NE(entry("claude-code").find(R"("Bearer ${MY_TOKEN}")"), std::string::npos) << entry("claude-code");
  EXPECT_NE(entry("codex").find(R"("bearer_token_env_var":"MY_TOKEN")"), std::string::npos) << entry("codex");
  EXPECT_NE(entry("opencode").find(R"("Bearer {env:MY_TOKEN}")"), std::string::npos) << entry("opencode");
  own.token_variable.clear();
  own.token = "secret-token-0123456789";
  EXPECT_NE(entry("codex").find(R"("http_headers":{"Authorization":"Bearer secret-token-0123456789"})"),
            std::string::npos);
  own.command = {"/usr/bin/fairlead", "serve", "--stdio"};
  EXPECT_NE(entry("claude-desktop").find(R"("env":{"FAIRLEAD_TOKEN":"secret-token-0123456789"})"),
            std::string::npos);
}

}  // namespace
}  // namespace fairlead::clients
