#include "cli/patch_builder.hpp"

#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

std::vector<std::string> split_member_path(std::string_view path) {
  std::vector<std::string> keys;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = path.find('.', begin);
    keys.emplace_back(path.substr(begin, dot - begin));
    if (dot == std::string_view::npos) return keys;
    begin = dot + 1;
  }
}

PatchBuilder& PatchBuilder::child(const std::string& key) {
  for (const auto& [name, member] : members_) {
    if (name == key) return *member;
  }
  return *members_.emplace_back(key, std::make_shared<PatchBuilder>()).second;
}

void PatchBuilder::set(const std::vector<std::string>& path, json::Raw value) {
  PatchBuilder* at = this;
  for (const std::string& key : path) {
    at->value_ = json::Raw();
    at = &at->child(key);
  }
  at->members_.clear();
  at->value_ = std::move(value);
}

void PatchBuilder::set_string(const std::vector<std::string>& path, std::string_view value) {
  set(path, json::string(value));
}

void PatchBuilder::set_strings(const std::vector<std::string>& path, const std::vector<std::string>& values) {
  json::Writer list;
  list.begin_array();
  for (const std::string& value : values) list.string(value);
  list.end_array();
  set(path, list.finish());
}

Result<void> PatchBuilder::set_pair(std::vector<std::string> path, std::string_view option,
                                    const std::string& pair) {
  const std::size_t equals = pair.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error(ErrorKind::validation, std::string(option) + " needs NAME=VALUE");
  path.push_back(pair.substr(0, equals));
  set_string(path, pair.substr(equals + 1));
  return {};
}

Result<void> PatchBuilder::set_assignment(std::string_view option, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error(ErrorKind::validation, std::string(option) + " needs MEMBER=VALUE, such as config.cwd=/srv");
  const std::string text = assignment.substr(equals + 1);
  const Result<json::Raw> value = json::Raw::parse(text);
  set(split_member_path(std::string_view(assignment).substr(0, equals)), value ? *value : json::string(text));
  return {};
}

void PatchBuilder::write(json::Writer& writer) const {
  if (!value_.absent()) {
    writer.raw(value_);
    return;
  }
  writer.begin_object();
  for (const auto& [key, member] : members_) {
    writer.key(key);
    member->write(writer);
  }
  writer.end_object();
}

json::Raw PatchBuilder::finish() const {
  json::Writer writer;
  write(writer);
  return writer.finish();
}

}  // namespace fairlead::cli
