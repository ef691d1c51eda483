// The skills extension: how a server offers skills, and what a client rejects.
#include "mcp/skills.hpp"

#include <filesystem>
#include <fstream>

#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

const char* const kMain =
    "---\nname: pdf-processing\ndescription: Extract, fill, and assemble PDF documents\nmetadata:\n  "
    "version: 1.0\n---\n\nBody.\n";
const std::string kMainUri = "skill://pdf-processing/SKILL.md";
const std::string kFormsUri = "skill://pdf-processing/references/FORMS.md";

Skill pdf_skill() {
  Skill skill;
  skill.files.push_back({"SKILL.md", kMain});
  skill.files.push_back({"references/FORMS.md", "Forms.\n"});
  skill.files.push_back({"references/deep/x y.bin", std::string("\xff\0", 2)});
  return skill;
}
Skill named(const std::string& name, const std::string& path = "") {
  Skill skill;
  skill.path = path;
  skill.files.push_back({"SKILL.md", "---\nname: " + name + "\ndescription: d\n---\n"});
  return skill;
}

TEST(DigestTest, DigestIsLowercaseSha256) {
  EXPECT_EQ(sha256_digest("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// ---- the server -----------------------------------------------------------------------------------------

class SkillsTest : public ServerTest {
 public:
  void serve_pdf() {
    ASSERT_TRUE(server.add_skill(pdf_skill()));
    start();
  }
};

TEST_F(SkillsTest, CapabilityIsDeclaredWhileSkillsExist) {
  start();
  EXPECT_EQ(modern("server/discover").find("skills"), std::string::npos);
  EXPECT_EQ(modern("skills/list"), error(-32601, R"("message":"Method not found: skills/list")"));
  ASSERT_TRUE(server.add_skill(pdf_skill()));
  const std::string discovered = modern("server/discover");
  EXPECT_NE(discovered.find(R"("extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}})"),
            std::string::npos)
      << discovered;
  EXPECT_NE(discovered.find(R"("resources":{)"), std::string::npos);
  EXPECT_EQ(initialize("2025-11-25").find("skills"), std::string::npos);
  EXPECT_EQ(legacy("skills/list"), error(-32601, R"("message":"Method not found: skills/list")"));
  EXPECT_TRUE(server.remove_skill(kMainUri));
  EXPECT_FALSE(server.remove_skill(kMainUri));
  EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","method":"notifications/resources/list_changed"})");
  EXPECT_EQ(modern("skills/list"), error(-32601, R"("message":"Method not found: skills/list")"));
  EXPECT_EQ(modern("resources/read", R"("uri":")" + kFormsUri + "\"").find("result"), std::string::npos);
}

TEST_F(SkillsTest, SkillIsListedWithDigestOfEveryFile) {
  serve_pdf();
  const std::string entry =
      R"({"uri":"skill://pdf-processing/SKILL.md","frontmatter":{"name":"pdf-processing","description":"Extract, fill, and assemble PDF documents","metadata":{"version":1.0}},"resources":[)"
      R"({"uri":"skill://pdf-processing/SKILL.md","digest":")" +
      sha256_digest(kMain) + R"(","size":)" + std::to_string(std::string(kMain).size()) +
      R"(},{"uri":"skill://pdf-processing/references/FORMS.md","digest":")" + sha256_digest("Forms.\n") +
      R"(","size":7},{"uri":"skill://pdf-processing/references/deep/x%20y.bin","digest":")" +
      sha256_digest(std::string("\xff\0", 2)) + R"(","size":2}]})";
  const std::string rest = R"(,"ttlMs":0,"cacheScope":"private",)" + kServerMeta + "}";
  EXPECT_EQ(modern("skills/list"), result(R"({"resultType":"complete","skills":[)" + entry + "]" + rest));
  EXPECT_EQ(modern("skills/get", R"("uri":")" + kMainUri + "\""),
            result(R"({"resultType":"complete","skill":)" + entry + rest));
  EXPECT_EQ(modern("skills/get", R"("uri":")" + kFormsUri + "\""),
            error(-32602, R"("message":"Skill not found: )" + kFormsUri + R"(","data":{"uri":")" + kFormsUri +
                              "\"}"));
}

