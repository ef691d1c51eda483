// Error codes (R1.4), and the conversion of errors to responses (R5.4).
#include "fairlead/rpc/codes.hpp"

#include <gtest/gtest.h>

#include "fairlead/rpc/message.hpp"

namespace fairlead::rpc {
namespace {

TEST(CodesTest, CodesMatchSpecification) {  // R1.4
  EXPECT_EQ(kParseError, -32700);
  EXPECT_EQ(kInvalidRequest, -32600);
  EXPECT_EQ(kMethodNotFound, -32601);
  EXPECT_EQ(kInvalidParams, -32602);
  EXPECT_EQ(kInternalError, -32603);
  EXPECT_EQ(kProgramNotFound, -32001);
  EXPECT_EQ(kGitNotFound, -32002);
  EXPECT_EQ(kObjectNotFound, -32003);
}

TEST(CodesTest, ApplicationCodesAreInReservedRange) {  // R1.4
  for (const std::int64_t code :
       {kServerError, kProgramNotFound, kGitNotFound, kObjectNotFound, kServerBusy, kRequestCancelled}) {
    EXPECT_LE(code, -32000);
    EXPECT_GE(code, -32099);
  }
}

TEST(CodesTest, HandlerErrorKeepsCodeAndMessage) {
  const WireError wire = to_wire(Error::rpc(kObjectNotFound, "no such row", "{\"id\":7}"));
  EXPECT_EQ(wire.code, kObjectNotFound);
  EXPECT_EQ(wire.message, "no such row");
  EXPECT_EQ(wire.data, "{\"id\":7}");
  EXPECT_EQ(to_wire(method_not_found("x")).code, kMethodNotFound);
  EXPECT_EQ(to_wire(method_not_found("x")).message, "Method not found: x");
  EXPECT_EQ(to_wire(invalid_params("a is missing")).code, kInvalidParams);
  EXPECT_EQ(to_wire(invalid_params("a is missing")).message, "a is missing");
  EXPECT_EQ(to_wire(invalid_request("no")).code, kInvalidRequest);
  EXPECT_EQ(to_wire(Error(ErrorKind::validation, "b is missing")).code, kInvalidParams);
}

TEST(CodesTest, InternalErrorsDoNotLeakDetails) {  // R5.4
  for (const ErrorKind kind :
       {ErrorKind::spawn, ErrorKind::stdio_unavailable, ErrorKind::io, ErrorKind::serialize, ErrorKind::parse,
        ErrorKind::id_mismatch, ErrorKind::timeout, ErrorKind::cancelled, ErrorKind::process_exited,
        ErrorKind::closed, ErrorKind::frame_too_large, ErrorKind::resource_exhausted,
        ErrorKind::connection_failed, ErrorKind::http_status, ErrorKind::authorization}) {
    const WireError wire = to_wire(Error(kind, "secret"));
    EXPECT_EQ(wire.code, kInternalError) << to_string(kind);
    EXPECT_EQ(wire.message, "Internal error");
    EXPECT_EQ(wire.data, "");
  }
}

TEST(CodesTest, MalformedFrameYieldsParseErrorOrInvalidRequest) {  // R2.6
  const WireError parse = to_wire(Message::parse(Bytes::constant("{")).problem());
  EXPECT_EQ(parse.code, kParseError);
  EXPECT_TRUE(parse.message.starts_with("Parse error: ")) << parse.message;
  const WireError invalid = to_wire(Message::parse(Bytes::constant("{}")).problem());
  EXPECT_EQ(invalid.code, kInvalidRequest);
  EXPECT_TRUE(invalid.message.starts_with("Invalid Request: ")) << invalid.message;
  const WireError large =
      to_wire(Message::malformed(Error(ErrorKind::frame_too_large, "too large")).problem());
  EXPECT_EQ(large.code, kInvalidRequest);
  EXPECT_EQ(large.message, "Invalid Request: too large");
}

}  // namespace
}  // namespace fairlead::rpc
