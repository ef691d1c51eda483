#include "json/schema/compiler.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "json/schema/names.hpp"

namespace fairlead::json::schema {

namespace {

// Tables are what takes the most time when a schema has many patterns.
constexpr std::size_t kMaxPatternTables = 500;

}  // namespace

std::optional<Error> Compiler::compile(std::string_view text) {
  sources_.add_root(text);
  // References may bring further locations as they are compiled.
  for (NodeId id = 0; id < table_.locations.size() && !sources_.failed(); ++id) compile_node(id);
  if (!sources_.failed()) {
    if (const NodeId round = find_endless_round(table_); round != kNone)
      sources_.fail(
          table_.locations[round].document, table_.locations[round].at,
          "refers back to itself without going deeper into the value, so that no value could be judged");
  }
  if (sources_.failed()) return sources_.take_error();
  for (Applicator& applicator : table_.applicators) {
    if (applicator.keyword != Keyword::any_of) continue;
    for (const NodeId id : applicator.nodes) {
      if (table_.nodes[id].plain) applicator.types |= table_.nodes[id].types;
    }
  }
  table_.dynamic_anchors.resize(dynamic_names_.size());
  for (const auto& [name, resource, node] : sources_.dynamic_anchors()) {
    if (const auto found = dynamic_names_.find(name); found != dynamic_names_.end())
      table_.dynamic_anchors[found->second].emplace_back(resource, node);
  }
  for (auto& anchors : table_.dynamic_anchors) std::ranges::sort(anchors);
  return std::nullopt;
}

void Compiler::compile_node(NodeId id) {
  here_ = table_.locations[id];
  tape_ = &sources_.tape(here_.document);
  Node node{.resource = here_.resource};
  node.first_applicator = node.last_applicator = static_cast<std::uint32_t>(table_.applicators.size());
  node.first_values = node.last_values = static_cast<std::uint32_t>(table_.values.size());
  if (tape_->type(here_.at) == Type::boolean) {
    node.types = tape_->text(here_.at) == "true" ? kAllTypes : TypeSet{0};
    table_.nodes.push_back(node);
    return;
  }
  gather();
  references(node);
  if (!has(Keyword::ref) || sources_.dialect(here_.resource) != SchemaDialect::draft7) {
    types(node);
    values(node);
    numbers(node);
    strings(node);
    arrays(node);
    objects(node);
    applicators(node);
    unevaluated(node);
  }
  node.last_applicator = static_cast<std::uint32_t>(table_.applicators.size());
  node.last_values = static_cast<std::uint32_t>(table_.values.size());
  node.plain = node.number == kNone && node.string == kNone && node.array == kNone && node.object == kNone &&
               node.first_values == node.last_values && node.first_applicator == node.last_applicator &&
               node.unevaluated_items == kNone && node.unevaluated_properties == kNone;
  table_.nodes.push_back(node);
}

void Compiler::gather() {
  given_.fill(kNowhere);
  const SchemaDialect dialect = sources_.dialect(here_.resource);
  std::string room;
  for (Index key = here_.at + 1; key != tape_->next(here_.at); key = tape_->next(key + 1)) {
    const Keyword keyword = find_keyword(tape_->string(key, room), dialect);
    if (keyword != Keyword::none) given_[static_cast<std::size_t>(keyword)] = key + 1;
  }
}

bool Compiler::expect(Index at, Type type) {
  if (tape_->type(at) == type) return true;
  fail(at, "expected " + std::string(name_of(type)) + ", got " + std::string(name_of(tape_->type(at))));
  return false;
}

std::optional<Decimal> Compiler::number(Keyword keyword) {
  if (!has(keyword) || !expect(at(keyword), Type::number)) return std::nullopt;
  return Decimal(tape_->text(at(keyword)));
}

// A limit on a length or a number of things. One that no length can reach counts as no limit.
std::uint64_t Compiler::count(Keyword keyword, std::uint64_t otherwise) {
  const auto value = number(keyword);
  if (!value) return otherwise;
  if (!value->is_integer() || value->is_negative()) {
    fail(at(keyword), "expected a whole number that is not negative");
    return otherwise;
  }
  const auto whole = View(tape_->text(at(keyword))).as_int();
  return whole ? static_cast<std::uint64_t>(*whole) : kUnlimited;
}

bool Compiler::flag(Keyword keyword) {
  return has(keyword) && expect(at(keyword), Type::boolean) && tape_->text(at(keyword)) == "true";
}

std::string_view Compiler::text(Index at) {
  if (!tape_->special(at)) return tape_->inside(at);
  std::string room;
  return table_.decoded.emplace_back(tape_->string(at, room));
}

std::vector<std::string_view> Compiler::names(Index array) {
  std::vector<std::string_view> names;
  if (!expect(array, Type::array)) return names;
  for (Index at = array + 1; at != tape_->next(array); at = tape_->next(at)) {
    if (!expect(at, Type::string)) return names;
    names.push_back(text(at));
  }
  return names;
}

// The schemas in an array, as located before.
std::vector<NodeId> Compiler::nodes(Index container) const {
  std::vector<NodeId> nodes;
  for (Index at = container + 1; at != tape_->next(container); at = tape_->next(at))
    nodes.push_back(node(at));
  return nodes;
}

std::uint32_t Compiler::pattern(Index at) {
  if (!expect(at, Type::string)) return kNone;
  std::string room;
  const std::string_view spelled = tape_->string(at, room);
  if (const auto known = patterns_.find(spelled); known != patterns_.end()) return known->second;
  auto regex = Regex::compile(spelled, table_.options.max_pattern_states - pattern_states_,
                              table_.patterns.size() < kMaxPatternTables);
  if (!regex) {
    fail(at, "the pattern " + quoted(spelled) + " cannot be used: " + regex.error().message());
    return kNone;
  }
  pattern_states_ += regex->states();
  table_.patterns.push_back(*std::move(regex));
  const auto id = static_cast<std::uint32_t>(table_.patterns.size() - 1);
  patterns_.emplace(spelled, id);
  return id;
}

TypeSet Compiler::type_named(Index at) {
  if (!expect(at, Type::string)) return 0;
  std::string room;
  const std::string_view name = tape_->string(at, room);
  if (name == "integer") return kIntegerBit;
  if (name == "number") return bit_of(Type::number) | kIntegerBit;
  for (const Type type : {Type::null, Type::boolean, Type::string, Type::array, Type::object}) {
    if (name == name_of(type)) return bit_of(type);
  }
  fail(at, "unknown type " + quoted(name));
  return 0;
}

void Compiler::types(Node& node) {
  if (!has(Keyword::type)) return;
  const Index at = this->at(Keyword::type);
  if (tape_->type(at) == Type::string) {
    node.types = type_named(at);
    return;
  }
  if (tape_->type(at) != Type::array || tape_->count(at) == 0)
    return fail(at, "expected the name of a type, or an array of such names");
  node.types = 0;
  for (Index i = at + 1; i != tape_->next(at); i = tape_->next(i)) node.types |= type_named(i);
}

void Compiler::numbers(Node& node) {
  if (!has_any(Keyword::minimum, Keyword::exclusive_minimum, Keyword::maximum, Keyword::exclusive_maximum,
               Keyword::multiple_of))
    return;
  NumberRules rules{number(Keyword::minimum), number(Keyword::exclusive_minimum), number(Keyword::maximum),
                    number(Keyword::exclusive_maximum), number(Keyword::multiple_of)};
  if (rules.multiple_of && (rules.multiple_of->is_zero() || rules.multiple_of->is_negative()))
    return fail(at(Keyword::multiple_of), "expected a number greater than 0");
  if (rules.multiple_of && rules.multiple_of->digits().size() > Decimal::kDivisorDigits)
    return fail(at(Keyword::multiple_of), "more than " + std::to_string(Decimal::kDivisorDigits) +
                                              " significant digits are not supported");
  node.number = static_cast<std::uint32_t>(table_.numbers.size());
  table_.numbers.push_back(std::move(rules));
}

void Compiler::strings(Node& node) {
  StringRules rules{.min_length = count(Keyword::min_length, 0),
                    .max_length = count(Keyword::max_length, kUnlimited)};
  if (has(Keyword::pattern)) rules.pattern = pattern(at(Keyword::pattern));
  if (has(Keyword::format) && expect(at(Keyword::format), Type::string) && table_.options.assert_formats)
    rules.format = find_format(text(at(Keyword::format)));
  if (rules.min_length == 0 && rules.max_length == kUnlimited && rules.pattern == kNone &&
      rules.format == Format::none)
    return;
  node.string = static_cast<std::uint32_t>(table_.strings.size());
  table_.strings.push_back(rules);
}

void Compiler::arrays(Node& node) {
  if (!has_any(Keyword::min_items, Keyword::max_items, Keyword::unique_items, Keyword::prefix_items,
               Keyword::items, Keyword::contains, Keyword::additional_items, Keyword::min_contains,
               Keyword::max_contains))
    return;
  ArrayRules rules{.min_items = count(Keyword::min_items, 0),
                   .max_items = count(Keyword::max_items, kUnlimited),
                   .unique = flag(Keyword::unique_items)};
  array_items(rules);
  rules.contains = this->node(Keyword::contains);
  rules.min_contains = count(Keyword::min_contains, 1);
  rules.max_contains = count(Keyword::max_contains, kUnlimited);
  node.array = static_cast<std::uint32_t>(table_.arrays.size());
  table_.arrays.push_back(std::move(rules));
}

// Draft 7 writes as items (an array) and additionalItems what 2020-12 writes as prefixItems and items.
void Compiler::array_items(ArrayRules& rules) {
  const Index items = at(Keyword::items);
  if (has(Keyword::prefix_items)) rules.prefix = nodes(at(Keyword::prefix_items));
  if (items == kNowhere) return;
  if (tape_->type(items) == Type::array) {
    rules.prefix = nodes(items);
    rules.rest = node(Keyword::additional_items);
  } else {
    rules.rest = node(items);
  }
}

void Compiler::values(Node&) {
  if (has(Keyword::constant)) {
    ValueRules rules{Keyword::constant, {}, {}};
    const Index value = at(Keyword::constant);
    if (tape_->type(value) == Type::string) {
      rules.strings.push_back(text(value));
    } else {
      rules.others.push_back(value);
    }
    table_.values.push_back(std::move(rules));
  }
  if (!has(Keyword::enumeration) || !expect(at(Keyword::enumeration), Type::array)) return;
  ValueRules rules{Keyword::enumeration, {}, {}};
  const Index list = at(Keyword::enumeration);
  for (Index value = list + 1; value != tape_->next(list); value = tape_->next(value)) {
    if (tape_->type(value) == Type::string) {
      rules.strings.push_back(text(value));
    } else {
      rules.others.push_back(value);
    }
  }
  std::ranges::sort(rules.strings);
  table_.values.push_back(std::move(rules));
}

void Compiler::add_applicator(Keyword keyword, std::vector<NodeId> nodes, std::string_view name) {
  table_.applicators.push_back({.keyword = keyword, .nodes = std::move(nodes), .name = name});
}

void Compiler::applicators(Node&) {
  for (const Keyword keyword : {Keyword::all_of, Keyword::any_of, Keyword::one_of}) {
    if (!has(keyword)) continue;
    if (tape_->count(at(keyword)) == 0) return fail(at(keyword), "expected at least one schema");
    add_applicator(keyword, nodes(at(keyword)));
  }
  if (has(Keyword::negation)) add_applicator(Keyword::negation, {node(Keyword::negation)});
  conditions();
  if (has(Keyword::dependent_schemas)) dependent_schemas(Keyword::dependent_schemas);
  if (has(Keyword::dependencies)) dependent_schemas(Keyword::dependencies);
}

// `then` and `else` mean nothing without `if`.
void Compiler::conditions() {
  if (!has(Keyword::if_branch)) return;
  add_applicator(Keyword::if_branch,
                 {node(Keyword::if_branch), node(Keyword::then_branch), node(Keyword::else_branch)});
}

void Compiler::dependent_schemas(Keyword keyword) {
  const Index map = at(keyword);
  for (Index key = map + 1; key != tape_->next(map); key = tape_->next(key + 1)) {
    if (tape_->type(key + 1) != Type::array) add_applicator(keyword, {node(key + 1)}, text(key));
  }
}

void Compiler::unevaluated(Node& node) {
  node.unevaluated_items = this->node(Keyword::unevaluated_items);
  node.unevaluated_properties = this->node(Keyword::unevaluated_properties);
}

void Compiler::references(Node&) {
  if (has(Keyword::ref)) reference(Keyword::ref);
  if (has(Keyword::dynamic_ref)) reference(Keyword::dynamic_ref);
}

void Compiler::reference(Keyword keyword) {
  const Sources::Target target = sources_.resolve(here_.document, at(keyword), here_.resource);
  if (target.node == kNone) return;
  add_applicator(keyword, {target.node});
  if (keyword == Keyword::dynamic_ref && !target.dynamic_name.empty())
    table_.applicators.back().dynamic_name = dynamic_name(target.dynamic_name);
}

std::uint32_t Compiler::dynamic_name(const std::string& name) {
  return dynamic_names_.try_emplace(name, static_cast<std::uint32_t>(dynamic_names_.size())).first->second;
}

}  // namespace fairlead::json::schema
