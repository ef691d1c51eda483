#include "packages/published_document.hpp"

#include <gtest/gtest.h>

#include "packages/server_document.hpp"
#include "registry/json.hpp"

namespace fairlead::packages {
namespace {

// The document of a row with this config.
std::string document_for(const std::string& config, const std::string& published = "",
                         const std::string& more = "") {
  const std::string body = R"({"name":"notes","title":"Notes","description":"Keeps notes","config":)" +
                           config + R"(,"published":{"name":"io.example/notes","version":"1.0.0")" +
                           published + "}" + more + "}";
  const Result<json::Raw> raw = json::Raw::parse(body);
  const Result<registry::Server> row = registry::new_server(json::View(*raw));
  return row ? std::string(server_document_of(*row).text())
             : row.error().detail().pointer + ": " + row.error().message();
}

std::string member_for(const std::string& config, std::string_view key) {
  const std::string document = document_for(config);
  return std::string(json::View(document)[key].text());
}

TEST(PublishedDocument, OfAnNpmCommandHasNoValues) {
  EXPECT_EQ(
      document_for(
          R"({"command":"/usr/bin/npx","args":["-y","@acme/notes@2.1.0","--root","/srv/private","--verbose","--key=s3cret","-p","s3cret"],
      "env":{"NOTES_KEY":"s3cret","MODE":"s3cret","TOKEN_FILE":"${secret:TOKEN}","X":"${secret:S}"}})"),
      R"({"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"io.example/notes",)"
      R"("description":"Keeps notes","title":"Notes","version":"1.0.0","packages":[{"registryType":"npm","identifier":"@acme/notes","version":"2.1.0",)"
      R"("runtimeHint":"npx","transport":{"type":"stdio"},"packageArguments":[{"type":"named","name":"--root","isRequired":true},)"
      R"({"type":"named","name":"--verbose"},{"type":"named","name":"--key","isRequired":true},)"
      R"({"type":"positional","valueHint":"argument_1","isRequired":true},{"type":"positional","valueHint":"argument_2","isRequired":true}],)"
      R"("environmentVariables":[{"name":"MODE","isRequired":true},{"name":"NOTES_KEY","isRequired":true,"isSecret":true},)"
      R"({"name":"TOKEN_FILE","isRequired":true,"isSecret":true},{"name":"X","isRequired":true,"isSecret":true}]}]})");
}

TEST(PublishedDocument, CanBeImportedAgain) {
  const Result<ServerDocument> document = read_server_document(document_for(
      R"({"command":"npx","args":["-y","@acme/notes@2.1.0","--root","/srv"],"env":{"NOTES_KEY":"${secret:K}"}})"));
  ASSERT_TRUE(document) << document.error().message();
  EXPECT_EQ(
      json::View(document->candidates.at(0).server.row)["config"].text(),
      R"({"command":"npx","args":["-y","@acme/notes@2.1.0","--root","${input:root}"],"env":{"NOTES_KEY":"${secret:NOTES_KEY}"}})");
}

