// blocking::Client: an MCP client for programs without an event loop. Its functions block until the result is
// available; a private thread runs the loop.
//
// Example:
//   auto client = blocking::Client::connect("stdio:npx -y @modelcontextprotocol/server-everything");
//   if (!client) return report(client.error());
//   auto sum = client->call_tool("add", R"({"a":2,"b":3})");
//
// Every function may be called from any thread except the loop thread (that is, not from inside a handler).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/mcp/client.hpp"

namespace fairlead::blocking {

class Client {
 public:
  // Fails like mcp::Client::connect(). Handlers in `options` are called on the loop thread.
  static Result<Client> connect(std::string_view uri, mcp::ClientOptions options = mcp::ClientOptions());
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  // Closes the connection and waits until the child process, if any, has exited.
  ~Client();

  mcp::Revision revision() const noexcept;
  json::View server_info() const noexcept;
  json::View server_capabilities() const noexcept;

  // Return all pages of a list, each entry as the server sent it.
  Result<std::vector<json::Raw>> tools();
  Result<std::vector<json::Raw>> resources();
  Result<std::vector<json::Raw>> resource_templates();
  Result<std::vector<json::Raw>> prompts();

  // `arguments` and `params` are the text of a JSON object, or empty. Fails with `serialize` if they are not
  // valid JSON.
  Result<mcp::ToolResult> call_tool(std::string_view name, std::string_view arguments = {},
                                    mcp::ClientCallOptions options = mcp::ClientCallOptions());
  Result<json::Raw> request(std::string_view method, std::string_view params = {},
                            mcp::ClientCallOptions options = mcp::ClientCallOptions());
  Result<std::vector<mcp::ResourceContents>> read_resource(std::string_view uri);
  Result<mcp::PromptResult> get_prompt(std::string_view name,
                                       std::map<std::string, std::string> arguments = {});
  // Like the functions of the same names of mcp::Client.
  Result<std::vector<mcp::SkillEntry>> skills();
  Result<mcp::SkillEntry> skill(std::string_view uri);
  Result<mcp::SkillFile> read_skill_file(const mcp::SkillEntry& skill, std::string_view uri);
  Result<std::vector<json::Raw>> read_directory(std::string_view uri);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::blocking
