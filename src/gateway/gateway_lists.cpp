// What the servers have: asked when the gateway starts, and again whenever one says that it has changed or
// has been started anew. A server that cannot say leaves its part of the lists empty, and nothing else.
#include <algorithm>
#include <utility>

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"
#include "gateway/gateway_impl.hpp"
#include "mcp/features.hpp"
#include "protocol/slices.hpp"

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

namespace {

constexpr std::chrono::milliseconds kSeldom = std::chrono::minutes(5);
constexpr std::chrono::milliseconds kBetween{100};  // two askings of one server
constexpr std::size_t kMaxLoggedProblems = 100;     // of entries; the others are counted

bool same(const std::vector<json::Raw>& one, const std::vector<json::Raw>& other) {
  return std::ranges::equal(one, other,
                            [](const json::Raw& a, const json::Raw& b) { return a.text() == b.text(); });
}

bool same(const Listed& one, const Listed& other) {
  return std::ranges::all_of(kKinds, [&](Kind kind) { return same(one.of(kind), other.of(kind)); });
}

const Listed& or_nothing(const std::shared_ptr<const Listed>& listed) {
  static const Listed kNothing;
  return listed ? *listed : kNothing;
}

// One that has changed is asked even when it has its fill of calls.
Task<Result<pool::Lease>> lease_of(std::shared_ptr<pool::Pool> pool, std::string server,
                                   std::shared_ptr<pool::Upstream> changed) {
  if (changed) {
    Result<pool::Lease> held = pool->hold(changed);
    if (held) co_return held;
  }
  pool::Target target(std::move(server));
  Task<Result<pool::Lease>> acquiring =
      pool->acquire(std::move(target), std::stop_token(), pool::StartPriority::background);
  Result<pool::Lease> lease = co_await acquiring;
  co_return lease;
}

}  // namespace

// ---- asking ----------------------------------------------------------------------------------------------

void GatewayImpl::refresh(const std::string& server, const std::shared_ptr<pool::Upstream>& upstream) {
  if (known_[server].removed) return;
  Part& part = known_[server].shared;
  part.again = true;
  part.at = upstream;
  if (stopping_ || std::exchange(part.asking, true)) return;
  loop_.spawn(list_server(shared_from_this(), server));
}

void GatewayImpl::refresh_own(const std::shared_ptr<pool::Upstream>& upstream) {
  if (upstream->state() != pool::State::ready) return;  // whoever it was for may be gone
  if (known_[upstream->spec().name].removed) return;
  std::shared_ptr<Part>& part = known_[upstream->spec().name].own[upstream->key()];
  if (!part) part = std::make_shared<Part>();
  part->again = true;
  if (stopping_ || std::exchange(part->asking, true)) return;
  loop_.spawn(list_own(shared_from_this(), upstream, part));
}

Task<void> GatewayImpl::list_server(std::shared_ptr<GatewayImpl> self, std::string server) {
  Known& known = self->known_[server];
  while (known.shared.again) {
    Task<bool> waiting = self->take_turn(known.shared);
    const bool goes_on = co_await waiting;
    if (!goes_on || known.removed) break;
    const std::uint64_t epoch = known.epoch;
    Task<Result<pool::Lease>> leasing = lease_of(self->pool_, server, known.shared.at.lock());
    Result<pool::Lease> lease = co_await leasing;
    if (known.epoch != epoch) continue;  // it has been replaced, and is asked again
    if (!lease) {
      self->note_problem(server, lease.error().to_string(), lease.error());
      break;
    }
    known.revision = lease->client().revision();
    Task<Result<Asked>> asking = self->ask_lists(std::move(*lease), known.shared);
    const Result<Asked> asked = co_await asking;
    if (known.epoch != epoch) continue;
    std::optional<Error> failure;
    if (!asked) failure = asked.error();
    self->note_problem(server, asked ? asked->problem : asked.error().to_string(), failure);
    if (!asked) break;
    self->take_lists(server, asked->listed);
  }
  known.shared.asking = false;
  known.asked = true;
  if (!known.problem.empty() && !known.removed) self->ask_later(server);
  bool all = true;
  for (const auto& [name, one] : self->known_) all = all && one.asked;
  if (all) self->listed_.set();
  std::exchange(self->listed_one_, Event()).set();
}

void GatewayImpl::note_problem(const std::string& server, std::string problem, std::optional<Error> failure) {
  Known& known = known_[server];
  known.failure = std::move(failure);
  if (problem.empty()) known.pause = {};
  const bool news = !problem.empty() && problem != known.problem;
  known.problem = std::move(problem);
  if (news) log_.warning("server does not list", {{"server", server}, {"reason", known.problem}});
}

