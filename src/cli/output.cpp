#include "cli/output.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>

#include "cli/common.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"

namespace fairlead::cli {

namespace {

// The errno value of the first failed write, stored in std::cout beside its state; 0: none has failed.
long& output_errno() {
  static const int kSlot = std::ios_base::xalloc();
  return std::cout.iword(kSlot);
}

void record_output_failure(int os_error) {
  if (output_errno() == 0) output_errno() = os_error;
  std::cout.setstate(std::ios_base::badbit);
}

// Writes to stdout, which another process may have made non-blocking. Returns 0 or an errno value.
int write_to_stdout(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return errno;
    pollfd writable{STDOUT_FILENO, POLLOUT, 0};
    if (::poll(&writable, 1, -1) < 0 && errno != EINTR) return errno;
  }
  return 0;
}

void flush_streams() {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (!std::cout || !flushed) record_output_failure(errno);
}

void print_bytes(std::string_view bytes) {
  flush_streams();
  if (!std::cout) return;
  const int os_error = write_to_stdout(bytes);
  if (os_error != 0) record_output_failure(os_error);
}

}  // namespace

void print_text(std::string_view text) {
  stdout_is_terminal() ? print_bytes(printable_text(text)) : print_bytes(text);
}

void print_text_line(std::string_view text) {
  print_text(std::string(text) + '\n');
}

void print_json(std::string_view json) {
  print_bytes((stdout_is_terminal() ? printable_json(json) : std::string(json)) + '\n');
}

void print_json_array(const std::vector<json::Raw>& entries) {
  std::string text = "[";
  for (const json::Raw& entry : entries) {
    if (text.size() > 1) text += ",\n ";
    text += entry.text();
  }
  print_json(text + "]");
}

std::string summary(std::string_view description) {
  constexpr std::size_t kWidth = 90;
  const std::string_view line = description.substr(0, description.find('\n'));
  if (line.size() <= kWidth) return std::string(line);
  std::size_t cut = kWidth - 3;
  while (cut > 0 && (line[cut] & 0xc0) == 0x80) --cut;  // does not split a UTF-8 character
  return std::string(line.substr(0, cut)) + "...";
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return;
  std::vector<std::string> first;
  for (const std::string& cell : rows.front()) first.push_back(printable_line(cell));
  Table table(std::move(first));
  for (std::size_t i = 1; i < rows.size(); ++i) table.add(rows[i]);
  table.print();
}

int finish_output(int status) {
  flush_streams();
  if (std::cout) return status;
  const int os_error = static_cast<int>(output_errno());
  if (os_error == EPIPE) return status == kSuccess ? kOutputClosed : status;
  const int failed = os_error == EBADF
                         ? report(Error(ErrorKind::io, "cannot write to stdout: it is closed"))
                         : report(Error::from_errno(ErrorKind::io, "cannot write to stdout", os_error));
  return status == kSuccess ? failed : status;
}

}  // namespace fairlead::cli
