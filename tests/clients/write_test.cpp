#include "clients/write.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

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
