#include "process/keeper_client.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "fairlead/process/failure.hpp"
#include "process/cookie_sweep.hpp"
#include "process/files.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/keeper_start.hpp"
#include "process/manifest_entry.hpp"
#include "process/orphan_sweep.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead::process {

namespace asio = boost::asio;

namespace {

// Spawns sent and not answered. Enough to keep the keeper busy; more would only put descriptors in flight,
// of which the kernel allows a user as many as one process may have open.
constexpr std::size_t kMaxUnanswered = 32;
constexpr std::chrono::milliseconds kShutdownPatience{2'000};
// Orphans of a keeper that was killed: how often and for how long they are killed.
constexpr std::chrono::milliseconds kOrphanRound{10};
constexpr int kMaxOrphanRounds = 500;
// Half-timeouts without an answer from a keeper that is not stopped: it gets no processor time on an
// overloaded machine. Killing it would end all servers.
constexpr int kMaxBusyPeriods = 10;
constexpr KeeperClient::Token kPing = 0;  // no child's

// Ties the client's life to the loop's: shutdown() is called when the loop is destroyed.
class KeeperService : public asio::execution_context::service {
 public:
  using key_type = KeeperService;
  static asio::execution_context::id id;

  explicit KeeperService(asio::execution_context& owner) : service(owner) {}

  const std::shared_ptr<KeeperClient>& client(Loop& loop) {
    if (!client_) client_ = std::make_shared<KeeperClient>(loop);
    return client_;
  }

 private:
  void shutdown() override {
    if (client_) client_->shut_down();
    client_.reset();
  }

  std::shared_ptr<KeeperClient> client_;
};

asio::execution_context::id KeeperService::id;

// The upper half is random: with it a cookie of ours is not mistaken for one of another process namespace.
KeeperClient::Token first_token() {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    random = static_cast<std::uint32_t>(::getpid());
  return static_cast<KeeperClient::Token>(random) << 32;
}

keeper::Request request(keeper::Verb verb, KeeperClient::Token token) {
  keeper::Request request{};
  request.version = keeper::kVersion;
  request.verb = verb;
  request.token = token;
  return request;
}

void append(std::string& payload, std::string_view text) {
  payload += text;
  payload += '\0';
}

bool send_to(const UniqueFd& pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

bool is_stopped(pid_t pid) {
  const std::string stat = read_whole("/proc/" + std::to_string(pid) + "/stat");
  const char* const state = keeper::after_name(stat.c_str());
  return state && (*state == 'T' || *state == 't');
}

Result<UniqueFd> in_memfd(std::string_view payload) {
  UniqueFd file(::memfd_create("fairlead-spawn", MFD_CLOEXEC));
  if (!file) return Error::from_errno(ErrorKind::spawn, "no memory file for the arguments", errno);
  while (!payload.empty()) {
    const ssize_t n = ::write(file.get(), payload.data(), payload.size());
    if (n <= 0) return Error::from_errno(ErrorKind::spawn, "no memory for the arguments", errno);
    payload.remove_prefix(static_cast<std::size_t>(n));
  }
  return file;
}

}  // namespace

std::shared_ptr<KeeperClient> KeeperClient::of(Loop& loop) {
  return asio::use_service<KeeperService>(loop.context()).client(loop);
}

KeeperClient::KeeperClient(Loop& loop) : loop_(loop), next_token_(first_token()) {}

KeeperClient::~KeeperClient() = default;

Result<void> KeeperClient::ensure_keeper() {
  if (down_) return Error(ErrorKind::spawn, "cannot start the keeper process: the loop has ended");
  if (socket_) return {};
  Result<KeeperProcess> process = start_keeper();
  if (!process) return process.error();
  Result<Descriptor> socket = Descriptor::adopt(loop_, std::move(process->socket));
  if (!socket) {
    reap_later(std::move(process->pidfd));
    return Error(ErrorKind::spawn, socket.error().message());
  }
  pid_ = process->pid;
  pidfd_ = std::move(process->pidfd);
  socket_ = std::move(*socket);
  unanswered_ = 0;
  has_answered_ = false;
  read_when_ready();
  return {};
}

Result<KeeperClient::Token> KeeperClient::spawn(SpawnOrder order, KeeperObserver& observer) {
  const Result<void> running = ensure_keeper();
  if (!running) return running.error();
  if (order.belts.wants(keeper::with_manifest)) compact_if_due(order.manifest);
  const Token token = ++next_token_;
  Result<Outgoing> packed = pack(std::move(order), token);
  if (!packed) return packed.error();
  observers_.emplace(token, &observer);
  spawns_.push_back(std::move(*packed));
  flush();
  ping();
  return token;
}

const CgroupHome& KeeperClient::cgroup_home(const std::string& parent) {
  const auto known = cgroup_homes_.find(parent);
  if (known != cgroup_homes_.end()) return known->second;
  CgroupHome& home = cgroup_homes_[parent] = find_cgroup_home(parent);
  if (!home.directory.empty()) remove_stale_cgroups(home.directory);
  return home;
}

// Not synced: the first child's entry is, and the file with it.
Result<void> KeeperClient::enter_keeper(const ManifestOptions& manifest) {
  const Result<void> running = ensure_keeper();
  if (!running) return running.error();
  if (manifests_.contains(manifest.path)) return {};
  keeper::Identity self;
  if (!keeper::identify(pid_, self)) return {};  // dead already, as will be noticed soon
  const std::string facts =
      manifest_facts({.role = "keeper", .name = "fairlead-keeper", .digest = {}, .cookie = {}, .cgroup = {}});
  const int error = keeper::append_manifest(manifest.path.c_str(), self, facts.c_str(), false);
  if (error) return spawn_error(failure::manifest_unavailable, explain_manifest(manifest.path, error), error);
  manifests_.emplace(manifest.path, 0);
  return {};
}

// A gateway that runs for years does not fill the disk with the names of the dead.
void KeeperClient::compact_if_due(const ManifestOptions& manifest) {
  std::size_t& entries = manifests_[manifest.path];
  if (++entries <= manifest.compact_after) return;
  entries = 0;
  static_cast<void>(compact_manifest(manifest.path));  // it only grows, should that fail
}

std::string KeeperClient::cookie(Token token) const {
  std::string text = std::string(keeper::kCookieName) + '=';
  const char* above = ::getenv(keeper::kCookieName);
  if (above && *above) (text += above) += '/';
  return text + std::to_string(pid_) + '.' + std::to_string(token);
}

Result<KeeperClient::Outgoing> KeeperClient::pack(SpawnOrder order, Token token) const {
  Outgoing out{};
  append(out.payload, order.path);
  append(out.payload, order.cwd);
  for (const std::string& argument : order.args) append(out.payload, argument);
  for (const std::string& variable : order.env) append(out.payload, variable);
  append(out.payload, cookie(token));
  const BeltPlan& belts = order.belts;
  const std::string cgroup =
      order.cgroup_home + '/' + keeper::kCgroupPrefix + std::to_string(pid_) + '-' + std::to_string(token);
  if (belts.wants(keeper::with_manifest)) {
    append(out.payload, order.manifest.path);
    append(out.payload, manifest_facts({.role = "child",
                                        .name = order.name,
                                        .digest = order.digest,
                                        .cookie = std::to_string(pid_) + '.' + std::to_string(token),
                                        .cgroup = belts.wants(keeper::with_cgroup) ? cgroup : ""}));
  }
  if (belts.wants(keeper::with_cgroup)) append(out.payload, cgroup);
  for (const std::string& rule : belts.rules) append(out.payload, rule);
  for (UniqueFd& fd : order.stdio) out.fds.push_back(std::move(fd));
  out.request = request(keeper::Verb::spawn, token);
  out.request.flags = belts.flags;
  out.request.required = belts.required;
  out.request.payload_size = static_cast<std::uint32_t>(out.payload.size());
  out.request.arg_count = static_cast<std::uint32_t>(order.args.size());
  out.request.env_count = static_cast<std::uint32_t>(order.env.size() + 1);
  out.request.rule_count = static_cast<std::uint32_t>(belts.rules.size());
  std::ranges::copy(belts.limits, out.request.limits);
  out.request.memory_max = belts.memory_max;
  out.request.pids_max = belts.pids_max;
  if (out.payload.size() > keeper::kMaxInlinePayload) {
    Result<UniqueFd> file = in_memfd(out.payload);
    if (!file) return file.error();
    out.fds.push_back(std::move(*file));
    out.payload.clear();
    out.request.flags |= keeper::payload_in_memfd;
  }
  return out;
}

void KeeperClient::signal(Token token, int signal) {
  if (!socket_ || !observers_.contains(token)) return;
  Outgoing out{};
  out.request = request(keeper::Verb::signal, token);
  out.request.signal = signal;
  signals_.push_back(std::move(out));
  flush();
  ping();
}

void KeeperClient::ping() {
  if (!socket_ || silence_) return;
  Outgoing out{};
  out.request = request(keeper::Verb::ping, kPing);
  signals_.push_back(std::move(out));
  send_to(pidfd_, SIGCONT);  // without effect unless somebody has stopped it
  flush();
  silent_periods_ = 0;
  killed_ = false;
  wait_for_answer();
}

void KeeperClient::wait_for_answer() {
  if (!silence_) silence_.emplace(loop_);
  silence_->arm_after(timeout_ / 2, [this] { on_silence(); });
}

void KeeperClient::on_silence() {
  char report = 0;
  const ssize_t n = ::recv(socket_->fd(), &report, sizeof report, MSG_PEEK | MSG_DONTWAIT);
  // Its answer, or its end, is there: it is this loop that was busy.
  if (n >= 0 || errno != EAGAIN) return wait_for_answer();
  const int allowed = is_stopped(pid_) ? 1 : kMaxBusyPeriods;
  if (++silent_periods_ <= allowed) {
    send_to(pidfd_, SIGCONT);
    return wait_for_answer();
  }
  if (std::exchange(killed_, true)) return on_keeper_death();  // the kernel has not let it go
  send_to(pidfd_, SIGKILL);                                    // the reader notices the end of its socket
  wait_for_answer();
}

void KeeperClient::answered() {
  has_answered_ = true;
  silence_.reset();
}

void KeeperClient::release(Token token) {
  if (!observers_.contains(token)) return;
  const auto queued =
      std::ranges::find(spawns_, token, [](const Outgoing& out) { return out.request.token; });
  if (queued != spawns_.end()) {
    spawns_.erase(queued);
  } else {
    signal(token, SIGKILL);
  }
  observers_.erase(token);
}

// Sends what is queued. Signals go first: a queue of spawns must not delay a kill. One for a spawn that has
// been sent still arrives after it.
void KeeperClient::flush() {
  if (socket_ && !socket_->waiting_to_write() && flush_signals()) flush_spawns();
}

bool KeeperClient::flush_signals() {
  while (!signals_.empty()) {
    const int error = send(signals_.front());
    if (error == EAGAIN) return wait_to_write();
    if (error) return false;  // the keeper is dead; the reader finds out
    signals_.pop_front();
  }
  return true;
}

bool KeeperClient::flush_spawns() {
  while (!spawns_.empty() && unanswered_ < kMaxUnanswered) {
    const int error = send(spawns_.front());
    if (error == EAGAIN) return wait_to_write();
    // Too many descriptors in flight: the next answer makes room.
    if (error == ETOOMANYREFS && unanswered_ > 0) return true;
    if (error == EPIPE || error == ECONNRESET) return false;
    const Token token = spawns_.front().request.token;
    spawns_.pop_front();  // closes the child's ends on our side
    if (error) {
      loop_.post([self = weak_from_this(), token, error] {
        if (const auto client = self.lock()) client->refuse(token, {keeper::Step::descriptors, error, 0, {}});
      });
    } else {
      ++unanswered_;
    }
  }
  return true;
}

bool KeeperClient::wait_to_write() {
  socket_->when_writable([this] { flush(); });
  return false;
}

// Returns errno, or 0.
int KeeperClient::send(const Outgoing& message) const {
  iovec parts[2] = {{const_cast<keeper::Request*>(&message.request), sizeof message.request},
                    {const_cast<char*>(message.payload.data()), message.payload.size()}};
  msghdr header{};
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(keeper::kMaxDescriptors * sizeof(int))] = {};
  if (!message.fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(message.fds.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(message.fds.size() * sizeof(int));
    int fds[keeper::kMaxDescriptors];
    std::ranges::transform(message.fds, fds, &UniqueFd::get);
    std::memcpy(CMSG_DATA(rights), fds, message.fds.size() * sizeof(int));
  }
  for (;;) {
    if (::sendmsg(socket_->fd(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

void KeeperClient::read_when_ready() {
  socket_->when_readable([this] { on_readable(); });
}

void KeeperClient::on_readable() {
  const auto self = shared_from_this();
  const pid_t keeper = pid_;
  // An observer may do anything, so after each report look whether it is still the same keeper.
  while (socket_ && pid_ == keeper) {
    keeper::Report report;
    const ssize_t n = ::recv(socket_->fd(), &report, sizeof report, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return read_when_ready();
    if (n != sizeof report) return on_keeper_death();
    answered();
    dispatch(report);
  }
}

void KeeperClient::dispatch(const keeper::Report& report) {
  if (report.token == kPing) return;
  if (report.event == keeper::Event::ended) {
    ExitStatus status;
    if (report.signal != 0) {
      status.signal = report.signal;
    } else {
      status.code = report.code;
    }
    status.out_of_memory = report.out_of_memory != 0;
    if (KeeperObserver* observer = take_observer(report.token)) observer->ended(status);
    return;
  }
  --unanswered_;
  flush();
  if (report.event == keeper::Event::refused) return refuse(report.token, report.outcome);
  const auto found = observers_.find(report.token);
  if (found != observers_.end()) found->second->started(report.pid, report.outcome);
}

KeeperObserver* KeeperClient::take_observer(Token token) {
  const auto found = observers_.find(token);
  if (found == observers_.end()) return nullptr;
  KeeperObserver* observer = found->second;
  observers_.erase(found);
  return observer;
}

void KeeperClient::refuse(Token token, const keeper::Outcome& outcome) {
  if (KeeperObserver* observer = take_observer(token)) observer->refused(outcome);
}

// The kernel has killed the children themselves (parent-death signal). What they had started is in their
// cgroup, or has their cookie.
void KeeperClient::kill_descendants_of(pid_t keeper) {
  for (const auto& [parent, home] : cgroup_homes_) {
    if (!home.directory.empty()) kill_cgroups_of(home.directory, keeper, next_token_);
  }
  cgroup_homes_.clear();  // looked at anew, and tidied up, before the next spawn
  kill_by_cookie(keeper, next_token_);
}

// Observers may start a new keeper by spawning again.
void KeeperClient::on_keeper_death() {
  silence_.reset();
  kill_descendants_of(std::exchange(pid_, 0));
  manifests_.clear();
  socket_.reset();
  reap_later(std::move(pidfd_));
  spawns_.clear();
  signals_.clear();
  std::vector<Token> tokens;
  for (const auto& [token, observer] : observers_) tokens.push_back(token);
  for (const Token token : tokens) {
    if (KeeperObserver* observer = take_observer(token)) observer->keeper_died();
  }
}

void KeeperClient::reap_later(UniqueFd pidfd) {
  Result<Descriptor> watched = Descriptor::adopt(loop_, std::move(pidfd));
  if (!watched) return;
  dying_.push_back(std::make_unique<Descriptor>(std::move(*watched)));
  dying_.back()->when_readable([this, self = dying_.back().get()] {
    reap_keeper(self->fd(), std::chrono::milliseconds(0));
    std::erase_if(dying_, [&](const auto& one) { return one.get() == self; });
    sweep_orphans(kMaxOrphanRounds);  // they have become our children by now
  });
}

void KeeperClient::sweep_orphans(int rounds) {
  orphan_sweep_.reset();
  if (!kill_orphans() || rounds == 0) return;
  orphan_sweep_.emplace(loop_);
  orphan_sweep_->arm_after(kOrphanRound, [this, rounds] { sweep_orphans(rounds - 1); });
}

// Waits until it has killed its children and ended. If somebody keeps it stopped, kills it and them.
void KeeperClient::end_keeper() {
  send_to(pidfd_, SIGCONT);
  if (reap_keeper(pidfd_.get(), kShutdownPatience) || !is_stopped(pid_)) return;
  send_to(pidfd_, SIGKILL);
  reap_keeper(pidfd_.get(), kShutdownPatience);
  kill_descendants_of(pid_);
}

void KeeperClient::shut_down() {
  down_ = true;
  silence_.reset();
  orphan_sweep_.reset();
  socket_.reset();
  spawns_.clear();
  signals_.clear();
  if (pidfd_) end_keeper();
  for (const auto& one : dying_) reap_keeper(one->fd(), kShutdownPatience);
  dying_.clear();
  const auto until = Clock::now() + kShutdownPatience;
  while (kill_orphans() && Clock::now() < until) ::usleep(1000);
  observers_.clear();
  for (KeeperObserver* observer : std::exchange(enrolled_, {})) observer->loop_ends();
}

}  // namespace fairlead::process
