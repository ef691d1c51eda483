#include "packages/server_document.hpp"

#include <gtest/gtest.h>

#include "clients/fill_inputs.hpp"
#include "packages/read_package.hpp"
#include "packages/zip_writer.hpp"
#include "registry/json.hpp"

namespace fairlead::packages {
namespace {

using test::message_of;

PackageOptions here_with(std::string program, std::string package = {}) {
  PackageOptions options;
  options.has_program = [program = std::move(program)](const std::string& name) { return name == program; };
  options.package = std::move(package);
  return options;
}

std::string document_with(std::string_view packages, std::string_view more = "") {
  return R"({"name":"io.example/notes","description":"Keeps notes","version":"3.0.0","packages":[)" +
         std::string(packages) + "]" + std::string(more) + "}";
}

// The `config` of the row for the only package.
std::string config_of(std::string_view package, const clients::InputValues& values = {}) {
  const Result<ServerDocument> document = read_server_document(document_with(package));
  if (!document) return document.error().message();
  const clients::ImportedServer& server = document->candidates.at(0).server;
  if (!server.skip_reason.empty()) return server.skip_reason;
  const Result<json::Raw> row = clients::fill_inputs(server, values);
  if (!row) return row.error().message();
  const Result<registry::Server> parsed = registry::new_server(json::View(*row));
  if (!parsed) return "not a row: " + parsed.error().message() + row->text().data();
  return std::string(json::View(*row)["config"].text());
}

constexpr std::string_view kNpm =
    R"({"registryType":"npm","identifier":"@acme/notes","version":"2.1.0","runtimeHint":"npx",
  "transport":{"type":"stdio"},"runtimeArguments":[{"type":"positional","value":"-y"}],
  "packageArguments":[{"type":"named","name":"--root","format":"filepath","isRequired":true},
    {"type":"positional","valueHint":"mode","default":"ro","choices":["ro","rw"]}],
  "environmentVariables":[{"name":"NOTES_KEY","isSecret":true,"isRequired":true},{"name":"LEVEL"},{"name":"FIXED","value":"$1"}]})";

TEST(ServerDocument, OfAnNpmPackageBecomesACommandWithInputs) {
  const Result<ServerDocument> document = read_server_document(document_with(kNpm));
  ASSERT_TRUE(document) << document.error().message();
  const clients::ImportedServer& server = document->candidates.at(0).server;
  EXPECT_EQ(json::View(server.row)["config"].text(),
            R"({"command":"npx","args":["-y","@acme/notes@2.1.0","--root","${input:root}","${input:mode}"],)"
            R"("env":{"FIXED":"$$1","LEVEL":"${input:LEVEL}","NOTES_KEY":"${secret:NOTES_KEY}"}})");
  EXPECT_EQ(json::View(server.row)["name"].as_string(), "notes");
  EXPECT_EQ(json::View(server.row)["metadata"]["source"]["name"].as_string(), "io.example/notes");
  EXPECT_EQ(json::View(server.row)["metadata"]["source"]["package"]["identifier"].as_string(), "@acme/notes");
  ASSERT_EQ(server.inputs.size(), 4u);
  EXPECT_EQ(server.inputs[0].format, "filepath");
  EXPECT_EQ(server.inputs[1].choices, (std::vector<std::string>{"ro", "rw"}));
}

TEST(ServerDocument, TakesValuesDefaultsAndLeavesOutTheRest) {
  EXPECT_EQ(config_of(kNpm, {{"root", {"/srv/n"}}}),
            R"({"command":"npx","args":["-y","@acme/notes@2.1.0","--root","/srv/n","ro"],)"
            R"("env":{"FIXED":"$$1","NOTES_KEY":"${secret:NOTES_KEY}"}})");
  EXPECT_EQ(config_of(kNpm), "the input `root` of the server `io.example/notes` needs a value");
  EXPECT_EQ(config_of(kNpm, {{"root", {"/"}}, {"mode", {"x"}}}),
            "the input `mode` of the server `io.example/notes` must be one of `ro`, `rw`");
}

TEST(ServerDocument, RepeatsArgumentsAndKeepsFlags) {
  constexpr std::string_view kPackage =
      R"({"registryType":"pypi","identifier":"notes","version":"1.0","packageArguments":[
    {"type":"named","name":"--verbose"},{"type":"named","name":"--allow","description":"a folder","isRepeated":true},
    {"type":"named","name":"--color","format":"boolean","default":"true"},
    {"type":"positional","valueHint":"files","isRepeated":true},{"type":"named","name":"--size","value":"{w}x{h}{z}","variables":{"w":{"default":"3"},"h":{"value":"4"}}}]})";
  EXPECT_EQ(
      config_of(kPackage, {{"allow", {"/a", "/b"}}, {"files", {"1", "2"}}}),
      R"({"command":"uvx","args":["notes==1.0","--verbose","--allow","/a","--allow","/b","--color=true","1","2","--size","3x4{z}"]})");
  EXPECT_EQ(config_of(kPackage),
            R"({"command":"uvx","args":["notes==1.0","--verbose","--color=true","--size","3x4{z}"]})");
}

