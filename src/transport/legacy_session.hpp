// LegacySession: a client of the legacy era over Streamable HTTP, as a connection. Its messages come in by
// POST; what is said about a request goes back on the answer to that POST, everything else on the stream the
// client opens with GET. Events are kept for clients that lose a stream and come back: those of a finished
// stream for finished_stream_grace, the others within the budget of the store. Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fairlead/protocol/revision.hpp"
#include "fairlead/transport/endpoint.hpp"
#include "transport/event_store.hpp"
#include "transport/request_rules.hpp"
#include "transport/ticker.hpp"

namespace fairlead::transport {

class LegacySession final : public Connection, public Ticked {
 public:
  // Called once, when the session is over: nobody shall find it any more.
  using Ended = std::function<void(const std::string& id)>;

  LegacySession(Loop& loop, std::string id, PrincipalPtr principal,
                std::shared_ptr<const EndpointOptions> options, std::shared_ptr<EventStore::Total> total,
                Ended ended);

  // Charges the client with its requests and its kept events. Call it before the session serves.
  void charge_to(const std::shared_ptr<ByteAccount>& account) {
    set_account(account);
    store_.charge_to(account);
  }

  const std::string& id() const noexcept { return id_; }
  // All its requests are those of this principal.
  const PrincipalPtr& principal() const noexcept { return principal_; }

  // A POST that has been judged to be of the legacy era. The first one is `initialize`.
  void take_post(std::shared_ptr<http::Exchange> exchange, const rpc::Message& message);
  // `ending`: the standalone stream is refused; the streams of requests can still be resumed.
  void take_get(std::shared_ptr<http::Exchange> exchange, bool ending);
  void take_delete(const std::shared_ptr<http::Exchange>& exchange);

  void tick(Clock::time_point now) override;
  // Nothing is under way and no stream is open.
  bool idle() const noexcept;
  // It has had a request since its handshake.
  bool used() const noexcept { return used_; }
  Clock::time_point last_used() const noexcept { return last_used_; }
  // Ends the stream that nothing else would end; requests under way go on.
  void end_standalone();

  std::size_t backlog() const noexcept override { return 0; }  // answers are bounded where they are written
  std::string description() const override { return "session " + id_.substr(0, 8); }
  void close_stream_of(std::string_view request) override;

 private:
  // The answer to one POST, or the stream of a GET.
  struct Stream {
    std::shared_ptr<http::Exchange> exchange;  // null: nobody listens just now
    Accepts accepts;
    bool initializes = false;
    bool batch = false;
    bool started = false;      // as a stream of events
    bool quiet = false;        // nothing was sent since the last tick
    std::uint64_t number = 0;  // once it has events
    std::size_t waiting = 0;   // requests that are not answered yet
    std::vector<rpc::Rope> answers;
    Clock::time_point since;
  };
  using StreamPtr = std::shared_ptr<Stream>;

  Result<void> enqueue(const rpc::Rope& message, Waiter* waiter, Concerning concerning) override;
  std::uint64_t position_at_backlog(std::size_t) const noexcept override { return 0; }
  void want_input() override {}
  void release() override;

  bool register_requests(const StreamPtr& stream, const rpc::Message& message);
  void take_in(const rpc::Message& message);
  void hear_cancelled(const rpc::Message& message);
  void forget_request(const std::string& id);

  bool can_say(const Stream& stream) const;
  void say(const StreamPtr& stream, const rpc::Rope& message);
  void answer(const StreamPtr& stream, const rpc::Rope& message);
  static bool answers_with_json(const Stream& stream) noexcept;
  void respond(const StreamPtr& stream, const rpc::Rope& answer);
  void answer_at_once(const StreamPtr& stream);
  bool learn_revision(const rpc::Rope& answer);
  void start_events(const StreamPtr& stream);
  void send_event(const StreamPtr& stream, const rpc::Rope& message);
  void finish(const StreamPtr& stream);
  void replay(const StreamPtr& stream, const std::vector<http::sse::Parts>& events);
  void open_standalone(std::shared_ptr<http::Exchange> exchange);
  void resume(std::shared_ptr<http::Exchange> exchange, EventStore::Place place,
              const std::vector<http::sse::Parts>& events);
  void attach(const StreamPtr& stream, std::shared_ptr<http::Exchange> exchange);
  void time_out(Clock::time_point now);
  void become_streams(Clock::time_point now);
  bool primes() const noexcept { return revision_ >= mcp::Revision::r2025_11_25; }
  http::Response head_of(const Stream& stream) const;

  std::string id_;
  PrincipalPtr principal_;
  std::shared_ptr<const EndpointOptions> options_;
  Ended ended_;
  mcp::Revision revision_ = mcp::Revision::r2025_03_26;  // negotiated
  bool initialized_ = false;
  bool used_ = false;
  EventStore store_;
  StreamPtr standalone_;
  std::uint64_t told_ = 0;  // the last event of the standalone stream that was sent to somebody
  std::uint64_t last_stream_ = 0;
  std::unordered_map<std::string, StreamPtr> by_request_;   // by the id of a request under way
  std::unordered_map<std::uint64_t, StreamPtr> by_number_;  // those with events that are not finished
  Clock::time_point last_used_ = Clock::now();
  std::uint64_t sent_ = 0;
};

}  // namespace fairlead::transport
