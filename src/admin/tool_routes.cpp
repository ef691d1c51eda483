#include <charconv>

#include "admin/handlers.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"
#include "base/glob.hpp"
#include "base/rfc3339.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "gateway/entry_rules.hpp"
#include "gateway/names.hpp"

namespace fairlead::admin {

namespace {

std::string public_tool_name(const registry::Server& server, const std::string& tool) {
  const auto renamed = server.tools.rename.find(tool);
  return gateway::public_name(server.name, renamed == server.tools.rename.end() ? tool : renamed->second);
}

json::Raw tool_json(const registry::Server& server, const registry::ListedEntry& listed,
                    const std::string& name) {
  const json::View entry(listed.entry);
  json::Writer writer;
  writer.begin_object();
  writer.key("server").string(server.name).key("serverId").string(server.id);
  writer.key("name").string(name).key("publicName").string(public_tool_name(server, name));
  for (const std::string_view text : {"title", "description"}) {
    const std::optional<std::string> value = entry[text].as_string();
    if (value) writer.key(text).string(*value);
  }
  writer.key("definition").raw(listed.entry);
  writer.key("firstSeen").string(format_rfc3339(listed.first_seen));
  writer.key("lastSeen").string(format_rfc3339(listed.last_seen));
  writer.key("quarantined").boolean(listed.quarantined);
  writer.key("hidden").boolean(any_glob_matches(server.tools.hide, name));
  writer.key("denied").boolean(is_denied_tool(server.tools, name));
  const auto problem = gateway::entry_problem(gateway::ListKind::tools, entry, true);
  if (problem) writer.key("omitted").string(*problem);
  writer.end_object();
  return writer.finish();
}

// The position in a list of tools: the id of a server, and the number and name of the tool in its list.
struct ToolPosition {
  std::string server_id;
  std::size_t index = 0;
  std::string name;

  std::string key() const { return server_id + "/" + std::to_string(index) + "/" + name; }
  static std::optional<ToolPosition> parse(std::string_view key);
};

std::optional<ToolPosition> ToolPosition::parse(std::string_view key) {
  const std::size_t first = key.find('/');
  const std::size_t second = first == std::string_view::npos ? first : key.find('/', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  ToolPosition position;
  position.server_id = key.substr(0, first);
  const std::string_view digits = key.substr(first + 1, second - first - 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), position.index);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  position.name = key.substr(second + 1);
  return position;
}

std::string tool_name(const registry::ListedEntry& listed) {
  return json::View(listed.entry)["name"].as_string().value_or(std::string());
}

// Returns the number of the first tool after `position`. If the tool has moved, the search finds it by name.
std::size_t index_after(const std::vector<registry::ListedEntry>& tools, const ToolPosition& position) {
  if (position.index < tools.size() && tool_name(tools[position.index]) == position.name)
    return position.index + 1;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    if (tool_name(tools[i]) == position.name) return i + 1;
  }
  return std::min(position.index, tools.size());
}

// A page of tools, of one server or of all.
class ToolPage {
 public:
  ToolPage(const PageRequest& request, std::string_view list, NameFilter filter)
      : writer_(request, list), filter_(std::move(filter)) {}

  // Adds tools of the server from the number `from` on, until the page is full, the tools end, or a slice of
  // the work is done. Then sets `from` to the next tool and returns false.
  bool add(const Call& call, const registry::Server& server, std::size_t& from) {
    const auto stored = call.services().state().lists.find(server.id);
    if (stored == call.services().state().lists.end()) return true;
    const bool sees_denied = registry::decide(call.principal(), registry::Operation::operate, server).allowed;
    const auto& tools = stored->second->tools;
    for (; from < tools.size() && !more_; ++from) {
      if (slices_.due(tools[from].entry.text().size())) return false;
      const ToolPosition position{server.id, from, tool_name(tools[from])};
      if (!is_selected(server, position.name, sees_denied)) continue;
      more_ = !writer_.has_room();
      if (!more_) writer_.add(position.key(), tool_json(server, tools[from], position.name));
    }
    return true;
  }
  bool is_full() const noexcept { return more_; }
  Reply reply() { return Reply(200, writer_.finish(more_)); }

