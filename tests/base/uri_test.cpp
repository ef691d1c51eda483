#include "base/uri.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fairlead {
namespace {

TEST(UriReferenceTest, ResolvesReferencesAsInRfc3986) {
  struct Case {
    std::string_view base, reference, resolved;
  };
  const std::string_view base = "http://a/b/c/d;p?q";
  for (const auto& [from, reference, resolved] : std::vector<Case>{
           {base, "g:h", "g:h"},
           {base, "g", "http://a/b/c/g"},
           {base, "./g", "http://a/b/c/g"},
           {base, "g/", "http://a/b/c/g/"},
           {base, "/g", "http://a/g"},
           {base, "//g", "http://g"},
           {base, "?y", "http://a/b/c/d;p?y"},
           {base, "#s", "http://a/b/c/d;p?q#s"},
           {base, "", "http://a/b/c/d;p?q"},
           {base, ".", "http://a/b/c/"},
           {base, "..", "http://a/b/"},
           {base, "../g", "http://a/b/g"},
           {base, "../../../g", "http://a/g"},
           {base, "g?y/./x", "http://a/b/c/g?y/./x"},
           {"http://a", "b", "http://a/b"},
           {"urn:x:y", "#z", "urn:x:y#z"},
           {"", "a.json", "a.json"},
           {"", "./a.json#b", "a.json#b"},
           {"", "../a/./b/../c", "a/c"},
           {"dir/x", "y", "dir/y"},
           {"file:///c:/x/y", "z", "file:///c:/x/z"},
       })
    EXPECT_EQ(resolve_uri(from, reference), resolved) << from << " " << reference;
}

TEST(UriReferenceTest, FragmentsAreSplitOffAndDecoded) {
  EXPECT_EQ(percent_decode_lenient("/a%25b%22%zz%4"), "/a%b\"%zz%4");
  EXPECT_EQ(split_fragment("a#b#c").fragment, "b#c");
  EXPECT_FALSE(split_fragment("a").has_fragment);
}

TEST(UriSyntaxTest, SplitPartsConcatenateToOriginal) {
  const UriParts parts = split_uri("http://u@h:1/p/q?r=/s#t?");
  EXPECT_EQ(parts.scheme, "http:");
  EXPECT_EQ(parts.authority, "//u@h:1");
  EXPECT_EQ(parts.path, "/p/q");
  EXPECT_EQ(parts.query, "?r=/s");
  EXPECT_EQ(parts.fragment, "#t?");
}

TEST(UriSyntaxTest, HostAndPortAreParsedWithAndWithoutBrackets) {
  EXPECT_EQ(split_host_and_port("example")->host, "example");
  EXPECT_FALSE(split_host_and_port("example")->port);
  EXPECT_FALSE(split_host_and_port("example:")->port);
  EXPECT_EQ(split_host_and_port("example:0")->port, 0);
  EXPECT_EQ(split_host_and_port("[::1]:80")->host, "::1");
  EXPECT_EQ(split_host_and_port("[::1]:80")->port, 80);
  EXPECT_EQ(split_host_and_port("[fe80::1%eth0]:80")->host, "fe80::1%eth0");
  EXPECT_EQ(join_host_and_port("::1", 80), "[::1]:80");
}

TEST(UriSyntaxTest, MalformedHostOrPortFailsWithReason) {
  for (const auto& [text, why] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"", "host is missing"},
           {":80", "host is missing"},
           {"[]:80", "host is missing"},
           {"[::1", "not closed"},
           {"[[]:80", "brackets must enclose an IPv6 address"},
           {"[localhost]:80", "brackets must enclose an IPv6 address"},
           {"[::1%]:80", "brackets must enclose an IPv6 address"},
           {"local[host]:80", "brackets must enclose an IPv6 address"},
           {std::string_view("[::1\0]:80", 9), "brackets must enclose an IPv6 address"},
           {"[::1]x", "between host and port"},
           {"::1:80", "needs brackets"},
           {"h:x", "not a number"},
           {"h:65536", "not a number"},
           {"h:-1", "not a number"},
           {"h:+1", "not a number"},
       }) {
    const Result<HostAndPort> parts = split_host_and_port(text);
    ASSERT_FALSE(parts) << text;
    EXPECT_NE(parts.error().message().find(why), std::string::npos) << parts.error().message();
  }
}

TEST(UriSyntaxTest, StrictDecodingRejectsMalformedEscapes) {
  EXPECT_EQ(percent_decode_strict("a%20b%2f"), "a b/");
  for (const char* const bad : {"%", "%2", "%zz", "a%2", "%-1", "% 1"})
    EXPECT_EQ(percent_decode_strict(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace fairlead
