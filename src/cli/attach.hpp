// Attaching to a gateway that runs: what `fairlead serve --stdio --attach URL` does, and `serve --stdio` with
// a database that another gateway serves.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/peer/connection.hpp"

namespace fairlead::transport {
class Bridge;
}

namespace fairlead::cli {

// Where a gateway is reached: an HTTP URL and, if it listens on a Unix socket, the path of that.
struct AttachAddress {
  std::string url;          // "http://127.0.0.1:8808/mcp"; "http://localhost/mcp" on a Unix socket
  std::string unix_socket;  // empty: a TCP connection to the host of the URL
};

// Parses "http://HOST:PORT/mcp", "https://…" or "unix:/PATH", to which "#/mcp/NAME" adds the path of another
// endpoint than /mcp. Fails with `validation`.
Result<AttachAddress> parse_attach_address(std::string_view text);

// Returns the token in the file, or in FAIRLEAD_TOKEN if `file` is empty; empty if there is none. Fails with
// `validation`.
Result<std::string> read_client_token(const std::string& file);

// Sends a request without a token. Returns the status of the response, 401 if the gateway needs a token;
// nullopt if no gateway answers. Blocks.
std::optional<int> probe_gateway(const AttachAddress& address);

struct AttachOptions {
  AttachOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  AttachAddress address;
  std::string token;  // empty: requests have no Authorization
  Limits limits;
  Log log;
};

// Forwards between the client on one connection and a gateway. Loop thread only.
class Attachment : public std::enable_shared_from_this<Attachment> {
 public:
  static std::shared_ptr<Attachment> start(std::shared_ptr<Connection> client, AttachOptions options);

  // Ends as if the client had ended its input.
  void stop();
  // Set when the client has ended its input and its requests have ended.
  Event& finished() noexcept { return finished_; }

 private:
  struct Presence;

  Attachment(std::shared_ptr<Connection> client, AttachOptions options)
      : client_(std::move(client)), options_(std::move(options)) {}

  static Task<void> run(std::shared_ptr<Attachment> self);
  // Keeps the stream open by which a gateway on a Unix socket knows that this process is attached.
  static Task<void> keep_presence(std::shared_ptr<Presence> presence);
  std::string remedy_for(const Error& error) const;

  std::shared_ptr<Connection> client_;
  AttachOptions options_;
  std::shared_ptr<transport::Bridge> bridge_;
  std::shared_ptr<Presence> presence_;
  bool stopping_ = false;
  Event finished_;
};

}  // namespace fairlead::cli