// What could not be started or did not list is asked again, ever more seldom: with nothing of it offered
// nobody would call it, and so nothing else would.
void GatewayImpl::ask_later(const std::string& server) {
  if (stopping_) return;
  Known& known = known_[server];
  known.pause = known.pause.count() == 0 ? config_.list_retry : std::min(2 * known.pause, kSeldom);
  known.retry.emplace(loop_);
  known.retry->arm_after(known.pause, [this, server] { refresh(server, nullptr); });
}

// An upstream of one session or user lists for that one. It is not started for it: there is time when it is.
Task<void> GatewayImpl::list_own(std::shared_ptr<GatewayImpl> self, std::shared_ptr<pool::Upstream> upstream,
                                 std::shared_ptr<Part> part) {
  const std::string server = upstream->spec().name;
  const std::string key = upstream->key();
  while (part->again) {
    Task<bool> waiting = self->take_turn(*part);
    const bool goes_on = co_await waiting;
    if (!goes_on) break;
    Result<pool::Lease> lease = self->pool_->hold(upstream);
    if (!lease) break;
    Task<Result<Asked>> asking = self->ask_lists(std::move(*lease), *part);
    const Result<Asked> asked = co_await asking;
    const std::string problem = asked ? asked->problem : asked.error().to_string();
    if (!problem.empty())
      self->log_.warning("server does not list", {{"server", server}, {"for", key}, {"reason", problem}});
    if (!asked) break;
    self->take_own(server, key, *part, asked->listed);
  }
  part->asking = false;
}

// However often a server says that its lists have changed, it is asked now and then only. False: no more.
Task<bool> GatewayImpl::take_turn(Part& part) {
  const Clock::duration left = part.next - Clock::now();
  co_await sleep_for(loop_, left);
  part.next = Clock::now() + kBetween;
  part.again = false;
  co_return !stopping_;
}

Task<Result<GatewayImpl::Asked>> GatewayImpl::ask_lists(pool::Lease lease, Part& part) {
  const std::shared_ptr<mcp::Client> client = lease.upstream()->client();
  const std::string server = lease.upstream()->spec().name;
  // Kept where shutdown() can take it away.
  part.lease.emplace(std::move(lease));
  if (mcp::is_modern(client->revision()) && part.listening.lock() != client) {
    part.listening = client;
    mcp::ListenFilter filter;
    filter.tools = filter.prompts = filter.resources = true;
    // Without it changes are seen only when the server is started anew.
    Task<Result<std::uint64_t>> listening = client->listen(std::move(filter));
    const Result<std::uint64_t> number = co_await listening;
    static_cast<void>(number);
  }
  auto listed = std::make_shared<Listed>();
  Asked asked;
  for (const Kind kind : kKinds) {
    const std::string_view capability = kind == Kind::templates ? "resources" : member_of(kind);
    if (client->capabilities()[capability].absent()) continue;
    Task<Result<std::vector<json::Raw>>> asking =
        client->list(std::string(list_method(kind)), std::string(member_of(kind)));
    Result<std::vector<json::Raw>> entries = co_await asking;
    if (entries) {
      listed->of(kind) = std::move(*entries);
      continue;
    }
    // Many servers have resources and no templates, and do not know the method.
    if (kind == Kind::templates && entries.error().kind() == ErrorKind::remote) continue;
    asked.problem = std::string(list_method(kind)) + ": " + entries.error().to_string();
    if (client->end_reason()) {
      part.lease.reset();
      co_return entries.error();
    }
    // What it says of the others still counts, and what it said of this before.
    if (part.listed) listed->of(kind) = part.listed->of(kind);
  }
  part.lease.reset();
  if (part.listed && same(*part.listed, *listed)) {
    asked.listed = part.listed;
    co_return asked;
  }
  Task<void> making = make_offers(server, listed);
  co_await making;
  asked.listed = std::move(listed);
  co_return asked;
}

Task<void> GatewayImpl::make_offers(std::string server, std::shared_ptr<Listed> listed) {
  const auto keep = shared_from_this();
  mcp::Slices slices;
  for (const Kind kind : kKinds) {
    for (const json::Raw& entry : listed->of(kind)) {
      listed->add_offer(server, kind, entry, mcp::ListLimits());
      if (slices.due(entry.text().size())) co_await sleep_for(loop_, mcp::Slices::kPause);
    }
  }
}

// ---- taking ----------------------------------------------------------------------------------------------

void GatewayImpl::take_lists(const std::string& server, std::shared_ptr<const Listed> listed) {
  loop_.turns().label("lists of server " + server);
  Known& known = known_[server];
  if (known.shared.listed && same(*known.shared.listed, *listed)) return;
  const std::shared_ptr<const Listed> before = std::exchange(known.shared.listed, std::move(listed));
  rebuild_catalogue();
  tell_changes(
      or_nothing(before), *known.shared.listed,
      [&known](std::string_view session, std::string_view user) { return !known.own_lists(session, user); });
}

