#include "clients/write.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "clients/entry_format.hpp"
#include "clients/read.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/json.hpp"

namespace fairlead::clients {
namespace {

namespace fs = std::filesystem;

const fs::path kExported = fs::path(FAIRLEAD_SOURCE_DIR) / "tests/clients/golden";

std::string text_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

json::Raw raw(const std::string& text) {
  return json::Raw::parse(text).value();
}

std::vector<json::Raw> example_rows() {
  return {
      raw(R"({"name":"files","description":"All files","config":{"command":"npx","args":["-y","srv-files","/my data","a$$b"],
             "env":{"LOG":"info","GH_TOKEN":"${env:GH_TOKEN}","REGION":"${env:AREA:-eu}"},"cwd":"/srv","clocks":{"idle":"90s","handshake":"12500ms"}},
             "tools":{"allow":["read_file"],"deny":["write_file"]},"enabled":false})"),
      raw(R"({"name":"issues","config":{"url":"https://mcp.example.com/mcp","headers":{"Authorization":"Bearer ${secret:gh-token}","X-Team":"a","X-Area":"${env:AREA}"}}})"),
      raw(R"({"name":"old","config":{"url":"http://old.example/sse","sharing":"per_session"},"metadata":{"transport":"sse"}})"),
      raw(R"({"name":"leaky","config":{"command":"c","args":["--token","t0k3n-value"],"env":{"GITHUB_TOKEN":"ghp_0123456789abcdefghij","KEY_FILE":"${file:/run/key}"}}})"),
  };
}

std::string with_remarks(const ExportedFile& file) {
  std::string text = file.text + "\n---\n";
  for (const Remark& remark : file.remarks) text += remark.pointer + ": " + remark.message + "\n";
  return text;
}

// Reads a file of a client and returns the rows without names of clients and remarks.
std::vector<json::Raw> read_rows(const Client& client, const std::string& text) {
  ReadOptions options;
  options.client = &client;
  const Result<ImportedFile> file = read_client_file(text, options);
  EXPECT_TRUE(file) << (file ? "" : file.error().message()) << "\n" << text;
  std::vector<json::Raw> rows;
  if (!file) return rows;
  for (const ImportedServer& server : file->servers) {
    EXPECT_EQ(server.skip_reason, "") << text;
    rows.push_back(server.row);
  }
  return rows;
}

// Returns what the rows mean, without titles, with all members in the order of the registry.
std::string meaning_of_rows(const std::vector<json::Raw>& rows, bool with_metadata) {
  std::string text;
  for (const json::Raw& row : rows) {
    registry::Server server = registry::parse_server(json::View(row)).value();
    server.title.clear();
    if (!with_metadata) server.metadata = json::Raw();
    text += std::string(registry::to_json(server).text()) + "\n";
  }
  return text;
}

// Returns whether the row has values that are to be replaced before it is used.
bool asks_for_text(const ImportedServer& server) {
  return std::ranges::any_of(server.inputs, [](const ImportInput& input) { return !input.secret; });
}

TEST(ClientExport, EveryClientGetsTheExampleServersInItsOwnFormat) {
  for (const Client& client : clients()) {
    SCOPED_TRACE(client.id);
    const Result<ExportedFile> file = write_client_file(client, example_rows());
    ASSERT_TRUE(file) << file.error().message();
    const fs::path expected = kExported / client.id / "export.txt";
    if (std::getenv("FAIRLEAD_UPDATE_GOLDEN") != nullptr) std::ofstream(expected) << with_remarks(*file);
    EXPECT_EQ(with_remarks(*file), text_in(expected));
    for (const char* secret : {"ghp_0123", "t0k3n-value"}) EXPECT_FALSE(file->text.contains(secret));
    EXPECT_EQ(read_rows(client, file->text).size(), 4U);
  }
}

TEST(ClientExport, WhatWasImportedFromAFileIsTheSameAfterExportAndImport) {
  for (const Client& client : clients()) {
    for (const auto& input : fs::directory_iterator(kExported / client.id)) {
      if (input.path().extension() == ".txt") continue;
      SCOPED_TRACE(input.path().string());
      ReadOptions options;
      options.client = &client;
      const Result<ImportedFile> file = read_client_file(text_in(input.path()), options);
      ASSERT_TRUE(file);
      std::vector<json::Raw> rows;
      for (const ImportedServer& server : file->servers)
        if (server.skip_reason.empty() && server.literal_secrets.empty() && !asks_for_text(server))
          rows.push_back(server.row);
      const Result<ExportedFile> exported = write_client_file(client, rows);
      ASSERT_TRUE(exported) << exported.error().message();
      EXPECT_EQ(meaning_of_rows(read_rows(client, exported->text), true), meaning_of_rows(rows, true))
          << exported->text;
    }
  }
}

// Makes random rows of what the format of a client can express.
class RowMaker {
 public:
  RowMaker(const Client& client, unsigned seed) : format_(*client.entry), client_(client), random_(seed) {}