TEST(ServerDocument, OfAnImageNamesTheVariablesOfTheContainer) {
  constexpr std::string_view kPackage =
      R"({"registryType":"oci","identifier":"ghcr.io/acme/notes:1.2","transport":{"type":"stdio"},
    "runtimeArguments":[{"type":"named","name":"-v","value":"{dir}:/data","isRequired":true,"variables":{"dir":{"format":"filepath"}}}],
    "packageArguments":[{"type":"positional","value":"serve"}],
    "environmentVariables":[{"name":"KEY","isSecret":true,"isRequired":true},{"name":"OPTIONAL"}]})";
  EXPECT_EQ(
      config_of(kPackage, {{"dir", {"/srv"}}}),
      R"({"command":"docker","args":["run","-i","--rm","-v","/srv:/data","-e","KEY","ghcr.io/acme/notes:1.2","serve"],)"
      R"("env":{"KEY":"${secret:KEY}"}})");
  EXPECT_EQ(config_of(R"({"registryType":"oci","identifier":"acme/notes","version":"1.3"})"),
            R"({"command":"docker","args":["run","-i","--rm","acme/notes:1.3"]})");
}

TEST(ServerDocument, OfOtherPackagesSaysWhatToDo) {
  EXPECT_EQ(config_of(R"({"registryType":"nuget","identifier":"Acme.Notes","version":"1.0.0"})"),
            R"({"command":"dnx","args":["Acme.Notes@1.0.0","--yes"]})");
  EXPECT_EQ(
      config_of(
          R"({"registryType":"nuget","identifier":"N","version":"1.0.0","packageArguments":[{"type":"positional","value":"start"}]})"),
      R"({"command":"dnx","args":["N@1.0.0","--yes","--","start"]})");
  EXPECT_EQ(config_of(R"({"registryType":"go","identifier":"example.com/acme/notes","version":"v1.0.0"})"),
            R"({"command":"notes"})");
  EXPECT_EQ(config_of(R"({"registryType":"mcpb","identifier":"https://e.example/n.mcpb","fileSha256":"ab"})"),
            "this is a bundle: download https://e.example/n.mcpb, check that its SHA-256 is ab, and import "
            "the file");
  EXPECT_EQ(config_of(R"({"registryType":"rpm","identifier":"notes","version":"1"})"),
            "packages of the type `rpm` are not supported");
  EXPECT_EQ(
      config_of(
          R"({"registryType":"npm","identifier":"n","version":"1.0.0","transport":{"type":"streamable-http","url":"http://localhost:1/mcp"}})"),
      "its server listens at http://localhost:1/mcp (streamable-http): start it yourself, and add this URL");
}

TEST(ServerDocument, NeverRunsAVersionThatChanges) {
  for (const std::string version :
       {"", "latest", "^1.2", "~1", ">=1.0", "1.x", "*", "1.2 || 2", "npm:other@1", "https://e/x"}) {
    const std::string package = R"({"registryType":"npm","identifier":"n","version":")" + version + "\"}";
    EXPECT_EQ(config_of(package).substr(0, 10).find("{\"command\""), std::string::npos) << version;
  }
  EXPECT_NE(
      config_of(R"({"registryType":"oci","identifier":"acme/notes:latest"})").find("no tag of one version"),
      std::string::npos);
  EXPECT_NE(config_of(R"({"registryType":"oci","identifier":"acme/notes"})").find("no tag of one version"),
            std::string::npos);
}

TEST(ServerDocument, CannotSmuggleOptionsOrReferences) {
  EXPECT_NE(config_of(R"({"registryType":"npm","identifier":"--call=evil","version":"1.0.0"})")
                .find("not the name"),
            std::string::npos);
  EXPECT_NE(config_of(R"({"registryType":"npm","identifier":"a b","version":"1.0.0"})").find("not the name"),
            std::string::npos);
  EXPECT_EQ(
      config_of(R"({"registryType":"npm","identifier":"n","version":"1.0.0","environmentVariables":[
      {"name":"A","value":"${env:AWS_SECRET} ${input:B}"},{"name":"B","default":"${file:/etc/passwd}"},{"name":"C=D","value":"x"}]})"),
      R"({"command":"npx","args":["-y","n@1.0.0"],"env":{"A":"$${env:AWS_SECRET} $${input:B}","B":"$${file:/etc/passwd}"}})");
}