TEST(PublishedDocument, DerivesPackagesOnlyFromPlainCommands) {
  const auto package = [](const std::string& command, const std::string& args) {
    const std::string packages =
        member_for(R"({"command":")" + command + R"(","args":[)" + args + "]}", "packages");
    const json::View first = json::View(packages)[std::size_t{0}];
    return first["registryType"].as_string().value_or("none") + " " +
           first["identifier"].as_string().value_or("") + " " + first["version"].as_string().value_or("");
  };
  EXPECT_EQ(package("uvx", R"("notes==1.2")"), "pypi notes 1.2");
  EXPECT_EQ(package("uvx", R"("notes@1.2","x")"), "pypi notes 1.2");
  EXPECT_EQ(package("npx", R"("notes")"), "npm notes ");
  EXPECT_EQ(package("docker", R"("run","-i","--rm","-e","KEY","ghcr.io/acme/notes:1")"),
            "oci ghcr.io/acme/notes:1 ");
  EXPECT_EQ(package("docker", R"("run","-i","-e","KEY=s3cret","acme/notes:1")"), "none  ");
  EXPECT_EQ(package("docker", R"("run","-v","/srv:/srv","acme/notes:1")"), "none  ");
  EXPECT_EQ(package("docker", R"("run","acme/notes:latest")"), "none  ");
  EXPECT_EQ(package("npx", R"("-y","notes@latest")"), "none  ");
  EXPECT_EQ(package("npx", R"("-y","https://user:s3cret@e.example/x.tgz")"), "none  ");
  EXPECT_EQ(package("npx", R"("--registry","x","notes")"), "none  ");
  EXPECT_EQ(package("/opt/notes/bin/server", R"("s3cret")"), "none  ");
  EXPECT_EQ(package("uvx", ""), "none  ");
}

TEST(PublishedDocument, DerivesRemotesOnlyFromPublicUrlsWithoutSecrets) {
  const auto url = [](const std::string& text) {
    const std::string remotes = member_for(R"({"url":")" + text + R"("})", "remotes");
    return json::View(remotes)[std::size_t{0}]["url"].as_string().value_or("none");
  };
  for (const std::string text :
       {"https://notes.example/mcp", "https://notes.example/v1/mcp", "https://8.8.8.8/mcp"})
    EXPECT_EQ(url(text), text);
  for (const std::string text :
       {"http://notes.example/mcp", "https://localhost/mcp", "https://notes/mcp", "https://10.0.0.3/mcp",
        "https://[fd00::1]/mcp", "https://notes.corp/mcp", "https://127.1/mcp", "https://0x7f.1/mcp",
        "https://u:p@notes.example/mcp", "https://notes.example/mcp?key=s3cret",
        "https://notes.example/s/a8d7f6a8d7f6a8d7/mcp",
        "https://notes.example/s/abcdefghijklmnopqrstuvwxyzabcd", "https://notes.example/${secret:PATH}",
        "wss://notes.example/mcp"})
    EXPECT_EQ(url(text), "none") << text;
  EXPECT_EQ(
      member_for(
          R"({"url":"https://notes.example/sse","headers":{"Authorization":"Bearer s3cret","X-Region":"${secret:R}"}})",
          "remotes"),
      R"([{"type":"sse","url":"https://notes.example/sse","headers":[{"name":"Authorization","isRequired":true,"isSecret":true},)"
      R"({"name":"X-Region","isRequired":true,"isSecret":true}]}])");
}

TEST(PublishedDocument, TakesWhatTheAdministratorGives) {
  const std::string given =
      R"(,"title":"Our notes","description":"At the gateway","websiteUrl":"https://e.example","repository":{"url":"https://git.example/n","source":"gitlab"},
      "remotes":[{"type":"streamable-http","url":"https://gateway.example/mcp/notes","headers":[{"name":"Authorization","isSecret":true}]}])";
  const std::string document = document_for(R"({"command":"npx","args":["secret-package"]})", given);
  const json::View view(document);
  EXPECT_EQ(view["title"].as_string(), "Our notes");
  EXPECT_EQ(view["description"].as_string(), "At the gateway");
  EXPECT_EQ(view["remotes"][std::size_t{0}]["url"].as_string(), "https://gateway.example/mcp/notes");
  EXPECT_TRUE(view["packages"].absent());
  EXPECT_EQ(document.find("secret-package"), std::string::npos);
}

TEST(PublishedDocument, CutsLongTextsAndAlwaysHasADescription) {
  const auto description = [](const std::string& more) {
    const std::string body =
        R"({"name":"notes","config":{"command":"c"},"published":{"name":"e/n","version":"1"})" + more + "}";
    const Result<json::Raw> raw = json::Raw::parse(body);
    const json::Raw document = server_document_of(*registry::new_server(json::View(*raw)));
    return *json::View(document)["description"].as_string();
  };
  EXPECT_EQ(description(""), "notes");
  EXPECT_EQ(description(R"(,"title":"T")"), "T");
  EXPECT_EQ(description(R"(,"description":"First line\nsecond")"), "First line");
  EXPECT_EQ(description(R"(,"description":")" + std::string(300, 'x') + "\""), std::string(97, 'x') + "...");
}

TEST(PublishedDocument, IsRejectedIfItWouldNotBeValid) {
  const std::string config = R"({"command":"c"})";
  const auto problem = [&](const std::string& members) { return document_for(config, members); };
  EXPECT_EQ(problem(R"(,"colour":"red")").substr(0, 18), "/published/colour:");
  EXPECT_EQ(problem(R"(,"description":")" + std::string(101, 'x') + "\"").substr(0, 23),
            "/published/description:");
  EXPECT_EQ(problem(R"(,"packages":{})").substr(0, 20), "/published/packages:");
  EXPECT_EQ(
      problem(
          R"(,"packages":[{"registryType":"npm","identifier":"n","version":"latest","transport":{"type":"stdio"}}])")
          .substr(0, 22),
      "/published/packages/0:");
  EXPECT_EQ(problem(R"(,"packages":[{"registryType":"npm","identifier":"n"}])").substr(0, 22),
            "/published/packages/0:");
  EXPECT_EQ(problem(R"(,"remotes":[{"type":"stdio"}])").substr(0, 21), "/published/remotes/0:");
  EXPECT_EQ(problem(R"(,"icons":[{"src":"http://e.example/i.png"}])").substr(0, 19), "/published/icons/0:");
  EXPECT_EQ(problem(R"(,"repository":{"url":"https://e.example"})").substr(0, 22), "/published/repository:");
  EXPECT_EQ(problem(R"(,"_meta":{"x":1})").substr(0, 17), "/published/_meta:");
  for (const std::string published :
       {R"({"version":"1"})", R"({"name":"noslash","version":"1"})", R"({"name":"a_b/c","version":"1"})",
        R"({"name":"a/b"})", R"({"name":"a/b","version":"latest"})", R"({"name":"a/b","version":"^1.2"})",
        R"({"name":"a/b","version":"1.x"})", "true", "[]"}) {
    const Result<json::Raw> raw = json::Raw::parse(R"({"name":"n","config":{"command":"c"},"published":)" +
                                                   std::string(published) + "}");
    const Result<registry::Server> row = registry::new_server(json::View(*raw));
    ASSERT_FALSE(row) << published;
    EXPECT_EQ(row.error().detail().pointer.substr(0, 10), "/published") << published;
  }
}

}  // namespace
}  // namespace fairlead::packages
