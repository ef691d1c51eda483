#include "process/keeper_client.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "fairlead/process/failure.hpp"
#include "process/files.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/keeper_start.hpp"
#include "process/kill_by_cookie.hpp"
#include "process/manifest_entry.hpp"
#include "process/spawn_errors.hpp"
#include "process/subreaper.hpp"

namespace fairlead::process {

namespace {

// Limit on unanswered spawn requests. It is enough to keep the keeper busy. More would only increase the
// number of descriptors in flight, which the kernel limits for each user to RLIMIT_NOFILE.
constexpr std::size_t kMaxUnansweredSpawns = 32;
constexpr std::chrono::milliseconds kShutdownTimeout{2'000};
// The orphans of a killed keeper are killed at this interval, at most this many times.
constexpr std::chrono::milliseconds kOrphanKillInterval{10};
constexpr int kMaxOrphanRounds = 500;
// A keeper that runs is killed after more than this many half timeouts without an answer; a stopped keeper
// after more than one. Large, because on an overloaded machine the keeper may get no processor time, and
// killing it would end all servers.
constexpr int kMaxMissedPeriods = 10;
constexpr KeeperClient::Token kPingToken = 0;  // the token of pings; no child has it

// Binds the lifetime of the client to that of the loop: shutdown() is called when the loop is destroyed.
class KeeperService {
 public:
  explicit KeeperService(Loop& loop) : client_(std::make_shared<KeeperClient>(loop)) {}
  ~KeeperService() { client_->shut_down(); }
  KeeperService(const KeeperService&) = delete;

  const std::shared_ptr<KeeperClient>& client() const noexcept { return client_; }

 private:
  std::shared_ptr<KeeperClient> client_;
};

// Returns the token that precedes the first child's. The upper half of all tokens is random and identifies
// this run of the library, so that cookies with an equal keeper pid from another pid namespace are
// distinguished.
KeeperClient::Token make_token_base() {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    random = static_cast<std::uint32_t>(::getpid());
  return static_cast<KeeperClient::Token>(random) << 32;
}

keeper::Request make_request(keeper::RequestType type, KeeperClient::Token token) {
  keeper::Request request{};
  request.version = keeper::kProtocolVersion;
  request.type = type;
  request.token = token;
  return request;
}

void append_string(std::string& payload, std::string_view text) {
  payload += text;
  payload += '\0';
}

bool send_signal(const UniqueFd& pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

bool is_stopped(pid_t pid) {
  const std::string stat = read_whole_file("/proc/" + std::to_string(pid) + "/stat");
  const char* const state = keeper::fields_after_name(stat.c_str());
  return state && (*state == 'T' || *state == 't');
}

Result<UniqueFd> copy_to_memfd(std::string_view payload) {
  UniqueFd file(::memfd_create("fairlead-spawn", MFD_CLOEXEC));
  if (!file) return Error::from_errno(ErrorKind::spawn, "cannot create a memfd for the arguments", errno);
  while (!payload.empty()) {
    const ssize_t n = ::write(file.get(), payload.data(), payload.size());
    if (n <= 0) return Error::from_errno(ErrorKind::spawn, "cannot write the arguments to a memfd", errno);
    payload.remove_prefix(static_cast<std::size_t>(n));
  }
  return file;
}

}  // namespace

std::shared_ptr<KeeperClient> KeeperClient::for_loop(Loop& loop) {
  return loop.service<KeeperService>().client();
}

KeeperClient::KeeperClient(Loop& loop) : loop_(loop), last_token_(make_token_base()) {}

KeeperClient::~KeeperClient() = default;

Result<void> KeeperClient::ensure_keeper() {
  if (is_shut_down_) return Error(ErrorKind::spawn, "cannot start the keeper process: the loop has ended");
  if (socket_) return {};
  Result<KeeperProcess> process = start_keeper();
  if (!process) return process.error();
  Result<Descriptor> socket = Descriptor::adopt(loop_, std::move(process->socket));
  if (!socket) {
    reap_when_ended(std::move(process->pidfd));
    return Error(ErrorKind::spawn, socket.error().message());
  }
  pid_ = process->pid;
  pidfd_ = std::move(process->pidfd);
  socket_ = std::move(*socket);
  unanswered_spawns_ = 0;
  has_answered_ = false;
  wait_for_report();
  return {};
}

Result<KeeperClient::Token> KeeperClient::spawn(LaunchPlan plan, KeeperObserver& observer) {
  const Result<void> running = ensure_keeper();
  if (!running) return running.error();
  if (plan.containment.includes(keeper::with_manifest)) count_entry_and_compact_if_due(plan.manifest);
  const Token token = ++last_token_;
  Result<QueuedRequest> request = make_spawn_request(std::move(plan), token);
  if (!request) return request.error();
  observers_.emplace(token, &observer);
  queued_spawns_.push_back(std::move(*request));
  flush_queues();
  ping();
  return token;
}

const CgroupParent& KeeperClient::cgroup_parent(const std::string& parent) {
  const auto known = cgroup_parents_.find(parent);
  if (known != cgroup_parents_.end()) return known->second;
  CgroupParent& found = cgroup_parents_[parent] = find_cgroup_parent(parent);
  if (!found.directory.empty()) remove_stale_cgroups(found.directory);
  return found;
}

// The entry is not synced to disk. The entry of the first child is synced, and with it the whole file.
Result<void> KeeperClient::write_keeper_entry(const ManifestOptions& manifest) {
  const Result<void> running = ensure_keeper();
  if (!running) return running.error();
  if (manifest_entry_counts_.contains(manifest.path)) return {};
  keeper::ProcessIdentity self;
  if (!keeper::read_process_identity(pid_, self))
    return {};  // the keeper has died; read_reports() detects that
  const std::string fields = format_entry_fields(
      {.role = "keeper", .name = "fairlead-keeper", .digest = {}, .cookie = {}, .cgroup = {}});
  const int error = keeper::append_manifest_entry(manifest.path.c_str(), self, fields.c_str(), false);
  if (error)
    return spawn_error(failure::manifest_unavailable, explain_manifest_error(manifest.path, error), error);
  manifest_entry_counts_.emplace(manifest.path, 0);
  return {};
}

// Compaction keeps the file small in a gateway that runs for years.
void KeeperClient::count_entry_and_compact_if_due(const ManifestOptions& manifest) {
  std::size_t& entries = manifest_entry_counts_[manifest.path];
  if (++entries <= manifest.compact_after) return;
  entries = 0;
  static_cast<void>(compact_manifest(manifest.path));  // if this fails, the file grows until the next attempt
}

std::string KeeperClient::cookie_for(Token token) const {
  std::string text = std::string(keeper::kCookieName) + '=';
  const char* inherited = ::getenv(keeper::kCookieName);
  if (inherited && *inherited) (text += inherited) += '/';
  return text + std::to_string(pid_) + '.' + std::to_string(token);
}

Result<KeeperClient::QueuedRequest> KeeperClient::make_spawn_request(LaunchPlan plan, Token token) const {
  QueuedRequest out{};
  append_string(out.payload, plan.path);
  append_string(out.payload, plan.cwd);
  for (const std::string& argument : plan.args) append_string(out.payload, argument);
  for (const std::string& variable : plan.env) append_string(out.payload, variable);
  append_string(out.payload, cookie_for(token));
  const ContainmentPlan& containment = plan.containment;
  const std::string cgroup =
      plan.cgroup_parent + '/' + keeper::kCgroupPrefix + std::to_string(pid_) + '-' + std::to_string(token);
  if (containment.includes(keeper::with_manifest)) {
    append_string(out.payload, plan.manifest.path);
    append_string(out.payload,
                  format_entry_fields({.role = "child",
                                       .name = plan.name,
                                       .digest = plan.digest,
                                       .cookie = std::to_string(pid_) + '.' + std::to_string(token),
                                       .cgroup = containment.includes(keeper::with_cgroup) ? cgroup : ""}));
  }
  if (containment.includes(keeper::with_cgroup)) append_string(out.payload, cgroup);
  for (const std::string& rule : containment.landlock_rules) append_string(out.payload, rule);
  for (UniqueFd& fd : plan.stdio) out.fds.push_back(std::move(fd));
  out.request = make_request(keeper::RequestType::spawn, token);
  out.request.flags = containment.flags;
  out.request.required_flags = containment.required_flags;
  out.request.payload_size = static_cast<std::uint32_t>(out.payload.size());
  out.request.arg_count = static_cast<std::uint32_t>(plan.args.size());
  out.request.env_count = static_cast<std::uint32_t>(plan.env.size() + 1);
  out.request.rule_count = static_cast<std::uint32_t>(containment.landlock_rules.size());
  std::ranges::copy(containment.limits, out.request.limits);
  out.request.memory_max = containment.memory_max;
  out.request.pids_max = containment.pids_max;
  if (out.payload.size() > keeper::kMaxInlinePayload) {
    Result<UniqueFd> file = copy_to_memfd(out.payload);
    if (!file) return file.error();
    out.fds.push_back(std::move(*file));
    out.payload.clear();
    out.request.flags |= keeper::payload_in_memfd;
  }
  return out;
}

void KeeperClient::signal(Token token, int signal) {
  if (!socket_ || !observers_.contains(token)) return;
  QueuedRequest out{};
  out.request = make_request(keeper::RequestType::signal, token);
  out.request.signal = signal;
  queued_control_requests_.push_back(std::move(out));
  flush_queues();
  ping();
}

void KeeperClient::ping() {
  if (!socket_ || answer_timer_) return;
  QueuedRequest out{};
  out.request = make_request(keeper::RequestType::ping, kPingToken);
  queued_control_requests_.push_back(std::move(out));
  send_signal(pidfd_, SIGCONT);  // has no effect unless the keeper is stopped
  flush_queues();
  missed_periods_ = 0;
  kill_sent_ = false;
  arm_answer_timer();
}

void KeeperClient::arm_answer_timer() {
  if (!answer_timer_) answer_timer_.emplace(loop_);
  answer_timer_->arm_after(keeper_timeout_ / 2, [this] { on_answer_timeout(); });
}

void KeeperClient::on_answer_timeout() {
  char report = 0;
  const ssize_t n = ::recv(socket_->fd(), &report, sizeof report, MSG_PEEK | MSG_DONTWAIT);
  // The keeper's answer, or EOF, is already in the socket: this loop was too busy to read it.
  if (n >= 0 || errno != EAGAIN) return arm_answer_timer();
  const int allowed = is_stopped(pid_) ? 1 : kMaxMissedPeriods;
  if (++missed_periods_ <= allowed) {
    send_signal(pidfd_, SIGCONT);
    return arm_answer_timer();
  }
  if (std::exchange(kill_sent_, true)) return on_keeper_death();  // the keeper still exists after SIGKILL
  send_signal(pidfd_, SIGKILL);                                   // read_reports() detects the closed socket
  arm_answer_timer();
}

void KeeperClient::on_answer() {
  has_answered_ = true;
  answer_timer_.reset();
}

void KeeperClient::kill_and_unregister(Token token) {
  if (!observers_.contains(token)) return;
  const auto queued =
      std::ranges::find(queued_spawns_, token, [](const QueuedRequest& out) { return out.request.token; });
  if (queued != queued_spawns_.end()) {
    queued_spawns_.erase(queued);
  } else {
    signal(token, SIGKILL);
  }
  observers_.erase(token);
}

// Sends the queued requests. Signals are sent first, so that queued spawns do not delay a kill. A signal for
// a spawn that has been sent still arrives after the spawn.
void KeeperClient::flush_queues() {
  if (socket_ && !socket_->waiting_to_write() && flush_control()) flush_spawns();
}

bool KeeperClient::flush_control() {
  while (!queued_control_requests_.empty()) {
    const int error = send_request(queued_control_requests_.front());
    if (error == EAGAIN) return wait_to_write();
    if (error) return false;  // the keeper has died; read_reports() detects that
    queued_control_requests_.pop_front();
  }
  return true;
}

bool KeeperClient::flush_spawns() {
  while (!queued_spawns_.empty() && unanswered_spawns_ < kMaxUnansweredSpawns) {
    const int error = send_request(queued_spawns_.front());
    if (error == EAGAIN) return wait_to_write();
    // Too many descriptors are in flight; continue after the next answer.
    if (error == ETOOMANYREFS && unanswered_spawns_ > 0) return true;
    if (error == EPIPE || error == ECONNRESET) return false;
    const Token token = queued_spawns_.front().request.token;
    queued_spawns_.pop_front();  // closes this process's copies of the child's ends
    if (error) {
      loop_.post([self = weak_from_this(), token, error] {
        if (const auto client = self.lock())
          client->notify_refusal(token, {keeper::SpawnStep::descriptors, error, 0, {}});
      });
    } else {
      ++unanswered_spawns_;
    }
  }
  return true;
}

bool KeeperClient::wait_to_write() {
  socket_->when_writable([this] { flush_queues(); });
  return false;
}

// Returns errno, or 0 on success.
int KeeperClient::send_request(const QueuedRequest& message) const {
  iovec parts[2] = {{const_cast<keeper::Request*>(&message.request), sizeof message.request},
                    {const_cast<char*>(message.payload.data()), message.payload.size()}};
  msghdr header{};
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(keeper::kMaxRequestFds * sizeof(int))] = {};
  if (!message.fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(message.fds.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(message.fds.size() * sizeof(int));
    int fds[keeper::kMaxRequestFds];
    std::ranges::transform(message.fds, fds, &UniqueFd::get);
    std::memcpy(CMSG_DATA(rights), fds, message.fds.size() * sizeof(int));
  }
  for (;;) {
    if (::sendmsg(socket_->fd(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

void KeeperClient::wait_for_report() {
  socket_->when_readable([this] { read_reports(); });
}

void KeeperClient::read_reports() {
  const auto self = shared_from_this();
  const pid_t keeper = pid_;
  // An observer may do anything, even cause a new keeper to be started. So check after each report that the
  // keeper is still the same.
  while (socket_ && pid_ == keeper) {
    keeper::Report report;
    const ssize_t n = ::recv(socket_->fd(), &report, sizeof report, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return wait_for_report();
    if (n != sizeof report) return on_keeper_death();
    on_answer();
    dispatch_report(report);
  }
}

void KeeperClient::dispatch_report(const keeper::Report& report) {
  if (report.token == kPingToken) return;
  if (report.type == keeper::ReportType::ended) {
    ExitStatus status;
    if (report.signal != 0) {
      status.signal = report.signal;
    } else {
      status.code = report.exit_code;
    }
    status.out_of_memory = report.out_of_memory != 0;
    if (KeeperObserver* observer = extract_observer(report.token)) observer->on_ended(status);
    return;
  }
  --unanswered_spawns_;
  flush_queues();
  if (report.type == keeper::ReportType::refused) return notify_refusal(report.token, report.outcome);
  const auto found = observers_.find(report.token);
  if (found != observers_.end()) found->second->on_started(report.pid, report.outcome);
}

KeeperObserver* KeeperClient::extract_observer(Token token) {
  const auto found = observers_.find(token);
  if (found == observers_.end()) return nullptr;
  KeeperObserver* observer = found->second;
  observers_.erase(found);
  return observer;
}

void KeeperClient::notify_refusal(Token token, const keeper::SpawnOutcome& outcome) {
  if (KeeperObserver* observer = extract_observer(token)) observer->on_refused(outcome);
}

// The kernel has already killed the children themselves (parent-death signal). This function finds their
// descendants by cgroup and by cookie.
void KeeperClient::kill_descendants_of(pid_t keeper) {
  for (const auto& [name, parent] : cgroup_parents_) {
    if (!parent.directory.empty()) kill_cgroups_of_keeper(parent.directory, keeper, last_token_);
  }
  // cgroup_parent() determines them again, and removes stale cgroups, before the next spawn.
  cgroup_parents_.clear();
  kill_by_cookie(keeper, last_token_);
}

// The observers may spawn again and thereby start a new keeper.
void KeeperClient::on_keeper_death() {
  answer_timer_.reset();
  kill_descendants_of(std::exchange(pid_, 0));
  manifest_entry_counts_.clear();
  socket_.reset();
  reap_when_ended(std::move(pidfd_));
  queued_spawns_.clear();
  queued_control_requests_.clear();
  std::vector<Token> tokens;
  for (const auto& [token, observer] : observers_) tokens.push_back(token);
  for (const Token token : tokens) {
    if (KeeperObserver* observer = extract_observer(token)) observer->on_keeper_died();
  }
}

void KeeperClient::reap_when_ended(UniqueFd pidfd) {
  Result<Descriptor> watched = Descriptor::adopt(loop_, std::move(pidfd));
  if (!watched) return;
  unreaped_keepers_.push_back(std::make_unique<Descriptor>(std::move(*watched)));
  unreaped_keepers_.back()->when_readable([this, self = unreaped_keepers_.back().get()] {
    reap_keeper(self->fd(), std::chrono::milliseconds(0));
    std::erase_if(unreaped_keepers_, [&](const auto& keeper) { return keeper.get() == self; });
    // The keeper's orphans have become children of this process by now.
    kill_orphans_until_none(kMaxOrphanRounds);
  });
}

void KeeperClient::kill_orphans_until_none(int rounds) {
  orphan_timer_.reset();
  if (!kill_orphans() || rounds == 0) return;
  orphan_timer_.emplace(loop_);
  orphan_timer_->arm_after(kOrphanKillInterval, [this, rounds] { kill_orphans_until_none(rounds - 1); });
}

// Waits until the keeper has killed its children and ended. If it stays stopped, kills it and its
// descendants.
void KeeperClient::stop_keeper() {
  send_signal(pidfd_, SIGCONT);
  if (reap_keeper(pidfd_.get(), kShutdownTimeout) || !is_stopped(pid_)) return;
  send_signal(pidfd_, SIGKILL);
  reap_keeper(pidfd_.get(), kShutdownTimeout);
  kill_descendants_of(pid_);
}

void KeeperClient::shut_down() {
  is_shut_down_ = true;
  answer_timer_.reset();
  orphan_timer_.reset();
  socket_.reset();
  queued_spawns_.clear();
  queued_control_requests_.clear();
  if (pidfd_) stop_keeper();
  for (const auto& keeper : unreaped_keepers_) reap_keeper(keeper->fd(), kShutdownTimeout);
  unreaped_keepers_.clear();
  const auto until = Clock::now() + kShutdownTimeout;
  while (kill_orphans() && Clock::now() < until) ::usleep(1000);
  observers_.clear();
  for (KeeperObserver* observer : std::exchange(shutdown_observers_, {})) observer->on_loop_shutdown();
}

}  // namespace fairlead::process