 private:
  bool is_selected(const registry::Server& server, const std::string& tool, bool sees_denied) const {
    return (sees_denied || !is_denied_tool(server.tools, tool)) &&
           (filter_.matches_name(tool) || filter_.matches_name(public_tool_name(server, tool)));
  }

  PageWriter writer_;
  NameFilter filter_;
  Slices slices_;
  bool more_ = false;
};

// Adds the tools of the server from the number `from` on, in slices. `call` and `page` outlive the task.
Task<void> add_tools(Call& call, ToolPage& page, registry::ServerPtr server, std::size_t from) {
  while (!page.add(call, *server, from)) co_await sleep_for(call.services().loop, Slices::kPause);
}

NameFilter tool_name_filter(const Call& call) {
  const std::string* const name = call.query().find("name");
  return NameFilter{name ? *name : std::string()};
}

// Returns the position after which the page begins.
Result<std::optional<ToolPosition>> position_of(const PageRequest& request) {
  if (request.after.empty()) return std::optional<ToolPosition>();
  std::optional<ToolPosition> position = ToolPosition::parse(request.after);
  if (!position) return problem(codes::kInvalidCursor, "the cursor does not belong to a list of tools");
  return position;
}

std::size_t first_index(const Call& call, const registry::Server& server,
                        const std::optional<ToolPosition>& position) {
  const auto stored = call.services().state().lists.find(server.id);
  if (!position || position->server_id != server.id || stored == call.services().state().lists.end())
    return 0;
  return index_after(stored->second->tools, *position);
}

bool matches_domain_and_tag(const Call& call, const registry::Server& server) {
  const std::string* const domain = call.query().find("domain");
  const std::string* const tag = call.query().find("tag");
  return (!domain || *domain == server.domain) &&
         (!tag || std::ranges::find(server.tags, *tag) != server.tags.end());
}

}  // namespace

bool is_denied_tool(const registry::ToolRules& rules, std::string_view tool) {
  return any_glob_matches(rules.deny, tool) || (!rules.allow.empty() && !any_glob_matches(rules.allow, tool));
}

Task<Result<Reply>> list_server_tools(Call& call) {
  const Result<PageRequest> request = PageRequest::parse(call.query(), "serverTools");
  if (!request) co_return request.error();
  const Result<registry::ServerPtr> server =
      find_row<ServerKind>(call, call.path_value(), registry::Operation::read);
  if (!server) co_return server.error();
  const Result<std::optional<ToolPosition>> position = position_of(*request);
  if (!position) co_return position.error();
  ToolPage page(*request, "serverTools", tool_name_filter(call));
  co_await add_tools(call, page, *server, first_index(call, **server, *position));
  co_return page.reply();
}

Task<Result<Reply>> list_all_tools(Call& call) {
  const Result<PageRequest> request = PageRequest::parse(call.query(), "tools");
  if (!request) co_return request.error();
  const Result<std::optional<ToolPosition>> position = position_of(*request);
  if (!position) co_return position.error();
  ToolPage page(*request, "tools", tool_name_filter(call));
  Slices slices;
  std::string next = *position ? (*position)->server_id : std::string();
  while (!page.is_full()) {
    const auto& servers = call.services().state().servers.by_id();
    const auto it = servers.lower_bound(next);
    if (it == servers.end()) break;
    const registry::ServerPtr server = it->second;
    next = server->id + '\0';
    if (matches_domain_and_tag(call, *server) &&
        registry::decide(call.principal(), registry::Operation::read, *server).allowed)
      co_await add_tools(call, page, server, first_index(call, *server, *position));
    if (slices.due(8u << 10)) co_await sleep_for(call.services().loop, Slices::kPause);
  }
  co_return page.reply();
}

}  // namespace fairlead::admin
