#include "clients/read.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "clients/fill_inputs.hpp"
#include "clients/row_names.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/json.hpp"

namespace fairlead::clients {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(FAIRLEAD_SOURCE_DIR) / "tests/clients/golden";

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

ReadOptions test_options() {
  ReadOptions options;
  options.home = "/users/ada";
  options.own_urls = {"http://127.0.0.1:8808/mcp"};
  return options;
}

void append_line(std::string& out, const std::string& label, const std::string& text) {
  out += "  " + label + ": " + text + "\n";
}

// Returns what was read as lines of text.
std::string described(const ImportedFile& file) {
  std::string out = "format: " + file.format + "\n";
  for (const Remark& remark : file.remarks) out += "remark: " + remark.message + "\n";
  for (const ImportedServer& server : file.servers) {
    out += "\nserver: " + server.name + (server.scope.empty() ? "" : " in " + server.scope) + "\n";
    if (!server.row.absent()) append_line(out, "row", std::string(server.row.text()));
    if (!server.skip_reason.empty()) append_line(out, "skipped", server.skip_reason);
    for (const Remark& remark : server.remarks) append_line(out, "remark " + remark.pointer, remark.message);
    for (const LiteralSecret& secret : server.literal_secrets)
      append_line(out, "secret " + secret.pointer,
                  secret.name + " = " + secret.value + ", " + secret.replacement);
    for (const ImportInput& input : server.inputs) {
      std::string choices;
      for (const std::string& choice : input.choices) choices += " " + choice;
      append_line(out, "input " + input.placeholder,
                  input.description +
                      (input.default_value.empty() ? "" : ", default " + input.default_value) +
                      (choices.empty() ? "" : ", choices" + choices) + (input.secret ? ", secret" : ""));
    }
  }
  return out;
}

// Fails the test if what was read breaks a promise of read_client_file().
void expect_promises_kept(const ImportedFile& file) {
  std::set<std::string> names;
  for (const ImportedServer& server : file.servers) {
    if (!server.skip_reason.empty()) continue;
    const Result<registry::Server> row = registry::new_server(json::View(server.row));
    ASSERT_TRUE(row) << server.name << ": " << row.error().message();
    EXPECT_TRUE(names.insert(row->name).second) << row->name;
  }
}

Result<ImportedFile> read(const std::string& text, const std::string& client = "") {
  ReadOptions options = test_options();
  if (!client.empty()) options.client = find_client(client);
  Result<ImportedFile> file = read_client_file(text, options);
  if (file) expect_promises_kept(*file);
  return file;
}

std::string problem_of(const std::string& text, const std::string& client = "") {
  const Result<ImportedFile> file = read(text, client);
  return file ? "no error" : file.error().message();
}

// Reads a file with one server and returns its row.
std::string row_of(const std::string& entry, const std::string& client = "") {
  const Result<ImportedFile> file = read(R"({"mcpServers":{"x":)" + entry + "}}", client);
  if (!file) return file.error().message();
  const ImportedServer& server = file->servers.at(0);
  return server.row.absent() ? server.skip_reason : std::string(server.row.text());
}

std::vector<fs::path> golden_inputs() {
  std::vector<fs::path> inputs;
  for (const auto& file : fs::recursive_directory_iterator(kGolden))
    if (file.is_regular_file() && file.path().extension() != ".txt" &&
        !file.path().filename().string().starts_with("export"))
      inputs.push_back(file.path());
  std::ranges::sort(inputs);
  return inputs;
}

// With FAIRLEAD_UPDATE_GOLDEN the expected results are written instead of compared.
TEST(ClientFiles, EveryGoldenFileIsReadAsExpected) {
  std::set<std::string> formats;
  for (const fs::path& input : golden_inputs()) {
    SCOPED_TRACE(input.string());
    ReadOptions options = test_options();
    std::string path = input.filename().string();
    for (std::size_t at = path.find("__"); at != std::string::npos; at = path.find("__"))
      path.replace(at, 2, "/");
    options.path = path;
    const Result<ImportedFile> file = read_client_file(content_of(input), options);
    ASSERT_TRUE(file) << file.error().message();
    expect_promises_kept(*file);
    EXPECT_EQ(file->format, input.parent_path().filename().string());
    formats.insert(file->format);
    const std::string expected = input.string() + ".txt";
    if (std::getenv("FAIRLEAD_UPDATE_GOLDEN") != nullptr) std::ofstream(expected) << described(*file);
    EXPECT_EQ(described(*file), content_of(expected));
  }
  for (const Client& client : clients()) EXPECT_TRUE(formats.contains(std::string(client.id))) << client.id;
}

TEST(ClientFiles, TheFormatGivenIsUsedAlsoIfTheContentLooksLikeAnother) {
  EXPECT_EQ(row_of(R"({"command":"c","env":{"A":"${B}"}})", "claude-code"),
            R"({"name":"x","config":{"command":"c","env":{"A":"${env:B}"}}})");
  EXPECT_EQ(row_of(R"({"command":"c","env":{"A":"${B}"}})", "claude-desktop"),
            R"({"name":"x","config":{"command":"c","env":{"A":"$${B}"}}})");
  EXPECT_EQ(row_of(R"({"url":"https://e.example/mcp"})", "cline"),
            R"({"name":"x","config":{"url":"https://e.example/mcp"},"metadata":{"transport":"sse"}})");
  EXPECT_EQ(problem_of("{}", "zed"), "the file has no `context_servers`, where Zed has its servers");
}

TEST(ClientFiles, DirectoriesAndFilesWithVariablesAreUsedIfGiven) {
  ReadOptions options = test_options();
  options.project = "/projects/$hop";
  std::string asked;
  options.read_env_file = [&asked](const std::string& path) -> Result<std::string> {
    asked = path;
    return std::string("A=1\nB=two$\n");
  };
  const Result<ImportedFile> file = read_client_file(
      R"({"mcpServers":{"x":{"command":"c","args":["${workspaceFolder}/a","${workspaceFolderBasename}"],"env":{"A":"own"},"envFile":".env"}}})",
      options);
  ASSERT_TRUE(file);
  EXPECT_EQ(asked, "/projects/$hop/.env");
  EXPECT_EQ(
      file->servers.at(0).row.text(),
      R"({"name":"x","config":{"command":"c","args":["/projects/$$hop/a","$$hop"],"env":{"A":"own","B":"two$$"}},)"
      R"("metadata":{"generic":{"envFile":".env"}}})");
  EXPECT_TRUE(file->servers.at(0).remarks.empty());
}

// Reads a file of VS Code with one server `x`, in the project /p unless `project` says otherwise.
ImportedServer editor_server(const std::string& entry, const std::string& project = "/p",
                             std::string* env_file = nullptr) {
  ReadOptions options = test_options();
  options.client = find_client("vscode");
  options.project = project;
  options.read_env_file = [env_file](const std::string& path) -> Result<std::string> {
    if (env_file) *env_file = path;
    return std::string("A=1\n");
  };
  const Result<ImportedFile> file = read_client_file(R"({"servers":{"x":)" + entry + "}}", options);
  return file ? file->servers.at(0) : ImportedServer();
}

TEST(ClientFiles, EditorVariablesInPathsAreReplacedIfKnown) {
  std::string env_file;
  const ImportedServer server = editor_server(
      R"({"command":"${workspaceFolder}/bin/x","cwd":"${userHome}${/}d","envFile":"${workspaceFolder}/.env"})",
      "/p", &env_file);
  const json::View row(server.row);
  EXPECT_EQ(row["config"]["command"].as_string(), "/p/bin/x");
  EXPECT_EQ(row["config"]["cwd"].as_string(), "/users/ada/d");
  EXPECT_EQ(row["config"]["env"]["A"].as_string(), "1");
  EXPECT_TRUE(row["enabled"].absent());
  EXPECT_EQ(env_file, "/p/.env");
}

TEST(ClientFiles, DirectoryOfAnUnknownProjectIsAskedForOnce) {
  const ImportedServer server = editor_server(
      R"({"command":"${workspaceFolder}/x","args":["${workspaceFolder}"],"cwd":"${workspaceFolder}"})", "");
  ASSERT_EQ(server.inputs.size(), 1u);
  const Result<json::Raw> row = fill_inputs(server, {{"workspaceFolder", {"/p"}}});
  ASSERT_TRUE(row);
  EXPECT_EQ(row->text(), R"({"name":"x","config":{"command":"/p/x","args":["/p"],"cwd":"/p"}})");
}

TEST(ClientFiles, ServersWithUnknownDirectoriesAreDisabled) {
  for (const char* entry :
       {R"({"command":"${workspaceFolder:web}/x"})", R"({"command":"x","cwd":"${config:dir}"})",
        R"({"command":"${env:TOOLS}/x"})", R"({"command":"%APPDATA%\\x"})"}) {
    const ImportedServer server = editor_server(entry, "");
    EXPECT_EQ(json::View(server.row)["enabled"].as_bool(), false) << entry;
    EXPECT_EQ(server.remarks.size(), 1u) << entry;
  }
  EXPECT_TRUE(json::View(editor_server(R"({"command":"/opt/50%/x","cwd":"/100%"})").row)["enabled"].absent());
}

TEST(ClientFiles, EnvFileOfAnUnknownProjectIsNotRead) {
  for (const char* entry :
       {R"({"command":"x","envFile":".env"})", R"({"command":"x","envFile":"${workspaceFolder}/.env"})"}) {
    std::string env_file;
    const ImportedServer server = editor_server(entry, "", &env_file);
    EXPECT_EQ(env_file, "") << entry;
    ASSERT_EQ(server.remarks.size(), 1u);
    EXPECT_TRUE(server.remarks[0].message.ends_with("pass --project")) << server.remarks[0].message;
  }
}

TEST(ClientFiles, EveryAddressOfTheGatewayIsOurOwn) {
  ReadOptions options = test_options();
  options.own_urls.emplace_back("https://Tools.example/gateway");
  options.client = find_client("cursor");
  const auto is_own = [&](const std::string& url) {
    const Result<ImportedFile> file =
        read_client_file(R"({"mcpServers":{"x":{"url":")" + url + R"("}}})", options);
    return file->servers.at(0).skip_reason == "it is the entry of this gateway itself";
  };
  for (const char* url :
       {"http://127.0.0.1:8808/mcp", "http://LOCALHOST:8808/mcp/", "http://127.0.0.1:8808/sse",
        "ws://127.0.0.1:8808/mcp", "http://[::1]:8808/mcp/e/dev?x=1", "https://tools.example:443/gateway/mcp",
        "wss://tools.example/gateway/sse"})
    EXPECT_TRUE(is_own(url)) << url;
  for (const char* url :
       {"http://127.0.0.1:8809/mcp", "https://127.0.0.1:8808/mcp", "http://127.0.0.1:8808/other",
        "http://127.0.0.1.example:8808/mcp", "https://tools.example/mcp", "http://127.0.0.1:8808/mcpx"})
    EXPECT_FALSE(is_own(url)) << url;
}

TEST(ClientFiles, SecretsOfContinueAreAskedFor) {
  ReadOptions options = test_options();
  options.client = find_client("continue");
  const Result<ImportedFile> file = read_client_file(
      "mcpServers:\n  - {name: x, command: c, env: {GH: '${{ secrets.GH_TOKEN }}', B: '${{ secrets.GH_TOKEN "
      "}}'}}\n",
      options);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->servers.at(0).inputs.size(), 1u);
  EXPECT_EQ(file->servers[0].inputs[0].placeholder, "${secret:GH_TOKEN}");
  EXPECT_TRUE(file->servers[0].inputs[0].secret);
}

Result<std::vector<ImportedFile>> read_two(const std::string& of_user, const std::string& of_project) {
  ReadOptions options = test_options();
  options.client = find_client("claude-code");
  options.project = "/p";
  options.may_be_empty = true;
  return read_client_files({{"/users/ada/.claude.json", FileScope::user, of_user},
                            {"/p/.mcp.json", FileScope::project, of_project}},
                           options);
}

TEST(ClientFilesTogether, NamesDifferInAllFilesAndTheWinnerIsNamed) {
  const auto files =
      read_two(R"({"mcpServers":{"s":{"command":"a"},"t":{"command":"t"}}})",
               R"({"mcpServers":{"S":{"command":"c"},"s":{"command":"b"},"t":{"command":"t"}}})");
  ASSERT_TRUE(files);
  const std::vector<ImportedServer>& user = files->at(0).servers;
  const std::vector<ImportedServer>& project = files->at(1).servers;
  EXPECT_EQ(json::View(user.at(0).row)["name"].as_string(), "s");
  EXPECT_EQ(json::View(project.at(0).row)["name"].as_string(), "S-2");
  EXPECT_EQ(json::View(project.at(1).row)["name"].as_string(), "s-3");
  EXPECT_EQ(user[0].remarks.at(0).message, "in 1 other scopes a server of the same name wins");
  EXPECT_EQ(project[1].remarks.back().message, "wins in `/p` over other servers of the same name");
  EXPECT_EQ(project.at(2).skip_reason, "an equal server of this name is in another scope");
}

TEST(ClientFilesTogether, FileWithoutServersIsNoErrorBesideOthers) {
  for (const char* empty : {R"({"numStartups":3})", "", " \n"}) {
    const auto files = read_two(empty, R"({"mcpServers":{"s":{"command":"b"}}})");
    ASSERT_TRUE(files) << files.error().message();
    EXPECT_TRUE(files->at(0).servers.empty());
    EXPECT_EQ(files->at(0).remarks.size(), 1u);
    EXPECT_EQ(files->at(1).servers.size(), 1u);
  }
  const auto broken = read_two("{", "{}");
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message().starts_with("/users/ada/.claude.json: ")) << broken.error().message();
}

TEST(ClientFiles, InvalidTextsAreRejectedWithTheirLine) {
  EXPECT_EQ(problem_of(""), "the file is empty");
  EXPECT_EQ(problem_of("\xEF\xBB\xBF \n"), "the file is empty");
  EXPECT_TRUE(problem_of("{\n\"mcpServers\": {]}").starts_with("line 2: "));
  EXPECT_TRUE(problem_of("{\"a\":\"\xff\xfe\"}").starts_with("line 1: "));
  EXPECT_TRUE(problem_of(std::string("{\"a\":\"\0\"}", 9)).starts_with("line 1: "));
  EXPECT_TRUE(problem_of("[mcp_servers.a]\ncommand = \n").starts_with("line 2: "));
  EXPECT_TRUE(problem_of("extensions:\n  a: [1\n").starts_with("line "));
  EXPECT_TRUE(problem_of("{\"a\": 1}").starts_with("the file has no servers that are recognised"));
  EXPECT_TRUE(problem_of("a = \"\xff\"").starts_with("line 1"));
  EXPECT_FALSE(read(std::string("a: \"\0\"", 6)));
}

TEST(ClientFiles, LimitsOfHostileFilesAreNamed) {
  EXPECT_EQ(problem_of(std::string((32u << 20) + 1, ' ')),
            "the file has more than max_client_file_bytes (33554432)");
  EXPECT_EQ(problem_of("a = \"" + std::string(5u << 20, 'x') + "\""),
            "the file has more than max_client_config_bytes (4194304)");
  std::string many = "{\"mcpServers\":{";
  for (int i = 0; i < 3000; ++i)
    many += (i == 0 ? "\"s" : ",\"s") + std::to_string(i) + "\":{\"command\":\"c\"}";
  EXPECT_EQ(problem_of(many + "}}"), "the file has more than max_imported_servers (2000) servers");
  const std::string deep(100'000, '[');
  EXPECT_TRUE(problem_of("{\"mcpServers\":" + deep).contains("line 1"));
  EXPECT_TRUE(problem_of("a = " + deep).contains("max_client_file_depth"));
  EXPECT_TRUE(problem_of("a: " + deep).contains("32 deep"));
  EXPECT_TRUE(
      row_of(R"({"command":"c","args":[")" + std::string(2u << 20, 'x') + "\"]}").contains("max_row_bytes"));
}

TEST(ClientFiles, LargeFilesAreReadAlthoughOnlyALittleOfThemIsAboutServers) {
  const std::string file =
      R"({"history":[")" + std::string(10u << 20, 'x') + R"("],"mcpServers":{"a":{"command":"c"}}})";
  EXPECT_EQ(read(file)->servers.size(), 1U);
}

TEST(ClientFiles, UnknownValuesAreKeptWithoutWhatTheRegistryRefuses) {
  EXPECT_EQ(
      row_of(R"({"command":"c","odd":{"a":1,"a":2,"n":"x\u0000y","b\u0000":1},"description":"\u0000"})"),
      R"({"name":"x","config":{"command":"c"},"metadata":{"generic":{"odd":{"a":2,"n":""},"description":""}}})");
  std::string deep = "1";
  for (int i = 0; i < 60; ++i) deep = "[" + deep + "]";
  EXPECT_TRUE(row_of(R"({"command":"c","deep":)" + deep + "}").contains("[[[[null]]]]"));
  EXPECT_TRUE(row_of(R"({"command":"c\u0000d"})").contains("neither a command nor a URL"));
}

TEST(ClientFiles, TimeoutsBecomeClocksAndImpossibleOnesAreKeptOnly) {
  EXPECT_EQ(row_of(R"({"command":"c","timeout":900})", "cline"),
            R"({"name":"x","config":{"command":"c","clocks":{"idle":"15m","absolute":"15m"}}})");
  EXPECT_EQ(row_of(R"({"command":"c","timeout":2500})", "gemini"),
            R"({"name":"x","config":{"command":"c","clocks":{"idle":"2500ms"}}})");
  for (const char* timeout : {"0", "-1", "1e300", "\"60\"", "[]"}) {
    const std::string entry = R"({"command":"c","timeout":)" + std::string(timeout) + "}";
    EXPECT_TRUE(row_of(entry, "gemini").contains(R"("metadata":{"gemini":{"timeout":)")) << timeout;
  }
}

TEST(RowNamesTest, EveryNameIsValidAndDifferentInMoreThanCase) {
  RowNames names;
  EXPECT_EQ(names.add("files"), "files");
  EXPECT_EQ(names.add("Files"), "Files-2");
  EXPECT_EQ(names.add("my server / v1.2"), "my-server-v1-2");
  EXPECT_EQ(names.add("__a__b__"), "a_b");
  EXPECT_EQ(names.add("servers"), "servers-server");
  EXPECT_EQ(names.add(""), "server");
  EXPECT_EQ(names.add("日本"), "server-2");
  EXPECT_EQ(names.add(std::string(100, 'x')), std::string(32, 'x'));
  EXPECT_EQ(names.add(std::string(100, 'x')), std::string(30, 'x') + "-2");
}

}  // namespace
}  // namespace fairlead::clients
