#include "admin/docs_page.hpp"
#include "admin/handlers.hpp"
#include "admin/services.hpp"

namespace fairlead::admin {

Task<Result<Reply>> get_openapi(Call& call) {
  co_return Reply(200, call.services().openapi);
}

Task<Result<Reply>> get_docs(Call& call) {
  call.exchange()->respond(docs_page(call.services().openapi));
  Reply reply;
  reply.sent = true;
  co_return reply;
}

}  // namespace fairlead::admin
