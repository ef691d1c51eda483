// LegacySession: a legacy session over Streamable HTTP; it is not the older HTTP+SSE (see
// http_sse_session.hpp).
//
// It serves revisions 2025-03-26 to 2025-11-25. The client POSTs its messages. Messages to the client that
// belong to one of its requests are sent in the response to the POST of that request, all others on the
// standalone stream, which the client opens with GET. Events are retained, so that a client can resume an
// interrupted stream: those of a finished stream for finished_stream_grace, the others as long as the limits
// of the EventStore allow. Private to src/transport.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fairlead/base/id_map.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/protocol/revision.hpp"
#include "fairlead/transport/endpoint.hpp"
#include "transport/event_store.hpp"
#include "transport/request_rules.hpp"
#include "transport/session_binding.hpp"
#include "transport/ticker.hpp"

namespace fairlead::transport {

class LegacySession final : public Connection, public TickListener {
 public:
  // Called once, when the session ends. The endpoint removes the session from its table.
  using EndedCallback = std::function<void(const std::string& id)>;

  LegacySession(Loop& loop, std::string id, PrincipalPtr principal,
                std::shared_ptr<const EndpointOptions> options,
                std::shared_ptr<EventStore::SharedBudget> shared_budget, EndedCallback on_ended);

  // Charges requests and retained events to the client with this account. Call it before the first request.
  void charge_to(const std::shared_ptr<ByteAccount>& account) {
    set_account(account);
    store_.charge_to(account);
  }

  // Sets the application that serves the session, which is kept alive until the session has ended.
  void bind_to(SessionBinding binding) { binding_ = std::move(binding); }
  const SessionBinding& binding() const noexcept { return binding_; }

  const std::string& id() const noexcept { return id_; }
  // Returns the principal that created the session; only its requests are accepted.
  const PrincipalPtr& principal() const noexcept { return principal_; }

  // Handles a POST with one message or a batch. REQUIRES: the message of the first POST is `initialize`, and
  // the caller keeps the session alive.
  void handle_post(std::shared_ptr<http::Exchange> exchange, rpc::Message&& message);
  // Opens the standalone stream or, if the GET has a Last-Event-ID, resumes the stream that it names. If
  // `draining`, responds with 503 for the standalone stream; the streams of requests can still be resumed.
  void handle_get(std::shared_ptr<http::Exchange> exchange, bool draining);
  // Ends the session at the request of the client.
  void handle_delete(const std::shared_ptr<http::Exchange>& exchange);

  void on_tick(Clock::time_point now) override;
  // Returns whether no request is in progress and the standalone stream is not open.
  bool is_idle() const noexcept;
  // Returns whether the session has had a request other than `initialize`.
  bool has_had_request() const noexcept { return has_had_request_; }
  Clock::time_point last_used() const noexcept { return last_used_; }
  mcp::Revision revision() const noexcept { return revision_; }
  // Ends the standalone stream, which would otherwise stay open until the client closes it. Requests in
  // progress continue.
  void end_standalone_stream();

  // Always 0, because the HTTP server limits the backlog of each response.
  std::size_t backlog() const noexcept override { return 0; }
  std::string description() const override { return "session " + id_.substr(0, 8); }
  void close_request_stream(std::string_view request_id) override;

 private:
  // The response to one POST, or the standalone stream. A client can resume it with another exchange.
  struct ResponseStream {
    std::shared_ptr<http::Exchange> exchange;  // null: the client is not connected to this stream
    AcceptedTypes accepted_types;
    bool is_initialize = false;
    bool is_batch = false;
    bool streaming = false;                 // the head of an event stream has been sent
    bool idle_since_tick = false;           // nothing was sent since the last tick
    std::uint64_t number = 0;               // in event ids; 0: the standalone stream, or not streaming yet
    std::size_t pending_request_count = 0;  // requests of the POST that have no response yet
    std::vector<rpc::Rope>
        responses;  // responses that are collected until all are there; not used when streaming
    Clock::time_point received_at;  // when the POST was received
  };
  using ResponseStreamPtr = std::shared_ptr<ResponseStream>;

