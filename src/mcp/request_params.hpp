// RequestParams: the params of a request of a client, and those of their members that the client looks at,
// found in one walk. Private to the layer.
#pragma once

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
  // Reads all of `params` at once. For what the client has written itself and is small.
  explicit RequestParams(json::Raw params);
  // The same in slices, between which the loop serves others.
  static Task<RequestParams> read(Loop& loop, json::Raw params);

  const json::Raw& raw() const noexcept { return raw_; }
  json::View view() const noexcept { return json::View(raw_); }
  // Absent if there is no such member.
  json::View name() const noexcept { return name_; }
  json::View task() const noexcept { return task_; }
  json::View cursor() const noexcept { return cursor_; }
  json::View meta() const noexcept { return meta_; }

  // With a `task` in them, which they have not. Nothing is read again.
  RequestParams with_task(std::string_view task) const;

 private:
  void take(std::string_view key, bool escaped, std::string_view value);

  json::Raw raw_;
  json::View name_;
  json::View task_;
  json::View cursor_;
  json::View meta_;
};

}  // namespace fairlead::mcp