TEST_F(SkillsTest, FilesAreResourcesButOnlySkillMdIsListed) {
  serve_pdf();
  EXPECT_NE(
      modern("resources/list")
          .find(
              R"("resources":[{"uri":"skill://pdf-processing/SKILL.md","name":"pdf-processing","description":"Extract, fill, and assemble PDF documents","mimeType":"text/markdown","size":)" +
              std::to_string(std::string(kMain).size()) + "}]"),
      std::string::npos);
  EXPECT_NE(
      modern("resources/read", R"("uri":")" + kMainUri + "\"")
          .find(
              R"("contents":[{"uri":"skill://pdf-processing/SKILL.md","mimeType":"text/markdown","text":"---\nname)"),
      std::string::npos);
  EXPECT_NE(modern("resources/read", R"("uri":")" + kFormsUri + "\"").find(R"("text":"Forms.\n")"),
            std::string::npos);
  EXPECT_NE(
      modern("resources/read", R"("uri":"skill://pdf-processing/references/deep/x%20y.bin")")
          .find(
              R"("contents":[{"uri":"skill://pdf-processing/references/deep/x%20y.bin","mimeType":"application/octet-stream","blob":"/wA="}])"),
      std::string::npos);
  initialize("2025-06-18");  // files are resources in every revision
  EXPECT_NE(legacy("resources/read", R"({"uri":")" + kFormsUri + "\"}").find("Forms."), std::string::npos);
}

TEST_F(SkillsTest, DirectoryReadReturnsOneLevel) {
  serve_pdf();
  ASSERT_TRUE(server.add_skill(named("b", "acme/tools/b")));
  const auto read = [&](const std::string& uri) {
    const std::string got = modern("resources/directory/read", R"("uri":")" + uri + "\"");
    const std::size_t at = got.find(R"("resources":)");
    return at == std::string::npos ? got
                                   : got.substr(at, got.find(R"(,"ttlMs":0,"cacheScope":"private")") - at);
  };
  for (const char* slash : {"", "/"}) {
    EXPECT_EQ(
        read("skill://pdf-processing" + std::string(slash)),
        R"("resources":[{"uri":"skill://pdf-processing/SKILL.md","name":"SKILL.md","mimeType":"text/markdown","size":)" +
            std::to_string(std::string(kMain).size()) +
            R"(},{"uri":"skill://pdf-processing/references","name":"references","mimeType":"inode/directory"}])");
  }
  EXPECT_EQ(
      read("skill://pdf-processing/references"),
      R"("resources":[{"uri":"skill://pdf-processing/references/FORMS.md","name":"FORMS.md","mimeType":"text/markdown","size":7},)"
      R"({"uri":"skill://pdf-processing/references/deep","name":"deep","mimeType":"inode/directory"}])");
  EXPECT_EQ(
      read("skill://"),
      R"("resources":[{"uri":"skill://acme","name":"acme","mimeType":"inode/directory"},{"uri":"skill://pdf-processing","name":"pdf-processing","mimeType":"inode/directory"}])");
  EXPECT_EQ(read("skill://acme"),
            R"("resources":[{"uri":"skill://acme/tools","name":"tools","mimeType":"inode/directory"}])");
  for (const std::string& none : {kMainUri, kFormsUri, std::string("skill://nope"), std::string("skill:/"),
                                  std::string("skill://pdf"), std::string("skill://pdf-processing//"),
                                  std::string(), std::string("skill://pdf-processing/../pdf-processing")}) {
    EXPECT_EQ(read(none), error(-32602, R"("message":"Not a directory: )" + none + R"(","data":{"uri":")" +
                                            none + "\"}"));
  }
}

TEST_F(SkillsTest, ListsArePaginated) {
  server.page_size(1);
  serve_pdf();
  ASSERT_TRUE(server.add_skill(named("b")));
  const auto cursor_in = [](const std::string& page) {
    const std::size_t at = page.find(R"("nextCursor":")");
    return at == std::string::npos ? "" : page.substr(at + 14, page.find('"', at + 14) - at - 14);
  };
  const std::string first = modern("skills/list");
  EXPECT_EQ(first.find("skill://b/"), std::string::npos);
  const std::string second = modern("skills/list", R"("cursor":")" + cursor_in(first) + "\"");
  EXPECT_NE(second.find("skill://b/SKILL.md"), std::string::npos) << second;
  EXPECT_EQ(cursor_in(second), "");
  const std::string directory = R"("uri":"skill://pdf-processing")";
  const std::string files = modern("resources/directory/read", directory);
  EXPECT_EQ(files.find("inode/directory"), std::string::npos);
  EXPECT_NE(modern("resources/directory/read", directory + R"(,"cursor":")" + cursor_in(files) + "\"")
                .find("inode/directory"),
            std::string::npos);
}