  json::Raw row(std::size_t index) {
    json::Writer out;
    out.begin_object().key("name").string("s" + std::to_string(index));
    if (has(Meaning::description) && chance()) out.key("description").string("What it: does #1 \"well\"");
    if ((has(Meaning::enabled) || has(Meaning::disabled)) && chance()) out.key("enabled").boolean(false);
    out.key("config").begin_object();
    const bool is_url = client_.connect_by != ConnectBy::stdio && chance();
    is_url ? write_address(out) : write_program(out);
    write_clocks(out);
    out.end_object();
    write_tools(out);
    out.end_object();
    return std::move(out).finish();
  }

 private:
  bool has(Meaning meaning) const { return format_.key_for(meaning) != nullptr; }
  bool chance() { return random_() % 2 == 0; }

  std::string text() {
    static const std::vector<std::string> kTexts = {
        "a",   "two words",   "ü ö",    "x\"y\\z",  "1",       "true", "a: b # c", "-",
        "%41", "line\nbreak", "a,b{c}", "'quoted'", "\x7f\t!", "null", "0x1F"};
    return kTexts[random_() % kTexts.size()];
  }

  // A value with references that the client replaces there.
  std::string value(Position position, const std::string& name) {
    const VariableSyntax syntax = format_.variables.at(position);
    const bool in_env = position == Position::env;
    std::string out = text();
    if (!chance()) return out;
    if (syntax.mustache) return out + "${secret:S" + name + "}";
    if (has(Meaning::env_names) && in_env) return "${env:" + name + "}";
    if (has(Meaning::env_secrets) && in_env) return "${secret:" + name + "}";
    if (syntax.plain || syntax.env || syntax.braces) out += "${env:VAR_" + name + "}";
    if (syntax.inputs) out += "${secret:in-" + name + "}";
    if (syntax.file || syntax.braces) out += "${file:/run/x}";
    if (syntax.defaults && chance()) out += "${env:W:-de fault}";
    return out;
  }

  void write_program(json::Writer& out) {
    out.key("command").string(chance() ? "npx" : "/opt/my server/bin/run");
    if (chance()) out.key("args").begin_array().string("--x").string(value(Position::args, "A")).end_array();
    if (chance())
      out.key("env")
          .begin_object()
          .key("LOG")
          .string(value(Position::env, "LOG"))
          .key("N")
          .string("5")
          .end_object();
    if (has(Meaning::cwd) && chance()) out.key("cwd").string("/srv/x y");
  }

  void write_address(json::Writer& out) {
    out.key("url").string(chance() ? "https://e.example/mcp" : "http://[::1]:8080/a/b?x=1");
    if (!chance()) return;
    std::string header = value(Position::headers, "H");
    std::erase_if(header, [](char c) { return c == '\n' || c == '\x7f'; });
    out.key("headers").begin_object().key("X-Team").string(header).end_object();
  }

  void write_clocks(json::Writer& out) {
    const bool both = has(Meaning::timeouts);
    const bool start = (both || has(Meaning::start_timeout)) && chance();
    const bool call = (both || has(Meaning::call_timeout)) && chance();
    if (!start && !call) return;
    out.key("clocks").begin_object();
    if (start) out.key("handshake").string("45s");
    if (call) out.key("idle").string("15m").key("absolute").string("15m");
    out.end_object();
  }