TEST(ServerDocument, OfARemoteAsksForTheVariablesOfItsUrl) {
  const std::string text =
      R"({"name":"io.example/issues","description":"d","version":"1.0.0","remotes":[{"type":"streamable-http",
    "url":"https://{tenant}.x.example/mcp","variables":{"tenant":{"description":"of the company"}},
    "headers":[{"name":"Authorization","value":"Bearer {token}","isRequired":true,"variables":{"token":{"isSecret":true}}},{"name":"X-Region","default":"eu"},{"name":"X-Odd"}]}]})";
  const Result<Package> package = read_server_json(text, here_with(""));
  ASSERT_TRUE(package) << package.error().message();
  EXPECT_TRUE(package->choices.at(0).runs_here);
  const clients::ImportedServer& server = package->file.servers.at(0);
  const Result<json::Raw> row = clients::fill_inputs(server, {{"tenant", {"acme"}}});
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_EQ(
      json::View(*row)["config"].text(),
      R"({"url":"https://acme.x.example/mcp","headers":{"Authorization":"Bearer ${secret:token}","X-Region":"eu"}})");
  EXPECT_EQ(json::View(*row)["metadata"]["source"]["remote"]["url"].as_string(),
            "https://{tenant}.x.example/mcp");
}

TEST(ServerDocument, OffersTheFirstPackageThatRunsHere) {
  const std::string text =
      document_with(std::string(kNpm) + R"(,{"registryType":"pypi","identifier":"notes","version":"1.0"})",
                    R"(,"remotes":[{"type":"sse","url":"https://n.example/sse"}])");
  const auto chosen = [&](const PackageOptions& options) {
    const Result<Package> package = read_server_json(text, options);
    return package ? package->choices.at(package->selected).id : package.error().message();
  };
  EXPECT_EQ(chosen(here_with("npx")), "npm");
  EXPECT_EQ(chosen(here_with("uvx")), "pypi");
  EXPECT_EQ(chosen(here_with("")), "sse");
  EXPECT_EQ(chosen(here_with("npx", "remote")), "sse");
  EXPECT_EQ(chosen(here_with("", "npm")), "npm");
  EXPECT_EQ(chosen(here_with("", "oci")), "server.json has no package `oci`; it has npm, pypi, sse");
  const Result<Package> missing = read_server_json(text, here_with("", "npm"));
  EXPECT_EQ(missing->choices.at(0).problem, "the program `npx` is not installed here");
  EXPECT_EQ(missing->file.servers.at(0).remarks.at(0).message, "the program `npx` is not installed here");
}

TEST(ServerDocument, IsFoundInTheAnswersOfRegistries) {
  const std::string one = document_with(kNpm);
  for (const std::string& text :
       {one, R"({"server":)" + one + R"(,"_meta":{}})",
        R"({"servers":[{"server":)" + one + R"(,"_meta":{}}],"metadata":{"count":1}})"}) {
    EXPECT_TRUE(is_package(text)) << text;
    EXPECT_EQ(message_of(read_server_document(text)), "");
  }
  EXPECT_EQ(
      message_of(read_server_document(R"({"servers":[{"server":)" + one + R"(},{"server":)" + one + "}]}")),
      "the list has 2 servers: use the document of one of them");
}

TEST(ServerDocument, ReadsTheNamesOfOldDocuments) {
  EXPECT_EQ(
      config_of(
          R"({"registry_type":"npm","identifier":"n","version":"1.0.0","environment_variables":[{"name":"K","is_required":true,"is_secret":true}]})"),
      R"({"command":"npx","args":["-y","n@1.0.0"],"env":{"K":"${secret:K}"}})");
}

TEST(ServerDocument, IsNotAnythingElse) {
  for (const std::string_view text :
       {R"({"mcpServers":{}})", R"({"servers":{"a":{"url":"x"}}})", R"({"servers":[{"name":"a"}]})", "[]",
        "1", "", R"({"name":"x"})", "key = 1"}) {
    EXPECT_FALSE(is_package(text)) << text;
    EXPECT_NE(message_of(read_server_document(text)), "");
  }
  EXPECT_NE(message_of(read_server_document(R"({"name":"a/b","packages":[]})")), "");
  EXPECT_NE(message_of(read_server_document(document_with("1,null,[]"))), "");
}

TEST(ServerDocument, GivesEveryServerAValidName) {
  const auto name_for = [](const std::string& name) {
    const Result<ServerDocument> document = read_server_document(
        R"({"name":")" + name + R"(","remotes":[{"type":"sse","url":"https://e.example"}]})");
    return *json::View(document->candidates.at(0).server.row)["name"].as_string();
  };
  EXPECT_EQ(name_for("io.example/my_server"), "my_server");
  EXPECT_EQ(name_for("io.example/a__b..c"), "a_b-c");
  EXPECT_EQ(name_for("io.example/_"), "server");
  EXPECT_EQ(name_for("io.example/e"), "server-e");
  EXPECT_EQ(name_for("io.example/" + std::string(100, 'x')), std::string(32, 'x'));
}

}  // namespace
}  // namespace fairlead::packages
