// What the servers have: asked when the gateway starts, and again whenever one says that it has changed or
// has been started anew. A server that cannot say leaves its part of the lists empty, and nothing else.
#include "fairlead/json/writer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/gateway_impl.hpp"
#include "mcp/features.hpp"

namespace fairlead::gateway {

std::string_view list_method(Kind kind) noexcept {
  switch (kind) {
    case Kind::tools: return "tools/list";
    case Kind::resources: return "resources/list";
    case Kind::templates: return "resources/templates/list";
    case Kind::prompts: break;
  }
  return "prompts/list";
}

void GatewayImpl::refresh(const std::string& server) {
  Known& known = known_[server];
  if (stopping_) return;
  if (known.listing) {
    known.again = true;
    return;
  }
  known.listing = true;
  loop_.spawn(list_server(shared_from_this(), server));
}

Task<void> GatewayImpl::list_server(std::shared_ptr<GatewayImpl> self, std::string server) {
  Known& known = self->known_[server];
  do {
    known.again = false;
    pool::Target target(server);
    Task<Result<pool::Lease>> acquiring = self->pool_->acquire(std::move(target));
    const Result<pool::Lease> lease = co_await acquiring;
    if (!lease) {
      known.problem = lease.error().to_string();
      self->log_.warning("server has no lists", {{"server", server}, {"reason", known.problem}});
      break;
    }
    known.revision = lease->client().revision();
    Task<Result<std::shared_ptr<const Listed>>> asking = ask_lists(lease->client());
    const Result<std::shared_ptr<const Listed>> listed = co_await asking;
    if (!listed) {
      known.problem = listed.error().to_string();
      self->log_.warning("server does not list", {{"server", server}, {"reason", known.problem}});
      break;
    }
    known.problem.clear();
    self->take_lists(server, *listed);
  } while (known.again);
  known.listing = false;
  known.asked = true;
  bool all = true;
  for (const auto& [name, one] : self->known_) all = all && one.asked;
  if (all) self->listed_.set();
}

Task<Result<std::shared_ptr<const Listed>>> GatewayImpl::ask_lists(mcp::Client& client) {
  auto listed = std::make_shared<Listed>();
  for (const Kind kind : kKinds) {
    const std::string_view capability = kind == Kind::templates ? "resources" : member_of(kind);
    if (client.capabilities()[capability].absent()) continue;
    Task<Result<std::vector<json::Raw>>> asking =
        client.list(std::string(list_method(kind)), std::string(member_of(kind)));
    Result<std::vector<json::Raw>> entries = co_await asking;
    // Many servers have resources and no templates, and do not know the method.
    if (!entries && kind == Kind::templates && entries.error().kind() == ErrorKind::remote) continue;
    if (!entries) co_return entries.error();
    listed->of(kind) = std::move(*entries);
  }
  if (mcp::is_modern(client.revision())) {
    mcp::ListenFilter filter;
    filter.tools = filter.prompts = filter.resources = true;
    // Without it changes are seen only when the server is started anew.
    Task<Result<std::uint64_t>> listening = client.listen(std::move(filter));
    const Result<std::uint64_t> number = co_await listening;
    static_cast<void>(number);
  }
  co_return std::shared_ptr<const Listed>(std::move(listed));
}

void GatewayImpl::take_lists(const std::string& server, std::shared_ptr<const Listed> listed) {
  known_[server].listed = std::move(listed);
  Lists lists;
  for (const auto& [name, known] : known_) lists[name] = known.listed;
  const auto before = catalogue_;
  catalogue_ = std::make_shared<const Catalogue>(lists, [this](std::string problem) {
    log_.warning("not offered", {{"problem", std::move(problem)}});
  });
  tell_changes(*before);
}

// Clients hear of a list only when what they would see is not what they saw.
void GatewayImpl::tell_changes(const Catalogue& before) {
  const auto differs = [&](Kind kind) {
    return before.encoded(kind, mcp::kNewest).text() != catalogue_->encoded(kind, mcp::kNewest).text();
  };
  if (!listed_.is_set()) return;  // nobody has been shown a whole list yet
  if (differs(Kind::tools)) front_.tools_changed();
  if (differs(Kind::prompts)) front_.prompts_changed();
  if (differs(Kind::resources) || differs(Kind::templates)) front_.resources_changed();
}

Task<Answer> GatewayImpl::list(Kind kind, mcp::Revision revision) {
  const auto keep = shared_from_this();
  const bool all = co_await listed_.wait(loop_, config_.list_wait);
  // Those that are late come with a change of the list.
  if (!all) listed_.set();
  mcp::ResultWriter result(*front_.state(), revision);
  result.out().key(member_of(kind)).raw(catalogue_->encoded(kind, revision));
  result.cache_hint(mcp::CacheHint{0, false});
  co_return result.finish();
}

}  // namespace fairlead::gateway
