// MetaTools: the tools of an endpoint of mode `discover`. They find and execute all other tools, so that a
// client need not list thousands of them. Private to the layer.
#pragma once

#include <memory>

#include "fairlead/mcp/server.hpp"
#include "gateway/endpoint_tools.hpp"
#include "gateway/server_table.hpp"
#include "gateway/tool_search.hpp"

namespace fairlead::gateway {

class MetaTools final : public EndpointTools, public std::enable_shared_from_this<MetaTools> {
 public:
  MetaTools(Loop& loop, std::shared_ptr<const ServerTable> servers, mcp::Server front,
            std::shared_ptr<ToolSearch> search)
      : loop_(loop), servers_(std::move(servers)), front_(std::move(front)), search_(std::move(search)) {}

  std::vector<json::Raw> entries(mcp::Revision revision) const override;
  bool has_tool(std::string_view name) const override;
  Task<Answer> call(EndpointView& view, mcp::BackendRequest request) override;

 private:
  struct Handler;
  static const Handler* find_handler(std::string_view name) noexcept;

  // The outcome of a meta-tool: structured content. An error of kind validation is a message for the model.
  using Outcome = Result<json::Raw>;
  // References refer to objects in the coroutine frame of call_read_only(), which awaits the tasks.
  Task<Outcome> discover_tools(EndpointView& view, const mcp::BackendRequest& request);
  Task<Outcome> get_tool_schema(EndpointView& view, const mcp::BackendRequest& request);
  Task<Outcome> list_tool_domains(EndpointView& view, const mcp::BackendRequest& request);
  Task<Outcome> browse_tool_domain(EndpointView& view, const mcp::BackendRequest& request);
  Task<Answer> execute_tool(EndpointView& view, mcp::BackendRequest request);
  static Task<Answer> call_read_only(std::shared_ptr<MetaTools> self, const Handler& handler,
                                     EndpointView& view, mcp::BackendRequest request);

  // Returns what the client of the request sees, after waiting for lists that are being fetched.
  Task<std::shared_ptr<const Catalogue>> catalogue_for(EndpointView& view,
                                                       const mcp::BackendRequest& request);
  Error unknown_domain(const Catalogue& catalogue, const std::string& domain) const;
  // The same for a tool that does not exist and for one that the client may not see. Suggests tools with
  // similar names.
  Task<Error> unknown_tool(EndpointView& view, const mcp::Context& context, std::string name);
  Answer tool_error(const mcp::Context& context, std::string_view message) const;

  Loop& loop_;
  std::shared_ptr<const ServerTable> servers_;
  mcp::Server front_;
  std::shared_ptr<ToolSearch> search_;
};

// Returns a factory that makes MetaTools for endpoints of mode `discover`, with one index for all of them.
// `front` is the MCP server of the gateway, whose information results carry.
EndpointToolsFactory make_meta_tools_factory(Loop& loop, std::shared_ptr<const ServerTable> servers,
                                             mcp::Server front);

}  // namespace fairlead::gateway
