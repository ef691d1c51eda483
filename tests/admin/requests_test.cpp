// Parts of requests to the admin API: queries, paths, bodies, cursors and conditions.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "admin/conditional.hpp"
#include "admin/page.hpp"
#include "admin/problem.hpp"
#include "admin/query.hpp"
#include "admin/request_body.hpp"
#include "admin/route.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::admin {
namespace {

std::string code_of(const Error& error) {
  return error.detail().failure_code;
}

TEST(QueryTest, DecodesPercentAndPlus) {
  const Result<Query> query = Query::parse("a=1&name=x%2Fy+z&empty=&flag");
  ASSERT_TRUE(query) << query.error().to_string();
  EXPECT_EQ(*query->find("a"), "1");
  EXPECT_EQ(*query->find("name"), "x/y z");
  EXPECT_EQ(*query->find("empty"), "");
  EXPECT_EQ(*query->find("flag"), "");
  EXPECT_EQ(query->find("missing"), nullptr);
}

TEST(QueryTest, MalformedParametersAreRejected) {
  for (const std::string& text :
       {std::string("a=%zz"), std::string("a=%"), std::string("a=%ff"), std::string("a=%00"),
        std::string("a=1&a=2"), "a=" + std::string(9000, 'x')}) {
    const Result<Query> query = Query::parse(text);
    ASSERT_FALSE(query) << text.substr(0, 40);
    EXPECT_EQ(code_of(query.error()), codes::kInvalidParameter);
  }
}

TEST(PageTest, LimitMustBeInRange) {
  for (const char* text : {"limit=0", "limit=501", "limit=-1", "limit=x", "limit=1x", "limit="}) {
    const Result<PageRequest> request = PageRequest::parse(*Query::parse(text), "servers");
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(code_of(request.error()), codes::kInvalidParameter);
  }
  EXPECT_EQ(PageRequest::parse(*Query::parse("limit=500"), "servers")->limit, 500u);
  EXPECT_EQ(PageRequest::parse(Query(), "servers")->limit, kDefaultPageItems);
}

TEST(PageTest, CursorContinuesAfterTheLastItemOfItsOwnList) {
  PageRequest first;
  first.limit = 1;
  PageWriter writer(first, "servers");
  ASSERT_TRUE(writer.has_room());
  writer.add("id-1", json::Raw::null());
  EXPECT_FALSE(writer.has_room());
  const json::Raw page = writer.finish(true);
  const std::string cursor = *json::View(page)["nextCursor"].as_string();
  const Result<PageRequest> next = PageRequest::parse(*Query::parse("cursor=" + cursor), "servers");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->after, "id-1");
  const Result<PageRequest> other = PageRequest::parse(*Query::parse("cursor=" + cursor), "users");
  ASSERT_FALSE(other);
  EXPECT_EQ(code_of(other.error()), codes::kInvalidCursor);
  EXPECT_FALSE(PageRequest::parse(*Query::parse("cursor=!!"), "servers"));
}

TEST(ConditionalTest, IfMatchNamesTheCurrentVersion) {
  EXPECT_EQ(*required_version(http::Headers(), 3), std::nullopt);
  for (const char* field : {"\"3\"", "\"2\", \"3\"", "*"})
    EXPECT_EQ(*required_version(http::Headers{{"If-Match", field}}, 3), 3) << field;
  // The row in the database may have a version that is not in memory yet.
  EXPECT_EQ(*required_version(http::Headers{{"If-Match", "\"4\""}}, 3), 4);
  for (const char* field : {"\"1\", \"2\"", "W/\"3\"", "\"abc\""}) {
    const auto version = required_version(http::Headers{{"If-Match", field}}, 3);
    ASSERT_FALSE(version) << field;
    EXPECT_EQ(status_of(version.error()), 412) << field;
  }
  for (const char* field : {"3", "\"3", ""}) {
    const auto version = required_version(http::Headers{{"If-Match", field}}, 3);
    ASSERT_FALSE(version) << field;
    EXPECT_EQ(status_of(version.error()), 400) << field;
  }
}

TEST(ConditionalTest, IfNoneMatchComparesWeakly) {
  for (const char* field : {"\"3\"", "W/\"3\"", "\"1\", \"3\"", "*"})
    EXPECT_TRUE(is_not_modified(http::Headers{{"If-None-Match", field}}, "\"3\"")) << field;
  for (const char* field : {"\"4\"", "3", ""})
    EXPECT_FALSE(is_not_modified(http::Headers{{"If-None-Match", field}}, "\"3\"")) << field;
  EXPECT_FALSE(is_not_modified(http::Headers(), "\"3\""));
}

http::Request request_with(std::string_view type, std::string_view body) {
  http::Request request;
  if (!type.empty()) request.headers.add("Content-Type", type);
  request.body = Bytes::copy_of(body);
  return request;
}

