#!/usr/bin/env python3
"""The commands that manage a gateway: fairlead servers, endpoints, users, groups, tokens, config, drift, context, status."""
import json
import os
import signal
import socket
import subprocess
import sys
import unittest

from harness import ADMIN_TOKEN, HERE, PROGRAM, tool, until
from command_line import CommandTest
from postgres import PostgresServer

TOY = os.path.join(HERE, "toy_server.py")


class CommandsTest(CommandTest):
    def add_toy(self, gateway, name="toy", **options):
        self.write_state(name)
        self.command("servers", "add", name, "--", sys.executable, TOY, self.state_file(name), gateway=gateway, **options)

    def test_servers_are_added_shown_changed_and_removed_at_a_running_gateway(self):
        gateway = self.start()
        self.add_toy(gateway)
        added = self.json_of("servers", "show", "toy", gateway=gateway)
        self.assertEqual(added["config"]["args"], [TOY, self.state_file("toy")])
        self.command("servers", "edit", "toy", "--title", "Töy", "--tag", "a", "--tag", "b", "--env", "K=v=w",
                     "--set", "config.clocks.idle=60s", gateway=gateway)  # fmt: skip
        changed = self.json_of("servers", "show", added["id"], gateway=gateway)
        self.assertEqual((changed["title"], changed["tags"]), ("Töy", ["a", "b"]))
        self.assertEqual(changed["config"]["env"], {"K": "v=w"})
        self.assertEqual(changed["config"]["args"], added["config"]["args"])
        self.command("servers", "edit", "toy", "--unset", "config.env.K", "--unset", "title", gateway=gateway)
        self.assertNotIn("K", self.json_of("servers", "show", "toy", gateway=gateway)["config"].get("env", {}))
        self.command("servers", "disable", "toy", gateway=gateway)
        self.assertIn("disabled", self.command("servers", "list", gateway=gateway))
        self.command("servers", "enable", "toy", gateway=gateway)
        self.command("servers", "remove", "toy", "--yes", gateway=gateway)
        self.assertEqual(self.json_of("servers", "list", gateway=gateway), [])
        self.assertIn("servers add", self.error_of("servers", "list", status=0, gateway=gateway))

    def test_a_url_replaces_the_command_of_a_server_and_back(self):
        gateway = self.start()
        self.add_toy(gateway)
        self.command("servers", "edit", "toy", "--url", "http://127.0.0.1:1/mcp", "--header", "X-A: b c", gateway=gateway)
        row = self.json_of("servers", "show", "toy", gateway=gateway)
        self.assertEqual((row["transport"], row["config"]["url"]), ("http", "http://127.0.0.1:1/mcp"))
        self.assertEqual(row["config"]["headers"], {"X-A": "b c"})
        self.command("servers", "edit", "toy", "--", "true", "-x", gateway=gateway)
        row = self.json_of("servers", "show", "toy", gateway=gateway)
        self.assertEqual((row["transport"], row["config"]["command"], row["config"]["args"]), ("stdio", "true", ["-x"]))

    def test_rows_are_read_as_json_from_stdin(self):
        gateway = self.start()
        body = {"name": "remote", "config": {"url": "http://127.0.0.1:1/mcp"}}
        row = json.loads(self.command("servers", "add", "--json", "-", input=json.dumps(body), gateway=gateway))
        self.assertEqual(row["name"], "remote")
        self.command("servers", "edit", "remote", "--", "-", input='{"title":"Far"}', gateway=gateway)
        self.assertEqual(self.json_of("servers", "show", "remote", gateway=gateway)["title"], "Far")
        self.command("users", "add", "-", input='{"name":"ann"}', gateway=gateway)
        self.command("users", "edit", "ann", "-", input='{"title":"Ann"}', gateway=gateway)
        self.assertEqual(self.json_of("users", "show", "ann", gateway=gateway)["title"], "Ann")

    def test_values_of_variables_are_shown_only_on_request(self):
        gateway = self.start()
        self.write_state()
        self.command("servers", "add", "toy", "--env", "KEY=hunter2", "--env", "REF=${NAME}", "--", "true", gateway=gateway)
        shown = self.command("servers", "show", "toy", gateway=gateway)
        self.assertNotIn("hunter2", shown)
        self.assertIn("${NAME}", shown)
        self.assertIn("hunter2", self.command("servers", "show", "toy", "--reveal", gateway=gateway))

    def test_a_working_server_is_tested_listed_and_refreshed(self):
        gateway = self.start()
        self.add_toy(gateway)
        steps = self.command("servers", "test", "toy", gateway=gateway)
        for step in ("spawn", "handshake", "list", "stop", "ok: 3 tools"):
            self.assertIn(step, steps)
        self.assertIn("3 tools", self.command("servers", "refresh", "toy", gateway=gateway))
        self.assertIn("toy__echo", self.command("servers", "tools", "toy", gateway=gateway))
        self.assertEqual(self.command("servers", "tools", "--tool", "echo", "-q", gateway=gateway), "toy__echo\n")
        self.command("servers", "restart", "toy", gateway=gateway)
        self.command("servers", "stop", "toy", gateway=gateway)

    def test_a_tool_of_a_server_that_is_still_starting_is_waited_for(self):
        gateway = self.start()
        self.write_state()
        go = self.path("go")
        wait = f'while [ ! -e "{go}" ]; do sleep 0.05; done; exec "$@"'
        self.command("servers", "add", "toy", "--", "sh", "-c", wait, "sh", sys.executable, TOY, self.state_file(), gateway=gateway)
        url = f"http://127.0.0.1:{gateway.port}/mcp"
        header = f"Authorization: Bearer {ADMIN_TOKEN}"
        call = subprocess.Popen([PROGRAM, "tools", "--header", header, url, "toy__echo", "a=1"], stdout=subprocess.PIPE, text=True,
                                env=self.environment())  # fmt: skip
        self.assertTrue(until(lambda: any("list is incomplete" in line for line in gateway.log)))
        with open(go, "w", encoding="utf-8"):
            pass
        self.assertEqual(json.loads(call.communicate(timeout=30)[0]), {"a": "1"})
        self.assertEqual(call.returncode, 0)
        self.assertIn("has no tool", self.error_of("tools", "--header", header, url, "toy__ech", "a=1", status=2))

    def test_a_failing_server_is_reported_with_its_stderr(self):
        gateway = self.start()
        script = "import sys; sys.stderr.write('no \\x1b[31mkey\\n'); sys.exit(3)"
        self.command("servers", "add", "bad", "--", sys.executable, "-c", script, gateway=gateway)
        shown = self.command("servers", "test", "bad", gateway=gateway, status=1)
        self.assertIn("no \\x1b[31mkey", shown)
        self.assertIn("remedy:", shown)
        self.assertNotIn("\x1b", shown)
        outcome = json.loads(self.command("servers", "test", "bad", "--json", gateway=gateway, status=1))
        self.assertFalse(outcome["ok"])
        gateway.request("POST", "/mcp/servers/bad/refresh")
        self.assertIn("key", self.command("servers", "logs", "bad", gateway=gateway))
        status = self.command("status", gateway=gateway, status=1)
        self.assertTrue(status.startswith("! server bad has failed"), status)

    def test_a_list_without_the_tools_of_a_failed_server_is_reported_as_incomplete(self):
        gateway = self.start()
        self.command("servers", "add", "bad", "--", sys.executable, "-c", "import sys; sys.exit(3)", gateway=gateway)
        for options in ([], ["--json"], ["--schema"]):
            done = self.run_command("tools", "bad", *options, **self.gateway_options(gateway))
            self.assertEqual((done.returncode, done.stdout.strip()), (1, "[]" if options == ["--json"] else ""), done.stderr)
            self.assertIn("the list is incomplete, because the gateway has no list of: bad\n", done.stderr)
            self.assertIn("fairlead servers test bad", done.stderr)
        self.add(gateway)
        header = f"Authorization: Bearer {ADMIN_TOKEN}"
        done = self.run_command("tools", "--header", header, f"http://127.0.0.1:{gateway.port}/mcp")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("toy__echo", done.stdout)
        self.assertIn("no list of: bad\n", done.stderr)
        done = self.run_command("tools", "toy", **self.gateway_options(gateway))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_first_user_says_that_clients_need_a_token(self):
        gateway = self.start(token=None)
        options = {"FAIRLEAD_GATEWAY": f"http://127.0.0.1:{gateway.port}"}
        done = self.run_command("users", "add", "ann", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("clients of the gateway need a token from now on", done.stderr)
        self.assertIn("fairlead config set auth.mode none", done.stderr)
        self.assertEqual(self.run_command("users", "add", "bob", **options).stderr, "")

    def test_the_first_user_says_nothing_where_the_mode_stays(self):
        gateway = self.start("--auth-mode", "none")
        done = self.run_command("users", "add", "ann", **self.gateway_options(gateway))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        gateway = self.start(database="sqlite:" + self.path("other.db"))  # FAIRLEAD_ADMIN_TOKEN is set
        done = self.run_command("users", "add", "ann", **self.gateway_options(gateway))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_lines_are_followed_as_they_are_written(self):
        gateway = self.start()
        script = "import sys, time\nwhile True: sys.stderr.write('a line\\n'); sys.stderr.flush(); time.sleep(0.1)"
        self.command("servers", "add", "loud", "--", sys.executable, "-c", script, gateway=gateway)
        follower = subprocess.Popen(
            [PROGRAM, "servers", "logs", "loud", "--follow"], stdout=subprocess.PIPE, text=True,
            env=self.environment(**self.gateway_options(gateway)),
        )  # fmt: skip
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)
        self.addCleanup(follower.stdout.close)
        self.in_background(lambda: gateway.request("POST", "/mcp/servers/loud/refresh"))
        self.assertEqual(follower.stdout.readline(), "a line\n")
        follower.stdout.close()  # the command ends, because nobody reads any more
        self.assertEqual(follower.wait(60), 141)

    def test_users_get_tokens_and_groups_and_lose_them(self):
        gateway = self.start()
        self.command("users", "add", "ann", "--title", "Ann", gateway=gateway)
        token = self.command("tokens", "create", "ann", "--name", "a/b %2e ü", "--expires", "90d", "-q", gateway=gateway).strip()
        self.assertTrue(token.startswith("fl_"), token)
        self.assertEqual(self.json_of("servers", "list", gateway=gateway, FAIRLEAD_TOKEN=token), [])
        listed = self.command("tokens", "list", gateway=gateway)
        self.assertIn("ann", listed)
        self.assertNotIn(token, listed)
        self.assertIn("a/b %2e ü", listed)
        identity = self.json_of("tokens", "list", gateway=gateway)[0]["id"]
        self.command("groups", "add", "team", gateway=gateway)
        self.command("groups", "join", "team", "ann", gateway=gateway)
        self.assertEqual(len(self.json_of("groups", "show", "team", gateway=gateway)["members"]), 1)
        self.command("groups", "leave", "team", "ann", gateway=gateway)
        self.assertFalse(self.json_of("groups", "show", "team", gateway=gateway).get("members"))
        self.command("tokens", "revoke", identity, "-y", gateway=gateway)
        self.assertIn("not authorized", self.error_of("servers", "list", gateway=gateway, FAIRLEAD_TOKEN=token, status=3))

    def test_endpoints_select_servers_and_users(self):
        gateway = self.start()
        self.command("users", "add", "ann", gateway=gateway)
        self.command("endpoints", "add", "dev", "--server", "git*", "--tag", "code", "--user", "ann", "--mode", "discover", gateway=gateway)
        row = self.json_of("endpoints", "show", "dev", gateway=gateway)
        self.assertEqual((row["servers"], row["tags"], row["mode"], len(row["users"])), (["git*"], ["code"], "discover", 1))
        self.command("endpoints", "edit", "dev", "--unset", "users", "--enabled", "false", gateway=gateway)
        row = self.json_of("endpoints", "show", "dev", gateway=gateway)
        self.assertFalse(row["enabled"] or row.get("users"))
        self.assertIn("/mcp/e/dev", self.command("endpoints", "list", gateway=gateway))

    def test_settings_are_changed_with_the_type_that_they_have(self):
        gateway = self.start()
        self.assertIn("mcp.list_wait", self.command("config", "list", "mcp", gateway=gateway))
        self.command("config", "set", "mcp.list_wait", "7s", gateway=gateway)
        self.assertEqual(self.command("config", "get", "mcp.list_wait", "-q", gateway=gateway), "7s\n")
        self.command("config", "set", "auth.max_user_tokens", "7", gateway=gateway)
        self.assertEqual(self.json_of("config", "get", "auth.max_user_tokens", gateway=gateway)["value"], 7)
        self.command("config", "set", "registry.allow_private_addresses", "true", gateway=gateway)
        self.command("config", "set", "mcp.max_frame_bytes", "20M", gateway=gateway)
        self.assertEqual(self.json_of("config", "get", "mcp.max_frame_bytes", gateway=gateway)["value"], 20 << 20)
        self.assertIn("20971520 or 20M", self.error_of("config", "set", "mcp.max_body_bytes", "8X", gateway=gateway, status=2))
        self.assertIn("no number", self.error_of("config", "set", "auth.max_user_tokens", "2K", gateway=gateway, status=2))
        self.assertIn("no number", self.error_of("config", "set", "auth.max_user_tokens", "many", gateway=gateway, status=2))
        self.command("config", "reset", "auth.max_user_tokens", gateway=gateway)
        self.assertTrue(self.json_of("config", "get", "auth.max_user_tokens", gateway=gateway)["isDefault"])

    def test_changed_tools_are_reviewed(self):
        gateway = self.start()
        self.add(gateway, drift="quarantine", listed=[tool("read", "Reads \x1b[8mfiles.")])
        self.write_state("toy", [tool("read", "Reads files and mails them.")])
        self.assertTrue(until(lambda: gateway.request("POST", "/mcp/servers/toy/refresh") and gateway.items("/drift?status=open")))
        listed = self.command("drift", "list", gateway=gateway)
        self.assertIn("quarantined", listed)
        identity = self.command("drift", "list", "-q", gateway=gateway).strip()
        shown = self.command("drift", "show", identity, gateway=gateway)
        self.assertIn('+   "description": "Reads files and mails them."', shown)
        self.assertNotIn("\x1b", shown)
        self.assertIn("quarantined", self.command("servers", "tools", "toy", gateway=gateway))
        self.assertIn("changes of tools to review: 1, 1 of them", self.run_command("status", **self.gateway_options(gateway)).stdout)
        self.assertIn("--yes", self.error_of("drift", "approve", identity, gateway=gateway, status=2))
        self.command("drift", "approve", identity, "--yes", gateway=gateway)
        self.assertEqual(self.json_of("drift", "list", gateway=gateway), [])
        self.assertEqual(self.error_of("drift", "list", gateway=gateway, status=0),
                         "No open changes; 1 approved: fairlead drift list --status all\n")  # fmt: skip
        self.assertIn("approved", self.command("drift", "list", "--status", "all", gateway=gateway))

    def test_omitted_tools_are_listed_with_the_reason(self):
        gateway = self.start()
        self.add(gateway, listed=[tool("bad", inputSchema={}), tool("worse", inputSchema=[])])
        self.assertRegex(self.command("servers", "tools", "toy", gateway=gateway), r"toy__bad +omitted: its `inputSchema.type` is not `object`")
        self.assertIn("see: fairlead servers test toy, fairlead servers tools toy", self.run_command("status", **self.gateway_options(gateway)).stdout)
        self.write_state("toy", [tool("bad", inputSchema={}), tool("good")])
        self.command("servers", "refresh", "toy", gateway=gateway)
        self.assertTrue(until(lambda: "good" in self.command("servers", "tools", "toy", gateway=gateway)))

    def test_refusals_of_the_gateway_name_the_member_and_the_code(self):
        gateway = self.start()
        error = self.error_of("servers", "add", "a b", "--", "true", gateway=gateway, status=1)
        self.assertIn("/name", error)
        self.assertIn("invalid_row", error)
        self.command("servers", "add", "one", "--", "true", gateway=gateway)
        self.assertIn("name_taken", self.error_of("servers", "add", "one", "--", "true", gateway=gateway, status=1))
        for name in ("../users", "a/b", "ü ß?x=1#y", "%2e%2e", "."):
            self.assertIn("not_found", self.error_of("servers", "show", name, gateway=gateway, status=1))
        self.assertIn("servers add", self.error_of("servers", "add", "two", gateway=gateway, status=2))
        self.assertIn("NAME -- npx …", self.error_of("servers", "add", "two", "npx", "-y", "x", gateway=gateway, status=2))

    def test_destructive_steps_need_yes_without_a_terminal(self):
        gateway = self.start()
        self.command("servers", "add", "one", "--", "true", gateway=gateway)
        self.assertIn("--yes", self.error_of("servers", "remove", "one", gateway=gateway, status=2))
        self.assertEqual(self.command("servers", "list", "-q", gateway=gateway), "one\n")

    def test_a_wrong_token_and_a_missing_gateway_are_explained(self):
        gateway = self.start()
        error = self.error_of("servers", "list", gateway=gateway, FAIRLEAD_TOKEN="fl_wrong-wrong-wrong-wrong", status=3)
        self.assertIn("invalid_token", error)
        self.assertNotIn("fl_wrong", error)
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        self.assertIn("connection failed", self.error_of("servers", "list", "--gateway", address, status=3))

    def head_sent_by_proxy(self, host):
        """Lists the servers of a gateway on `host`. Returns the head of the request that the proxy gets."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            command = subprocess.Popen(
                [PROGRAM, "servers", "list", "--gateway", f"http://{host}:{port}"],
                env=self.environment(http_proxy=f"http://127.0.0.1:{port}"), stderr=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
            connection, _ = server.accept()
            with connection:
                head = connection.recv(65536)
        command.communicate(timeout=60)
        return head

    def test_the_token_of_this_user_is_not_sent_to_other_machines(self):
        os.makedirs(self.path("state/fairlead"), mode=0o700)
        with open(self.path("state/fairlead/admin.token"), "w", opener=lambda p, f: os.open(p, f, 0o600), encoding="utf-8") as file:
            file.write(ADMIN_TOKEN + "\n")
        for host in ("localhost.localdomain.invalid", "127.0.0.1.evil.invalid", "127.evil.invalid"):
            head = self.head_sent_by_proxy(host)
            self.assertIn(f"GET http://{host}".encode(), head)
            self.assertNotIn(b"uthorization", head)

    def test_a_gateway_without_tokens_is_found_by_its_database(self):
        gateway = self.start("--auth-mode", "none", token=None)
        database = "sqlite:" + self.path("fairlead.db")
        self.add_toy(None, FAIRLEAD_DB=database)
        self.assertEqual(gateway.items("/mcp/servers", token=self.admin_token())[0]["name"], "toy")
        self.assertEqual(self.command("servers", "list", "-q", "--db", database), "toy\n")
        self.assertIn("gateway ", self.command("status", "--db", database))

    def admin_token(self):
        with open(self.path("state/fairlead/admin.token"), encoding="utf-8") as file:
            return file.read().strip()

    def test_a_database_that_nobody_serves_is_changed_directly(self):
        database = "sqlite:" + self.path("fairlead.db")
        self.command("servers", "add", "one", "--db", database, "--", "true")
        self.command("users", "add", "ann", "--db", database)
        self.assertEqual(self.command("servers", "list", "-q", "--db", database), "one\n")
        for arguments in (["logs", "one"], ["restart", "one"], ["refresh", "one"]):
            self.assertIn("fairlead serve", self.error_of("servers", *arguments, "--db", database, status=3))
        self.assertIn("no gateway", self.command("status", "--db", database, status=1))
        self.write_state()
        self.command("servers", "add", "toy", "--db", database, "--", sys.executable, TOY, self.state_file())
        self.assertIn("ok: 3 tools", self.command("servers", "test", "toy", "--db", database))
        self.assertEqual([name for name in os.listdir(self.scratch) if name.startswith("fairlead-")], [])
        gateway = self.start()
        self.assertEqual(sorted(row["name"] for row in gateway.items("/mcp/servers")), ["one", "toy"])
        self.assert_exits_cleanly(gateway)

    def test_commands_at_the_same_time_wait_for_the_database(self):
        database = "sqlite:" + self.path("fairlead.db")
        joins = [self.in_background(self.command, "servers", "add", f"s{i}", "--db", database, "--", "true") for i in range(4)]
        for join in joins:
            join()
        self.assertEqual(len(self.json_of("servers", "list", "--db", database)), 4)

    def test_a_used_database_whose_gateway_is_unknown_is_reported(self):
        self.start()
        self.assertTrue(until(lambda: os.path.exists(self.path("fairlead.db.gateway"))))
        os.remove(self.path("fairlead.db.gateway"))
        error = self.error_of("servers", "list", "--db", "sqlite:" + self.path("fairlead.db"), status=3)
        self.assertIn("--gateway", error)
        self.assertIn("database_in_use", error)

    def test_second_gateway_on_a_database_names_the_remedy(self):
        self.start()
        error = self.error_of("serve", "--db", "sqlite:" + self.path("fairlead.db"), "--listen", "127.0.0.1:0", status=3)
        self.assertIn("database_in_use", error)
        self.assertIn("choose another database with --db", error)

    def test_scope_or_pattern_that_names_nothing_is_warned_about(self):
        gateway = self.start()
        self.add(gateway)
        self.command("users", "add", "ann", gateway=gateway)
        warning = self.error_of("endpoints", "add", "team", "--server", "to*", "--server", "tyo", gateway=gateway, status=0)
        self.assertEqual(warning, "warning: no server has a name that matches `tyo`\n")
        scopes = ("--scope", "mcp", "--scope", "endpoint:team", "--scope", "server:toy", "--scope", "endpoint:taem", "--scope", "server:tyo")
        warning = self.error_of("tokens", "create", "ann", "-q", *scopes, gateway=gateway, status=0)
        self.assertEqual(warning, "warning: the scope `endpoint:taem` names no endpoint that you can see\n"
                                  "warning: the scope `server:tyo` names no server that you can see\n")  # fmt: skip

    def test_help_has_the_scopes_and_the_article(self):
        self.assertIn("endpoint:NAME", self.command("tokens", "create", "--help"))
        self.assertIn("Add an endpoint", self.command("endpoints", "add", "--help"))
        self.assertIn("Add a user", self.command("users", "add", "--help"))

    def test_a_misspelt_database_is_not_created(self):
        database = "sqlite:" + self.path("typo.db")
        for arguments in (["servers", "list"], ["status"], ["servers", "remove", "one", "--yes"], ["config", "get", "mcp.list_wait"]):
            self.assertIn("there is no database", self.error_of(*arguments, "--db", database, status=2))
        self.assertEqual([name for name in os.listdir(self.scratch) if name.startswith("typo")], [])

    def test_every_change_has_a_json_form(self):
        gateway = self.start()
        for group in ("users", "groups", "endpoints"):
            self.command(group, "add", "ann", gateway=gateway)
        self.command("servers", "add", "ann", "--", "true", gateway=gateway)
        token = self.json_of("tokens", "create", "ann", gateway=gateway)["id"]
        self.assertEqual(self.json_of("tokens", "revoke", token, "-y", gateway=gateway), {"revoked": True, "id": token})
        for group in ("servers", "users", "groups", "endpoints"):
            self.assertEqual(self.json_of(group, "remove", "ann", "-y", gateway=gateway), {"removed": True, "name": "ann"}, group)
        added = self.json_of("context", "add", "work", "--gateway", "http://127.0.0.1:1")
        self.assertEqual(added, {"name": "work", "current": False, "gateway": "http://127.0.0.1:1"})
        self.assertEqual(self.json_of("context", "use", "work"), {**added, "current": True})
        self.assertEqual(self.json_of("context", "use", "--none"), {"name": None, "current": False})
        self.assertEqual(self.json_of("context", "remove", "work", "-y"), {"removed": True, "name": "work"})

    def test_the_status_as_json_has_everything_that_decides_about_it(self):
        gateway = self.start()
        report = self.json_of("status", gateway=gateway)
        self.assertEqual((report["status"], report["readiness"]["status"]), ("ok", "ok"))
        self.assertEqual(report["drift"], {"open": 0, "quarantined": 0})

    def test_the_check_of_a_configuration_has_a_json_form(self):
        with open(self.path("good.json"), "w", encoding="utf-8") as file:
            file.write('{"mcpServers": {"a": {"command": "true", "argz": []}}}')
        checked = self.json_of("config", "check", self.path("good.json"))
        self.assertEqual((checked["ok"], checked["servers"], checked["problems"]), (True, 1, []))
        self.assertIn("argz", checked["warnings"][0])
        with open(self.path("bad.toml"), "w", encoding="utf-8") as file:
            file.write('listn = "x"\n[servers.a]\ncommad = "true"\n')
        checked = json.loads(self.command("config", "check", self.path("bad.toml"), "--json", status=2))
        self.assertFalse(checked["ok"])
        self.assertEqual(len(checked["problems"]), 2, checked)

    def test_a_name_beside_a_row_on_stdin_is_an_error(self):
        gateway = self.start()
        body = json.dumps({"name": "two", "config": {"command": "true"}})
        self.assertIn("has its own", self.error_of("servers", "add", "one", "--", "-", input=body, gateway=gateway, status=2))
        self.assertEqual(gateway.items("/mcp/servers"), [])

    def test_a_signal_ends_a_command_silently(self):
        database = "sqlite:" + self.path("fairlead.db")
        self.command("servers", "add", "slow", "--db", database, "--", "sh", "-c", f'touch "{self.path("started")}"; exec sleep 1000')
        command = subprocess.Popen([PROGRAM, "servers", "test", "slow", "--db", database], env=self.environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.assertTrue(until(lambda: os.path.exists(self.path("started"))))
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=60)
        self.assertEqual((command.returncode, err), (128 + signal.SIGINT, ""))
        self.assertNotIn("failed", out)

    def test_a_failing_token_command_does_not_stop_the_explanation(self):
        self.command("context", "add", "x", "--gateway", "http://127.0.0.1:1", "--token-command", "echo secret; exit 7", "--use")
        error = self.error_of("servers", "list", status=2)
        self.assertIn("status 7", error)
        self.assertNotIn("secret", error)

    def test_output_to_a_full_disk_is_an_error(self):
        gateway = self.start()
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "config", "list"], stdout=full, stderr=subprocess.PIPE, env=self.environment(**self.gateway_options(gateway)))
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_a_configuration_file_is_checked_without_starting_it(self):
        with open(self.path("good.toml"), "w", encoding="utf-8") as file:
            file.write('[servers.a]\ncommand = "true"\n')
        self.assertIn("1 server", self.command("config", "check", self.path("good.toml")))
        with open(self.path("bad.toml"), "w", encoding="utf-8") as file:
            file.write('listn = "x"\n[servers.a]\ncommad = "true"\n[servers."b"]\ncommand = 7\nargs = ["x", 1]\n[servers."c d"]\ncommand = "true"\n')
        error = self.error_of("config", "check", self.path("bad.toml"), status=2)
        for word in ("listn", "commad", "command", "args", "c d"):
            self.assertIn(word, error)
        self.assertEqual(len(error.splitlines()), 5, error)
        with open(self.path("syntax.toml"), "w", encoding="utf-8") as file:
            file.write("[servers\n")
        self.assertIn("syntax.toml", self.error_of("config", "check", self.path("syntax.toml"), status=2))
        self.assertIn("no-such-file", self.error_of("config", "check", self.path("no-such-file"), status=2))


    def test_lists_of_several_pages_are_complete(self):
        gateway = self.start()
        for i in range(6):  # a page has about 4 MiB
            body = {"name": f"s{i}", "config": {"command": "true"}, "enabled": False, "metadata": {"text": "x" * 900_000}}
            gateway.create("/mcp/servers", body)
        self.assertTrue(gateway.get("/mcp/servers").get("nextCursor"))
        self.assertEqual(self.command("servers", "list", "-q", gateway=gateway).split(), [f"s{i}" for i in range(6)])


class PostgresTest(CommandTest):
    def test_a_gateway_and_commands_share_a_database_of_postgresql(self):
        with PostgresServer() as server:
            database = server.new_database("commands")
            gateway = self.start(database=database)
            self.command("servers", "add", "one", "--gateway", f"http://127.0.0.1:{gateway.port}", "--", "true", FAIRLEAD_TOKEN=ADMIN_TOKEN)
            self.command("servers", "add", "two", "--db", database, "--", "true")  # in this process, beside the gateway
            self.assertTrue(until(lambda: len(gateway.items("/mcp/servers")) == 2))
            self.assertEqual(self.command("servers", "list", "-q", gateway=gateway), "one\ntwo\n")
            self.assertEqual(gateway.end(), 0)


if __name__ == "__main__":
    unittest.main()