  void write_tools(json::Writer& out) {
    const bool allow = has(Meaning::allow) && chance();
    const bool deny = has(Meaning::deny) && chance();
    if (!allow && !deny) return;
    out.key("tools").begin_object();
    if (allow) out.key("allow").begin_array().string("a").string("b_*").end_array();
    if (deny) out.key("deny").begin_array().string("c").end_array();
    out.end_object();
  }

  const EntryFormat& format_;
  const Client& client_;
  std::mt19937 random_;
};

TEST(ClientExport, ImportAfterExportYieldsTheSameServersForAllThatAClientCanExpress) {
  for (const Client& client : clients()) {
    for (unsigned seed = 0; seed < 30; ++seed) {
      RowMaker maker(client, seed);
      std::vector<json::Raw> rows;
      for (std::size_t i = 0; i < 4; ++i) rows.push_back(maker.row(i));
      const Result<ExportedFile> file = write_client_file(client, rows);
      ASSERT_TRUE(file) << file.error().message();
      ASSERT_EQ(meaning_of_rows(read_rows(client, file->text), false), meaning_of_rows(rows, false))
          << client.id << ", seed " << seed << "\n"
          << file->text;
    }
  }
}

// Returns the arguments, variable and header that a client gets for the secret T and a default.
std::string exported_values(const char* client) {
  const Result<ExportedFile> file = write_client_file(
      *find_client(client),
      {raw(R"({"name":"a","config":{"command":"c","args":["${secret:T}"],"env":{"E":"${env:E:-x}"}}})"),
       raw(R"({"name":"b","config":{"url":"https://b.example/mcp","headers":{"X":"${env:H}"}}})")});
  return file ? with_remarks(*file) : file.error().message();
}

TEST(ClientExport, ReferencesAreWrittenOnlyWhereTheClientReplacesThem) {
  for (const char* client : {"kiro", "goose"}) {
    const std::string text = exported_values(client);
    EXPECT_TRUE(text.contains(
        "/config/args/0: `a`: the value refers to the secret `T`: the client replaces nothing there"))
        << text;
    EXPECT_TRUE(text.contains("${H}")) << text;
  }
  EXPECT_TRUE(exported_values("goose").contains("the default is written"));
  EXPECT_FALSE(exported_values("gemini").contains("the client replaces nothing"));
}

TEST(ClientExport, DefaultsAreWrittenOnlyForClientsThatHaveThem) {
  for (const Client& client : clients())
    EXPECT_EQ(exported_values(std::string(client.id).c_str()).contains("${E:-x}"), client.id == "claude-code")
        << client.id;
}

TEST(ClientExport, ServersThatTheClientDoesNotSupportHaveARemark) {
  const Result<ExportedFile> file = write_client_file(*find_client("goose"), example_rows());
  ASSERT_TRUE(file);
  EXPECT_TRUE(with_remarks(*file).contains("`old`: the client does not support HTTP+SSE"));
}

TEST(ClientExport, OneEntryIsTheValueOfItsNameInTheFile) {
  const Result<ExportedEntry> entry = write_entry(*find_client("gemini"), example_rows().at(2));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->name, "old");
  EXPECT_EQ(entry->value.text(), R"({"url":"http://old.example/sse"})");
  EXPECT_EQ(entry->remarks.at(0).message, "the client has no key for `sharing`");
  EXPECT_FALSE(write_entry(*find_client("gemini"), raw(R"({"name":"x"})")));
}

TEST(ClientExport, NothingToExportIsAFileWithoutServers) {
  for (const Client& client : clients()) EXPECT_TRUE(write_client_file(client, {})) << client.id;
  EXPECT_EQ(write_client_file(*find_client("cursor"), {})->text, "{\n  \"mcpServers\": {}\n}\n");
}

}  // namespace
}  // namespace fairlead::clients
