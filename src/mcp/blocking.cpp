#include "fairlead/mcp/blocking.hpp"

#include "connection/loop_thread.hpp"

namespace fairlead::blocking {

struct Client::Impl {
  LoopThread thread;
  std::shared_ptr<mcp::Client> client;

  ~Impl() {
    if (!client) return;
    thread.wait_for(client->close());
    // The client must be destroyed on the loop thread.
    thread.loop().post([client = std::move(client)] {});
  }
};

Client::Client(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(std::string_view uri, mcp::ClientOptions options) {
  auto impl = std::make_unique<Impl>();
  Loop& loop = impl->thread.loop();
  Result<std::shared_ptr<mcp::Client>> client =
      impl->thread.wait_for(mcp::Client::connect(loop, std::string(uri), std::move(options)));
  if (!client) return client.error();
  impl->client = std::move(*client);
  return Client(std::move(impl));
}

mcp::Revision Client::revision() const noexcept {
  return impl_->client->revision();
}
json::View Client::server_info() const noexcept {
  return impl_->client->server_info();
}
json::View Client::server_capabilities() const noexcept {
  return impl_->client->server_capabilities();
}

Result<std::vector<json::Raw>> Client::tools() {
  return impl_->thread.wait_for(impl_->client->tools());
}
Result<std::vector<json::Raw>> Client::resources() {
  return impl_->thread.wait_for(impl_->client->resources());
}
Result<std::vector<json::Raw>> Client::resource_templates() {
  return impl_->thread.wait_for(impl_->client->resource_templates());
}
Result<std::vector<json::Raw>> Client::prompts() {
  return impl_->thread.wait_for(impl_->client->prompts());
}

Result<mcp::ToolResult> Client::call_tool(std::string_view name, std::string_view arguments,
                                          mcp::ClientCallOptions options) {
  Result<json::Raw> parsed = json::Raw::parse_optional(arguments);
  if (!parsed) return parsed.error();
  return impl_->thread.wait_for(
      impl_->client->call_tool(std::string(name), std::move(*parsed), std::move(options)));
}

Result<json::Raw> Client::request(std::string_view method, std::string_view params,
                                  mcp::ClientCallOptions options) {
  Result<json::Raw> parsed = json::Raw::parse_optional(params);
  if (!parsed) return parsed.error();
  return impl_->thread.wait_for(
      impl_->client->request(std::string(method), std::move(*parsed), std::move(options)));
}

Result<std::vector<mcp::ResourceContents>> Client::read_resource(std::string_view uri) {
  return impl_->thread.wait_for(impl_->client->read_resource(std::string(uri)));
}

Result<mcp::PromptResult> Client::get_prompt(std::string_view name,
                                             std::map<std::string, std::string> arguments) {
  return impl_->thread.wait_for(impl_->client->get_prompt(std::string(name), std::move(arguments)));
}

Result<std::vector<mcp::SkillEntry>> Client::skills() {
  return impl_->thread.wait_for(impl_->client->skills());
}
Result<mcp::SkillEntry> Client::skill(std::string_view uri) {
  return impl_->thread.wait_for(impl_->client->skill(std::string(uri)));
}
Result<mcp::SkillFile> Client::read_skill_file(const mcp::SkillEntry& skill, std::string_view uri) {
  return impl_->thread.wait_for(impl_->client->read_skill_file(skill, std::string(uri)));
}
Result<std::vector<json::Raw>> Client::read_directory(std::string_view uri) {
  return impl_->thread.wait_for(impl_->client->read_directory(std::string(uri)));
}

}  // namespace fairlead::blocking
