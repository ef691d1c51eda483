#include <algorithm>

#include "cli/completion.hpp"
#include "cli/contexts.hpp"
#include "cli/gateway_finder.hpp"
#include "cli/json_text.hpp"
#include "clients/client.hpp"

namespace fairlead::cli {

namespace {

constexpr std::chrono::milliseconds kCompletionTimeout{1'000};
constexpr std::size_t kMaxCandidates = 1000;

// Where names come from: a list of the admin API, and the members with the name and its description.
struct NameSource {
  std::string path;
  std::string member = "name";
  std::string help = "title";
};

std::optional<NameSource> source_for(const CompletionContext& context, const std::string& argument) {
  const std::string group = context.words.empty() ? std::string() : context.words.front();
  const std::string command = context.words.size() < 2 ? std::string() : context.words[1];
  const bool is_new = command == "add" || command == "create" || command == "import";
  if (argument == "NAME" && !is_new) {
    if (group == "servers") return NameSource{"/mcp/servers", "name", "description"};
    if (group == "secrets") return NameSource{"/secrets", "name", "server"};
    if (group == "endpoints" || group == "users" || group == "groups") return NameSource{"/" + group};
  }
  if (argument == "USER" || argument == "--owner" || argument == "--user" || argument == "--member")
    return NameSource{"/users"};
  if (argument == "--group") return NameSource{"/groups"};
  const bool is_target = argument == "TARGET" && group != "call";  // whose target is an address
  if (argument == "--server" || is_target) return NameSource{"/mcp/servers", "name", "description"};
  if (argument == "KEY" && group == "config") return NameSource{"/config", "key", "description"};
  if (argument == "ID" && group == "tokens") return NameSource{"/tokens", "id", "name"};
  if (argument == "ID" && group == "drift") return NameSource{"/drift?status=open", "id", "name"};
  return std::nullopt;
}

bool completes_client(const CompletionContext& context, const std::string& argument) {
  const std::string command = context.words.empty() ? std::string() : context.words.back();
  return argument == "CLIENT" || (command == "import" && (argument == "SOURCE" || argument == "--format"));
}

// Returns the clients that the command can use: `connect` needs one whose file it can write.
std::vector<Candidate> client_names(const CompletionContext& context) {
  const bool connects = !context.words.empty() && context.words.front() == "connect";
  std::vector<Candidate> names;
  for (const clients::Client& client : clients::clients()) {
    if (connects && client.connect_by == clients::ConnectBy::nothing) continue;
    names.push_back({std::string(client.id), std::string(client.title)});
  }
  return names;
}

std::vector<Candidate> context_names() {
  std::vector<Candidate> names;
  const Result<Contexts> contexts = load_contexts();
  if (!contexts) return names;
  for (const auto& [name, context] : contexts->all)
    names.push_back({name, context.gateway.empty() ? context.database : context.gateway});
  return names;
}

// Returns the running gateway. Does not open a database, and runs no command for a token.
std::optional<GatewayAddress> gateway_for_completion(const GatewayChoice& choice) {
  const Result<bool> runs_command = needs_token_command(choice);
  if (!runs_command || *runs_command) return std::nullopt;
  const Result<GatewayTarget> target = find_gateway(choice);
  if (!target) return std::nullopt;
  if (target->database.empty()) return target->address;
  const auto serving = serving_gateway(*target);
  return serving;
}

Task<std::vector<Candidate>> fetch_names(AdminClientPtr client, NameSource source) {
  std::vector<Candidate> names;
  const std::string separator = source.path.find('?') == std::string::npos ? "?" : "&";
  const Result<json::Raw> page = co_await client->get(source.path + separator + "limit=500");
  if (!page) co_return names;
  json::View(*page)["items"].each_element([&](json::View row) {
    names.push_back({string_of(row, source.member), string_of(row, source.help)});
    return names.size() < kMaxCandidates;
  });
  co_return names;
}

}  // namespace

std::vector<Candidate> names_for(const CompletionContext& context, const std::string& argument) {
  const bool is_context = !context.words.empty() && context.words.front() == "context" &&
                          argument == "NAME" && context.words.back() != "add";
  if (argument == "--context" || is_context) return context_names();
  if (completes_client(context, argument)) return client_names(context);
  const std::optional<NameSource> source = source_for(context, argument);
  if (!source) return {};
  const std::optional<GatewayAddress> address = gateway_for_completion(context.choice);
  if (!address) return {};
  Loop loop;
  const Result<AdminClientPtr> client = AdminClient::create(loop, *address, kCompletionTimeout);
  if (!client) return {};
  return loop.block_on(fetch_names(*client, *source));
}

}  // namespace fairlead::cli
