// A schema whose references lead back to it on the same value would be applied for ever. Where that can be
// seen in the schema it is refused; what only shows at run time ($dynamicRef) meets max_validation_depth.
#include "json/schema/table.hpp"

namespace fairlead::json::schema {

namespace {

enum class State : std::uint8_t { unseen, open, done };

// Walks the nodes that one node applies to the same value.
class Steps {
 public:
  Steps(const Table& table, NodeId node)
      : table_(table),
        applicator_(table.nodes[node].first_applicator),
        last_(table.nodes[node].last_applicator),
        node_(node) {}

  NodeId node() const { return node_; }

  // kNone after the last.
  NodeId next() {
    for (; applicator_ != last_; ++applicator_, at_ = 0) {
      const Applicator& applicator = table_.applicators[applicator_];
      if (applicator.dynamic_name != kNone) continue;
      while (at_ < applicator.nodes.size()) {
        if (const NodeId found = applicator.nodes[at_++]; found != kNone) return found;
      }
    }
    return kNone;
  }

 private:
  const Table& table_;
  std::uint32_t applicator_;
  std::uint32_t last_;
  std::size_t at_ = 0;
  NodeId node_;
};

}  // namespace

// Depth first, without calling itself: a chain of references may be as long as the schema has nodes.
NodeId find_endless_round(const Table& table) {
  std::vector<State> states(table.nodes.size(), State::unseen);
  std::vector<Steps> path;
  for (NodeId start = 0; start < table.nodes.size(); ++start) {
    if (states[start] != State::unseen) continue;
    states[start] = State::open;
    path.emplace_back(table, start);
    while (!path.empty()) {
      const NodeId next = path.back().next();
      if (next == kNone) {
        states[path.back().node()] = State::done;
        path.pop_back();
      } else if (states[next] == State::open) {
        return next;
      } else if (states[next] == State::unseen) {
        states[next] = State::open;
        path.emplace_back(table, next);
      }
    }
  }
  return kNone;
}

}  // namespace fairlead::json::schema
