#include <gtest/gtest.h>

#include <chrono>

#include "base/rfc3339.hpp"
#include "fairlead/pool/server_spec_json.hpp"
#include "registry/canonical.hpp"
#include "registry/codes.hpp"
#include "registry/json.hpp"

namespace fairlead::registry {
namespace {

constexpr const char* kSeedStdio =
    R"({"name":"files","description":"Files","domain":"storage","transport":"stdio","config":{"transport":"stdio",
        "command":"npx","args":["-y","server-filesystem","/srv"],"env":{"MODE":"ro"},"cwd":"/srv"},
        "visibility":"visible","enabled":true})";
constexpr const char* kSeedHttp =
    R"({"name":"search","description":"Search","domain":"web","transport":"http",
        "config":{"transport":"http","url":"https://search.example/mcp","headers":{"Authorization":"Bearer x"}}})";

// Returns "POINTER: message" of the error of a body.
std::string server_problem(const std::string& body) {
  const Result<Server> row = new_server(json::View(body));
  if (row) return "no error";
  EXPECT_EQ(row.error().kind(), ErrorKind::validation);
  EXPECT_EQ(row.error().detail().failure_code, kInvalidRow);
  return row.error().detail().pointer + ": " + row.error().message();
}

// Returns a body with a program and the members `members`.
std::string body_with(const std::string& members) {
  return R"({"name":"a","config":{"command":"c"})" + (members.empty() ? "" : "," + members) + "}";
}

// Returns a body whose config has the members `members`.
std::string config_with(const std::string& members) {
  return R"({"name":"a","config":{)" + members + "}}";
}

Server full_server() {
  Server row;
  row.id = "0198a5c0-0000-7000-8000-000000000001";
  row.name = row.spec.name = "files";
  row.title = "Files \"here\"";
  row.description = "First line\nsecond";
  row.domain = "storage";
  row.tags = {"a", "ü"};
  row.visibility = Visibility::user;
  row.owner = "0198a5c0-0000-7000-8000-000000000002";
  row.enabled = row.spec.enabled = false;
  row.tools.allow = {"read_*"};
  row.tools.deny = {"write_*", "*"};
  row.tools.hide = {"x"};
  row.tools.rename = {{"read_file", "read"}};
  row.drift = DriftPolicy::quarantine;
  row.metadata = json::Raw::parse(R"({"from":"v1","n":[1e3,1.50,null]})").value();
  row.published = json::Raw::parse(R"({"name":"io.example/files","version":"1.2.3","packages":[]})").value();
  row.created_at = Time(std::chrono::milliseconds(1'785'232'800'123));
  row.updated_at = row.created_at + std::chrono::milliseconds(1);
  row.version = 7;
  pool::Program program;
  program.command = "mcp-files";
  program.args = {"-v", "", "a b"};
  program.env = {{"TOKEN", "${secret:T}"}, {"EMPTY", ""}};
  program.inherit_env.emplace();
  program.cwd = "/srv";
  program.stderr_mode = StderrMode::discard;
  program.containment.memory_max = 1U << 20;
  program.containment.limits.open_files = 20;
  program.containment.landlock = Requirement::required;
  program.containment.files.read = {"/srv"};
  row.spec.transport = program;
  row.spec.sharing = pool::Sharing::per_session;
  row.spec.max_calls = 3;
  row.spec.keep_running = true;
  row.spec.pinned_revision = mcp::revision_named("2025-06-18");
  row.spec.clocks.idle = std::chrono::milliseconds(1'234);
  row.spec.restart.factor = 1.7;
  return row;
}

TEST(ServerJsonTest, EveryMemberSurvivesWritingAndReading) {
  const Server row = full_server();
  const json::Raw text = to_json(row);
  const Result<Server> read = parse_server(json::View(text));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read).text(), text.text());
  EXPECT_EQ(read->spec, row.spec);
  EXPECT_EQ(read->tools, row.tools);
  EXPECT_EQ(read->id, row.id);
  EXPECT_EQ(read->tags, row.tags);
  EXPECT_EQ(read->description, row.description);
  EXPECT_EQ(read->owner, row.owner);
  EXPECT_EQ(read->visibility, row.visibility);
  EXPECT_EQ(read->drift, row.drift);
  EXPECT_EQ(read->metadata.text(), row.metadata.text());
  EXPECT_EQ(read->published.text(), row.published.text());
  EXPECT_EQ(read->created_at, row.created_at);
  EXPECT_EQ(read->updated_at, row.updated_at);
  EXPECT_EQ(read->version, row.version);
  EXPECT_FALSE(read->enabled);
}

