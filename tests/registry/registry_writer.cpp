// registry_writer ADDRESS SEED: writes to a registry until it is killed. Before each change it prints
// "begin CHANGE ID", and when the registry has returned, "done CHANGE ID". crash_test.cpp compares these
// lines with the database. A SEED that is the path of a key file, or "key:" with a key, replaces the keys of
// secrets.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "fairlead/loop/loop.hpp"
#include "registry/registry.hpp"
#include "registry/rules.hpp"

namespace fairlead::registry::test {
namespace {

void print(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::exit(1);
}

json::Raw parse(const std::string& text) {
  return json::Raw::parse(text).value();
}

class Writer {
 public:
  Writer(Loop& loop, std::shared_ptr<Registry> registry, std::string seed)
      : loop_(loop), registry_(std::move(registry)), seed_(std::move(seed)) {}

  void write_for_ever() {
    for (int number = 0;; ++number) {
      const std::string name = "s" + seed_ + "-" + std::to_string(number);
      create(name);
      change(name);
      store_lists(name);
      if (number % 3 == 2) remove();
      if (number % 5 == 4) use_account(name);
    }
  }

 private:
  template <class T>
  auto wait(const std::string& change, Task<Result<T>> task) {
    print("begin " + change);
    Result<T> done = loop_.block_on(std::move(task));
    if (!done) {
      std::fputs(done.error().to_string().c_str(), stderr);
      std::exit(1);
    }
    print("done " + change);
    if constexpr (!std::is_void_v<T>) return std::move(*done);
  }

  void create(const std::string& name) {
    const json::Raw body =
        parse(R"({"name":")" + name +
              R"(","title":"v1","description":"v1","transport":"stdio","config":{"command":"cat"}})");
    servers_.push_back(wait("create " + name, registry_->create_server(admin_, body)));
  }
  void change(const std::string& name) {
    const json::Raw patch = parse(R"({"title":"v2","description":"v2"})");
    wait("change " + name, registry_->patch_server(admin_, servers_.back()->id, patch, 1));
  }
  void store_lists(const std::string& name) {
    FetchedEntries lists;
    lists.tools.emplace({parse(R"({"name":"a"})"), parse(R"({"name":"b"})")});
    lists.prompts.emplace({parse(R"({"name":"c"})")});
    wait("list " + name, registry_->store_lists(servers_.back()->id, std::move(lists)));
  }
  void remove() {
    const ServerPtr first = servers_.front();
    servers_.pop_front();
    wait("remove " + first->name, registry_->remove_server(admin_, first->id, std::nullopt));
  }
  // A user with a token and a group, who is removed.
  void use_account(const std::string& name) {
    const UserPtr user =
        wait("user " + name, registry_->create_user(admin_, parse(R"({"name":")" + name + R"("})")));
    wait("token " + name, registry_->create_token(admin_, parse(R"({"user":")" + user->id + R"("})")));
    const json::Raw group = parse(R"({"name":")" + name + R"(","members":[")" + user->id + R"("]})");
    wait("group " + name, registry_->create_group(admin_, group));
    wait("leave " + name, registry_->remove_user(admin_, user->id, std::nullopt));
  }

  Loop& loop_;
  std::shared_ptr<Registry> registry_;
  std::string seed_;
  PrincipalPtr admin_ = bootstrap_principal();
  std::deque<ServerPtr> servers_;
};

// Sets a secret and replaces the keys, again and again.
void rekey_for_ever(Loop& loop, Registry& registry) {
  const PrincipalPtr admin = bootstrap_principal();
  const auto check = [](const auto& done) {
    if (done) return;
    std::fputs(done.error().to_string().c_str(), stderr);
    std::exit(1);
  };
  for (int number = 0;; ++number) {
    const std::string name = "s" + std::to_string(number);
    print("begin secret " + name);
    check(loop.block_on(registry.create_secret(
        admin, parse(R"({"name":")" + name + R"(","value":"value of )" + name + R"("})"))));
    print("done secret " + name);
    RekeyRequest request;
    request.key = registry.secret_key_status().source.starts_with("the key file");
    request.data_key = !request.key || number % 2 == 0;
    print("begin rekey " + name);
    check(loop.block_on(registry.rekey_secrets(admin, request)));
    print("done rekey " + name);
  }
}

int run(const std::string& address, const std::string& seed) {
  Loop loop;
  RegistryOptions options;
  const bool rekeys = seed.starts_with("/") || seed.starts_with("key:");
  if (seed.starts_with("/")) {
    options.secret_key.file = seed;
    options.secret_key.manage_file = true;
  } else if (rekeys) {
    options.secret_key.text = std::make_shared<const SecretText>(seed.substr(4));
    options.secret_key.source = "the test";
  }
  Result<std::shared_ptr<Registry>> registry = loop.block_on(Registry::open(loop, address, options));
  if (!registry) {
    std::fputs(registry.error().to_string().c_str(), stderr);
    return 1;
  }
  if (rekeys) rekey_for_ever(loop, **registry);
  Writer(loop, *registry, seed).write_for_ever();
  return 0;
}

}  // namespace
}  // namespace fairlead::registry::test

int main(int argc, char** argv) {
  return argc == 3 ? fairlead::registry::test::run(argv[1], argv[2]) : 2;
}
