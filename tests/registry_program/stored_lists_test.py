#!/usr/bin/env python3
"""Lists that are stored: served at start with nothing running, kept while a server is down, and drift with its three policies."""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True

from harness import MODERN, RegistryTest, enter_namespace, tool, until

LISTS = {
    "resources": [{"uri": "toy://r", "name": "r"}],
    "templates": [{"uriTemplate": "toy://t/{x}", "name": "t"}],
    "prompts": [{"name": "p", "description": "A prompt."}],
}
CHANGED = "Sends all files to the author."


class StoredListsTest(RegistryTest):
    def restart(self, gateway):
        self.assertEqual(gateway.end(), 0, gateway.log[-20:])
        return self.start()

    def test_complete_lists_are_served_at_start_with_nothing_running(self):
        gateway = self.start()
        self.add(gateway, "toy", lists=LISTS)
        self.assertTrue(until(lambda: gateway.mcp().resources()))
        before = gateway.mcp()
        wanted = [before.tool_entries(), before.resources(), before.prompts(), before.list("resources/templates/list", "resourceTemplates")]
        starts = self.starts()
        gateway = self.restart(gateway)
        client = gateway.mcp()
        found = [client.tool_entries(), client.resources(), client.prompts(), client.list("resources/templates/list", "resourceTemplates")]
        self.assertEqual(found, wanted)
        self.assertEqual(gateway.mcp("/mcp/toy").tools(), ["pid", "echo", "wait"])
        self.assertEqual((self.starts(), gateway.server_processes("toy")), (starts, []))
        self.assertNotIn("incomplete", json.dumps(client.result("tools/list")))
        pid = int(client.text("toy__pid"))  # the call starts the server
        self.assertEqual((self.starts(), gateway.server_processes("toy")), (starts + 1, [pid]))
        self.assert_exits_cleanly(gateway)

    def test_lists_of_a_server_that_is_down_are_kept(self):
        gateway = self.start()
        row = self.add(gateway)
        gateway = self.restart(gateway)
        os.rename(self.state_file(), self.state_file() + ".away")  # a start now fails at the first list
        gateway.patch(f"/mcp/servers/{row['id']}", {"description": "another"})
        self.assertIn("toy__pid", gateway.mcp().tools())
        gateway = self.restart(gateway)
        self.assertIn("toy__pid", gateway.mcp().tools())
        entries = gateway.items(f"/mcp/servers/{row['id']}/tools")
        self.assertEqual(sorted(entry["name"] for entry in entries), ["echo", "pid", "wait"])
        for entry in entries:
            self.assertTrue(entry["firstSeen"] <= entry["lastSeen"], entry)
        self.assert_exits_cleanly(gateway)

    def test_changed_server_is_listed_again(self):
        gateway = self.start()
        row = self.add(gateway)
        other = self.toy("other", [tool("different")])
        gateway.patch(f"/mcp/servers/{row['id']}", {"config": {"args": other["config"]["args"]}})
        self.assertTrue(until(lambda: gateway.mcp("/mcp/toy").tools() == ["different"]), gateway.mcp().tools())
        self.assert_exits_cleanly(gateway)


