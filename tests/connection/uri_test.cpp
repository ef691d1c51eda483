// R3.3: addresses.
#include "fairlead/connection/uri.hpp"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using Argv = std::vector<std::string>;

TEST(UriTest, StdioArgumentsAreSeparatedBySpacesAndEncodedSpacesAreNot) {
  EXPECT_EQ(Uri::parse("stdio:python3 server.py --x")->argv, (Argv{"python3", "server.py", "--x"}));
  EXPECT_EQ(Uri::parse("stdio:python3%20my%20server.py")->argv, (Argv{"python3 my server.py"}));
  EXPECT_EQ(Uri::parse("stdio:  a \t b  ")->argv, (Argv{"a", "b"}));
  EXPECT_EQ(Uri::parse("stdio:a %25")->argv, (Argv{"a", "%"}));
}

TEST(UriTest, StdioWithoutCommandIsTheStdioOfThisProcess) {
  EXPECT_EQ(Uri::parse("stdio:")->scheme, Uri::Scheme::stdio);
  EXPECT_TRUE(Uri::parse("stdio:")->argv.empty());
}

TEST(UriTest, StdioCommandIsNotParsedByAShell) {
  EXPECT_EQ(Uri::parse("stdio:a 'b c' $X;d")->argv, (Argv{"a", "'b", "c'", "$X;d"}));
}

TEST(UriTest, TcpAddressHasHostAndPort) {
  EXPECT_EQ(Uri::parse("tcp:localhost:80")->host, "localhost");
  EXPECT_EQ(Uri::parse("tcp:localhost:80")->port, 80);
  EXPECT_EQ(Uri::parse("tcp:[::1]:65535")->host, "::1");
  for (const char* bad :
       {"tcp:", "tcp:host", "tcp::1", "tcp:h:", "tcp:h:x", "tcp:h:-1", "tcp:h:65536", "tcp:::1:80"}) {
    EXPECT_FALSE(Uri::parse(bad)) << bad;
  }
}

TEST(UriTest, UnixPathMayBePercentEncoded) {
  EXPECT_EQ(Uri::parse("unix:/run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(Uri::parse("unix:/run/a%20b")->path, "/run/a b");
  EXPECT_FALSE(Uri::parse("unix:"));
}

TEST(UriTest, HttpAndWebSocketSchemesAreRecognised) {
  EXPECT_EQ(Uri::parse("https://example.com/mcp")->scheme, Uri::Scheme::https);
  EXPECT_EQ(Uri::parse("ws://localhost:1/x")->scheme, Uri::Scheme::ws);
  EXPECT_FALSE(Uri::parse("http:example.com"));
}

TEST(UriTest, InvalidAddressFailsWithValidation) {
  for (const char* bad : {"", "server.py", "ftp://x", "stdio", "stdio:a%2", "stdio:a%zz", "stdio:a%00b"}) {
    const Result<Uri> parsed = Uri::parse(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::validation);
    EXPECT_NE(parsed.error().message().find("is not an address: "), std::string::npos)
        << parsed.error().message();
  }
}

TEST(UriTest, EncodedWordDecodesToTheOriginal) {
  const std::string odd = "a b%\t\n%20c";
  EXPECT_EQ(Uri::parse("stdio:" + percent_encode_word(odd))->argv, Argv{odd});
}

}  // namespace
}  // namespace fairlead