TEST(ServerJsonTest, BodiesOfTheSeedAreAccepted) {
  const Result<Server> files = new_server(json::View(std::string_view(kSeedStdio)));
  ASSERT_TRUE(files) << files.error().to_string();
  EXPECT_EQ(files->transport(), "stdio");
  EXPECT_EQ(std::get<pool::Program>(files->spec.transport).args.size(), 3U);
  EXPECT_EQ(files->spec.name, "files");
  const Result<Server> search = new_server(json::View(std::string_view(kSeedHttp)));
  ASSERT_TRUE(search) << search.error().to_string();
  EXPECT_EQ(search->transport(), "http");
  EXPECT_EQ(search->visibility, Visibility::visible);
  EXPECT_TRUE(search->enabled);
  EXPECT_EQ(std::get<pool::Address>(search->spec.transport).headers.at("Authorization"), "Bearer x");
}

TEST(ServerJsonTest, DefaultsApplyToMembersThatTheBodyLacks) {
  ServerDefaults defaults;
  defaults.visibility = Visibility::user;
  defaults.owner = "u1";
  defaults.drift = DriftPolicy::accept;
  const Result<Server> row = new_server(json::View(std::string_view(kSeedHttp)), defaults);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->visibility, Visibility::user);
  EXPECT_EQ(row->owner, "u1");
  EXPECT_EQ(row->drift, DriftPolicy::accept);
  EXPECT_EQ(new_server(json::View(std::string_view(kSeedStdio)), defaults)->visibility, Visibility::visible);
}

TEST(ServerJsonTest, ErrorHasThePointerOfTheMember) {
  EXPECT_EQ(server_problem("[]"), ": the document is not a JSON object");
  EXPECT_EQ(server_problem(R"({"config":{"command":"c"}})"), "/name: `name` is missing");
  EXPECT_EQ(server_problem(R"({"name":"a"})"), "/config: `config` is missing");
  EXPECT_EQ(server_problem(R"({"name":7,"config":{"command":"c"}})"), "/name: `name` is not a string");
  EXPECT_EQ(server_problem(body_with(R"("titel":"x")")),
            "/titel: unknown key `titel` (did you mean `title`?)");
  EXPECT_EQ(server_problem(body_with(R"("enabled":"yes")")), "/enabled: `enabled` is neither true nor false");
  EXPECT_EQ(server_problem(body_with(R"("visibility":"all")")),
            "/visibility: `visibility` is none of hidden, visible, user");
  EXPECT_EQ(server_problem(body_with(R"("tags":["a",5])")), "/tags/1: `tags` is not a list of strings");
  EXPECT_EQ(server_problem(body_with(R"("tools":{"allow":["a",""]})")),
            "/tools/allow/1: `tools.allow.1` is empty");
  EXPECT_EQ(server_problem(body_with(R"("tools":{"rename":{"a":"x","b":"x"}})")),
            "/tools/rename/b: `tools.rename.b` has the same value as `a`");
  EXPECT_EQ(server_problem(body_with(R"("metadata":[])")), "/metadata: `metadata` is not an object");
  EXPECT_EQ(server_problem(body_with(R"("id":"x")")), "/id: `id` is set by the registry");
  EXPECT_EQ(server_problem(body_with(R"("version":1)")), "/version: `version` is set by the registry");
}