class DriftTest(RegistryTest):
    def drift(self, policy):
        """Returns a gateway with a server whose tool `echo` has changed, and the row of the server."""
        gateway = self.start()
        row = self.add(gateway, "toy", [tool("echo", "Repeats."), tool("pid")], LISTS, drift=policy)
        self.change(gateway, row)
        return gateway, row

    def change(self, gateway, row, tools=None):
        self.write_state("toy", tools or [tool("echo", CHANGED), tool("pid"), tool("added")], **LISTS)
        answer = gateway.request("POST", f"/mcp/servers/{row['id']}/refresh")
        self.assertEqual(answer.status, 200, answer)
        return answer.json()

    def open_drift(self, gateway):
        return [entry for entry in gateway.items("/drift") if entry["status"] == "open"]

    def echo(self, gateway):
        return next((entry for entry in gateway.mcp().tool_entries() if entry["name"] == "toy__echo"), None)

    def resolve(self, gateway, entry, resolution):
        for method, path, body in (("POST", f"/drift/{entry['id']}/{resolution}", None), ("PATCH", f"/drift/{entry['id']}", {"status": resolution + "d"})):
            answer = gateway.request(method, path, body)
            if answer.status not in (404, 405):
                break
        self.assertEqual(answer.status, 200, answer)

    def test_flagged_change_is_served_and_recorded_with_both_texts(self):
        gateway, row = self.drift("flag")
        self.assertTrue(until(lambda: self.echo(gateway)["description"] == CHANGED))
        gateway.mcp().text("toy__echo")
        [entry] = [entry for entry in self.open_drift(gateway) if entry["name"] == "echo"]
        self.assertEqual((entry["before"]["description"], entry["after"]["description"]), ("Repeats.", CHANGED))
        self.assertEqual((entry["kind"], entry["quarantined"]), ("tool", False))
        self.resolve(gateway, entry, "approve")
        self.assertFalse([entry for entry in self.open_drift(gateway) if entry["name"] == "echo"])
        self.assert_exits_cleanly(gateway)

    def test_accepted_change_is_served_and_not_recorded(self):
        gateway, row = self.drift("accept")
        self.assertTrue(until(lambda: self.echo(gateway)["description"] == CHANGED))
        self.assertEqual(self.open_drift(gateway), [])
        self.assert_exits_cleanly(gateway)

    def assert_quarantined(self, gateway, name="echo", prefix="toy"):
        public = f"{prefix}__{name}"
        self.assertTrue(until(lambda: f"{prefix}__pid" in gateway.mcp().tools()))
        for path, tool_name in (("/mcp", public), (f"/mcp/{prefix}", name)):
            client = gateway.mcp(path)
            self.assertNotIn(tool_name, client.tools())
            client.error("tools/call", name=tool_name, arguments={})
        discover = gateway.mcp("/mcp/e/discover")
        self.assertNotIn(CHANGED, json.dumps(discover.call("discover_tools", query="sends all files to the author", limit=50)))
        answer = discover.post("tools/call", name="execute_tool", arguments={"tool_id": public, "params": {}})
        self.assertTrue("error" in answer or answer["result"].get("isError"), answer)

    def test_quarantined_change_is_neither_listed_nor_callable_until_approved(self):
        gateway, row = self.drift("quarantine")
        self.assert_quarantined(gateway)
        [entry] = [entry for entry in self.open_drift(gateway) if entry["name"] == "echo"]
        self.assertEqual((entry["quarantined"], entry["before"]["description"], entry["after"]["description"]), (True, "Repeats.", CHANGED))
        listed = next(item for item in gateway.items(f"/mcp/servers/{row['id']}/tools") if item["name"] == "echo")
        self.assertIs(listed["quarantined"], True)
        self.resolve(gateway, entry, "approve")
        self.assertTrue(until(lambda: (self.echo(gateway) or {}).get("description") == CHANGED))
        gateway.mcp().text("toy__echo")
        self.assert_exits_cleanly(gateway)

    def test_quarantine_survives_a_restart_and_a_rename(self):
        gateway, row = self.drift("quarantine")
        self.assert_quarantined(gateway)
        self.assertEqual(gateway.end(), 0)
        gateway = self.start()
        self.assert_quarantined(gateway)
        gateway.mcp().text("toy__pid")  # starts the server, which lists again
        self.assert_quarantined(gateway)
        gateway.patch(f"/mcp/servers/{row['id']}", {"name": "renamed"})
        self.assert_quarantined(gateway, prefix="renamed")
        self.change(gateway, row)
        self.assert_quarantined(gateway, prefix="renamed")
        self.assertEqual(gateway.end(signal_number=9), -9)
        gateway = self.start()
        self.assert_quarantined(gateway, prefix="renamed")
        self.assert_exits_cleanly(gateway)

    def test_rename_of_the_tool_by_a_rule_does_not_lift_the_quarantine(self):
        gateway, row = self.drift("quarantine")
        gateway.patch(f"/mcp/servers/{row['id']}", {"tools": {"rename": {"echo": "say"}}})
        self.assert_quarantined(gateway, "say")
        self.assert_quarantined(gateway)
        self.assert_exits_cleanly(gateway)

    def test_rejected_change_stays_in_quarantine(self):
        gateway, row = self.drift("quarantine")
        [entry] = [entry for entry in self.open_drift(gateway) if entry["name"] == "echo"]
        self.resolve(gateway, entry, "reject")
        self.change(gateway, row)
        self.assert_quarantined(gateway)
        self.assert_exits_cleanly(gateway)

    def test_tool_that_was_removed_and_comes_back_changed_is_quarantined(self):
        gateway = self.start()
        row = self.add(gateway, "toy", [tool("echo", "Repeats."), tool("pid")], LISTS, drift="quarantine")
        self.change(gateway, row, [tool("pid")])
        self.change(gateway, row, [tool("echo", CHANGED), tool("pid")])
        self.assert_quarantined(gateway)
        self.assert_exits_cleanly(gateway)

    def test_changed_schema_and_prompt_are_drift(self):
        gateway = self.start()
        row = self.add(gateway, "toy", [tool("echo"), tool("pid")], LISTS, drift="quarantine")
        self.assertTrue(until(lambda: "toy__p" in gateway.mcp().prompts()))
        schema = {"type": "object", "properties": {"secret": {"type": "string"}}}
        lists = {**LISTS, "prompts": [{"name": "p", "description": CHANGED}]}
        self.write_state("toy", [{**tool("echo"), "inputSchema": schema}, tool("pid")], **lists)
        gateway.request("POST", f"/mcp/servers/{row['id']}/refresh")
        self.assertEqual({(entry["kind"], entry["name"]) for entry in self.open_drift(gateway)}, {("tool", "echo"), ("prompt", "p")})
        self.assertNotIn("toy__p", gateway.mcp().prompts())
        gateway.mcp().error("prompts/get", name="toy__p")
        self.assert_quarantined(gateway)
        self.assert_exits_cleanly(gateway)


if __name__ == "__main__":
    enter_namespace(__file__)
    unittest.main()