  Result<void> enqueue(const rpc::Rope& message, WriteWaiter* waiter,
                       RelatedRequest related_request) override;
  std::uint64_t position_at_backlog(std::size_t) const noexcept override { return 0; }
  void request_input() override { release_empty_inbox(); }
  void release() override;

  // Adds the requests of a POST to streams_by_request_, and an error response to `stream` for each malformed
  // message of a batch. If the id of a request is null or already in use, rejects the POST and returns false.
  bool register_requests(const ResponseStreamPtr& stream, const rpc::Message& message);
  // Removes the requests of `stream` from streams_by_request_, without a response.
  void unregister_requests(const ResponseStreamPtr& stream);
  // Delivers the message, or the messages of a batch, to the receiver of this connection. Then ends the
  // streams of requests that these messages cancel.
  void deliver_messages_of(rpc::Message&& message);
  void remove_request(const std::string& id);

  // Returns whether the response is an event stream or can still become one.
  bool can_stream(const ResponseStream& stream) const;
  // Sends a request or notification of the server on `stream`; on the standalone stream if `stream` is null.
  void send_server_message(const ResponseStreamPtr& stream, const rpc::Rope& message);
  void send_response(const ResponseStreamPtr& stream, const rpc::Rope& message);
  static bool responds_with_json(const ResponseStream& stream) noexcept;
  void respond_with_json(const ResponseStreamPtr& stream, const rpc::Rope& body);
  void send_collected_responses(const ResponseStreamPtr& stream);
  // Stores the revision in the response to `initialize`. Returns false if the response is an error.
  bool read_negotiated_revision(const rpc::Rope& response);
  void start_event_stream(const ResponseStreamPtr& stream);
  void start_event_streams_soon();
  void start_event_streams();
  void send_event(const ResponseStreamPtr& stream, const rpc::Rope& message);
  void finish_stream(const ResponseStreamPtr& stream);
  void replay(const ResponseStreamPtr& stream, const std::vector<http::sse::EncodedEvent>& events);
  void open_standalone_stream(std::shared_ptr<http::Exchange> exchange);
  void resume_stream(std::shared_ptr<http::Exchange> exchange, EventStore::EventId last_event,
                     const std::vector<http::sse::EncodedEvent>& events);
  void attach_exchange(const ResponseStreamPtr& stream, std::shared_ptr<http::Exchange> exchange);
  void time_out_requests(Clock::time_point now);
  void stream_slow_responses(Clock::time_point now);
  // Priming events (see http/sse.hpp) are part of revision 2025-11-25.
  bool sends_priming_events() const noexcept { return revision_ >= mcp::Revision::r2025_11_25; }
  http::Response event_stream_head(const ResponseStream& stream) const;

  std::string id_;
  PrincipalPtr principal_;
  SessionBinding binding_;
  std::shared_ptr<const EndpointOptions> options_;
  EndedCallback on_ended_;
  mcp::Revision revision_ = mcp::Revision::r2025_03_26;  // the negotiated revision
  bool initialized_ = false;
  bool has_had_request_ = false;
  EventStore store_;
  ResponseStreamPtr standalone_stream_;
  std::uint64_t last_sent_standalone_event_ = 0;  // newest event of the standalone stream that was sent
  std::uint64_t last_stream_number_ = 0;          // number of the newest stream
  IdMap<ResponseStreamPtr> streams_by_request_;   // requests in progress, by id
  // Event streams that are not finished.
  std::unordered_map<std::uint64_t, ResponseStreamPtr> streams_by_number_;
  std::unique_ptr<Timer> stream_start_timer_;  // of start_event_streams_soon(); null until it is needed
  Clock::time_point last_used_ = Clock::now();
  std::uint64_t sent_count_ = 0;  // messages that enqueue() was called with; a position for WriteWaiter
};

}  // namespace fairlead::transport
