#include "gateway/front_table.hpp"

#include "fairlead/mcp/serve.hpp"

namespace fairlead::gateway {

FrontTable::FrontTable(const mcp::Server& front) : default_application_(mcp::http_application(front)) {}

Result<void> FrontTable::put(registry::Endpoint) {
  return {};
}

void FrontTable::remove(std::string_view) {}

Result<std::shared_ptr<transport::Application>> FrontTable::find(std::string_view path, const Principal&) {
  if (path.empty()) return default_application_;
  return Error(ErrorKind::validation, "unknown endpoint");
}

bool FrontTable::allows(const transport::Application&, const Principal&) const {
  return true;
}

void FrontTable::on_access_reduced(std::function<void()>) {}

}  // namespace fairlead::gateway
