// Compiler: compiles the text of a schema into a Table, one subschema after the other.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/schema/resource_registry.hpp"
#include "json/schema/table.hpp"

namespace fairlead::json::schema {

class Compiler {
 public:
  explicit Compiler(Table& table) : table_(table), registry_(table) {}

  // Compiles the schema `text`. Returns nullopt on success. The error has the JSON Pointer to the invalid
  // place in the schema and the problem.
  std::optional<Error> compile(std::string_view text);

 private:
  void compile_node(NodeId id);
  void collect_keywords();
  void compile_types(Node& node);
  TypeSet read_type(TapeIndex entry);
  void compile_numbers(Node& node);
  void compile_strings(Node& node);
  void compile_arrays(Node& node);
  void compile_array_items(ArrayRules& rules);
  void compile_allowed_values(Node& node);
  void compile_applicators(Node& node);
  void compile_conditions();
  void compile_dependent_schemas(Keyword keyword);
  void compile_unevaluated(Node& node);
  void compile_references(Node& node);
  void compile_reference(Keyword keyword);

  // Defined in compiler_objects.cpp.
  void compile_objects(Node& node);
  void compile_members(ObjectRules& rules);
  void compile_dependencies(ObjectRules& rules, Keyword keyword);
  void compile_pattern_properties(ObjectRules& rules);

  bool has(Keyword keyword) const { return value_of(keyword) != kNoIndex; }
  // Returns the entry of the keyword's value in the node being compiled; kNoIndex if the keyword is absent.
  TapeIndex value_of(Keyword keyword) const { return keyword_values_[static_cast<std::size_t>(keyword)]; }
  template <class... Keywords>
  bool has_any(Keywords... keywords) const {
    return (has(keywords) || ...);
  }

  // Records an error about the value at `entry`.
  void fail(TapeIndex entry, std::string_view problem) { registry_.fail(here_.document, entry, problem); }
  // The following functions read the value of a keyword, or the value at `entry`. If its type is not the
  // expected one, compile() fails.
  bool expect(TapeIndex entry, Type type);
  std::optional<Decimal> read_number(Keyword keyword);
  std::uint64_t read_count(Keyword keyword, std::uint64_t default_value);
  bool read_flag(Keyword keyword);
  std::string_view read_string(TapeIndex entry);  // the decoded string; valid as long as the table
  std::vector<std::string_view> read_names(TapeIndex array);
  NodeId node_at(TapeIndex entry) const { return registry_.node_at(here_.document, entry); }
  NodeId node_at(Keyword keyword) const { return has(keyword) ? node_at(value_of(keyword)) : kNone; }
  std::vector<NodeId> nodes_in(TapeIndex container) const;
  // Returns the index of the pattern in Table::patterns; equal patterns are compiled once.
  std::uint32_t compile_pattern(TapeIndex entry);
  // Returns the index of the name in Table::dynamic_anchors. Adds the name if it is new.
  std::uint32_t dynamic_name_id(const std::string& name);
  void add_applicator(Keyword keyword, std::vector<NodeId> nodes, std::string_view name = {});

  Table& table_;
  ResourceRegistry registry_;
  Location here_{};                                        // the node being compiled
  const Tape* tape_ = nullptr;                             // the tape of its document
  std::array<TapeIndex, kKeywordCount> keyword_values_{};  // by Keyword: the value in that node, or kNoIndex
  std::map<std::string, std::uint32_t> dynamic_names_;     // see dynamic_name_id()
  std::map<std::string, std::uint32_t, std::less<>> patterns_;  // compiled patterns, by text
  std::size_t pattern_state_count_ = 0;                         // states of all patterns together
};

}  // namespace fairlead::json::schema