TEST_F(SkillsTest, WrongTypesAreRejected) {
  serve_pdf();
  for (const std::string value : {"7", "true", "null", "[]", "{}"}) {
    EXPECT_EQ(modern("skills/list", R"("cursor":)" + value),
              error(-32602, R"("message":"the cursor is not valid")"));
    EXPECT_EQ(modern("skills/get", R"("uri":)" + value), error(-32602, R"("message":"uri is not a string")"));
    EXPECT_EQ(modern("resources/directory/read", R"("uri":)" + value),
              error(-32602, R"("message":"uri is not a string")"));
    EXPECT_EQ(modern("resources/directory/read", R"("uri":"skill://pdf-processing","cursor":)" + value),
              error(-32602, R"("message":"the cursor is not valid")"));
  }
  EXPECT_EQ(modern("skills/get"), error(-32602, R"("message":"uri is not a string")"));
  EXPECT_NE(modern("skills/list", R"("unknown":1)").find(R"("skills":[)"), std::string::npos);
}

TEST_F(SkillsTest, EntryOfDynamicSkillListsNoFiles) {
  Skill skill = pdf_skill();
  skill.dynamic = true;
  ASSERT_TRUE(server.add_skill(skill));
  start();
  EXPECT_NE(modern("skills/list").find(R"("resources":"dynamic"})"), std::string::npos);
  EXPECT_NE(modern("resources/read", R"("uri":")" + kFormsUri + "\"").find("Forms."), std::string::npos);
}

