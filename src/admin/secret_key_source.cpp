#include "admin/secret_key_source.hpp"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "fairlead/process/child.hpp"
#include "loop/run_blocking.hpp"

namespace fairlead::admin {

namespace {

constexpr std::chrono::seconds kCommandTimeout{30};
constexpr std::size_t kMaxOutputBytes = 4096;  // max_secret_key_file_bytes
constexpr std::string_view kSqlite = "sqlite:";

Error command_error(ErrorKind kind, const std::string& reason) {
  return Error(kind, "--secret-key-command " + reason);
}

// Returns false if the time is over.
bool wait_for_output(int fd, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd waiting{fd, POLLIN, 0};
  const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left)) : 0;
  return ready > 0 || (ready < 0 && errno == EINTR);
}

// Called on a thread of its own.
Result<registry::SecretText> read_output(const UniqueFd& fd, Clock::time_point deadline) {
  registry::SecretText text;
  // No reallocation, which would leave a copy in memory.
  text.text().reserve(kMaxOutputBytes + 1);
  while (wait_for_output(fd.get(), deadline)) {
    std::array<char, 512> buffer{};
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno != EINTR && errno != EAGAIN)
      return Error::from_errno(ErrorKind::io, "cannot read the output of --secret-key-command", errno);
    if (count > 0) text.text().append(buffer.data(), static_cast<std::size_t>(count));
    ::explicit_bzero(buffer.data(), buffer.size());
    if (text.view().size() > kMaxOutputBytes)
      return command_error(ErrorKind::validation, "prints more than max_secret_key_file_bytes (" +
                                                      std::to_string(kMaxOutputBytes) + ")");
  }
  return command_error(ErrorKind::timeout, "has not ended after 30 s");
}

Task<Result<registry::SecretText>> run_command(Loop& loop, std::string command) {
  ProcessSpec spec;
  spec.command = "/bin/sh";
  spec.args = {"-c", std::move(command)};
  spec.name = "the command of the key";
  const Result<std::shared_ptr<Child>> child = co_await Child::spawn(loop, std::move(spec));
  if (!child) co_return command_error(ErrorKind::validation, "cannot be run: " + child.error().message());
  { const UniqueFd closed = (*child)->release_stdin(); }
  Workers worker(Workers::single_thread_limits());
  std::move_only_function<Result<registry::SecretText>()> job = [fd = (*child)->release_stdout(),
                                                                 deadline = Clock::now() + kCommandTimeout] {
    return read_output(fd, deadline);
  };
  Result<registry::SecretText> text =
      co_await run_blocking<registry::SecretText>(loop, worker, std::move(job));
  const ExitStatus ended = co_await (*child)->stop(std::chrono::milliseconds(1'000));
  if (text && ended.code != 0) co_return command_error(ErrorKind::validation, ended.to_string());
  co_return text;
}

}  // namespace

std::shared_ptr<const registry::SecretText> take_secret_key_variable() {
  char* const variable = std::getenv("FAIRLEAD_SECRET_KEY");
  if (!variable || *variable == '\0') return nullptr;
  auto text = std::make_shared<const registry::SecretText>(std::string(variable));
  ::explicit_bzero(variable, text->view().size());
  return text;
}

Task<Result<registry::SecretKeyOptions>> secret_key_options(Loop& loop, const SecretKeySource& source,
                                                            const std::string& database) {
  registry::SecretKeyOptions options;
  options.required = source.required;
  options.text = source.text;
  options.source = "FAIRLEAD_SECRET_KEY";
  if (!options.text && !source.command.empty()) {
    Result<registry::SecretText> text = co_await run_command(loop, source.command);
    if (!text) co_return text.error();
    options.text = std::make_shared<const registry::SecretText>(std::move(*text));
    options.source = "the output of --secret-key-command";
  }
  options.file = source.file;
  options.manage_file = database.starts_with(kSqlite);
  if (options.file.empty() && options.manage_file) options.file = database.substr(kSqlite.size()) + ".key";
  co_return options;
}

}  // namespace fairlead::admin
