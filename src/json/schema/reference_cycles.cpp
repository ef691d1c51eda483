// Finds reference cycles. If references lead from a schema back to itself without descending into the value,
// the schema would be applied to that value for ever. compile() rejects such a schema. Cycles through
// $dynamicRef are known only during validation, which then fails at max_validation_depth.
#include "json/schema/table.hpp"

namespace fairlead::json::schema {

namespace {

enum class VisitState : std::uint8_t { unseen, open, done };

// Iterates over the nodes that one node applies to the same value.
class AppliedNodes {
 public:
  AppliedNodes(const Table& table, NodeId node)
      : table_(table),
        applicator_(table.nodes[node].first_applicator),
        end_(table.nodes[node].last_applicator),
        node_(node) {}

  NodeId node() const { return node_; }

  // Returns the next node, or kNone after the last one.
  NodeId next() {
    for (; applicator_ != end_; ++applicator_, next_ = 0) {
      const Applicator& applicator = table_.applicators[applicator_];
      if (applicator.dynamic_name != kNone) continue;
      while (next_ < applicator.nodes.size()) {
        if (const NodeId found = applicator.nodes[next_++]; found != kNone) return found;
      }
    }
    return kNone;
  }

 private:
  const Table& table_;
  std::uint32_t applicator_;
  std::uint32_t end_;
  std::size_t next_ = 0;
  NodeId node_;
};

}  // namespace

// A depth-first search without recursion: a chain of references can be as long as the schema has nodes.
NodeId find_reference_cycle(const Table& table) {
  std::vector<VisitState> states(table.nodes.size(), VisitState::unseen);
  std::vector<AppliedNodes> path;
  for (NodeId start = 0; start < table.nodes.size(); ++start) {
    if (states[start] != VisitState::unseen) continue;
    states[start] = VisitState::open;
    path.emplace_back(table, start);
    while (!path.empty()) {
      const NodeId next = path.back().next();
      if (next == kNone) {
        states[path.back().node()] = VisitState::done;
        path.pop_back();
      } else if (states[next] == VisitState::open) {
        return next;
      } else if (states[next] == VisitState::unseen) {
        states[next] = VisitState::open;
        path.emplace_back(table, next);
      }
    }
  }
  return kNone;
}

}  // namespace fairlead::json::schema