TEST_F(SkillsTest, DirectoryReadFailsWhenServerDoesNotDeclareIt) {
  server.extension(std::string(kSkillsExtension));
  start();
  EXPECT_NE(modern("server/discover").find(R"("io.modelcontextprotocol/skills":{})"), std::string::npos);
  EXPECT_NE(modern("server/discover").find(R"("resources":{)"), std::string::npos);
  EXPECT_NE(modern("skills/list").find(R"("skills":[])"), std::string::npos);
  ASSERT_TRUE(server.add_skill(pdf_skill()));
  EXPECT_EQ(modern("resources/directory/read", R"("uri":"skill://pdf-processing")"),
            error(-32601, R"("message":"Method not found: resources/directory/read")"));
}

// ---- invalid skills -------------------------------------------------------------------------------------

TEST_F(SkillsTest, InvalidSkillIsRejected) {
  const auto registration_error = [&](Skill skill) {
    const Result<void> added = server.add_skill(std::move(skill));
    return added ? std::string() : added.error().message();
  };
  Skill none;
  EXPECT_NE(registration_error(none).find("it has no SKILL.md"), std::string::npos);
  for (const char* name : {"A", "a_b", "-a", "a-", "a--b", "\"\"", "7", "é", "a.b"})
    EXPECT_NE(registration_error(named(name)).find("its name is not"), std::string::npos) << name;
  EXPECT_NE(registration_error(named(std::string(65, 'a'))).find("its name is not"), std::string::npos);
  EXPECT_EQ(registration_error(named(std::string(64, 'a'))), "");
  Skill silent;
  silent.files.push_back({"SKILL.md", "---\nname: a\n---\n"});
  EXPECT_NE(registration_error(silent).find("it has no description"), std::string::npos);
  silent.files[0].content = "---\nname: a\ndescription: *x\n---\n";
  EXPECT_NE(registration_error(silent).find("front matter: line 3"), std::string::npos);
  for (const char* path : {"other", "a/", "/a", "../a", "x//a", "./a"})
    EXPECT_NE(registration_error(named("a", path)).find("its path does not end with its name"),
              std::string::npos)
        << path;
  for (const char* path : {"../x", "/x", "x/", "", "a/../b", ".", "SKILL.md"}) {
    Skill skill = named("a");
    skill.files.push_back({path, ""});
    EXPECT_NE(registration_error(skill), "") << path;
  }
  Skill many = named("many");
  for (int i = 0; i < 512; ++i) many.files.push_back({std::to_string(i), ""});
  EXPECT_NE(registration_error(many).find("more than 512 files"), std::string::npos);
  many.files.pop_back();
  EXPECT_EQ(registration_error(many), "");
  Skill big = named("big");
  big.files.push_back({"x", std::string(16u << 20, 'x')});
  EXPECT_NE(registration_error(big).find("more than 16777216 bytes"), std::string::npos);
  EXPECT_EQ(registration_error(pdf_skill()), "");
  EXPECT_NE(registration_error(pdf_skill()).find("already"), std::string::npos);
}

TEST_F(SkillsTest, ReadSkipsHiddenFilesAndRejectsLinks) {
  const test::TempDir dir;
  std::filesystem::create_directories(dir / "pdf-processing/references");
  std::filesystem::create_directories(dir / "pdf-processing/.git");
  const auto put = [&](const std::string& path, const std::string& text) {
    std::ofstream(dir / path) << text;
  };
  put("pdf-processing/SKILL.md", kMain);
  put("pdf-processing/references/FORMS.md", "Forms.\n");
  put("pdf-processing/.git/config", "secret");
  put("pdf-processing/.hidden", "secret");
  const Result<Skill> skill = Skill::read(dir / "pdf-processing");
  ASSERT_TRUE(skill) << skill.error().to_string();
  ASSERT_EQ(skill->files.size(), 2u);
  EXPECT_EQ(skill->files[1].path, "references/FORMS.md");
  EXPECT_EQ(skill->files[1].content, "Forms.\n");
  EXPECT_TRUE(server.add_skill(*skill));
  std::filesystem::create_symlink("/etc/hostname", dir / "pdf-processing/link");
  const Result<Skill> linked = Skill::read(dir / "pdf-processing");
  ASSERT_FALSE(linked);
  EXPECT_NE(linked.error().message().find("neither a file nor a directory"), std::string::npos);
  EXPECT_EQ(Skill::read(dir / "nothing").error().kind(), ErrorKind::io);
}

// ---- the client -----------------------------------------------------------------------------------------

class SkillsClientTest : public ServerTest {
 public:
  void connect() {
    start();
    const Result<std::shared_ptr<Client>> made = loop.block_on(Client::connect_over(test_end));
    ASSERT_TRUE(made) << made.error().to_string();
    client = *made;
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
    ServerTest::TearDown();
  }
  Result<SkillFile> read(const SkillEntry& skill, const std::string& uri) {
    return loop.block_on(client->read_skill_file(skill, uri));
  }
  std::uint64_t requests() const { return peer->stats().requests; }
  std::shared_ptr<Client> client;
};

TEST_F(SkillsClientTest, ReadsOnlyRequestedFiles) {
  ASSERT_TRUE(server.add_skill(pdf_skill()));
  connect();
  const std::uint64_t before = requests();
  const auto skills = loop.block_on(client->skills());
  ASSERT_TRUE(skills) << skills.error().to_string();
  ASSERT_EQ(skills->size(), 1u);
  const SkillEntry& skill = skills->front();
  EXPECT_EQ(skill.name(), "pdf-processing");
  EXPECT_EQ(skill.directory(), "skill://pdf-processing/");
  EXPECT_EQ(skill.files().size(), 3u);
  EXPECT_EQ(requests(), before + 1);  // no prefetch
  const Result<SkillFile> main = read(skill, kMainUri);
  ASSERT_TRUE(main) << main.error().to_string();
  EXPECT_EQ(main->content, kMain);
  const Result<SkillFile> forms = read(skill, kFormsUri);
  ASSERT_TRUE(forms) << forms.error().to_string();
  EXPECT_EQ(forms->path, "references/FORMS.md");
  EXPECT_EQ(forms->mime_type, "text/markdown");
  EXPECT_EQ(requests(), before + 3);
  const Result<SkillFile> blob = read(skill, "skill://pdf-processing/references/deep/x%20y.bin");
  ASSERT_TRUE(blob) << blob.error().to_string();
  EXPECT_EQ(blob->content, std::string("\xff\0", 2));
  const Result<SkillEntry> got = loop.block_on(client->skill(kMainUri));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->raw().text(), skill.raw().text());
  EXPECT_FALSE(loop.block_on(client->skill("skill://nope/SKILL.md")));
  const auto children = loop.block_on(client->read_directory("skill://pdf-processing"));
  ASSERT_TRUE(children) << children.error().to_string();
  EXPECT_EQ(children->size(), 2u);
}

