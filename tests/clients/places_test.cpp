#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "clients/client.hpp"
#include "clients/entry_format.hpp"

namespace fairlead::clients {
namespace {

namespace fs = std::filesystem;

// A home directory and a project in a temporary directory that is removed at the end.
class ClientPlaces : public testing::Test {
 protected:
  ClientPlaces() {
    std::string name = (fs::temp_directory_path() / "fairlead-places-XXXXXX").string();
    root_ = mkdtemp(name.data());
    places_.home = root_ + "/home";
    places_.project = root_ + "/project";
  }
  ~ClientPlaces() override { fs::remove_all(root_); }

  void write(const std::string& path) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << "{}";
  }
  // Returns the paths of the files found, relative to the temporary directory, and their scopes.
  std::vector<std::string> found(std::string_view id) const {
    std::vector<std::string> paths;
    for (const FoundFile& file : find_files(*find_client(id), places_))
      paths.push_back(std::string(to_string(file.scope)) + " " + file.path.substr(root_.size()));
    return paths;
  }
  std::vector<std::string> possible(std::string_view id) const {
    std::vector<std::string> paths;
    for (const FoundFile& file : possible_files(*find_client(id), places_))
      paths.push_back(file.path.starts_with(root_) ? file.path.substr(root_.size()) : file.path);
    return paths;
  }

  using Paths = std::vector<std::string>;
  std::string root_;
  Places places_;
};

TEST(ClientTable, EveryClientHasAnIdATitleFilesAndKeysAndIsFoundByItsId) {
  std::set<std::string_view> ids;
  for (const Client& client : clients()) {
    EXPECT_TRUE(ids.insert(client.id).second) << client.id;
    EXPECT_FALSE(client.title.empty());
    EXPECT_FALSE(client.container.empty());
    EXPECT_FALSE(client.files.empty());
    EXPECT_EQ(find_client(client.id), &client);
    ASSERT_NE(client.entry, nullptr);
    EXPECT_TRUE(client.entry->key_for(Meaning::command) || client.entry->key_for(Meaning::command_line));
    EXPECT_TRUE(!client.is_list || client.entry->key_for(Meaning::name) != nullptr);
  }
  EXPECT_GE(ids.size(), 26U);
  EXPECT_EQ(find_client("unknown"), nullptr);
  EXPECT_TRUE(client_ids().starts_with("claude-desktop, claude-code, "));
}

TEST_F(ClientPlaces, FilesAreFoundWhereTheSystemHasThem) {
  write("/home/.config/Claude/claude_desktop_config.json");
  write("/home/.claude.json");
  write("/project/.mcp.json");
  EXPECT_EQ(found("claude-desktop"), Paths{"user /home/.config/Claude/claude_desktop_config.json"});
  EXPECT_EQ(found("claude-code"), (Paths{"user /home/.claude.json", "project /project/.mcp.json"}));
  EXPECT_EQ(found("cursor"), Paths());
  places_.system = System::macos;
  EXPECT_EQ(possible("claude-desktop"),
            Paths{"/home/Library/Application Support/Claude/claude_desktop_config.json"});
  EXPECT_EQ(possible("zed"), (Paths{"/home/.config/zed/settings.json", "/project/.zed/settings.json"}));
  places_.system = System::windows;
  places_.app_data = "C:/Users/a/AppData/Roaming";
  EXPECT_EQ(possible("claude-desktop"),
            Paths{"C:/Users/a/AppData/Roaming/Claude/claude_desktop_config.json"});
  EXPECT_EQ(possible("goose"), Paths{"C:/Users/a/AppData/Roaming/Block/goose/config/config.yaml"});
}

TEST_F(ClientPlaces, VariablesOfTheEnvironmentMoveDirectories) {
  places_.xdg_config_home = root_ + "/xdg";
  places_.codex_home = root_ + "/codex";
  EXPECT_EQ(possible("codex"), (Paths{"/codex/config.toml", "/project/.codex/config.toml"}));
  EXPECT_EQ(possible("goose"), Paths{"/xdg/goose/config.yaml"});
  EXPECT_EQ(possible("copilot-cli").front(), "/xdg/.copilot/mcp-config.json");
  const Places read = Places::of_environment([](const std::string& name) -> std::optional<std::string> {
    if (name == "HOME") return "/h";
    if (name == "CODEX_HOME") return "/c";
    return std::nullopt;
  });
  EXPECT_EQ(read.home, "/h");
  EXPECT_EQ(read.codex_home, "/c");
  EXPECT_EQ(read.xdg_config_home, "");
}

TEST_F(ClientPlaces, NothingIsFoundWithoutAHomeDirectory) {
  for (const Client& client : clients()) {
    EXPECT_TRUE(find_files(client, Places()).empty()) << client.id;
    EXPECT_TRUE(possible_files(client, Places()).empty()) << client.id;
  }
}

TEST_F(ClientPlaces, AllFilesOfADirectoryAreFoundInTheOrderOfTheirNames) {
  write("/home/.continue/mcpServers/b.yaml");
  write("/home/.continue/mcpServers/a.yaml");
  write("/home/.continue/mcpServers/c.json");
  write("/home/.continue/mcpServers/d.txt");
  EXPECT_EQ(found("continue"),
            (Paths{"user /home/.continue/mcpServers/a.yaml", "user /home/.continue/mcpServers/b.yaml",
                   "user /home/.continue/mcpServers/c.json"}));
}

TEST_F(ClientPlaces, FilesOfTheOrganisationAreFoundButNotFirst) {
  places_.managed = root_ + "/etc";
  write("/etc/claude-code/managed-mcp.json");
  write("/etc/gemini-cli/settings.json");
  write("/etc/opencode/opencode.jsonc");
  write("/project/.mcp.json");
  EXPECT_EQ(found("claude-code"),
            (Paths{"project /project/.mcp.json", "managed /etc/claude-code/managed-mcp.json"}));
  EXPECT_EQ(found("gemini"), Paths{"managed /etc/gemini-cli/settings.json"});
  EXPECT_EQ(found("opencode"), Paths{"managed /etc/opencode/opencode.jsonc"});
  EXPECT_EQ(found("copilot-cli"), Paths{"project /project/.mcp.json"});
  places_.system = System::macos;
  EXPECT_EQ(possible("claude-code").back(), "/etc/ClaudeCode/managed-mcp.json");
}

TEST_F(ClientPlaces, ProjectOfAFileIsKnownByItsPlace) {
  Places places;
  places.home = "/users/ada";
  EXPECT_EQ(project_of_file("/p/.vscode/mcp.json", places), "/p");
  EXPECT_EQ(project_of_file("/p/q/.mcp.json", places), "/p/q");
  EXPECT_EQ(project_of_file("/p/.continue/mcpServers/a.yaml", places), "/p");
  EXPECT_EQ(project_of_file("/users/ada/.cursor/mcp.json", places), "") << "the user's own file";
  EXPECT_EQ(project_of_file("/users/ada/.continue/mcpServers/a.yaml", places), "");
  EXPECT_EQ(project_of_file("/users/ada/shop/.cursor/mcp.json", places), "/users/ada/shop");
  EXPECT_EQ(project_of_file("/p/servers.json", places), "");
}

}  // namespace
}  // namespace fairlead::clients
