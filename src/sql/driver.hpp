// Driver: one connection to a database. DatabaseImpl (database_impl.hpp) calls it on its thread.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sql/database.hpp"
#include "sql/event_fd.hpp"

namespace fairlead::sql {

// Cancels what a driver waits for, because the Database is being destroyed. Thread-safe.
struct Interrupt {
  explicit Interrupt(EventFd raised_event) : event(std::move(raised_event)) {}
  void raise() noexcept {
    raised.store(true, std::memory_order_release);
    event.set();
  }
  std::atomic<bool> raised = false;
  EventFd event;  // for poll()
};

// Used on one thread at a time. After a failure of connect(), begin(), execute() or commit(), connected()
// returns whether the connection can be used again, after roll_back().
class Driver {
 public:
  virtual ~Driver() = default;

  virtual Result<void> connect() = 0;
  virtual void disconnect() noexcept = 0;
  virtual bool connected() const noexcept = 0;
  // Returns whether the connection was dropped because the server did not respond.
  virtual bool timed_out() const noexcept { return false; }

  // Begins a transaction.
  virtual Result<void> begin() = 0;
  // Locks the schema against migrations by other processes until the end of the transaction.
  virtual Result<void> lock_schema() = 0;
  virtual Result<std::vector<Row>> execute(std::string_view statement, std::span<const Value> parameters) = 0;
  virtual Result<void> notify() = 0;
  // See Transaction. Applies to the current transaction only.
  virtual void erase_former_content() {}
  virtual Result<void> commit() = 0;
  virtual void roll_back() noexcept = 0;

  // Between transactions: the descriptor that becomes readable when the server sends something, or -1.
  virtual int fd() const noexcept { return -1; }
  // Reads what the server has sent. Returns whether another process has notified the channel. Fails if the
  // connection is lost.
  virtual Result<bool> read_notifications() { return false; }
  // Sends a query to check that the server responds.
  virtual Result<void> check() { return {}; }

  virtual bool is_postgresql() const noexcept = 0;
};

// Returns the driver for an address, not connected. Fails with `validation` if the address is malformed or
// has another scheme. The message contains no password. REQUIRES: `options` and `interrupt` outlive the
// driver.
Result<std::unique_ptr<Driver>> make_driver(std::string_view address, const DatabaseOptions& options,
                                            const Interrupt& interrupt);

// Errors of drivers.
Error database_error(ErrorKind kind, std::string message, std::string_view failure_code);
Error statement_timeout_error(const DatabaseOptions& options);
Error lock_timeout_error(const DatabaseOptions& options);
Error closed_error();

}  // namespace fairlead::sql
