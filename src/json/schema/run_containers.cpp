// Keywords about arrays and objects.
#include <algorithm>

#include "json/schema/run.hpp"

namespace fairlead::json::schema {

namespace {

// Which of the required members were there.
class Seen {
 public:
  explicit Seen(std::size_t wanted) : missing_(wanted) {
    if (wanted > 64) more_.resize((wanted - 1) / 64);
  }
  void add(std::uint32_t ordinal) noexcept {
    std::uint64_t& word = ordinal < 64 ? first_ : more_[ordinal / 64 - 1];
    const std::uint64_t bit = std::uint64_t{1} << (ordinal % 64);
    if ((word & bit) == 0) --missing_;
    word |= bit;
  }
  bool has(std::uint32_t ordinal) const noexcept {
    return ((ordinal < 64 ? first_ : more_[ordinal / 64 - 1]) >> (ordinal % 64) & 1) != 0;
  }
  bool complete() const noexcept { return missing_ == 0; }

 private:
  std::size_t missing_;
  std::uint64_t first_ = 0;
  std::vector<std::uint64_t> more_;
};

}  // namespace

bool Run::check_array(NodeId id, const ArrayRules& rules, Index at, Marks* marks) {
  bool ok = true;
  const auto go_on = [&ok, this](bool passed) {
    ok &= passed;
    return passed || !done();
  };
  const std::uint32_t count = tape_.count(at);
  if (count < rules.min_items && !go_on(fail(id, Keyword::min_items, at, count))) return false;
  if (count > rules.max_items && !go_on(fail(id, Keyword::max_items, at, count))) return false;
  if (!go_on(check_elements(rules, at, marks))) return false;
  if (rules.contains != kNone && !go_on(check_contains(id, rules, at, marks))) return false;
  if (rules.unique) {
    if (const auto same = find_equal_elements({tape_, at}, work_))
      return fail(id, Keyword::unique_items, at, same->first, same->second);
  }
  return ok && stopped() == Stop::none;
}

bool Run::check_elements(const ArrayRules& rules, Index at, Marks* marks) {
  if (rules.prefix.empty() && rules.rest == kNone) return true;
  bool ok = true;
  std::uint32_t ordinal = 0;
  for (Index item = at + 1; item != tape_.next(at); item = tape_.next(item), ++ordinal) {
    const bool in_prefix = ordinal < rules.prefix.size();
    if (!in_prefix && rules.rest == kNone) break;
    if (marks != nullptr) marks->mark(ordinal);
    if (work_.spend(1) && check(in_prefix ? rules.prefix[ordinal] : rules.rest, item, nullptr)) continue;
    ok = false;
    if (done()) return false;
  }
  return ok;
}

bool Run::check_contains(NodeId id, const ArrayRules& rules, Index at, Marks* marks) {
  std::uint32_t found = 0;
  std::uint32_t ordinal = 0;
  for (Index item = at + 1; item != tape_.next(at); item = tape_.next(item), ++ordinal) {
    // Enough are found, and there is no such thing as too many.
    if (found >= rules.min_contains && rules.max_contains == kUnlimited && marks == nullptr) return true;
    const bool fits = branch(rules.contains, item, nullptr, nullptr);
    if (stopped() != Stop::none) return false;
    if (!fits) continue;
    ++found;
    if (marks != nullptr) marks->mark(ordinal);
  }
  if (found < rules.min_contains) return fail(id, Keyword::contains, at, found);
  return found <= rules.max_contains || fail(id, Keyword::max_contains, at, found);
}

bool Run::check_object(NodeId id, const ObjectRules& rules, Index at, Marks* marks) {
  bool ok = true;
  const auto go_on = [&ok, this](bool passed) {
    ok &= passed;
    return passed || !done();
  };
  if (!go_on(check_members(id, rules, at, marks))) return false;
  if (!go_on(check_member_count(id, rules, at))) return false;
  return (rules.dependencies.empty() || check_dependencies(id, rules, at)) && ok;
}

// Where a key is repeated, every value it is given must be valid: whoever reads the text next may take any of
// them.
bool Run::check_members(NodeId id, const ObjectRules& rules, Index at, Marks* marks) {
  Seen seen(rules.required.size());
  std::uint32_t guess = rules.first;
  std::uint32_t ordinal = 0;
  bool ok = true;
  std::string room;
  const Index end = tape_.next(at);
  for (Index key = at + 1; key != end; key = tape_.next(key + 1), ++ordinal) {
    if (!pay_for_string(tape_, key, work_)) return false;
    const std::string_view name = tape_.string(key, room);
    const std::uint32_t found = rules.find(name, guess);
    if (found != kNone) {
      guess = rules.members[found].after;
      if (rules.members[found].required != kNone) seen.add(rules.members[found].required);
    }
    bool judged = false;
    const bool good = check_member(id, rules, key, found, judged);
    if (judged && marks != nullptr) marks->mark(ordinal);
    if (good) continue;
    ok = false;
    if (done()) return false;
  }
  if (seen.complete()) return ok;
  for (std::uint32_t i = 0; i < rules.required.size() && !(!ok && done()); ++i) {
    if (!seen.has(i)) ok = fail(id, Keyword::required, at, i);
  }
  return false;
}

bool Run::check_member(NodeId id, const ObjectRules& rules, Index key, std::uint32_t found, bool& judged) {
  const Index value = key + 1;
  bool ok = true;
  const auto judge = [&](NodeId node) {
    judged = true;
    if (!check(node, value, nullptr)) ok = false;
    return ok || !done();
  };
  if (found != kNone && rules.members[found].node != kNone && !judge(rules.members[found].node)) return false;
  if (!rules.patterns.empty()) {
    std::string room;
    const std::string_view name = tape_.string(key, room);
    for (const auto& [pattern, node] : rules.patterns) {
      if (matches(pattern, name) && !judge(node)) return false;
      if (stopped() != Stop::none) return false;
    }
  }
  if (rules.names != kNone && !check(rules.names, key, nullptr)) {
    ok = false;
    if (done()) return false;
  }
  if (judged || rules.additional == kNone) return ok;
  judged = true;
  // A member that may not be there is told from one that may be nothing.
  if (table_.nodes[rules.additional].types == 0) return fail(id, Keyword::additional_properties, value);
  return check(rules.additional, value, nullptr) && ok;
}

// Different keys count, which only matters where there are about as many as the limit.
bool Run::check_member_count(NodeId id, const ObjectRules& rules, Index at) {
  std::size_t count = tape_.count(at);
  if (rules.min_members == 0 && count <= rules.max_members) return true;
  if (count >= rules.min_members) count = distinct_keys({tape_, at}, work_);
  if (stopped() != Stop::none) return false;
  if (count < rules.min_members)
    return fail(id, Keyword::min_properties, at, static_cast<std::uint32_t>(count));
  if (count > rules.max_members)
    return fail(id, Keyword::max_properties, at, static_cast<std::uint32_t>(count));
  return true;
}

bool Run::check_dependencies(NodeId id, const ObjectRules& rules, Index at) {
  bool ok = true;
  for (std::uint32_t i = 0; i < rules.dependencies.size(); ++i) {
    const ObjectRules::Dependency& dependency = rules.dependencies[i];
    if (!has_member(at, dependency.name)) continue;
    for (std::uint32_t j = 0; j < dependency.needs.size(); ++j) {
      if (has_member(at, dependency.needs[j])) continue;
      if (stopped() != Stop::none) return false;
      ok = fail(id, dependency.keyword, at, i, j);
      if (done()) return false;
    }
  }
  return ok && stopped() == Stop::none;
}

bool Run::has_member(Index object, std::string_view name) {
  std::string room;
  for (Index key = object + 1; key != tape_.next(object); key = tape_.next(key + 1)) {
    if (!pay_for_string(tape_, key, work_)) return false;
    if (tape_.string(key, room) == name) return true;
  }
  return false;
}

bool Run::check_unevaluated(NodeId id, const Node& node, Index at, Marks& marks) {
  const bool object = tape_.type(at) == Type::object;
  const NodeId schema = object ? node.unevaluated_properties : node.unevaluated_items;
  if (schema == kNone || (!object && tape_.type(at) != Type::array)) return true;
  const bool forbidden = table_.nodes[schema].types == 0;
  const Keyword keyword = object ? Keyword::unevaluated_properties : Keyword::unevaluated_items;
  bool ok = true;
  std::uint32_t ordinal = 0;
  for (Index item = at + 1; item != tape_.next(at); ++ordinal) {
    const Index value = object ? item + 1 : item;
    item = tape_.next(value);
    if (!work_.spend(1)) return false;
    if (marks.has(ordinal)) continue;
    if (!forbidden && check(schema, value, nullptr)) continue;
    if (forbidden) fail(id, keyword, value);
    ok = false;
    if (done()) return false;
  }
  marks.mark_all();
  return ok;
}

}  // namespace fairlead::json::schema
