// References are resolved at each start, and the variables they name are withheld from other servers.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "fairlead/process/failure.hpp"
#include "pool/harness.hpp"
#include "support/turns.hpp"

namespace fairlead::pool {
namespace {

class ReferencesTest : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    ::setenv("POOL_TEST_TOKEN", "token-1", 1);
    ::setenv("POOL_TEST_PLAIN", "plain", 1);
  }
  void TearDown() override {
    PoolTest::TearDown();
    ::unsetenv("POOL_TEST_TOKEN");
    ::unsetenv("POOL_TEST_PLAIN");
  }

  // A server whose process writes its arguments and its environment to a file before it serves.
  ServerSpec observed_server(const std::string& name) {
    ServerSpec server = spec(name);
    auto& program = std::get<Program>(server.transport);
    program.args.insert(program.args.begin(),
                        {"-c", "f=$1; shift; { echo \"$0\"; env; } > \"$f\"; exec \"$@\"", "-",
                         observation_path(name), program.command});
    program.command = "sh";
    return server;
  }
  std::string observation_path(const std::string& name) { return journal(name) + ".env"; }
  // Returns the arguments and the environment of the server's process, which is started if necessary.
  std::string environment_of(const std::string& name) {
    pid_of(name);
    std::ifstream file(observation_path(name));
    return "\n" + std::string(std::istreambuf_iterator<char>(file), {});
  }
};

TEST_F(ReferencesTest, ReferencedVariableIsNotInheritedByServersThatDoNotNameIt) {
  ServerSpec referring = observed_server("referring");
  std::get<Program>(referring.transport).env["T"] = "${POOL_TEST_TOKEN}";
  ServerSpec naming = observed_server("naming");
  std::get<Program>(naming.transport).args[2] = "${env:POOL_TEST_TOKEN:-none}";
  ServerSpec listing = observed_server("listing");
  std::get<Program>(listing.transport).inherit_env = {"PATH", "POOL_TEST_TOKEN"};
  add(referring);
  add(naming);
  add(listing);
  add(observed_server("other"));
  EXPECT_TRUE(environment_of("referring").contains("\nT=token-1\n"));
  EXPECT_TRUE(environment_of("naming").contains("\nPOOL_TEST_TOKEN=token-1\n"));
  EXPECT_TRUE(environment_of("listing").contains("\nPOOL_TEST_TOKEN=token-1\n"));
  const std::string other = environment_of("other");
  EXPECT_FALSE(other.contains("token-1")) << other;
  EXPECT_TRUE(other.contains("\nPOOL_TEST_PLAIN=plain\n")) << other;
  EXPECT_TRUE(other.contains("\nPATH=")) << other;
}

TEST_F(ReferencesTest, CommonVariableIsInheritedAlthoughAnotherServerRefersToIt) {
  ServerSpec referring = observed_server("referring");
  std::get<Program>(referring.transport).env["MY_PATH"] = "${PATH}";
  add(referring);
  add(observed_server("other"));
  EXPECT_TRUE(environment_of("referring").contains("\nMY_PATH=/"));
  EXPECT_TRUE(environment_of("other").contains("\nPATH=/"));
}

TEST_F(ReferencesTest, ReferencesAreResolvedAtEachStart) {
  ServerSpec changing = observed_server("a");
  std::get<Program>(changing.transport).args[2] = "<${POOL_TEST_TOKEN}>";
  add(changing);
  EXPECT_TRUE(environment_of("a").starts_with("\n<token-1>\n"));
  ::setenv("POOL_TEST_TOKEN", "token-2", 1);
  EXPECT_FALSE(call("a", "crash"));
  EXPECT_TRUE(environment_of("a").starts_with("\n<token-2>\n"));
  const Result<Lease> lease = loop.block_on(pool->acquire(Target("a")));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->upstream()->spec(), changing) << "a spec never contains resolved values";
}

Task<Result<StoredSecret>> stored_secret(SecretRequest request) {
  if (request.name == "github") co_return StoredSecret("from-the-store");
  if (request.name == "own") co_return StoredSecret("of-" + request.user + "-at-" + request.server);
  if (request.name == "remedied")
    co_return Error(ErrorKind::validation, "nobody has stored it").with([](ErrorDetail& detail) {
      detail.remedy = "Ask Ann.";
    });
  co_return Error(ErrorKind::validation, "no such entry");
}

