#include "pool/active_calls.hpp"

#include <algorithm>
#include <iterator>

#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

// Logs a warning, once per server, that a client of a per_session server has neither a session nor a user.
void warn_of_missing_session(ManagedUpstream& upstream, const Target& target) {
  ServerContext& server = *upstream.server;
  if (server.sharing != Sharing::per_session || std::exchange(server.warned_of_missing_session, true)) return;
  upstream.core->log().warning(
      "clients without a session and without a user share one process",
      {{"server", target.server}, {"sharing", std::string(to_string(Sharing::per_session))}});
}

}  // namespace

void ActiveCalls::add(Entry& call) {
  call.number = ++last_number_;
  calls_.push_back(call);
  if (!call.call_context) return;
  client_calls_.push_back(call);
  session_changes_ += session_changes_at(client_calls_.iterator_to(call));
}

void ActiveCalls::remove(Entry& call) {
  calls_.erase(calls_.iterator_to(call));
  if (!call.client_hook.is_linked()) return;
  const auto position = client_calls_.iterator_to(call);
  session_changes_ -= session_changes_at(position) + session_changes_at(std::next(position));
  session_changes_ += session_changes_at(client_calls_.erase(position));
}

// A call without a session always counts as a change, because such calls may belong to different clients.
std::size_t ActiveCalls::session_changes_at(ClientEntries::const_iterator call) const {
  if (call == client_calls_.begin() || call == client_calls_.end()) return 0;
  const std::string& session = call->target.session;
  return session.empty() || session != std::prev(call)->target.session ? 1 : 0;
}

ClientCallSummary ActiveCalls::client_call_summary() const {
  ClientCallSummary calls;
  calls.count = client_calls_.size();
  if (calls.count > 0 && session_changes_ == 0) calls.call_context = client_calls_.back().call_context;
  return calls;
}

bool ActiveCalls::any_up_to(std::uint64_t number) const noexcept {
  return !calls_.empty() && calls_.front().number <= number;
}

bool ActiveCalls::only_leases() const noexcept {
  return std::ranges::all_of(calls_, [](const Entry& call) { return !call.request; });
}

std::vector<ActiveCallInfo> ActiveCalls::infos() const {
  std::vector<ActiveCallInfo> all;
  for (const Entry& call : calls_)
    all.push_back(ActiveCallInfo{call.target.session, call.target.user, call.method, call.call_context});
  return all;
}

std::set<std::string> ActiveCalls::called_tools() const {
  std::set<std::string> tools;
  for (const Entry& call : calls_) {
    if (call.request && !call.request->tool().empty()) tools.emplace(call.request->tool());
  }
  return tools;
}

ActiveCall::ActiveCall(std::shared_ptr<ManagedUpstream> upstream, const Target& target,
                       std::string_view method, std::shared_ptr<void> call_context,
                       const mcp::ForwardedRequest* request)
    : upstream_(std::move(upstream)),
      server_request_count_before_(upstream_->use.server_request_count()),
      entry_(target, method, std::move(call_context), request) {
  upstream_->active.add(entry_);
  if (method.empty()) return;  // a lease
  if (target.session.empty() && target.user.empty()) warn_of_missing_session(*upstream_, target);
  upstream_->use.record_call(target.session);
}

ActiveCall::~ActiveCall() {
  ManagedUpstream& upstream = *upstream_;
  upstream.active.remove(entry_);
  upstream.health.replace_if_unresponsive();
  if (!upstream.active.empty()) return;
  if (upstream.state() == UpstreamState::draining) upstream.lifecycle.dispatch(Supervisor::Event::drained);
  if (upstream.inactive()) upstream.post_inactive_check();
  upstream.on_use_ended();
}

bool ActiveCall::server_has_begun() const noexcept {
  return progressed || upstream_->use.server_request_count() != server_request_count_before_;
}

}  // namespace fairlead::pool