TEST_F(SkillsClientTest, SkillMdIsVerifiedBeforeOtherFiles) {
  ASSERT_TRUE(server.add_skill(pdf_skill()));
  connect();
  const SkillEntry skill = *loop.block_on(client->skill(kMainUri));
  const std::uint64_t before = requests();
  ASSERT_TRUE(read(skill, kFormsUri));
  EXPECT_EQ(requests(), before + 2);
  ASSERT_TRUE(read(skill, kFormsUri));
  EXPECT_EQ(requests(), before + 3);
}

TEST_F(SkillsClientTest, ReadDirectoryReadsAllPages) {
  server.page_size(1);
  ASSERT_TRUE(server.add_skill(pdf_skill()));
  connect();
  EXPECT_EQ(loop.block_on(client->read_directory("skill://pdf-processing"))->size(), 2u);
}

// An entry that does not match the files of its skill.
struct FalseEntry {
  const char* expected_error;
  std::string entry;
};

TEST_F(SkillsClientTest, SkillMdThatDiffersFromEntryIsRejectedAndBlocksOtherFiles) {
  ASSERT_TRUE(server.add_skill(pdf_skill()));
  connect();
  const std::string honest(loop.block_on(client->skill(kMainUri))->raw().text());
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string text = honest;
    return text.replace(text.find(old), old.size(), now);
  };
  const std::string size = "\"size\":" + std::to_string(std::string(kMain).size());
  const FalseEntry kFalseEntries[] = {
      {"its digest", with(sha256_digest(kMain), sha256_digest("other"))},
      {"bytes", with(size, "\"size\":1")},
      {"its front matter", with("Extract", "Delete")},
      {"its front matter", with(R"("version":1.0)", R"("version":1.0,"more":1)")},
      {"its front matter", with(R"(,"metadata":{"version":1.0})", "")}};
  for (const FalseEntry& false_entry : kFalseEntries) {
    const Result<SkillEntry> skill = SkillEntry::parse(test::raw(false_entry.entry));
    ASSERT_TRUE(skill) << skill.error().to_string();
    const std::uint64_t before = requests();
    const Result<SkillFile> main = read(*skill, kMainUri);
    ASSERT_FALSE(main) << false_entry.expected_error;
    EXPECT_EQ(main.error().kind(), ErrorKind::validation);
    EXPECT_NE(main.error().message().find(false_entry.expected_error), std::string::npos)
        << main.error().message();
    const Result<SkillFile> forms = read(*skill, kFormsUri);
    ASSERT_FALSE(forms);
    EXPECT_EQ(forms.error().message(), main.error().message());
    EXPECT_EQ(requests(), before + 2);  // SKILL.md each time, and no other file
  }
  // A mismatch of another file does not affect SKILL.md.
  const SkillEntry other = *SkillEntry::parse(test::raw(with(sha256_digest("Forms.\n"), sha256_digest("x"))));
  EXPECT_TRUE(read(other, kMainUri));
  EXPECT_NE(read(other, kFormsUri).error().message().find("its digest"), std::string::npos);
  // Each entry is verified separately.
  const SkillEntry honest_entry = *SkillEntry::parse(test::raw(honest));
  EXPECT_TRUE(read(honest_entry, kFormsUri));
}

