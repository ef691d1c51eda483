// StreamableConnection: the client side of MCP's HTTP transport. Each message is sent as a POST. The
// connection receives the messages in the responses to these POSTs, which are JSON or event streams, and,
// from servers of the legacy era, the messages on a stream of the server: the standalone stream, or that of
// HTTP+SSE. It interprets only those parts of a message that the transport needs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/base/fifo.hpp"
#include "fairlead/base/id_map.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/peer/connection.hpp"
#include "fairlead/transport/connect.hpp"
#include "http/client_direct.hpp"
#include "http/sse_parser.hpp"
#include "transport/http_client_message.hpp"
#include "transport/streamable_state.hpp"
#include "transport/unsent_messages.hpp"

namespace fairlead::transport {

class StreamableConnection final : public Connection {
 public:
  StreamableConnection(Loop& loop, http::Url url, std::shared_ptr<http::HttpClient> client,
                       ReconnectLimits reconnect);

  std::size_t backlog() const noexcept override { return unsent_.bytes(); }
  std::string description() const override { return url_.redacted(); }
  bool has_stream_per_request() const noexcept override { return true; }
  Task<void> wait_closed() override;

 private:
  // A message that is sent as a POST, until the HTTP response has been handled.
  // run_post() sends it; it waits and is cancelled as a CancellableWaiter. start_directly() sends it as a
  // DirectExchange.
  struct Post final : http::CancellableWaiter, http::DirectExchange {
    Post(StreamableConnection& owner, HttpClientMessage sent, bool modern_era)
        : CancellableWaiter(owner.loop()),
          connection(owner),
          message(std::move(sent)),
          id(message.is_request() ? message.id() : std::string_view()),
          modern(modern_era) {}
    void on_readable() override { connection.receive_directly(*this); }
    // Returns whether the message is sent in the session of the legacy era, if there is one.
    bool uses_session() const noexcept { return !modern && !internal && !message.is_handshake(); }

    StreamableConnection& connection;  // owns the Post
    const HttpClientMessage message;
    const std::string_view id;  // id of a request; empty for notifications and responses
    const bool modern;          // the message belongs to the modern era
    bool is_pending = false;    // the call is in StreamableConnection::calls_
    // The generation of the session in which the message was last sent; nullopt if it was sent without one.
    std::optional<std::uint64_t> session;
    std::uint64_t position = 0;  // where the message ends in the sequence of all sent bytes; 0 if internal
    bool written = false;        // the message counts as sent
    std::size_t index = 0;       // see StreamableConnection::posts_
    bool response_received = false;        // the response to the request has been received
    bool internal = false;                 // sent by renew_session(): the response is not delivered
    std::optional<rpc::Message> response;  // the response to an internal request
  };
  using PostPtr = std::shared_ptr<Post>;
  // From which event and when an interrupted event stream can be resumed.
  struct ResumePoint {
    std::string last_event_id;
    std::optional<std::chrono::milliseconds> retry;  // the delay that the server requested
    std::uint64_t event_count = 0;                   // events received since the last reconnect
    Clock::time_point burst_start{};                 // start of the minute in which reconnects are counted
    std::size_t reconnects_in_burst = 0;             // reconnects since burst_start
  };
  // A stream of the server that belongs to no request: the standalone stream, or the stream of HTTP+SSE.
  struct ServerStream {
    explicit ServerStream(Loop& loop) : waiter(std::make_shared<http::CancellableWaiter>(loop)) {}
    std::shared_ptr<http::CancellableWaiter> waiter;
    Event opened;                         // set when the stream is open or has failed
    std::optional<Error> endpoint_error;  // why the endpoint event of HTTP+SSE was rejected
    // Called for events of other types than `message`.
    std::function<void(const http::SseEvent&)> on_other_event;
  };
  using ServerStreamPtr = std::shared_ptr<ServerStream>;
  // The part of a POST's head that is the same for all messages of a method.
  struct DirectHead {
    std::string method;
    std::optional<std::string> modern_revision;
    std::uint64_t session_version;
    bool named;            // the constant part ends with the name of the field Mcp-Name
    std::string text{};    // begins with the constant part; direct_head() appends the rest
    std::size_t size = 0;  // of the constant part
  };
  using ResponseResult = Result<std::shared_ptr<http::ClientResponse>>;