TEST(RequestBodyTest, AcceptsJsonObjects) {
  EXPECT_TRUE(read_body(request_with("application/json", R"({"a":1})"), Body::json, 100));
  EXPECT_TRUE(read_body(request_with("Application/JSON; charset=utf-8", "{}"), Body::json, 100));
  EXPECT_TRUE(read_body(request_with("application/merge-patch+json", "{}"), Body::merge_patch, 100));
  EXPECT_TRUE(read_body(request_with("", ""), Body::none, 100));
  EXPECT_TRUE(read_body(request_with("application/json", "{}"), Body::none, 100));
}

struct BadBody {
  std::string type, body;
  Body expected;
  int status;
};

TEST(RequestBodyTest, OtherBodiesAreRejectedWithTheirStatus) {
  const std::string json = "application/json";
  const std::vector<BadBody> bodies = {{json, std::string(101, ' '), Body::json, 413},
                                       {"", "{}", Body::json, 415},
                                       {"text/plain", "{}", Body::json, 415},
                                       {"application/merge-patch+json", "{}", Body::json, 415},
                                       {json, "{", Body::json, 400},
                                       {json, "", Body::json, 400},
                                       {json, "{\"a\":\"\xff\"}", Body::json, 400},
                                       {json, std::string(90, '['), Body::json, 400},
                                       {json, "[]", Body::json, 422},
                                       {json, "null", Body::merge_patch, 422},
                                       {json, R"({"a":1})", Body::none, 422}};
  for (const BadBody& bad : bodies) {
    const Result<json::Raw> body = read_body(request_with(bad.type, bad.body), bad.expected, 100);
    ASSERT_FALSE(body) << bad.type << " " << bad.body;
    EXPECT_EQ(status_of(body.error()), bad.status) << bad.type << " " << bad.body;
  }
}

TEST(RequestBodyTest, MemberWithMalformedTextIsNamedByPointer) {
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"{\"name\":\"\xff\"}", "/name"},
      {"{\"name\":\"x\",\"config\":{\"url\":\"y\",\"a/b\":{\"c\":[1,\"\xc3\x28\"]}}}", "/config/a~1b/c"},
      {"{\"name\":\"x\",\"config\":{\"\xff\":1}}", "/config"},
      {"{\"\xff\":1}", ""},
      {"{\"name\":\"x", "/name"},
      {"", ""}};
  for (const auto& [body, pointer] : bodies) {
    const Result<json::Raw> read = read_body(request_with("application/json", body), Body::json, 100);
    ASSERT_FALSE(read) << body;
    const http::Response response = problem_response(read.error(), "/users", "r1");
    EXPECT_EQ(response.status, 400) << body;
    const json::View document(response.body.front().view());
    EXPECT_EQ(document["errors"][0]["pointer"].as_string(), pointer) << body;
  }
}

TEST(RequestBodyTest, UnknownAndRepeatedMembersAreNamedByPointer) {
  const Result<void> unknown = check_members(json::View(R"({"valeu":1})"), {"value"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().detail().pointer, "/valeu");
  EXPECT_NE(unknown.error().message().find("did you mean \"value\""), std::string::npos);
  const Result<void> escaped = check_members(json::View(R"({"a~/b":1})"), {"value"});
  ASSERT_FALSE(escaped);
  EXPECT_EQ(escaped.error().detail().pointer, "/a~0~1b");
  EXPECT_FALSE(check_members(json::View(R"({"value":1,"value":2})"), {"value"}));
}

Task<Result<Reply>> never_called(Call&) {
  co_return Reply(500);
}

RouteTable table_of(std::initializer_list<std::pair<std::string_view, std::string_view>> routes) {
  std::vector<Route> all;
  for (const auto& [method, path] : routes) {
    Route& route = all.emplace_back();
    route.method = method;
    route.path = path;
    route.handler = never_called;
  }
  return RouteTable(std::move(all));
}

class RouteTableTest : public testing::Test {
 protected:
  RouteTable table_ = table_of({{"GET", "/mcp/servers"},
                                {"POST", "/mcp/servers"},
                                {"GET", "/mcp/servers/{id}"},
                                {"POST", "/mcp/servers/{id}/test"},
                                {"GET", "/config/{key}"},
                                {"GET", "/secrets/{id}"},
                                {"DELETE", "/secrets/{id}"},
                                {"GET", "/secrets/status"}});
};

TEST_F(RouteTableTest, FindsPathsWithAndWithoutPrefix) {
  for (const char* path : {"/mcp/servers/a%20b", "/api/v1/mcp/servers/a%20b", "/mcp/servers/a%20b/"}) {
    const RouteTable::Match match = table_.find("GET", path);
    ASSERT_NE(match.route, nullptr) << path;
    EXPECT_EQ(match.route->path, "/mcp/servers/{id}");
    EXPECT_EQ(match.values, std::vector<std::string>{"a b"});
  }
  EXPECT_EQ(table_.find("HEAD", "/mcp/servers").route->method, "GET");
  EXPECT_EQ(table_.find("GET", "/config/mcp.max_stdio_processes").values.front(), "mcp.max_stdio_processes");
}

TEST_F(RouteTableTest, UnknownPathsHaveNoMethods) {
  for (const char* path :
       {"/", "", "/mcp", "/mcp/servers/a/b", "/mcp/servers//test", "/api/v1", "/api/v2/mcp/servers"})
    EXPECT_TRUE(table_.find("GET", path).allowed.empty()) << path;
}

TEST_F(RouteTableTest, OtherMethodsReportTheAllowedOnes) {
  const RouteTable::Match match = table_.find("PUT", "/mcp/servers");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.allowed, (std::vector<std::string_view>{"GET", "POST", "HEAD", "OPTIONS"}));
}