TEST_F(SkillsClientTest, ReadFailsForUriOutsideOfSkill) {
  ASSERT_TRUE(server.add_skill(pdf_skill()));
  Skill moving = named("moving");
  moving.dynamic = true;
  moving.files.push_back({"x.md", "x"});
  ASSERT_TRUE(server.add_skill(moving));
  connect();
  const SkillEntry skill = *loop.block_on(client->skill(kMainUri));
  const SkillEntry dynamic = *loop.block_on(client->skill("skill://moving/SKILL.md"));
  EXPECT_TRUE(dynamic.dynamic());
  const std::uint64_t before = requests();
  for (const char* uri :
       {"skill://moving/SKILL.md", "skill://pdf-processing/unlisted", "file:///etc/passwd", ""}) {
    const Result<SkillFile> got = read(skill, uri);
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().message().find("is not a file of skill"), std::string::npos);
  }
  for (const char* uri :
       {"skill://moving/../pdf-processing/SKILL.md", "skill://moving", "skill://movingx/SKILL.md"})
    EXPECT_FALSE(read(dynamic, uri)) << uri;
  EXPECT_EQ(requests(), before);
  EXPECT_TRUE(read(dynamic, "skill://moving/x.md"));
}

TEST_F(SkillsClientTest, InvalidEntriesAreRejected) {
  const std::string digest = sha256_digest("");
  const auto entry = [&](const std::string& uri, const std::string& name, const std::string& resources) {
    return R"({"uri":")" + uri + R"(","frontmatter":{"name":")" + name +
           R"(","description":"d"},"resources":)" + resources + "}";
  };
  const auto file = [&](const std::string& uri) {
    return R"({"uri":")" + uri + R"(","digest":")" + digest + R"(","size":0})";
  };
  const std::string main = file("skill://a/SKILL.md");
  EXPECT_TRUE(SkillEntry::parse(test::raw(entry("skill://a/SKILL.md", "a", "[" + main + "]"))));
  EXPECT_TRUE(SkillEntry::parse(test::raw(entry("https://x/a/SKILL.md", "a", "\"dynamic\""))));
  const std::string kBad[] = {
      "{}",
      "[]",
      "7",
      entry("skill://b/SKILL.md", "a", "\"dynamic\""),
      entry("skill://a/x.md", "a", "\"dynamic\""),
      entry("skill://A/SKILL.md", "A", "\"dynamic\""),
      entry("skill://a/SKILL.md", "a", "\"what\""),
      entry("skill://a/SKILL.md", "a", "null"),
      entry("skill://a/SKILL.md", "a", "[]"),
      entry("skill://a/SKILL.md", "a", "[" + main + "," + main + "]"),
      entry("skill://a/SKILL.md", "a", "[" + main + "," + file("skill://b/x") + "]"),
      entry("skill://a/SKILL.md", "a", "[" + main + "," + file("skill://a/../b/x") + "]"),
      entry("skill://a/SKILL.md", "a", R"([{"uri":"skill://a/SKILL.md","digest":"md5:0","size":0}])"),
      entry("skill://a/SKILL.md", "a",
            R"([{"uri":"skill://a/SKILL.md","digest":")" + digest + R"(","size":-1}])"),
      entry("skill://a/SKILL.md", "a", R"([{"uri":"skill://a/SKILL.md","digest":")" + digest + R"("}])"),
      entry("skill://a/SKILL.md", "a",
            R"([{"uri":"skill://a/SKILL.md","digest":")" + digest + R"(","size":16777217}])"),
      entry("skill://a/SKILL.md", "a",
            R"([{"uri":"skill://a/SKILL.md","digest":")" + digest + R"(","size":9223372036854775807}])")};
  for (const std::string& bad : kBad) EXPECT_FALSE(SkillEntry::parse(test::raw(bad))) << bad;
}

TEST_F(SkillsClientTest, ListingSkillsFailsWhenServerHasNone) {
  connect();
  const auto skills = loop.block_on(client->skills());
  ASSERT_FALSE(skills);
  EXPECT_EQ(skills.error().detail().rpc_code, -32601);
}

}  // namespace
}  // namespace fairlead::mcp