  Result<void> enqueue(const rpc::Rope& message, WriteWaiter* waiter,
                       RelatedRequest related_request) override;
  std::uint64_t position_at_backlog(std::size_t bytes) const noexcept override;
  void request_input() override;
  void release() override;
  std::shared_ptr<StreamableConnection> self() {
    return std::static_pointer_cast<StreamableConnection>(shared_from_this());
  }

  // ---- one message (streamable_connection.cpp) ----
  // If the message is notifications/cancelled, cancels the call that it names. Returns true if the message
  // must not be sent; always false for other messages.
  bool intercept_cancellation(const HttpClientMessage& message);
  // Starts run_post() for the POSTs in unstarted_, a limited number per turn of the loop.
  void start_posts();
  void add_post(const PostPtr& post);
  // Adds a call to calls_; replaces one with the same id.
  void add_call(const PostPtr& post);
  void remove_post(const Post& post);
  // Removes the call from calls_, if it is there.
  void remove_call(Post& post);
  void cancel_post(const PostPtr& post);
  static Task<void> run_post(std::shared_ptr<StreamableConnection> self, PostPtr post);
  void finish_post(const PostPtr& post, const Result<void>& outcome);
  void mark_written(Post& post);
  // Returns the position up to which all messages have been sent.
  std::uint64_t sent_position() const noexcept;
  // Sends the message and handles the response. If the server has lost the session, renews it and sends the
  // message again.
  Task<Result<void>> send_and_handle(PostPtr post);
  // REQUIRES: `post` outlives the request.
  http::ClientRequest request_for(const PostPtr& post);
  // Handles the response to a call if it is a small JSON message that has been received completely, as most
  // are. Returns nullopt, and does nothing, for other responses.
  std::optional<Result<void>> handle_received_response(Post& post, http::ClientResponse& response);
  // Returns whether the message is a request other than those of the handshake, whose response is delivered
  // as it is.
  static bool is_plain_call(const Post& post) noexcept {
    return !post.id.empty() && !post.internal && !post.message.is_handshake();
  }
  // Sets Post::session.
  void note_session_of(Post& post) const;
  // Returns the maximum size of a JSON response that is parsed in one turn.
  std::size_t max_parsed_at_once() const noexcept;
  Result<void> handle_json_response(Post& post, rpc::Message&& message);
  Task<Result<void>> handle_success(PostPtr post, std::shared_ptr<http::ClientResponse> response);
  Task<Result<void>> handle_error_status(PostPtr post, std::shared_ptr<http::ClientResponse> response);
  Task<Result<void>> read_json_response(PostPtr post, std::shared_ptr<http::ClientResponse> response);

  // ---- one message without a coroutine (streamable_direct.cpp) ----
  // Sends the message as a DirectExchange. Returns false, and sends nothing, if run_post() has to send it.
  bool start_directly(const PostPtr& post);
  // Handles the response to a message that start_directly() has sent, if it is small JSON; otherwise
  // run_post() continues.
  void receive_directly(Post& post);
  // Returns the head of the POST for a DirectExchange, valid until the next call; nullopt if run_post() has
  // to send the message.
  std::optional<std::string_view> direct_head(const HttpClientMessage& message);

