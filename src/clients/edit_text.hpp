// Functions on the lines of a text, and the comparison of documents, that the editors of all formats share.
// Private to the layer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clients/edit.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::clients::edit {

// The keys that lead to an object, outermost first.
using Path = std::vector<std::string>;

// The line end that the text uses, "\r\n" or "\n".
std::string_view line_end_of(std::string_view text);
// The offset of the first byte of the line of `offset`.
std::size_t line_begin(std::string_view text, std::size_t offset);
// The offset after the line end of the line of `offset`, or the size of the text.
std::size_t next_line(std::string_view text, std::size_t offset);
// The blanks at the beginning of the line of `offset`.
std::string_view indentation_at(std::string_view text, std::size_t offset);
// Whether only blanks are between the beginning of the line and `offset`.
bool begins_line(std::string_view text, std::size_t offset);
// The offset of a position as parsers report it: lines from 0, columns in code points from 0.
std::size_t offset_of(std::string_view text, std::size_t line, std::size_t column);

// Returns whether two documents have equal values: numbers and strings by their text after decoding, objects
// by their members in any order.
bool same_value(json::View a, json::View b);
// The same, but without the entry `name` below `container` in either of them. In a list it is the element
// with that member `name`. A container without other entries equals an absent one.
bool same_except_entry(json::View a, json::View b, std::span<const std::string> container, bool is_list,
                       std::string_view name);
// Returns the entry, or an absent view.
json::View entry_at(json::View document, std::span<const std::string> container, bool is_list,
                    std::string_view name);

// Returns the object of the new entry: its members that say how to connect, those of the old one that do not,
// and the variables of both.
json::Raw merged_entry(const Client& client, json::View old_entry, json::View new_entry);

// The editors. `value` is the complete new entry. The text is valid in its format, checked by the caller.
Result<std::string> put_json(std::string_view text, const Path& container, std::string_view name,
                             json::View value);
Result<std::string> remove_json(std::string_view text, const Path& container, std::string_view name);
Result<std::string> put_toml(std::string_view text, const Path& container, bool is_list,
                             std::string_view name, json::View value);
Result<std::string> remove_toml(std::string_view text, const Path& container, bool is_list,
                                std::string_view name);
Result<std::string> put_yaml(std::string_view text, const Path& container, bool is_list,
                             std::string_view name, json::View value);
Result<std::string> remove_yaml(std::string_view text, const Path& container, bool is_list,
                                std::string_view name);

// Writes a value as JSON for people: objects over several lines, arrays of scalars in one.
std::string pretty_json(json::View value, std::string_view indentation, std::string_view unit,
                        std::string_view line_end);

}  // namespace fairlead::clients::edit
