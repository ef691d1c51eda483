// RequestParams: the params of a request that a client sends, and views of the members that the client itself
// reads. All these members are found in one pass. Private to the layer.
#pragma once

#include <string_view>

#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/loop/task.hpp"

namespace fairlead {
class Loop;
}

namespace fairlead::mcp {

class RequestParams {
 public:
  RequestParams() = default;  // absent
  // Reads all of `params` at once. For small params that the client itself has written.
  explicit RequestParams(json::Raw params);
  // Reads `params` in slices, between which the loop serves others.
  static Task<RequestParams> read(Loop& loop, json::Raw params);
  // Returns the params of a call of the tool `name`. `arguments` is an object or absent.
  static RequestParams of_tool_call(std::string_view name, const json::Raw& arguments);

  const json::Raw& raw() const noexcept { return raw_; }
  json::View view() const noexcept { return json::View(raw_); }
  // Each returns the member of the same name; absent if there is none.
  json::View name() const noexcept { return name_; }
  json::View task() const noexcept { return task_; }
  json::View cursor() const noexcept { return cursor_; }
  json::View meta() const noexcept { return meta_; }

  // Returns the params with a member `task` appended, without reading them again. REQUIRES: task() is absent.
  RequestParams with_task(std::string_view task) const;

 private:
  void store_member(std::string_view key, bool escaped, std::string_view value);

  json::Raw raw_;
  json::View name_;
  json::View task_;
  json::View cursor_;
  json::View meta_;
};

}  // namespace fairlead::mcp
