#include "fairlead/pool/monitor.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::pool {

namespace {

template <class List, class Callback>
std::shared_ptr<void> subscribe_to(const std::shared_ptr<List>& list, Callback callback) {
  const auto position = list->insert(list->end(), std::make_shared<const Callback>(std::move(callback)));
  return std::shared_ptr<void>(nullptr, [list, position](void*) { list->erase(position); });
}

// Calls the callbacks that are registered now, although a callback may register others or remove itself.
template <class List, class... Arguments>
void call_each(const List& list, const Arguments&... arguments) {
  const std::vector<typename List::value_type> current(list.begin(), list.end());
  for (const auto& callback : current) (*callback)(arguments...);
}

}  // namespace

std::vector<StderrLine> PoolMonitor::last_lines(std::string_view server, std::size_t max) const {
  std::vector<StderrLine> last;
  const auto found = lines_by_server_.find(server);
  if (found == lines_by_server_.end()) return last;
  const auto& lines = found->second;
  for (std::size_t i = lines.size() - std::min(max, lines.size()); i < lines.size(); ++i)
    last.push_back(*lines[i]);
  return last;
}

std::shared_ptr<void> PoolMonitor::on_line(LineCallback callback) {
  return subscribe_to(line_callbacks_, std::move(callback));
}

std::shared_ptr<void> PoolMonitor::on_transition(TransitionCallback callback) {
  return subscribe_to(transition_callbacks_, std::move(callback));
}

void PoolMonitor::add_line(StderrLine line) {
  bytes_ += line.text.size();
  auto& own = lines_by_server_[line.server];
  const auto position = lines_.insert(lines_.end(), std::move(line));
  own.push_back(position);
  if (own.size() > kMaxServerLines) discard_oldest_of(std::string(position->server));
  const StderrLine added = *position;
  while (lines_.size() > kMaxTotalLines || bytes_ > kMaxTotalBytes)
    discard_oldest_of(std::string(lines_.front().server));
  call_each(*line_callbacks_, added);
}

void PoolMonitor::discard_oldest_of(const std::string& server) {
  const auto found = lines_by_server_.find(server);
  const Lines::iterator oldest = found->second.front();
  bytes_ -= oldest->text.size();
  lines_.erase(oldest);
  found->second.pop_front();
  if (found->second.empty()) lines_by_server_.erase(found);
}

void PoolMonitor::add_transition(const std::shared_ptr<Upstream>& upstream, const Transition& transition) {
  call_each(*transition_callbacks_, upstream, transition);
}

void PoolMonitor::remove_server(std::string_view server) {
  const std::string name(server);
  while (lines_by_server_.contains(name)) discard_oldest_of(name);
}

}  // namespace fairlead::pool