TEST_F(RouteTableTest, PathWithoutParametersTakesPrecedence) {
  const RouteTable::Match match = table_.find("GET", "/secrets/status");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->path, "/secrets/status");
  EXPECT_EQ(match.allowed, (std::vector<std::string_view>{"GET", "HEAD", "OPTIONS"}));
  EXPECT_EQ(table_.find("DELETE", "/secrets/status").route, nullptr);
  EXPECT_NE(table_.find("DELETE", "/secrets/other").route, nullptr);
}

TEST_F(RouteTableTest, MalformedSegmentsAreReported) {
  for (const char* path : {"/mcp/servers/%zz", "/mcp/servers/%ff", "/mcp/servers/a%00"})
    EXPECT_TRUE(table_.find("GET", path).malformed) << path;
}

TEST_F(RouteTableTest, RootsLeaveThePathOfMcpItself) {
  EXPECT_EQ(table_.roots(), (std::vector<std::string>{"/config", "/mcp/servers", "/secrets"}));
}

TEST(ProblemTest, EveryCodeIsDocumentedWithItsStatus) {
  std::ifstream file(std::string(FAIRLEAD_SOURCE_DIR) + "/docs/errors.md");
  const std::string document((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const ProblemCode& code : problem_codes()) {
    const std::string row = "| `" + std::string(code.code) + "` | " + std::to_string(code.status) + " | ";
    EXPECT_NE(document.find(row + std::string(code.remedy)), std::string::npos) << row;
    EXPECT_FALSE(code.title.empty()) << code.code;
    EXPECT_FALSE(code.remedy.empty()) << code.code;
  }
}

TEST(ProblemTest, ResponseHasTheMembersOfRfc9457) {
  const http::Response response =
      problem_response(problem(codes::kInvalidRow, "name is empty", "/name"), "/mcp/servers", "r1");
  EXPECT_EQ(response.status, 422);
  EXPECT_EQ(response.headers.get("Content-Type"), "application/problem+json");
  const json::View body(response.body.front().view());
  EXPECT_EQ(body["code"].as_string(), "invalid_row");
  EXPECT_EQ(body["status"].as_int(), 422);
  EXPECT_EQ(body["instance"].as_string(), "/mcp/servers");
  EXPECT_EQ(body["requestId"].as_string(), "r1");
  EXPECT_EQ(body["errors"][0]["pointer"].as_string(), "/name");
}

TEST(ProblemTest, BusyDatabaseIsUnavailableForAWhile) {
  const Error error =
      Error(ErrorKind::timeout, "another process has locked the database").with([](ErrorDetail& detail) {
        detail.failure_code = "database_busy";
      });
  const http::Response response = problem_response(error, "/users", "r1");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.get("Retry-After"), "1");
  EXPECT_EQ(json::View(response.body.front().view())["code"].as_string(), "database_busy");
}

TEST(ProblemTest, InternalErrorsRevealNoDetail) {
  const http::Response response =
      problem_response(Error(ErrorKind::io, "cannot open /secret/path"), "/users", "r1");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(std::string(response.body.front().view()).find("secret"), std::string::npos);
}

TEST(ProblemTest, DatabaseErrorsHaveRetryAfter) {
  const Error error = Error(ErrorKind::io, "no connection").with([](ErrorDetail& detail) {
    detail.failure_code = "database_unavailable";
    detail.retry_after = std::chrono::milliseconds(2500);
  });
  const http::Response response = problem_response(error, "/users", "r1");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.get("Retry-After"), "3");
}

TEST(ProblemTest, DatabaseErrorsForUsersDoNotNameTheDatabase) {
  for (const char* const code : {"database_unavailable", "database_full", "commit_outcome_unknown"}) {
    const Error error = Error(ErrorKind::io, "connection to db.example").with([&](ErrorDetail& detail) {
      detail.failure_code = code;
      detail.retry_after = std::chrono::milliseconds(2500);
    });
    const Error shown = without_database_details(error);
    EXPECT_EQ(shown.to_string().find("db.example"), std::string::npos) << code;
    EXPECT_EQ(status_of(shown), status_of(error)) << code;
    EXPECT_EQ(problem_response(shown, "/users", "r1").headers.get("Retry-After"), "3") << code;
  }
  EXPECT_EQ(without_database_details(Error(ErrorKind::validation, "name is empty")).message(),
            "name is empty");
}

}  // namespace
}  // namespace fairlead::admin