TEST_F(ReferencesTest, SecretsAreFetchedFromSecretStore) {
  options.secret_store = &stored_secret;
  ServerSpec known = observed_server("known");
  std::get<Program>(known.transport).args[2] = "${secret:github}";
  ServerSpec unknown = observed_server("unknown");
  std::get<Program>(unknown.transport).args[2] = "${secret:gitlab}";
  add(known);
  add(unknown);
  EXPECT_TRUE(environment_of("known").starts_with("\nfrom-the-store\n"));
  const Result<rpc::Message> refused = call("unknown", "pid");
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message(),
      "server unknown: `args[2]` cannot be resolved: the secret gitlab is not available: no such entry");
  EXPECT_EQ(refused.error().detail().failure_code, failure::secret_unavailable);
}

TEST_F(ReferencesTest, StoreIsAskedForTheUserOfAnUpstreamThatIsNotShared) {
  options.secret_store = &stored_secret;
  for (const auto& [name, sharing] :
       {std::pair("shared", Sharing::shared), std::pair("user", Sharing::per_user),
        std::pair("session", Sharing::per_session)}) {
    ServerSpec server = observed_server(name);
    std::get<Program>(server.transport).args[2] = "${secret:own}";
    server.sharing = sharing;
    add(server);
    pid_of(name, "session 1", "ann");
    const std::string expected = sharing == Sharing::shared ? "of--at-" : "of-ann-at-";
    std::ifstream file(observation_path(name));
    std::string first;
    std::getline(file, first);
    EXPECT_EQ(first, expected + name);
  }
}

TEST_F(ReferencesTest, StoreIsAskedForTheUserOfACallWithoutSession) {
  options.secret_store = &stored_secret;
  ServerSpec server = observed_server("a");
  std::get<Program>(server.transport).args[2] = "${secret:own}";
  server.sharing = Sharing::per_session;
  add(server);
  for (const std::string user : {"ann", "bob", ""}) {
    pid_of("a", "", user);
    std::ifstream file(observation_path("a"));
    std::string first;
    std::getline(file, first);
    EXPECT_EQ(first, "of-" + user + "-at-a");
  }
}

TEST_F(ReferencesTest, RemedyOfTheStoreIsKeptWithServerKeyAndSecret) {
  options.secret_store = &stored_secret;
  ServerSpec server = observed_server("a");
  std::get<Program>(server.transport).env["K"] = "${secret:remedied}";
  add(server);
  const Result<rpc::Message> refused = call("a", "pid");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail().remedy, "`env.K` of server a refers to the secret remedied. Ask Ann.");
}

// Returns "127.0.0.1:1/x" as the value of the provider that the name of the secret denotes.
Task<Result<StoredSecret>> host_of_provider(SecretRequest request) {
  SecretProvider provider = SecretProvider::administrator;
  if (request.name == "owner") provider = SecretProvider::owner;
  if (request.name == "caller") provider = SecretProvider::caller;
  co_return StoredSecret("127.0.0.1:1/x", provider);
}

TEST_F(ReferencesTest, ValueOfACallerDoesNotDetermineTheHost) {
  options.secret_store = &host_of_provider;
  int number = 0;
  const auto code_of = [&](const std::string& url) {
    ServerSpec server = spec("s" + std::to_string(++number));
    Address address;
    address.url = url;
    address.headers["Authorization"] = "Bearer ${secret:caller}";
    server.transport = address;
    add(server);
    const Result<rpc::Message> refused = call(server.name, "pid");
    return refused ? "no error" : refused.error().detail().failure_code;
  };
  for (const char* const url :
       {"http://${secret:caller}", "http://${secret:caller}/mcp", "http://a.${secret:caller}/mcp",
        "http://127.0.0.1:${secret:caller}", "http://127.0.0.1${secret:caller}/mcp",
        "http://${secret:owner}.${secret:caller}/", "http:${secret:caller}//127.0.0.1:1/"})
    EXPECT_EQ(code_of(url), failure::secret_unavailable) << url;
  for (const char* const url :
       {"http://${secret:administrator}/mcp", "http://${secret:owner}/mcp",
        "http://127.0.0.1:1/${secret:caller}", "http://127.0.0.1:1?k=${secret:caller}",
        "http://127.0.0.1:1/mcp#${secret:caller}"})
    EXPECT_NE(code_of(url), failure::secret_unavailable) << url;
}

// The value is that of an administrator unless the name of the secret is "caller" or "owner".
Task<Result<StoredSecret>> words_of_provider(SecretRequest request) {
  if (request.name == "administrator") co_return StoredSecret("failed\nrefused");
  if (request.name == "owner") co_return StoredSecret("cannot start", SecretProvider::owner);
  if (request.name == "caller") co_return StoredSecret("connection\nserver 12345678", SecretProvider::caller);
  co_return StoredSecret("token-12345678", SecretProvider::caller);
}

