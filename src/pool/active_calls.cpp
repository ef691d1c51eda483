#include "pool/active_calls.hpp"

#include <algorithm>
#include <iterator>

#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

// Logs, once for a server, that it is per_session and a client has no session.
void warn_of_missing_session(ManagedUpstream& upstream, const Target& target) {
  ServerState& server = *upstream.server;
  if (server.sharing != Sharing::per_session || std::exchange(server.warned_of_missing_session, true)) return;
  upstream.core->log().warning(
      "clients without a session share one process",
      {{"server", target.server}, {"sharing", std::string(to_string(Sharing::per_session))}});
}

}  // namespace

void ActiveCalls::add(Entry& call) {
  call.number = ++last_number_;
  calls_.push_back(call);
  if (!call.caller) return;
  client_calls_.push_back(call);
  session_changes_ += session_changes_at(client_calls_.iterator_to(call));
}

void ActiveCalls::remove(Entry& call) {
  calls_.erase(calls_.iterator_to(call));
  if (!call.client_hook.is_linked()) return;
  const auto at = client_calls_.iterator_to(call);
  session_changes_ -= session_changes_at(at) + session_changes_at(std::next(at));
  session_changes_ += session_changes_at(client_calls_.erase(at));
}

// Calls without a session may be of different clients.
std::size_t ActiveCalls::session_changes_at(ClientEntries::const_iterator call) const {
  if (call == client_calls_.begin() || call == client_calls_.end()) return 0;
  const std::string& session = call->target.session;
  return session.empty() || session != std::prev(call)->target.session ? 1 : 0;
}

ClientCalls ActiveCalls::of_clients() const {
  ClientCalls calls;
  calls.count = client_calls_.size();
  if (calls.count > 0 && session_changes_ == 0) calls.caller = client_calls_.back().caller;
  return calls;
}

bool ActiveCalls::any_until(std::uint64_t number) const noexcept {
  return !calls_.empty() && calls_.front().number <= number;
}

bool ActiveCalls::only_leases() const noexcept {
  return std::ranges::all_of(calls_, [](const Entry& call) { return !call.request; });
}

std::vector<RunningCall> ActiveCalls::running() const {
  std::vector<RunningCall> all;
  for (const Entry& call : calls_)
    all.push_back(RunningCall{call.target.session, call.target.user, call.method, call.caller});
  return all;
}

std::set<std::string> ActiveCalls::tools() const {
  std::set<std::string> tools;
  for (const Entry& call : calls_) {
    if (call.request && !call.request->tool().empty()) tools.emplace(call.request->tool());
  }
  return tools;
}

ActiveCall::ActiveCall(std::shared_ptr<ManagedUpstream> at, const Target& target, std::string_view method,
                       std::shared_ptr<void> caller, const mcp::OutgoingRequest* request)
    : upstream_(std::move(at)),
      questions_before_(upstream_->use.questions()),
      entry_(target, method, std::move(caller), request) {
  upstream_->active.add(entry_);
  if (method.empty()) return;  // a lease
  if (target.session.empty()) warn_of_missing_session(*upstream_, target);
  upstream_->use.note_call(target.session);
}

ActiveCall::~ActiveCall() {
  ManagedUpstream& at = *upstream_;
  at.active.remove(entry_);
  at.health.replace_if_unresponsive();
  if (!at.active.empty()) return;
  if (at.state() == State::draining) at.lifecycle.tell(Supervisor::Event::drained);
  if (at.at_rest()) at.settle_soon();
  at.note_idle();
}

bool ActiveCall::part_seen() const noexcept {
  return progressed || upstream_->use.questions() != questions_before_;
}

}  // namespace fairlead::pool
