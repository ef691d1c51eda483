#include "clients/edit_text.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "clients/own_entry.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::clients::edit {

namespace {

std::string decoded_key(std::string_view key, bool escaped) {
  return escaped ? json::unescape(key) : std::string(key);
}

std::map<std::string, json::View> members_of(json::View object) {
  std::map<std::string, json::View> members;
  object.each_member([&](std::string_view key, bool escaped, json::View value) {
    members.insert_or_assign(decoded_key(key, escaped), value);
    return true;
  });
  return members;
}

std::vector<json::View> elements_of(json::View array) {
  std::vector<json::View> elements;
  array.each_element([&](json::View element) {
    elements.push_back(element);
    return true;
  });
  return elements;
}

bool is_entry_of_list(json::View element, std::string_view name) {
  return element["name"].as_string() == std::string(name);
}

bool same_list_except(json::View a, json::View b, std::string_view name) {
  const auto others = [&](json::View list) {
    std::vector<json::View> elements = elements_of(list);
    std::erase_if(elements, [&](json::View element) { return is_entry_of_list(element, name); });
    return elements;
  };
  return std::ranges::equal(others(a), others(b), same_value);
}

// An absent, null or empty value has no entries.
bool has_no_entries(json::View container) {
  return container.absent() || container.is(json::Type::null) || container.size() == 0;
}

}  // namespace

std::string_view line_end_of(std::string_view text) {
  return text.find("\r\n") != std::string_view::npos ? "\r\n" : "\n";
}

std::size_t line_begin(std::string_view text, std::size_t offset) {
  if (offset == 0) return 0;
  const std::size_t end = text.rfind('\n', offset - 1);
  return end == std::string_view::npos ? 0 : end + 1;
}

std::size_t next_line(std::string_view text, std::size_t offset) {
  const std::size_t end = text.find('\n', offset);
  return end == std::string_view::npos ? text.size() : end + 1;
}

std::string_view indentation_at(std::string_view text, std::size_t offset) {
  std::size_t begin = line_begin(text, offset);
  if (begin == 0 && text.starts_with("\xEF\xBB\xBF")) begin = 3;
  const std::size_t end = std::min(text.find_first_not_of(" \t", begin), text.size());
  return text.substr(begin, std::min(end, std::max(offset, begin)) - begin);
}

bool begins_line(std::string_view text, std::size_t offset) {
  std::size_t begin = line_begin(text, offset);
  if (begin == 0 && text.starts_with("\xEF\xBB\xBF")) begin = 3;
  return text.substr(begin, std::max(offset, begin) - begin).find_first_not_of(" \t") ==
         std::string_view::npos;
}

std::size_t offset_of(std::string_view text, std::size_t line, std::size_t column) {
  std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  for (; line > 0 && at < text.size(); --line) at = next_line(text, at);
  for (; column > 0 && at < text.size(); --column) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  }
  return at;
}

bool same_value(json::View a, json::View b) {
  if (a.absent() || b.absent()) return a.absent() == b.absent();
  if (a.type() != b.type()) return false;
  if (a.is(json::Type::object)) {
    const auto left = members_of(a);
    const auto right = members_of(b);
    return left.size() == right.size() && std::ranges::all_of(left, [&](const auto& member) {
             const auto other = right.find(member.first);
             return other != right.end() && same_value(member.second, other->second);
           });
  }
  if (a.is(json::Type::array)) return std::ranges::equal(elements_of(a), elements_of(b), same_value);
  if (a.is(json::Type::string)) return a.as_string() == b.as_string();
  return a.text() == b.text();
}

