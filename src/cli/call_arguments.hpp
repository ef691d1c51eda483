// CallArguments: the arguments of a tool or a prompt on the command line: one JSON object, `-` to read it
// from stdin, or words `key=value` and `key:=json`.
#pragma once

#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::cli {

class CallArguments {
 public:
  // Fails with `validation` if a word has none of the forms, or is not a JSON object.
  static Result<CallArguments> parse(const std::vector<std::string>& words);

  // Returns whether a value must be converted to the type that the schema of the tool names.
  bool needs_schema() const;
  // Returns the arguments of a tool as an object; absent if there are none. A value of `key=value` becomes a
  // string if `schema` allows one or says nothing; otherwise a number, a boolean, an element of an array (the
  // key may be repeated) or the JSON that it is. Fails with `validation` if the value cannot be converted, or
  // if the key is unknown and similar to a known one.
  Result<json::Raw> for_tool(json::View schema) const;
  // Returns the arguments of a prompt, which are strings. Fails with `validation` for other values.
  Result<json::Raw> for_prompt() const;

 private:
  struct Word {
    std::string key;
    std::string value;
    bool is_json = false;  // key:=json
  };

  static Result<Word> parse_word(const std::string& text);

  json::Raw object_;  // absent unless the arguments are one JSON object
  std::vector<Word> words_;
};

}  // namespace fairlead::cli
