// Endpoint: requests whose handling fails with an exception.
#include "transport/endpoint_harness.hpp"

namespace fairlead::transport {
namespace {

using EndpointFailuresTest = EndpointTest;

TEST_F(EndpointFailuresTest, IdMayBeUsedAgainAfterMemoryForRequestWasShort) {
  initialize("2025-11-25");
  application->out_of_memory = true;
  EXPECT_EQ(call("1", "echo")->status, 500);
  application->out_of_memory = false;
  EXPECT_EQ(call("1", "echo")->status, 200);
}

}  // namespace
}  // namespace fairlead::transport