TEST_F(ReferencesTest, WordsOfUsersAreNotRedactedElsewhere) {
  options.secret_store = &words_of_provider;
  options.redactor = std::make_shared<SharedRedactor>();
  for (const char* const name : {"administrator", "owner", "caller", "token"}) {
    ServerSpec server = spec(name);
    std::get<Program>(server.transport).env["K"] = std::string("${secret:") + name + "}";
    add(server);
    pid_of(name);
  }
  EXPECT_EQ(options.redactor->redact("connection to server failed, cannot start token-12345678"),
            "connection to server ***, cannot start ***");
}

TEST_F(ReferencesTest, OnlyUpstreamsOfAffectedUsersAreReplaced) {
  ServerSpec server = spec("a");
  server.sharing = Sharing::per_user;
  add(server);
  const auto of_ann = pid_of("a", "", "ann");
  const auto of_bob = pid_of("a", "", "bob");
  ASSERT_TRUE(pool->replace_upstreams("a", [](const std::string& user) { return user == "ann"; }));
  EXPECT_NE(pid_of("a", "", "ann"), of_ann);
  EXPECT_EQ(pid_of("a", "", "bob"), of_bob);
  EXPECT_FALSE(pool->replace_upstreams("unknown", [](const std::string&) { return true; }));
}

TEST_F(ReferencesTest, TooLargeFileFailsStartWithServerKeyAndPath) {
  const std::string large = journal("large");
  std::ofstream(large) << std::string((64u << 10) + 1, 'x');
  ServerSpec first = spec("a");
  std::get<Program>(first.transport).env["K"] = "${file:" + large + "}";
  add(first);
  const Result<rpc::Message> refused = call("a", "pid");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "server a: `env.K` cannot be resolved: the file " + large +
                                           " cannot be read: it has more than max_secret_file_bytes (65536)");
}

TEST_F(ReferencesTest, StartFailsWhenSecretsOfServerExceedMaxServerSecretBytes) {
  const std::string file = journal("large");
  std::ofstream(file) << std::string(60'000, 'x');
  ServerSpec first = spec("a");
  for (const char* const name : {"K1", "K2", "K3"})
    std::get<Program>(first.transport).env[name] = "${file:" + file + "}";
  add(first);
  const Result<rpc::Message> refused = call("a", "pid");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "server a: `env.K3` cannot be resolved: the server's secrets together have more than "
            "max_server_secret_bytes (131072)");
}

// The most expensive secret to index: many distinct lines of the smallest size that is redacted.
TEST_F(ReferencesTest, LargeSecretsOfShortLinesAreIndexedInShortTurns) {
  ServerSpec first = spec("a");
  for (int i = 0; i < 2; ++i) {
    const std::string file = journal("lines" + std::to_string(i));
    std::ofstream out(file);
    for (int line = 0; line < 9'000; ++line) out << (10'000 + i * 20'000 + line) % 10'000'000 << '\n';
    out.close();
    std::get<Program>(first.transport).env["K" + std::to_string(i)] = "${file:" + file + "}";
  }
  add(first);
  test::expect_short_turns(loop, [&] { EXPECT_TRUE(call("a", "pid")); });
}

TEST_F(ReferencesTest, FifoAsFileReferenceFailsStart) {
  const std::string fifo = journal("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ServerSpec first = spec("a");
  std::get<Program>(first.transport).env["K"] = "${file:" + fifo + "}";
  add(first);
  const Result<rpc::Message> refused = call("a", "pid");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "server a: `env.K` cannot be resolved: the file " + fifo +
                                           " cannot be read: it is a FIFO, not a regular file");
}

TEST_F(ReferencesTest, LineBreakInExpandedHeaderFailsStart) {
  const std::string file = journal("header");
  std::ofstream(file) << "one\r\nX-Evil: two\n";
  ServerSpec web = spec("a");
  web.transport = Address{"http://127.0.0.1:1/mcp", {{"X-Key", "${file:" + file + "}"}}};
  add(web);
  const Result<rpc::Message> refused = call("a", "pid");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "server a: `headers.X-Key` cannot be resolved: its value has a line break or a NUL byte");
}

TEST_F(ReferencesTest, HostileReferencesFailOnlyTheirOwnServer) {
  std::string hostile;
  while (hostile.size() < (1u << 20)) hostile += "${";
  ServerSpec bad = spec("a");
  std::get<Program>(bad.transport).env["K"] = hostile;
  add(bad);
  add(spec("b"));
  const Result<rpc::Message> refused = call("a", "pid");
  ASSERT_FALSE(refused);
  EXPECT_LT(refused.error().message().size(), 400u);
  EXPECT_GT(pid_of("b"), 0);
}

}  // namespace
}  // namespace fairlead::pool
