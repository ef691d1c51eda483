#include "gateway/meta_tools.hpp"

#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "base/suggestion.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/process/failure.hpp"
#include "gateway/inner_call.hpp"
#include "gateway/meta_arguments.hpp"
#include "gateway/meta_tool_specs.hpp"
#include "gateway/tool_items.hpp"
#include "loop/slices.hpp"
#include "mcp/features.hpp"

namespace fairlead::gateway {
namespace {

constexpr std::size_t kMaxSuggestedTools = 3;
constexpr std::size_t kMaxShownNameBytes = 256;

bool is_modern_client(const mcp::BackendRequest& request) {
  return mcp::is_modern(request.context.revision());
}

Error model_error(std::string message) {
  return Error(ErrorKind::validation, std::move(message));
}

// Returns the part of a tool's public name that is not the name of its server. Suggestions do not depend on
// the server, which may be one that the client does not see.
std::string_view own_part(std::string_view name) noexcept {
  const std::size_t separator = name.find("__");
  return separator == std::string_view::npos ? name : name.substr(separator + 2);
}

bool is_unknown_tool(const Answer& answer) {
  return !answer && json::View(answer.error().detail().rpc_data)["code"].as_string() == failure::unknown_name;
}

json::Raw discovered_tools(const ToolSearch::Matches& matches, const ServerTable& servers) {
  json::Writer out;
  out.begin_object().key("items").begin_array();
  for (const ToolSearch::Match& match : matches.tools) {
    out.begin_object();
    write_tool_item(out, *match.tool);
    out.key("domain").string(domain_of(*policy_of(servers, match.tool->server)));
    out.key("score").number(std::round(match.score * 1000) / 1000).end_object();
  }
  out.end_array().key("more").boolean(matches.more);
  if (!matches.complete) {
    out.key("note").string(
        "The search index is still being built: search again in a few seconds for more results.");
  } else if (!matches.all_indexed) {
    out.key("note").string(
        "Some tools cannot be found, because max_indexed_tools is reached. browse_tool_domain lists them.");
  } else if (matches.tools.empty()) {
    out.key("note").string("No tool matches. Try other words, or see list_tool_domains.");
  }
  out.end_object();
  return out.finish();
}

}  // namespace

struct MetaTools::Handler {
  std::string_view name;
  Task<Outcome> (MetaTools::*serve)(EndpointView& view,
                                    const mcp::BackendRequest& request);  // null: execute_tool
};

const MetaTools::Handler* MetaTools::find_handler(std::string_view name) noexcept {
  static constexpr std::array<Handler, 5> kHandlers = {{
      {kDiscoverTools, &MetaTools::discover_tools},
      {kGetToolSchema, &MetaTools::get_tool_schema},
      {kExecuteTool, nullptr},
      {kListToolDomains, &MetaTools::list_tool_domains},
      {kBrowseToolDomain, &MetaTools::browse_tool_domain},
  }};
  for (const Handler& handler : kHandlers) {
    if (handler.name == name) return &handler;
  }
  return nullptr;
}

std::vector<json::Raw> MetaTools::entries(mcp::Revision revision) const {
  std::vector<json::Raw> entries;
  for (const mcp::ToolSpec& spec : meta_tool_specs()) {
    json::Writer out;
    mcp::write(out, spec, revision);
    entries.push_back(out.finish());
  }
  return entries;
}

bool MetaTools::has_tool(std::string_view name) const {
  return find_handler(name) != nullptr;
}

Task<Answer> MetaTools::call(EndpointView& view, mcp::BackendRequest request) {
  const Handler* const handler = find_handler(request.facts->target_text().value_or(std::string_view()));
  if (handler && handler->serve)
    return call_read_only(shared_from_this(), *handler, view, std::move(request));
  return execute_tool(view, std::move(request));
}

Task<Answer> MetaTools::call_read_only(std::shared_ptr<MetaTools> self, const Handler& handler,
                                       EndpointView& view, mcp::BackendRequest request) {
  Task<Outcome> serving = (self.get()->*handler.serve)(view, request);
  const Outcome outcome = co_await serving;
  if (!outcome) co_return self->tool_error(request.context, outcome.error().message());
  const mcp::Revision revision = request.context.revision();
  mcp::ResultWriter result(*self->front_.state(), revision);
  result.out().key("content").begin_array().raw(mcp::Content::text(outcome->text()).raw()).end_array();
  if (revision >= mcp::Revision::r2025_06_18) result.out().key("structuredContent").raw(*outcome);
  co_return result.finish();
}

Answer MetaTools::tool_error(const mcp::Context& context, std::string_view message) const {
  mcp::ResultWriter result(*front_.state(), context.revision());
  result.out().key("content").begin_array().raw(mcp::Content::text(message).raw()).end_array();
  result.out().key("isError").boolean(true);
  return result.finish();
}

Task<std::shared_ptr<const Catalogue>> MetaTools::catalogue_for(EndpointView& view,
                                                                const mcp::BackendRequest& request) {
  const mcp::Context& context = request.context;
  co_await view.wait_for_lists(context.principal(), context.stop());
  co_return view.catalogue(context.session(), *context.principal());
}

// ---- the tools -------------------------------------------------------------------------------------------

Task<MetaTools::Outcome> MetaTools::discover_tools(EndpointView& view, const mcp::BackendRequest& request) {
  const Result<MetaArguments> arguments =
      MetaArguments::read(request.facts->arguments, {"query", "domain", "limit"});
  if (!arguments) co_return arguments.error();
  Result<std::string> text = arguments->required_string("query");
  if (!text) co_return text.error();
  Result<std::optional<std::string>> domain = arguments->optional_string("domain");
  if (!domain) co_return domain.error();
  const Result<std::int64_t> limit =
      arguments->integer("limit", kDefaultDiscoveredTools, 1, kMaxDiscoveredTools);
  if (!limit) co_return limit.error();

  ToolSearch::Request wanted;
  wanted.catalogue = co_await catalogue_for(view, request);
  if (*domain && !has_domain(*wanted.catalogue, *servers_, **domain))
    co_return unknown_domain(*wanted.catalogue, **domain);
  wanted.client = client_key(*request.context.principal());
  wanted.text = std::move(*text);
  wanted.domain = std::move(*domain);
  wanted.limit = static_cast<std::size_t>(*limit);
  wanted.modern = is_modern_client(request);
  wanted.stop = request.context.stop();
  const std::shared_ptr<const Catalogue> catalogue = wanted.catalogue;  // owns the tools that are found
  const Result<ToolSearch::Matches> matches = co_await search_->find(std::move(wanted));
  if (!matches) co_return matches.error();
  co_return discovered_tools(*matches, *servers_);
}

Task<MetaTools::Outcome> MetaTools::get_tool_schema(EndpointView& view, const mcp::BackendRequest& request) {
  const Result<MetaArguments> arguments = MetaArguments::read(request.facts->arguments, {"tool_id"});
  if (!arguments) co_return arguments.error();
  const Result<std::string> name = arguments->required_string("tool_id");
  if (!name) co_return name.error();
  const std::shared_ptr<const Catalogue> catalogue = co_await catalogue_for(view, request);
  const CatalogueEntry* const tool = catalogue->find_tool(*name);
  const bool modern = is_modern_client(request);
  if (tool && (modern || !tool->legacy_json.absent())) co_return tool_schema(*tool, modern);
  Error unknown = co_await unknown_tool(view, request.context, *name);
  co_return unknown;
}

Task<MetaTools::Outcome> MetaTools::list_tool_domains(EndpointView& view,
                                                      const mcp::BackendRequest& request) {
  const Result<MetaArguments> arguments = MetaArguments::read(request.facts->arguments, {});
  if (!arguments) co_return arguments.error();
  const std::shared_ptr<const Catalogue> catalogue = co_await catalogue_for(view, request);
  co_return tool_domains(*catalogue, *servers_, is_modern_client(request));
}

Task<MetaTools::Outcome> MetaTools::browse_tool_domain(EndpointView& view,
                                                       const mcp::BackendRequest& request) {
  const Result<MetaArguments> arguments =
      MetaArguments::read(request.facts->arguments, {"domain_id", "cursor"});
  if (!arguments) co_return arguments.error();
  const Result<std::string> domain = arguments->required_string("domain_id");
  if (!domain) co_return domain.error();
  const Result<Cursor> from = Cursor::parse(ListKind::tools, arguments->value("cursor"));
  if (!from) co_return model_error("argument `cursor` is not a nextCursor of browse_tool_domain");
  const std::shared_ptr<const Catalogue> catalogue = co_await catalogue_for(view, request);
  if (!has_domain(*catalogue, *servers_, *domain)) co_return unknown_domain(*catalogue, *domain);
  co_return tools_of_domain(*catalogue, *servers_, *domain, *from, is_modern_client(request));
}

Task<Answer> MetaTools::execute_tool(EndpointView& view, mcp::BackendRequest request) {
  const auto self = shared_from_this();
  const mcp::Context context = request.context;
  const bool large = request.message.frame().size() > Slices::kLargeMessageBytes;
  if (large) co_await sleep_for(loop_, Slices::kPause);
  Result<mcp::BackendRequest> inner = make_inner_call(request);
  if (!inner) co_return tool_error(context, inner.error().message());
  if (large) co_await sleep_for(loop_, Slices::kPause);
  std::string name(inner->facts->target_text().value_or(std::string_view()));
  Answer answer = co_await view.forward(std::move(*inner));
  if (!is_unknown_tool(answer)) co_return answer;
  const Error unknown = co_await unknown_tool(view, context, std::move(name));
  co_return tool_error(context, unknown.message());
}

// ---- errors ----------------------------------------------------------------------------------------------

Error MetaTools::unknown_domain(const Catalogue& catalogue, const std::string& domain) const {
  std::set<std::string> known;
  for (const Catalogue::ListedServer& server : catalogue.servers()) {
    known.emplace(domain_of(*policy_of(*servers_, server.name)));
    if (known.size() == kMaxListedDomains) break;
  }
  const std::vector<std::string> words(known.begin(), known.end());
  const std::string_view meant = closest_word(domain.substr(0, kMaxShownNameBytes), words);
  std::string message = "Unknown domain: " + domain.substr(0, kMaxShownNameBytes);
  message += meant.empty() ? "." : ". Did you mean " + std::string(meant) + "?";
  return model_error(message + " list_tool_domains returns the domains.");
}

Task<Error> MetaTools::unknown_tool(EndpointView& view, const mcp::Context& context, std::string name) {
  ToolSearch::Request similar;
  similar.catalogue = view.catalogue(context.session(), *context.principal());
  similar.client = client_key(*context.principal());
  similar.text = own_part(name);
  similar.limit = kMaxSuggestedTools;
  similar.modern = mcp::is_modern(context.revision());
  similar.stop = context.stop();
  const std::shared_ptr<const Catalogue> catalogue = similar.catalogue;  // owns the tools that are found
  const Result<ToolSearch::Matches> matches = co_await search_->find(std::move(similar));
  std::string suggestions;
  if (matches) {
    for (const ToolSearch::Match& match : matches->tools)
      suggestions += (suggestions.empty() ? "" : ", ") + match.tool->public_name;
  }
  std::string message = "Unknown tool: " + name.substr(0, kMaxShownNameBytes) + ".";
  if (!suggestions.empty()) message += " Similar tools: " + suggestions + ".";
  co_return model_error(message + " Use discover_tools to find the tool_id of a tool.");
}

EndpointToolsFactory make_meta_tools_factory(Loop& loop, std::shared_ptr<const ServerTable> servers,
                                             mcp::Server front) {
  auto search = std::make_shared<ToolSearch>(loop, servers);
  return [&loop, servers = std::move(servers), front = std::move(front),
          search = std::move(search)](const registry::Endpoint& endpoint) -> std::shared_ptr<EndpointTools> {
    if (endpoint.mode != registry::EndpointMode::discover) return nullptr;
    return std::make_shared<MetaTools>(loop, servers, front, search);
  };
}

}  // namespace fairlead::gateway