  // ---- incoming messages (streamable_events.cpp) ----
  Task<Result<void>> read_response_events(PostPtr post, std::shared_ptr<http::ClientResponse> response);
  // Reconnects until the response to the request has arrived. Fails with `closed` after max_resumptions
  // attempts.
  Task<Result<void>> resume_response_stream(PostPtr post, ResumePoint& point);
  // Reads an event stream to its end and handles its messages. Updates `point` after each event. `post` is
  // the request whose response the stream carries, `stream` the stream of the server; one of them is null.
  Task<Result<void>> read_events(std::shared_ptr<http::ClientResponse> response,
                                 std::shared_ptr<http::CancellableWaiter> waiter, ResumePoint& point,
                                 Post* post, ServerStream* stream);
  void handle_event_message(rpc::Message&& message, Post* post);
  // Waits until the receiver has processed all delivered messages.
  Task<void> wait_for_receiver(std::shared_ptr<http::CancellableWaiter> waiter);
  void handle_message(rpc::Message&& message, Post* post);
  void handle_response(rpc::Message&& message, Post* post);
  // Returns the call in calls_ with this id, which is usually that of `post`; null if there is none.
  PostPtr pending_call(std::string_view id, const Post* post) const;
  // Returns a response to the request `id` with the same error.
  static rpc::Message error_with_id(const rpc::Message& error, std::string_view id);
  // Counts a reconnect in `point`, and returns how long to wait before it.
  Clock::duration next_reconnect_delay(ResumePoint& point, std::size_t attempt) const;

  // ---- the legacy era (streamable_legacy.cpp) ----
  Task<void> open_standalone_stream();
  static Task<void> run_standalone_stream(std::shared_ptr<StreamableConnection> self, ServerStreamPtr stream);
  // Requests an event stream with GET; resumes a stream if `last_event_id` is not empty.
  Task<ResponseResult> send_get(std::string last_event_id, std::shared_ptr<http::CancellableWaiter> waiter);
  // Remembers that the server has lost the session; renew_session() begins a new one.
  void note_session_loss();
  Task<Result<void>> renew_session();
  // Calls renew_session() with growing delays until it succeeds.
  Task<void> renew_until_cancelled(std::shared_ptr<http::CancellableWaiter> waiter);
  // Performs the handshake for a new session.
  Task<Result<void>> reinitialize();
  // Opens the stream of HTTP+SSE and waits for the event with the URL for POSTs. Called when the server
  // rejects the handshake of Streamable HTTP.
  Task<Result<void>> fall_back_to_http_sse();
  static Task<void> run_http_sse_stream(std::shared_ptr<StreamableConnection> self, ServerStreamPtr stream);
  // Ends the session with DELETE. Then closes client_ and sets released_.
  static Task<void> delete_session(std::shared_ptr<StreamableConnection> self);

  http::Url url_;
  std::shared_ptr<http::HttpClient> client_;
  ReconnectLimits reconnect_;
  Log log_;
  StreamableState state_;

  const bool direct_;  // whether start_directly() can send messages
  std::optional<DirectHead> direct_head_;

  std::uint64_t queued_position_ = 0;  // total size of all messages; positions count these bytes
  UnsentMessages unsent_;
  Fifo<PostPtr> unstarted_;     // POSTs that start_posts() will start
  std::vector<PostPtr> posts_;  // POSTs in progress; Post::index is the index here
  using CallEntry = std::pair<const std::string_view, PostPtr>;
  // Calls without a response, by Post::id.
  std::unordered_map<std::string_view, PostPtr, IdHash, std::equal_to<>, BlockAllocator<CallEntry>> calls_;
  std::vector<std::shared_ptr<http::CancellableWaiter>> paused_readers_;  // readers in wait_for_receiver()

  ServerStreamPtr server_stream_;               // the standalone stream, or that of HTTP+SSE
  std::optional<http::Url> http_sse_post_url_;  // the URL for POSTs in HTTP+SSE; nullopt: Streamable HTTP
  std::uint64_t session_generation_ = 0;        // number of renewed sessions
  std::optional<std::string> lost_session_revision_;  // the revision of a lost session, until it is renewed
  std::shared_ptr<Event> renewal_done_;               // not null during a renewal; set at its end
  std::optional<Error> renewal_error_;
  std::uint64_t last_internal_id_ = 0;
  Event released_;  // set when the session is deleted and the client closed
};

// Returns the error for a response with an unexpected status: of kind `authorization` for 401 and 403,
// otherwise of kind `http_status`. The message has an excerpt of `body`,
// or the description and the remedy of a problem document (RFC 9457).
Error status_error(const http::Url& url, const http::ClientResponse& response, std::string_view body);

}  // namespace fairlead::transport