void GatewayImpl::rebuild_catalogue() {
  Lists lists;
  for (const auto& [name, one] : known_) {
    if (one.shared.listed) lists[name] = one.shared.listed;
  }
  std::set<std::string> problems;
  std::size_t unlogged = 0;
  catalogue_ = std::make_shared<const Catalogue>(lists, [this, &problems, &unlogged](std::string problem) {
    if (problems.contains(problem)) return;
    if (problems.size() >= kMaxLoggedProblems) {
      ++unlogged;
      return;
    }
    if (!problems_.contains(problem)) log_.warning("not offered", {{"problem", problem}});
    problems.insert(std::move(problem));
  });
  if (unlogged > 0)
    log_.warning("not offered", {{"problem", std::to_string(unlogged) + " more entries are left out"}});
  problems_ = std::move(problems);
  forget_views();
}

void GatewayImpl::take_own(const std::string& server, const std::string& key, Part& part,
                           std::shared_ptr<const Listed> listed) {
  loop_.turns().label("lists of server " + server);
  const Known& known = known_[server];
  const auto found = known.own.find(key);
  if (found == known.own.end() || found->second.get() != &part) return;  // its session has ended
  // Most list what all list, and that need not be kept once more.
  const bool usual = known.shared.listed && same(*listed, *known.shared.listed);
  const auto before = part.listed ? part.listed : known.shared.listed;
  part.listed = usual ? known.shared.listed : std::move(listed);
  forget_views();
  tell_changes(or_nothing(before), *part.listed,
               [&known, &key](std::string_view session, std::string_view user) {
                 return (known.per_user ? user : session) == key;
               });
}

// Clients hear of a list only when what they would see is not what they saw.
void GatewayImpl::tell_changes(const Listed& before, const Listed& now, const mcp::Concerns& concerns) {
  if (!listed_.is_set()) return;  // nobody has been shown a whole list yet
  const auto differs = [&](Kind kind) { return !same(before.of(kind), now.of(kind)); };
  if (differs(Kind::tools)) front_.tools_changed(concerns);
  if (differs(Kind::prompts)) front_.prompts_changed(concerns);
  if (differs(Kind::resources) || differs(Kind::templates)) front_.resources_changed(concerns);
}

// ---- showing ---------------------------------------------------------------------------------------------

std::shared_ptr<const Listed> GatewayImpl::Known::own_lists(std::string_view session,
                                                            std::string_view user) const {
  const auto found = own.find(per_user ? user : session);
  return found == own.end() ? nullptr : found->second->listed;
}

std::shared_ptr<const Catalogue> GatewayImpl::catalogue_for(std::string_view session, std::string_view user) {
  if (!lists_differ_) return catalogue_;
  std::shared_ptr<const Catalogue>& view = views_[{std::string(session), std::string(user)}];
  if (view) return view;
  Lists lists;
  bool differs = false;
  for (const auto& [name, known] : known_) {
    const std::shared_ptr<const Listed> own = known.own_lists(session, user);
    differs = differs || (own && own != known.shared.listed);
    if (own || known.shared.listed) lists[name] = own ? own : known.shared.listed;
  }
  view = differs ? std::make_shared<const Catalogue>(lists) : catalogue_;
  return view;
}

void GatewayImpl::forget_views() {
  views_.clear();
  const auto differs = [](const auto& entry) {
    const Known& known = entry.second;
    return std::ranges::any_of(known.own, [&](const auto& own) {
      return own.second->listed && own.second->listed != known.shared.listed;
    });
  };
  lists_differ_ = std::ranges::any_of(known_, differs);
}

Task<Answer> GatewayImpl::list(Kind kind, mcp::BackendRequest request) {
  const auto keep = shared_from_this();
  const mcp::Context context = request.context;
  // There is one page.
  if (!json::View(request.message.params_text())["cursor"].absent())
    co_return refusal_of(rpc::kInvalidParams, "Invalid cursor", failure::invalid_request);
  const bool all = co_await listed_.wait(loop_, config_.list_wait);
  // Those that are late come with a change of the list.
  if (!all) listed_.set();
  const auto catalogue = catalogue_for(context.session(), context.user());
  mcp::ResultWriter result(*front_.state(), context.revision());
  result.out().key(member_of(kind)).raw(catalogue->encoded(kind, context.revision()));
  result.cache_hint(mcp::CacheHint{0, false});
  co_return result.finish();
}

}  // namespace fairlead::gateway