bool same_except_entry(json::View a, json::View b, std::span<const std::string> container, bool is_list,
                       std::string_view name) {
  if (container.empty() && is_list) return same_list_except(a, b, name);
  auto left = members_of(a);
  auto right = members_of(b);
  const std::string key = container.empty() ? std::string(name) : container.front();
  json::View below[2];
  for (int side = 0; side < 2; ++side) {
    auto& members = side == 0 ? left : right;
    const auto found = members.find(key);
    if (found == members.end()) continue;
    below[side] = found->second;
    members.erase(found);
  }
  const bool same_others = left.size() == right.size() && std::ranges::all_of(left, [&](const auto& member) {
                             const auto other = right.find(member.first);
                             return other != right.end() && same_value(member.second, other->second);
                           });
  if (!same_others || container.empty()) return same_others;
  if (has_no_entries(below[0]) && has_no_entries(below[1])) return true;
  return same_except_entry(below[0], below[1], container.subspan(1), is_list, name);
}

json::View entry_at(json::View document, std::span<const std::string> container, bool is_list,
                    std::string_view name) {
  json::View at = document;
  for (const std::string& key : container) at = at[key];
  if (!is_list) return at[name];
  for (const json::View element : elements_of(at)) {
    if (is_entry_of_list(element, name)) return element;
  }
  return json::View();
}

namespace {

// Returns the members of `changed` and, of `base`, those that it lacks.
json::Raw merged_members(json::View base, json::View changed) {
  json::Writer out;
  out.begin_object();
  std::set<std::string> written;
  const auto write = [&](std::string_view key, bool escaped, json::View value) {
    const std::string name = decoded_key(key, escaped);
    if (written.insert(name).second) out.key(name).raw(json::Raw::trusted(Bytes::copy_of(value.text())));
    return true;
  };
  changed.each_member(write);
  base.each_member(write);
  out.end_object();
  return std::move(out).finish();
}

}  // namespace

json::Raw merged_entry(const Client& client, json::View old_entry, json::View new_entry) {
  const bool is_remote = is_remote_entry(client, new_entry);
  json::Writer out;
  out.begin_object();
  std::set<std::string> written;
  new_entry.each_member([&](std::string_view key, bool escaped, json::View value) {
    const std::string name = decoded_key(key, escaped);
    const json::View old_value = old_entry[name];
    const KeyRole role = role_of_key(client, name, is_remote);
    json::Raw member = json::Raw::trusted(Bytes::copy_of(value.text()));
    if (role == KeyRole::other && !old_value.absent())
      member = json::Raw::trusted(Bytes::copy_of(old_value.text()));
    if (role == KeyRole::environment && old_value.is(json::Type::object))
      member = merged_members(old_value, value);
    if (written.insert(name).second) out.key(name).raw(member);
    return true;
  });
  old_entry.each_member([&](std::string_view key, bool escaped, json::View value) {
    const std::string name = decoded_key(key, escaped);
    const bool is_name = client.is_list && name == "name";
    const bool is_kept = !is_name && role_of_key(client, name, is_remote) != KeyRole::connection;
    if (is_kept && written.insert(name).second)
      out.key(name).raw(json::Raw::trusted(Bytes::copy_of(value.text())));
    return true;
  });
  out.end_object();
  return std::move(out).finish();
}

std::string pretty_json(json::View value, std::string_view indentation, std::string_view unit,
                        std::string_view line_end) {
  const std::string inner = std::string(indentation) + std::string(unit);
  std::string out;
  if (value.is(json::Type::object) && value.size() > 0) {
    value.each_member([&](std::string_view key, bool, json::View member) {
      out += (out.empty() ? "{" : ",") + std::string(line_end) + inner + "\"" + std::string(key) + "\": ";
      out += pretty_json(member, inner, unit, line_end);
      return true;
    });
    return out + std::string(line_end) + std::string(indentation) + "}";
  }
  if (value.is(json::Type::array)) {
    for (const json::View element : elements_of(value))
      out += (out.empty() ? "" : ", ") + pretty_json(element, inner, unit, line_end);
    return "[" + out + "]";
  }
  return std::string(value.text());
}

}  // namespace fairlead::clients::edit
