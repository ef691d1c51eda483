// Compiler: turns the text of a schema into a table, one subschema after the other.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/schema/sources.hpp"
#include "json/schema/table.hpp"

namespace fairlead::json::schema {

class Compiler {
 public:
  explicit Compiler(Table& table) : table_(table), sources_(table) {}

  // The error says what is wrong, and where in the schema.
  std::optional<Error> compile(std::string_view text);

 private:
  void compile_node(NodeId id);
  void gather();
  void types(Node& node);
  TypeSet type_named(Index at);
  void numbers(Node& node);
  void strings(Node& node);
  void arrays(Node& node);
  void array_items(ArrayRules& rules);
  void values(Node& node);
  void applicators(Node& node);
  void conditions();
  void dependent_schemas(Keyword keyword);
  void unevaluated(Node& node);
  void references(Node& node);
  void reference(Keyword keyword);

  // compiler_objects.cpp
  void objects(Node& node);
  void members(ObjectRules& rules);
  void dependencies(ObjectRules& rules, Keyword keyword);
  void pattern_properties(ObjectRules& rules);

  bool has(Keyword keyword) const { return at(keyword) != kNowhere; }
  Index at(Keyword keyword) const { return given_[static_cast<std::size_t>(keyword)]; }
  template <class... Keywords>
  bool has_any(Keywords... keywords) const {
    return (has(keywords) || ...);
  }

  // What a keyword's value must be; the failure says what it is instead.
  void fail(Index at, std::string_view what) { sources_.fail(here_.document, at, what); }
  bool expect(Index at, Type type);
  std::optional<Decimal> number(Keyword keyword);
  std::uint64_t count(Keyword keyword, std::uint64_t otherwise);
  bool flag(Keyword keyword);
  std::string_view text(Index at);  // of a string, kept as long as the table
  std::vector<std::string_view> names(Index array);
  NodeId node(Index at) const { return sources_.node_at(here_.document, at); }
  NodeId node(Keyword keyword) const { return has(keyword) ? node(at(keyword)) : kNone; }
  std::vector<NodeId> nodes(Index container) const;
  std::uint32_t pattern(Index at);
  std::uint32_t dynamic_name(const std::string& name);
  void add_applicator(Keyword keyword, std::vector<NodeId> nodes, std::string_view name = {});

  Table& table_;
  Sources sources_;
  Location here_{};                       // of the node being compiled
  const Tape* tape_ = nullptr;            // its document
  std::array<Index, kKeywords> given_{};  // its keywords
  std::map<std::string, std::uint32_t> dynamic_names_;
  std::map<std::string, std::uint32_t, std::less<>> patterns_;  // compiled ones
  std::size_t pattern_states_ = 0;
};

}  // namespace fairlead::json::schema
