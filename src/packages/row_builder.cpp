#include "packages/row_builder.hpp"

#include <algorithm>
#include <cctype>

#include "base/contains.hpp"
#include "base/printable.hpp"
#include "fairlead/json/writer.hpp"
#include "json/config_reader.hpp"
#include "pool/server_name.hpp"
#include "registry/row_limits.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::packages {

namespace {

constexpr std::size_t kMaxInputNameBytes = 100;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// A name that is valid for inputs and for secrets.
std::string input_name(std::string_view hint) {
  while (hint.starts_with('-')) hint.remove_prefix(1);
  std::string name;
  for (const char c : hint.substr(0, kMaxInputNameBytes)) name += is_letter_or_digit(c) || c == '.' ? c : '_';
  if (name.empty()) name = "value";
  const char first = name.front();
  if (first == '.' || (first >= '0' && first <= '9')) name.insert(0, "_");
  return name;
}

// Text of a person, for a member of a row that does not permit control characters.
std::string row_text(std::string_view text, std::size_t max_characters) {
  return std::string(utf8_prefix(printable_line(text), max_characters));
}

}  // namespace

std::string server_name_of(std::string_view name) {
  constexpr std::array<std::string_view, 2> kReserved = {"servers", "e"};
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos && slash + 1 < name.size())
    name.remove_prefix(slash + 1);
  std::string result;
  for (const char c : name) {
    const char next = is_letter_or_digit(c) ? c : c == '_' ? '_' : '-';
    const bool repeats = !result.empty() && !is_letter_or_digit(next) && !is_letter_or_digit(result.back());
    if (!repeats && result.size() < pool::kMaxServerNameBytes) result += next;
  }
  while (!result.empty() && !is_letter_or_digit(result.back())) result.pop_back();
  while (!result.empty() && !is_letter_or_digit(result.front())) result.erase(0, 1);
  if (result.empty() || contains(kReserved, result)) result = "server" + (result.empty() ? "" : "-" + result);
  return result;
}

std::string member_pointer(std::string_view table, std::string_view name) {
  std::string pointer(table);
  json::append_to_pointer(pointer, name);
  return pointer;
}

std::string RowBuilder::unique_name(std::string_view hint) const {
  const std::string base = input_name(hint);
  std::string name = base;
  for (int number = 2; std::ranges::find(inputs_, name, &clients::ImportInput::name) != inputs_.end();
       ++number)
    name = base + "_" + std::to_string(number);
  return name;
}

std::string RowBuilder::add_input(clients::ImportInput input, std::string_view hint,
                                  const std::string& same_as) {
  if (const auto known = known_.find(same_as); !same_as.empty() && known != known_.end())
    return inputs_[known->second].placeholder;
  input.name = unique_name(hint);
  input.placeholder = (input.secret ? "${secret:" : "${input:") + input.name + "}";
  if (!same_as.empty()) known_.emplace(same_as, inputs_.size());
  inputs_.push_back(std::move(input));
  return inputs_.back().placeholder;
}

void RowBuilder::add_part(const std::string& placeholder, std::string pointer) {
  const auto input = std::ranges::find(inputs_, placeholder, &clients::ImportInput::placeholder);
  if (input != inputs_.end()) input->parts.push_back(std::move(pointer));
}

void RowBuilder::remark(std::string message, std::string pointer) {
  remarks_.push_back({std::move(pointer), std::move(message)});
}

json::Raw RowBuilder::row(const std::string& name, const json::Raw& source) const {
  json::Writer out;
  out.begin_object().key("name").string(name);
  registry::write_text(out, "title", row_text(title, registry::kMaxTitleCharacters.value));
  registry::write_text(out, "description", row_text(description, registry::kMaxDescriptionCharacters.value));
  out.key("config").begin_object();
  registry::write_text(out, "command", command);
  registry::write_list(out, "args", args);
  registry::write_map(out, "env", env);
  registry::write_text(out, "url", url);
  registry::write_map(out, "headers", headers);
  out.end_object();
  if (!source.absent()) out.key("metadata").begin_object().key("source").raw(source).end_object();
  out.end_object();
  return out.finish();
}

clients::ImportedServer RowBuilder::build(std::string name, const json::Raw& source) && {
  clients::ImportedServer server;
  server.row = row(server_name_of(name), source);
  server.name = std::move(name);
  server.skip_reason = std::move(skip_reason);
  server.remarks = std::move(remarks_);
  server.inputs = std::move(inputs_);
  return server;
}

}  // namespace fairlead::packages
