#include "http/url.hpp"

#include <gtest/gtest.h>

#include "http/client_proxy.hpp"

namespace fairlead::http {
namespace {

Url url(std::string_view text) {
  return Url::parse(text).value();
}

TEST(UrlTest, ParsesAllParts) {
  const Url parsed = url("HTTPS://Example.COM:8443/a/b?c=d#e");
  EXPECT_EQ(parsed.scheme, "https");
  EXPECT_EQ(parsed.host, "example.com");
  EXPECT_EQ(parsed.port, 8443);
  EXPECT_EQ(parsed.target, "/a/b?c=d");
  EXPECT_EQ(parsed.text(), "https://example.com:8443/a/b?c=d");
  EXPECT_EQ(parsed.redacted(), "https://example.com:8443/a/b?…");
}

// Conformance trap 27: the URL of a server may have no path.
TEST(UrlTest, MissingPathIsRoot) {
  EXPECT_EQ(url("http://localhost:4000").target, "/");
  EXPECT_EQ(url("http://localhost?x=1").target, "/?x=1");
}

TEST(UrlTest, DefaultPortIsOmitted) {
  EXPECT_EQ(url("http://a/").host_header(), "a");
  EXPECT_EQ(url("https://a:443/").host_header(), "a");
  EXPECT_EQ(url("http://a:443/").host_header(), "a:443");
  EXPECT_EQ(url("http://[::1]:80/").host_header(), "[::1]");
  EXPECT_EQ(url("http://[::1]/").host_and_port(), "[::1]:80");
}

TEST(UrlTest, InvalidUrlIsRejected) {
  for (const char* const text : {"http:/a", "ftp://a/", "http://", "http:///x", "http://a:0/",
                                 "http://a:99999/", "http://a:b/", "http://::1/", "http://[::1/",
                                 "http://[::1]x/", "http://a/ b", "http://a/\r\nX: y", "http://\xc3\xa4/"}) {
    EXPECT_FALSE(Url::parse(text)) << text;
  }
}

TEST(UrlTest, ReferencesAreResolved) {
  const Url base = url("http://a:1/x/y?q");
  EXPECT_EQ(base.resolve("/messages?sessionId=1")->text(), "http://a:1/messages?sessionId=1");
  EXPECT_EQ(base.resolve("z")->text(), "http://a:1/x/z");
  EXPECT_FALSE(base.resolve("https://b/c")->same_origin(base));
  EXPECT_FALSE(base.resolve("//b/c")->same_origin(base));
  EXPECT_TRUE(base.resolve("http://a:1/c")->same_origin(base));
}

Proxies proxies(std::map<std::string, std::string> environment) {
  return Proxies::from_variables([&](const char* name) { return environment[name]; }).value();
}

std::string proxy_of(const Proxies& all, std::string_view text) {
  const Url* const proxy = all.for_url(url(text));
  return proxy ? proxy->origin() : "none";
}

TEST(ProxiesTest, EachSchemeHasItsProxyAndLowerCaseVariableWins) {
  const Proxies all =
      proxies({{"HTTP_PROXY", "http://one:1"}, {"https_proxy", "two:2"}, {"HTTPS_PROXY", "three:3"}});
  EXPECT_EQ(proxy_of(all, "http://server.test/"), "http://one:1");
  EXPECT_EQ(proxy_of(all, "https://server.test/"), "http://two:2");
  EXPECT_EQ(proxy_of(proxies({{"ALL_PROXY", "http://all:9"}}), "https://server.test/"), "http://all:9");
}

TEST(ProxiesTest, LoopbackAddressesNeverUseProxy) {
  const Proxies all = proxies({{"HTTP_PROXY", "http://one:1"}});
  for (const char* const text :
       {"http://localhost:8080/", "http://127.0.0.1/", "http://127.1.2.3/", "http://[::1]/"})
    EXPECT_EQ(proxy_of(all, text), "none") << text;
}

TEST(ProxiesTest, NoProxyMatchesNamesNetworksAndPorts) {
  const Proxies all = proxies({{"HTTP_PROXY", "http://one:1"},
                               {"NO_PROXY",
                                "example.test, .below.test,10.0.0.0/8 ported.test:8080,2001:db8::/32,"
                                "2001:db7::1,[2001:db7::2],[2001:db7::3]:8080,*.star.test"}});
  for (const char* const text :
       {"http://example.test/", "http://a.example.test/", "http://x.below.test/", "http://10.2.3.4/",
        "http://ported.test:8080/", "http://[2001:db8::1]/", "http://[2001:db7::1]/",
        "http://[2001:db7::2]:99/", "http://[2001:db7::3]:8080/", "http://a.star.test/"})
    EXPECT_EQ(proxy_of(all, text), "none") << text;
  for (const char* const text :
       {"http://notexample.test/", "http://below.test/", "http://11.2.3.4/", "http://ported.test/",
        "http://[2001:db9::1]/", "http://[2001:db7::3]/", "http://star.test/"})
    EXPECT_EQ(proxy_of(all, text), "http://one:1") << text;
  EXPECT_EQ(proxy_of(proxies({{"HTTP_PROXY", "http://one:1"}, {"NO_PROXY", "*"}}), "http://a.test/"), "none");
}

TEST(ProxiesTest, InvalidProxyUrlIsRejected) {
  EXPECT_FALSE(Proxies::from_variables([](const char*) { return std::string("socks5://a:1"); }));
}

}  // namespace
}  // namespace fairlead::http