TEST(ServerJsonTest, ErrorInTheConfigHasItsPointer) {
  EXPECT_EQ(server_problem(config_with(R"("command":"c","args":["a",1])")),
            "/config/args/1: `config.args` is not a list of strings");
  EXPECT_EQ(server_problem(config_with(R"("comand":"c")")),
            "/config/comand: unknown key `comand` in [config] (did you mean `command`?)");
  EXPECT_EQ(server_problem(config_with("")), "/config: `config` needs a `command` or a `url`");
  EXPECT_EQ(server_problem(config_with(R"("command":"c","env":{"a/b~c":[]})")),
            "/config/env/a~1b~0c: `config.env.a/b~c` is not a string");
  EXPECT_EQ(server_problem(config_with(R"("command":"c","env":{"A=B":"x"})")),
            "/config/env/A=B: `config.env.A=B` is not the name of a variable");
  EXPECT_EQ(server_problem(config_with(R"("command":"c","max_calls":1e300)")),
            "/config/max_calls: `config.max_calls` is not a whole number of 0 or more");
  EXPECT_EQ(server_problem(config_with(R"("command":"c","clocks":{"idle":"soon"})")),
            "/config/clocks/idle: `config.clocks.idle` is not a duration such as 250ms, 30s, 10m or 1h");
  EXPECT_TRUE(
      server_problem(config_with(R"("command":"c","enabled":true)")).starts_with("/config/enabled: "));
  EXPECT_TRUE(server_problem(config_with(R"("connector":"c")")).starts_with("/config/connector: "));
  EXPECT_TRUE(server_problem(config_with(R"("url":"tcp:1.2.3.4:5")")).starts_with("/config/url: "));
  EXPECT_TRUE(server_problem(config_with(R"("url":"unix:/run/x")")).starts_with("/config/url: "));
  EXPECT_TRUE(server_problem(config_with(R"("url":"stdio:rm -rf /")")).starts_with("/config/url: "));
  EXPECT_TRUE(server_problem(config_with(R"("url":"https://e.example","headers":{"a b":"x"})"))
                  .starts_with("/config/headers/a b: "));
  EXPECT_TRUE(server_problem(config_with(R"("url":"https://e.example","headers":{"a":"x\r\nb: y"})"))
                  .starts_with("/config/headers/a: "));
}

TEST(ServerJsonTest, DisabledServerNeedsACompleteConfigToo) {
  EXPECT_EQ(server_problem(R"({"name":"a","enabled":false,"config":{}})"),
            "/config: `config` needs a `command` or a `url`");
  EXPECT_TRUE(
      server_problem(R"({"name":"a","enabled":false,"config":{"command":"c","url":"http://e.example"}})")
          .starts_with("/config: "));
}

TEST(ServerJsonTest, TransportMustFitTheConfig) {
  EXPECT_TRUE(server_problem(body_with(R"("transport":"http")")).starts_with("/transport: "));
  EXPECT_TRUE(server_problem(body_with(R"("transport":"sse")")).starts_with("/transport: "));
  EXPECT_TRUE(
      server_problem(config_with(R"("transport":"http","command":"c")")).starts_with("/config/transport: "));
  EXPECT_EQ(server_problem(config_with(R"("transport":"stdio","command":"c")")), "no error");
}

TEST(ServerJsonTest, NamesFollowTheRulesOfPublicNames) {
  for (const char* name :
       {"", "servers", "e", "a b", "a__b", "_a", "ü", "a/b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    EXPECT_TRUE(server_problem(R"({"name":")" + std::string(name) + R"(","config":{"command":"c"}})")
                    .starts_with("/name: "))
        << name;
  EXPECT_EQ(server_problem(R"({"name":"E","config":{"command":"c"}})"), "no error");
}

TEST(ServerJsonTest, LimitsAreNamedInTheError) {
  const std::string title(201, 'x');
  EXPECT_EQ(server_problem(body_with(R"("title":")" + title + "\"")),
            "/title: `title` has more than max_title_characters (200) characters");
  std::string wide;
  for (int i = 0; i < 200; ++i) wide += "ü";
  EXPECT_EQ(server_problem(body_with(R"("title":")" + wide + "\"")), "no error");
  const std::string description(10'001, 'x');
  EXPECT_TRUE(server_problem(body_with(R"("description":")" + description + "\""))
                  .contains("max_description_characters"));
  std::string tags;
  for (int i = 0; i < 65; ++i) tags += (i ? ",\"t" : "\"t") + std::to_string(i) + "\"";
  EXPECT_TRUE(server_problem(body_with(R"("tags":[)" + tags + "]")).contains("max_tags (64)"));
  std::string patterns;
  for (int i = 0; i < 1'001; ++i) patterns += (i ? ",\"t" : "\"t") + std::to_string(i) + "\"";
  EXPECT_TRUE(
      server_problem(body_with(R"("tools":{"deny":[)" + patterns + "]}")).contains("max_patterns (1000)"));
  EXPECT_TRUE(server_problem(body_with(R"("metadata":{"x":")" + std::string(1U << 20, 'x') + "\"}"))
                  .contains("max_row_bytes (1048576)"));
  std::string deep = "1";
  for (int i = 0; i < 100; ++i) deep = "[" + deep + "]";
  EXPECT_TRUE(server_problem(body_with(R"("metadata":{"x":)" + deep + "}")).contains("max_row_depth (64)"));
  EXPECT_TRUE(server_problem(R"({"name":")" + std::string(1U << 19, 'x') + R"(","config":{"command":"c"}})")
                  .starts_with("/name: "));
}

TEST(ServerJsonTest, PointerNamesTheLargestMemberOfALargeBody) {
  const std::string large(1U << 20, 'x');
  EXPECT_TRUE(
      server_problem(R"({"name":")" + large + R"(","config":{"command":"c"}})").starts_with("/name: "));
  EXPECT_TRUE(server_problem(body_with(R"("drift":")" + large + "\"")).starts_with("/drift: "));
}

TEST(ServerJsonTest, ValuesOfMapsMustBeTexts) {
  EXPECT_EQ(server_problem(config_with(R"("command":"c","env":{"A":1})")),
            "/config/env/A: `config.env.A` is not a string");
  EXPECT_EQ(server_problem(config_with(R"("url":"https://e.example","headers":{"A":true})")),
            "/config/headers/A: `config.headers.A` is not a string");
  EXPECT_EQ(server_problem(body_with(R"("tools":{"rename":{"a":null}})")),
            "/tools/rename/a: `tools.rename.a` is not a string");
}

TEST(ServerJsonTest, HalfOfASurrogatePairIsRejected) {
  EXPECT_EQ(server_problem(body_with(R"("title":"\ud83d\ude00 \\ud800")")), "no error");
  for (const char* bad :
       {R"("\ud800")", R"("\uDC00x")", R"("\ud800\ud800")", R"("a\ud83d")", R"("\ud83d\\ude00")"})
    EXPECT_EQ(server_problem(body_with(R"("title":)" + std::string(bad))),
              "/title: the value has half of a surrogate pair")
        << bad;
  EXPECT_TRUE(server_problem(body_with(R"("metadata":{"\udc00":1})")).contains("half of a surrogate pair"));
}

TEST(ServerJsonTest, RepeatedMembersAndNulAreRejectedAtAnyDepth) {
  EXPECT_EQ(server_problem(R"({"name":"a","na\u006de":"b","config":{"command":"c"}})"),
            "/name: the member `name` is repeated");
  EXPECT_EQ(server_problem(body_with(R"("metadata":{"l":[0,{"x":1,"y":2,"x":3}]})")),
            "/metadata/l/1/x: the member `x` is repeated");
  EXPECT_EQ(server_problem(body_with(R"("metadata":{"l":["\u0000"]})")),
            "/metadata/l/0: the value has a NUL character");
  EXPECT_EQ(server_problem(config_with(R"("command":"c","args":["a\u0000b"])")),
            "/config/args/0: the value has a NUL character");
  EXPECT_EQ(server_problem(body_with(R"("metadata":{"x":"\\u0000"})")), "no error");
  EXPECT_TRUE(server_problem(body_with(R"("title":"a\u001bb")")).starts_with("/title: "));
}

TEST(ServerJsonTest, PatchChangesOnlyTheNamedMembers) {
  const Server row = full_server();
  const Result<Server> changed = patched(
      row, json::View(std::string_view(R"({"enabled":true,"title":null,"config":{"env":{"EMPTY":null}}})")));
  ASSERT_TRUE(changed) << changed.error().to_string();
  EXPECT_TRUE(changed->enabled);
  EXPECT_TRUE(changed->spec.enabled);
  EXPECT_EQ(changed->title, "");
  Server expected = row;
  expected.enabled = expected.spec.enabled = true;
  expected.title.clear();
  std::get<pool::Program>(expected.spec.transport).env.erase("EMPTY");
  EXPECT_EQ(to_json(*changed).text(), to_json(expected).text());
}

TEST(ServerJsonTest, PatchOfMembersThatTheRegistrySetsFailsUnlessTheyAreEqual) {
  const Server row = full_server();
  const auto pointer_of = [&](const std::string& patch) {
    const Result<Server> changed = patched(row, json::View(patch));
    return changed ? std::string("no error") : changed.error().detail().pointer;
  };
  EXPECT_EQ(pointer_of(R"({"id":"x"})"), "/id");
  EXPECT_EQ(pointer_of(R"({"id":null})"), "/id");
  EXPECT_EQ(pointer_of(R"({"version":8})"), "/version");
  EXPECT_EQ(pointer_of(R"({"createdAt":"2026-01-01T00:00:00Z"})"), "/createdAt");
  EXPECT_EQ(pointer_of(R"({"updatedAt":"2026-01-01T00:00:00Z"})"), "/updatedAt");
  EXPECT_EQ(pointer_of(std::string(to_json(row).text())), "no error");
  EXPECT_EQ(pointer_of(R"({"name":null})"), "/name");
  EXPECT_EQ(pointer_of(R"({"a":1,"a":2})"), "/a");
  EXPECT_EQ(pointer_of("[]"), "");
}

TEST(ServerJsonTest, PatchOfTheTransportNeedsNoMemberOfTheConfig) {
  const Server row = new_server(json::View(std::string_view(kSeedHttp))).value();
  const Result<Server> changed =
      patched(row, json::View(std::string_view(
                       R"({"transport":"stdio","config":{"url":null,"headers":null,"command":"c"}})")));
  ASSERT_TRUE(changed) << changed.error().to_string();
  EXPECT_EQ(changed->transport(), "stdio");
}

TEST(ServerJsonTest, RedactedFormHasNoLiteralValues) {
  Server row = full_server();
  std::get<pool::Program>(row.spec.transport).args = {"--token=hunter2"};
  std::get<pool::Program>(row.spec.transport).env = {{"TOKEN", "hunter2"}};
  row.metadata = json::Raw::parse(R"({"original":"hunter2"})").value();
  EXPECT_TRUE(to_json(row).text().contains("hunter2"));
  const json::Raw redacted = to_json(row, Redaction::secrets);
  EXPECT_FALSE(redacted.text().contains("hunter2")) << redacted.text();
  EXPECT_TRUE(redacted.text().contains(R"("TOKEN":"***")"));
  pool::Address address;
  address.url = "https://user:hunter2@search.example/hooks/hunter2/mcp?key=hunter2";
  address.headers = {{"Authorization", "Bearer hunter2"}};
  row.spec.transport = address;
  const json::Raw redacted_address = to_json(row, Redaction::secrets);
  EXPECT_FALSE(redacted_address.text().contains("hunter2")) << redacted_address.text();
  EXPECT_TRUE(redacted_address.text().contains("search.example"));
}

TEST(ServerJsonTest, TenThousandServersAreReadWithinASecond) {
  const json::Raw text = to_json(full_server());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(parse_server(json::View(text)));
  const auto spent = std::chrono::steady_clock::now() - begin;
  RecordProperty("ms",
                 static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()));
  EXPECT_LT(spent, std::chrono::seconds(20));  // without optimization and with sanitizers
}

TEST(MergePatchTest, ExamplesOfTheRfcAreMerged) {
  const std::vector<std::array<std::string, 3>> examples = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const auto& [document, patch, expected] : examples) {
    const Result<json::Raw> merged = merge_patch(json::View(document), json::View(patch));
    ASSERT_TRUE(merged) << patch;
    EXPECT_EQ(merged->text(), expected) << document << " + " << patch;
  }
}

TEST(MergePatchTest, UntouchedMembersKeepTheirBytes) {
  const Result<json::Raw> merged =
      merge_patch(json::View(std::string_view(R"({"n":1.50e+3,"s":"\u00fc","o":{ "a" : [1, 2] },"x":1})")),
                  json::View(std::string_view(R"({"x":2})")));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->text(), R"({"n":1.50e+3,"s":"\u00fc","o":{ "a" : [1, 2] },"x":2})");
}

TEST(MergeDifferenceTest, PatchTurnsOneDocumentIntoTheOther) {
  const std::vector<std::array<std::string, 3>> examples = {
      {R"({"a":"b"})", R"({"a":"b"})", R"({})"},
      {R"({"a":"b"})", R"({"a":"c","d":1})", R"({"a":"c","d":1})"},
      {R"({"a":"b","c":1})", R"({"c":1})", R"({"a":null})"},
      {R"({"o":{"x":1,"y":{"z":1}}})", R"({"o":{"y":{"z":2},"x":1}})", R"({"o":{"y":{"z":2}}})"},
      {R"({"a":[1,2]})", R"({"a":[2]})", R"({"a":[2]})"},
      {R"({"a":1})", R"({"a":{"b":1}})", R"({"a":{"b":1}})"},
      {R"({"a":1.0,"b":"\u0061"})", R"({"b":"a","a":1.0})", R"({})"},
  };
  for (const auto& [before, after, expected] : examples) {
    const json::Raw patch = merge_difference(json::View(before), json::View(after));
    EXPECT_EQ(patch.text(), expected) << before << " -> " << after;
    const Result<json::Raw> merged = merge_patch(json::View(before), json::View(patch));
    ASSERT_TRUE(merged) << before;
    EXPECT_EQ(canonical_json(json::View(*merged)), canonical_json(json::View(after)));
  }
}

}  // namespace
}  // namespace fairlead::registry
