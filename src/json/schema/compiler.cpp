#include "json/schema/compiler.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "json/schema/message_text.hpp"

namespace fairlead::json::schema {

namespace {

// Only this many patterns of a schema get a DFA. With more, building DFAs would dominate the compile time.
constexpr std::size_t kMaxPatternsWithDfa = 500;

}  // namespace

std::optional<Error> Compiler::compile(std::string_view text) {
  registry_.add_root(text);
  // The loop condition reads size() each time, because compiling a reference may add locations.
  for (NodeId id = 0; id < table_.locations.size() && !registry_.failed(); ++id) compile_node(id);
  if (!registry_.failed()) {
    if (const NodeId cycle = find_reference_cycle(table_); cycle != kNone)
      registry_.fail(
          table_.locations[cycle].document, table_.locations[cycle].entry,
          "refers back to itself without going deeper into the value, so validation would never end");
  }
  if (registry_.failed()) return registry_.error();
  for (Applicator& applicator : table_.applicators) {
    if (applicator.keyword != Keyword::any_of) continue;
    for (const NodeId id : applicator.nodes) {
      if (table_.nodes[id].type_only) applicator.types |= table_.nodes[id].types;
    }
  }
  table_.dynamic_anchors.resize(dynamic_names_.size());
  for (const auto& [name, resource, node] : registry_.dynamic_anchors()) {
    if (const auto found = dynamic_names_.find(name); found != dynamic_names_.end())
      table_.dynamic_anchors[found->second].emplace_back(resource, node);
  }
  for (auto& anchors : table_.dynamic_anchors) std::ranges::sort(anchors);
  return std::nullopt;
}

void Compiler::compile_node(NodeId id) {
  here_ = table_.locations[id];
  tape_ = &registry_.tape(here_.document);
  Node node{.resource = here_.resource};
  node.first_applicator = node.last_applicator = static_cast<std::uint32_t>(table_.applicators.size());
  node.first_allowed_values = node.last_allowed_values =
      static_cast<std::uint32_t>(table_.allowed_values.size());
  if (tape_->type(here_.entry) == Type::boolean) {
    node.types = tape_->text(here_.entry) == "true" ? kAllTypes : TypeSet{0};
    table_.nodes.push_back(node);
    return;
  }
  collect_keywords();
  compile_references(node);
  if (!has(Keyword::ref) || registry_.dialect(here_.resource) != SchemaDialect::draft7) {
    compile_types(node);
    compile_allowed_values(node);
    compile_numbers(node);
    compile_strings(node);
    compile_arrays(node);
    compile_objects(node);
    compile_applicators(node);
    compile_unevaluated(node);
  }
  node.last_applicator = static_cast<std::uint32_t>(table_.applicators.size());
  node.last_allowed_values = static_cast<std::uint32_t>(table_.allowed_values.size());
  node.type_only = node.number_rules == kNone && node.string_rules == kNone && node.array_rules == kNone &&
                   node.object_rules == kNone && node.first_allowed_values == node.last_allowed_values &&
                   node.first_applicator == node.last_applicator && node.unevaluated_items == kNone &&
                   node.unevaluated_properties == kNone;
  table_.nodes.push_back(node);
}

void Compiler::collect_keywords() {
  keyword_values_.fill(kNoIndex);
  const SchemaDialect dialect = registry_.dialect(here_.resource);
  std::string buffer;
  for (TapeIndex key = here_.entry + 1; key != tape_->next(here_.entry); key = tape_->next(key + 1)) {
    const Keyword keyword = find_keyword(tape_->string(key, buffer), dialect);
    if (keyword != Keyword::none) keyword_values_[static_cast<std::size_t>(keyword)] = key + 1;
  }
}

bool Compiler::expect(TapeIndex entry, Type type) {
  if (tape_->type(entry) == type) return true;
  fail(entry,
       "expected " + std::string(type_name(type)) + ", got " + std::string(type_name(tape_->type(entry))));
  return false;
}

std::optional<Decimal> Compiler::read_number(Keyword keyword) {
  if (!has(keyword) || !expect(value_of(keyword), Type::number)) return std::nullopt;
  return Decimal(tape_->text(value_of(keyword)));
}

// Reads a keyword that limits a length or a count, such as maxItems. A number too large for an int64 means no
// limit.
std::uint64_t Compiler::read_count(Keyword keyword, std::uint64_t default_value) {
  const auto value = read_number(keyword);
  if (!value) return default_value;
  if (!value->is_integer() || value->is_negative()) {
    fail(value_of(keyword), "expected a whole number that is not negative");
    return default_value;
  }
  const auto whole = View(tape_->text(value_of(keyword))).as_int();
  return whole ? static_cast<std::uint64_t>(*whole) : kUnlimited;
}

bool Compiler::read_flag(Keyword keyword) {
  return has(keyword) && expect(value_of(keyword), Type::boolean) && tape_->text(value_of(keyword)) == "true";
}

std::string_view Compiler::read_string(TapeIndex entry) {
  if (!tape_->needs_decoding(entry)) return tape_->unquoted(entry);
  std::string buffer;
  return table_.decoded.emplace_back(tape_->string(entry, buffer));
}

std::vector<std::string_view> Compiler::read_names(TapeIndex array) {
  std::vector<std::string_view> names;
  if (!expect(array, Type::array)) return names;
  for (TapeIndex entry = array + 1; entry != tape_->next(array); entry = tape_->next(entry)) {
    if (!expect(entry, Type::string)) return names;
    names.push_back(read_string(entry));
  }
  return names;
}

// Returns the nodes of the schemas in an array. REQUIRES: the registry has found these schemas.
std::vector<NodeId> Compiler::nodes_in(TapeIndex container) const {
  std::vector<NodeId> nodes;
  for (TapeIndex entry = container + 1; entry != tape_->next(container); entry = tape_->next(entry))
    nodes.push_back(node_at(entry));
  return nodes;
}

std::uint32_t Compiler::compile_pattern(TapeIndex entry) {
  if (!expect(entry, Type::string)) return kNone;
  std::string buffer;
  const std::string_view pattern = tape_->string(entry, buffer);
  if (const auto known = patterns_.find(pattern); known != patterns_.end()) return known->second;
  auto regex = Regex::compile(pattern, table_.options.max_pattern_states - pattern_state_count_,
                              table_.patterns.size() < kMaxPatternsWithDfa);
  if (!regex) {
    fail(entry, "the pattern " + quoted(pattern) + " cannot be used: " + regex.error().message());
    return kNone;
  }
  pattern_state_count_ += regex->state_count();
  table_.patterns.push_back(*std::move(regex));
  const auto id = static_cast<std::uint32_t>(table_.patterns.size() - 1);
  patterns_.emplace(pattern, id);
  return id;
}

TypeSet Compiler::read_type(TapeIndex entry) {
  if (!expect(entry, Type::string)) return 0;
  std::string buffer;
  const std::string_view name = tape_->string(entry, buffer);
  if (name == "integer") return kIntegerBit;
  if (name == "number") return bit_of(Type::number) | kIntegerBit;
  for (const Type type : {Type::null, Type::boolean, Type::string, Type::array, Type::object}) {
    if (name == type_name(type)) return bit_of(type);
  }
  fail(entry, "unknown type " + quoted(name));
  return 0;
}

void Compiler::compile_types(Node& node) {
  if (!has(Keyword::type)) return;
  const TapeIndex entry = value_of(Keyword::type);
  if (tape_->type(entry) == Type::string) {
    node.types = read_type(entry);
    return;
  }
  if (tape_->type(entry) != Type::array || tape_->item_count(entry) == 0)
    return fail(entry, "expected the name of a type, or an array of such names");
  node.types = 0;
  for (TapeIndex i = entry + 1; i != tape_->next(entry); i = tape_->next(i)) node.types |= read_type(i);
}

void Compiler::compile_numbers(Node& node) {
  if (!has_any(Keyword::minimum, Keyword::exclusive_minimum, Keyword::maximum, Keyword::exclusive_maximum,
               Keyword::multiple_of))
    return;
  NumberRules rules{read_number(Keyword::minimum), read_number(Keyword::exclusive_minimum),
                    read_number(Keyword::maximum), read_number(Keyword::exclusive_maximum),
                    read_number(Keyword::multiple_of)};
  if (rules.multiple_of && (rules.multiple_of->is_zero() || rules.multiple_of->is_negative()))
    return fail(value_of(Keyword::multiple_of), "expected a number greater than 0");
  if (rules.multiple_of && rules.multiple_of->digits().size() > Decimal::kMaxDivisorDigits)
    return fail(value_of(Keyword::multiple_of), "more than " + std::to_string(Decimal::kMaxDivisorDigits) +
                                                    " significant digits are not supported");
  node.number_rules = static_cast<std::uint32_t>(table_.numbers.size());
  table_.numbers.push_back(std::move(rules));
}

void Compiler::compile_strings(Node& node) {
  StringRules rules{.min_length = read_count(Keyword::min_length, 0),
                    .max_length = read_count(Keyword::max_length, kUnlimited)};
  if (has(Keyword::pattern)) rules.pattern = compile_pattern(value_of(Keyword::pattern));
  if (has(Keyword::format) && expect(value_of(Keyword::format), Type::string) &&
      table_.options.assert_formats)
    rules.format = find_format(read_string(value_of(Keyword::format)));
  if (rules.min_length == 0 && rules.max_length == kUnlimited && rules.pattern == kNone &&
      rules.format == Format::none)
    return;
  node.string_rules = static_cast<std::uint32_t>(table_.strings.size());
  table_.strings.push_back(rules);
}

void Compiler::compile_arrays(Node& node) {
  if (!has_any(Keyword::min_items, Keyword::max_items, Keyword::unique_items, Keyword::prefix_items,
               Keyword::items, Keyword::contains, Keyword::additional_items, Keyword::min_contains,
               Keyword::max_contains))
    return;
  ArrayRules rules{.min_items = read_count(Keyword::min_items, 0),
                   .max_items = read_count(Keyword::max_items, kUnlimited),
                   .unique = read_flag(Keyword::unique_items)};
  compile_array_items(rules);
  rules.contains = node_at(Keyword::contains);
  rules.min_contains = read_count(Keyword::min_contains, 1);
  rules.max_contains = read_count(Keyword::max_contains, kUnlimited);
  node.array_rules = static_cast<std::uint32_t>(table_.arrays.size());
  table_.arrays.push_back(std::move(rules));
}

// `items` (an array) and `additionalItems` of draft 7 mean the same as `prefixItems` and `items` of 2020-12.
void Compiler::compile_array_items(ArrayRules& rules) {
  const TapeIndex items = value_of(Keyword::items);
  if (has(Keyword::prefix_items)) rules.prefix = nodes_in(value_of(Keyword::prefix_items));
  if (items == kNoIndex) return;
  if (tape_->type(items) == Type::array) {
    rules.prefix = nodes_in(items);
    rules.rest = node_at(Keyword::additional_items);
  } else {
    rules.rest = node_at(items);
  }
}

void Compiler::compile_allowed_values(Node&) {
  if (has(Keyword::constant)) {
    AllowedValues rules{Keyword::constant, {}, {}};
    const TapeIndex value = value_of(Keyword::constant);
    if (tape_->type(value) == Type::string) {
      rules.strings.push_back(read_string(value));
    } else {
      rules.others.push_back(value);
    }
    table_.allowed_values.push_back(std::move(rules));
  }
  if (!has(Keyword::enumeration) || !expect(value_of(Keyword::enumeration), Type::array)) return;
  AllowedValues rules{Keyword::enumeration, {}, {}};
  const TapeIndex list = value_of(Keyword::enumeration);
  for (TapeIndex value = list + 1; value != tape_->next(list); value = tape_->next(value)) {
    if (tape_->type(value) == Type::string) {
      rules.strings.push_back(read_string(value));
    } else {
      rules.others.push_back(value);
    }
  }
  std::ranges::sort(rules.strings);
  table_.allowed_values.push_back(std::move(rules));
}

void Compiler::add_applicator(Keyword keyword, std::vector<NodeId> nodes, std::string_view name) {
  table_.applicators.push_back({.keyword = keyword, .nodes = std::move(nodes), .name = name});
}

void Compiler::compile_applicators(Node&) {
  for (const Keyword keyword : {Keyword::all_of, Keyword::any_of, Keyword::one_of}) {
    if (!has(keyword)) continue;
    if (tape_->item_count(value_of(keyword)) == 0)
      return fail(value_of(keyword), "expected at least one schema");
    add_applicator(keyword, nodes_in(value_of(keyword)));
  }
  if (has(Keyword::negation)) add_applicator(Keyword::negation, {node_at(Keyword::negation)});
  compile_conditions();
  if (has(Keyword::dependent_schemas)) compile_dependent_schemas(Keyword::dependent_schemas);
  if (has(Keyword::dependencies)) compile_dependent_schemas(Keyword::dependencies);
}

// `then` and `else` are ignored without `if`.
void Compiler::compile_conditions() {
  if (!has(Keyword::if_branch)) return;
  add_applicator(Keyword::if_branch,
                 {node_at(Keyword::if_branch), node_at(Keyword::then_branch), node_at(Keyword::else_branch)});
}

void Compiler::compile_dependent_schemas(Keyword keyword) {
  const TapeIndex map = value_of(keyword);
  for (TapeIndex key = map + 1; key != tape_->next(map); key = tape_->next(key + 1)) {
    if (tape_->type(key + 1) != Type::array) add_applicator(keyword, {node_at(key + 1)}, read_string(key));
  }
}

void Compiler::compile_unevaluated(Node& node) {
  node.unevaluated_items = node_at(Keyword::unevaluated_items);
  node.unevaluated_properties = node_at(Keyword::unevaluated_properties);
}

void Compiler::compile_references(Node&) {
  if (has(Keyword::ref)) compile_reference(Keyword::ref);
  if (has(Keyword::dynamic_ref)) compile_reference(Keyword::dynamic_ref);
}

void Compiler::compile_reference(Keyword keyword) {
  const ResourceRegistry::Target target =
      registry_.resolve(here_.document, value_of(keyword), here_.resource);
  if (target.node == kNone) return;
  add_applicator(keyword, {target.node});
  if (keyword == Keyword::dynamic_ref && !target.dynamic_name.empty())
    table_.applicators.back().dynamic_name = dynamic_name_id(target.dynamic_name);
}

std::uint32_t Compiler::dynamic_name_id(const std::string& name) {
  return dynamic_names_.try_emplace(name, static_cast<std::uint32_t>(dynamic_names_.size())).first->second;
}

}  // namespace fairlead::json::schema
