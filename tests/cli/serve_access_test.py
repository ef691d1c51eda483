#!/usr/bin/env python3
"""fairlead serve: which addresses need authentication, and the choice between a file and a database."""
import unittest

import program
from serve_test import Gateway, ServeTest


class ServeAccessTest(ServeTest):
    def test_public_address_is_rejected_without_the_flag(self):
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.7:0"):
            result = program.run("serve", "--listen", address, *self.config(self.server()))
            self.assertEqual(result.returncode, 2, result.stderr)
            for words in (f"refusing to listen on {address}", "does not authenticate", "127.0.0.1", "--insecure-no-auth", "FAIRLEAD_ADMIN_TOKEN"):
                self.assertIn(words, result.stderr)
            result = program.run("serve", "--listen", address, "--auth-mode", "none")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"refusing to listen on {address}", result.stderr)
        result = program.run("serve", *self.config('listen = "0.0.0.0:0"\n' + self.server()))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("refusing to listen on 0.0.0.0:0", result.stderr)

    def test_public_address_needs_no_flag_if_clients_need_a_token(self):
        token = "a-token-of-the-administrator"
        for args in (self.config(self.server()), ()):
            with Gateway(*args, listen="0.0.0.0:0", env={"FAIRLEAD_ADMIN_TOKEN": token}) as gateway:
                self.assertEqual(gateway.ask("GET", "/health")[0], 401, args)
                self.assertEqual(gateway.ask("GET", "/healthz")[0], 200, args)
                self.assertEqual(gateway.ask("GET", "/health", None, {"Authorization": f"Bearer {token}"})[0], 200, args)

    def test_short_token_is_accepted_at_a_local_address(self):
        for args in (self.config(self.server()), ()):
            with Gateway(*args, env={"FAIRLEAD_ADMIN_TOKEN": "short"}) as gateway:
                self.assertEqual(gateway.ask("GET", "/health")[0], 401, args)
                self.assertEqual(gateway.ask("GET", "/health", None, {"Authorization": "Bearer short"})[0], 200, args)

    def test_unusable_authentication_settings_are_rejected(self):
        for args, env, words in (
            (("--auth-mode", "password"), {}, "is none of auto, none, token"),
            (("--auth-mode", "token", *self.config(self.server())), {}, "FAIRLEAD_ADMIN_TOKEN"),
            (("--listen", "0.0.0.0:0"), {"FAIRLEAD_ADMIN_TOKEN": "short"}, "FAIRLEAD_ADMIN_TOKEN"),
            ((), {"FAIRLEAD_ADMIN_TOKEN": "not a token"}, "FAIRLEAD_ADMIN_TOKEN"),
        ):
            result = program.run("serve", *args, env=env)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(words, result.stderr)

    def test_public_address_with_the_flag_is_served_with_a_warning(self):
        with Gateway("--insecure-no-auth", *self.config(self.server()), listen="0.0.0.0:0") as gateway:
            self.assertIn("without authentication", "".join(gateway.lines))
            for host, status in (("192.0.2.7:80", 200), ("localhost", 200), ("evil.example", 403)):
                got, body = gateway.ask("GET", "/health", None, {"Host": host})
                self.assertEqual(got, status, host)
            self.assertIn("allowed_hosts", str(body))

    def test_local_addresses_need_no_flag(self):
        for address in ("127.0.0.1:0", "localhost:0", "unix:" + self.path("socket")):
            with Gateway(listen=address) as gateway:
                self.assertNotIn("without authentication", "".join(gateway.lines))


class ServeDatabaseTest(ServeTest):
    def test_servers_of_a_file_are_rejected_if_there_is_a_database(self):
        result = program.run("serve", "--db", "sqlite:" + self.path("gateway.db"), *self.config(self.server()))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("fairlead servers import", result.stderr)

    def test_second_gateway_on_the_same_database_is_rejected(self):
        database = ("--db", "sqlite:" + self.path("gateway.db"))
        with Gateway(*database) as gateway:
            result = program.run("serve", "--listen", "127.0.0.1:0", *database)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(self.path("gateway.db"), result.stderr)
            self.assertIn(str(gateway.process.pid), result.stderr)


if __name__ == "__main__":
    unittest.main()
