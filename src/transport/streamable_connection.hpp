// StreamableConnection: MCP's HTTP transport, the client's side. Every message that is sent becomes a POST;
// what comes back on it, and on the streams of the legacy era, is received. It takes whatever a server
// answers with, JSON or events, and reads of the messages only what the transport needs to know.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/peer/connection.hpp"
#include "fairlead/transport/connect.hpp"
#include "http/client.hpp"
#include "http/sse_parser.hpp"
#include "transport/outgoing_message.hpp"
#include "transport/streamable_state.hpp"

namespace fairlead::transport {

class StreamableConnection final : public Connection {
 public:
  StreamableConnection(Loop& loop, http::Url url, std::shared_ptr<http::HttpClient> client,
                       ReconnectLimits reconnect);

  std::size_t backlog() const noexcept override { return backlog_; }
  std::string description() const override { return url_.shown(); }
  bool carries_each_request() const noexcept override { return true; }
  Task<void> settled() override;

 private:
  // A message on its way, and what is to come back for it.
  struct Post {
    Post(Loop& loop, OutgoingMessage sent, bool modern_era)
        : message(std::move(sent)), modern(modern_era), interrupt(std::make_shared<http::Interrupt>(loop)) {
      if (message.is_request()) id = message.id();
    }
    OutgoingMessage message;
    std::string id;  // of a request; empty for everything else
    bool modern;
    std::shared_ptr<http::Interrupt> interrupt;
    std::uint64_t position = 0;  // 0: nobody waits for it to be sent
    bool written = false;
    bool answered = false;
    bool internal = false;               // part of beginning a session again: the user sees no answer
    std::optional<rpc::Message> answer;  // of an internal one
  };
  using PostPtr = std::shared_ptr<Post>;
  // Where a stream of events can be taken up again.
  struct Resume {
    std::string last_event_id;
    std::optional<std::chrono::milliseconds> retry;
    std::uint64_t events = 0;
    Clock::time_point burst_began{};
    std::size_t reconnects = 0;  // since then
  };
  // A stream that belongs to no request of ours: the standalone stream, or that of the HTTP+SSE pair.
  struct Stream {
    explicit Stream(Loop& loop) : interrupt(std::make_shared<http::Interrupt>(loop)) {}
    std::shared_ptr<http::Interrupt> interrupt;
    Event opened;  // or given up
    std::optional<Error> refused;
    std::function<void(const http::SseEvent&)> on_event;  // sees what is no message
  };
  using StreamPtr = std::shared_ptr<Stream>;
  using Answered = Result<std::shared_ptr<http::Incoming>>;

  Result<void> enqueue(const rpc::Rope& message, Waiter* waiter, Concerning concerning) override;
  std::uint64_t position_at_backlog(std::size_t bytes) const noexcept override;
  void want_input() override;
  void release() override;
  std::shared_ptr<StreamableConnection> self() {
    return std::static_pointer_cast<StreamableConnection>(shared_from_this());
  }

  // ---- one message (streamable_connection.cpp) ----
  bool swallows_cancel(const OutgoingMessage& message);
  static Task<void> carry(std::shared_ptr<StreamableConnection> self, PostPtr post);
  void finish(const PostPtr& post, const Result<void>& outcome);
  void mark_written(Post& post);
  std::uint64_t written() const noexcept;
  Task<Result<void>> perform(PostPtr post);
  Task<Answered> send(PostPtr post);
  Task<Result<void>> take_answer(PostPtr post, std::shared_ptr<http::Incoming> incoming);
  Task<Result<void>> take_refusal(PostPtr post, std::shared_ptr<http::Incoming> incoming);
  Task<Result<void>> take_json(PostPtr post, std::shared_ptr<http::Incoming> incoming);

  // ---- what comes in (streamable_events.cpp) ----
  Task<Result<void>> take_events(PostPtr post, std::shared_ptr<http::Incoming> incoming);
  Task<Result<void>> resume(PostPtr post, Resume& at);
  Task<Result<void>> read_events(std::shared_ptr<http::Incoming> incoming,
                                 std::shared_ptr<http::Interrupt> interrupt, Resume& at, Post* post,
                                 Stream* stream);
  void take_event(const rpc::Message& message, Post* post);
  Task<void> wait_for_room(std::shared_ptr<http::Interrupt> interrupt);
  void on_message(const rpc::Message& message, Post* post);
  void on_answer(const rpc::Message& message, Post* post);
  // The same error as the answer to the request `id`.
  static rpc::Message with_id(const rpc::Message& error, std::string_view id);
  Clock::duration pause_before(Resume& at, std::size_t attempt) const;

  // ---- the legacy era (streamable_legacy.cpp) ----
  Task<void> open_stream();
  static Task<void> keep_stream(std::shared_ptr<StreamableConnection> self, StreamPtr stream);
  Task<Answered> get(std::string last_event_id, std::shared_ptr<http::Interrupt> interrupt);
  Task<Result<void>> renew_session();
  Task<Result<void>> begin_again();
  Task<Result<void>> open_pair();
  static Task<void> keep_pair(std::shared_ptr<StreamableConnection> self, StreamPtr stream);
  static Task<void> say_goodbye(std::shared_ptr<StreamableConnection> self);

  http::Url url_;
  std::shared_ptr<http::HttpClient> client_;
  ReconnectLimits reconnect_;
  Log log_;
  StreamableState state_;

  std::uint64_t pushed_ = 0;
  std::size_t backlog_ = 0;
  std::map<std::uint64_t, std::size_t> unsent_;           // position of the end, size
  std::set<PostPtr> posts_;                               // under way
  std::map<std::string, PostPtr, std::less<>> calls_;     // those that wait for an answer, by id
  std::vector<std::shared_ptr<http::Interrupt>> paused_;  // readers that wait for the receiver

  StreamPtr stream_;                          // the one beside the requests
  std::optional<http::Url> pair_;             // where to post in the HTTP+SSE pair
  std::uint64_t generation_ = 0;              // counts sessions
  std::optional<std::string> lost_revision_;  // of a lost session, until a new one has begun
  std::shared_ptr<Event> renewed_;            // exists while a new one is begun; set at the end of that
  std::optional<Error> renewal_failed_;
  std::uint64_t internal_ids_ = 0;
  Event settled_;
};

// An error of kind http_status, or authorization for 401 and 403, with what the server said about it.
Error status_error(const http::Url& url, const http::Incoming& incoming, std::string_view body);

}  // namespace fairlead::transport
