#!/usr/bin/env python3
"""Completion scripts, loaded by the real shells, and manual pages."""
import os
import shutil
import subprocess
import unittest

from harness import PROGRAM
from command_line import CommandTest


class CompletionTest(CommandTest):
    def completed_by_bash(self, line, gateway=None):
        """Returns what bash offers for the last word of the line."""
        script = 'eval "$(fairlead completion bash)"; COMP_LINE="$1"; read -ra COMP_WORDS <<< "$1"; [[ $1 == *" " ]] && COMP_WORDS+=("");' \
                 'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fairlead; printf "%s\\n" "${COMPREPLY[@]}"'  # fmt: skip
        os.makedirs(self.path("bin"), exist_ok=True)
        if not os.path.exists(self.path("bin/fairlead")):
            os.symlink(PROGRAM, self.path("bin/fairlead"))
        options = self.gateway_options(gateway) if gateway else {}
        environment = self.environment(**options, PATH=self.path("bin") + ":" + os.environ["PATH"])
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", line], capture_output=True, text=True, env=environment, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")[:-1]

    def test_bash_completes_commands_options_and_choices(self):
        self.assertEqual(self.completed_by_bash("fairlead serv"), ["serve", "servers"])
        self.assertEqual(sorted(self.completed_by_bash("fairlead servers re")), ["refresh", "remove", "restart"])
        self.assertIn("--visibility", self.completed_by_bash("fairlead servers add x --vis"))
        self.assertEqual(self.completed_by_bash("fairlead endpoints add x --mode d"), ["direct", "discover"])
        self.assertEqual(self.completed_by_bash("fairlead servers add x --drift q"), ["quarantine"])
        self.assertEqual(self.completed_by_bash("fairlead servers add x -- --vis"), [""])

    def test_bash_completes_names_of_a_running_gateway(self):
        gateway = self.start()
        for name in ("alpha", "beta"):
            self.command("servers", "add", name, "--", "true", gateway=gateway)
        self.command("users", "add", "ann", gateway=gateway)
        self.assertEqual(self.completed_by_bash("fairlead servers show ", gateway), ["alpha", "beta"])
        self.assertEqual(self.completed_by_bash("fairlead servers remove alpha b", gateway), ["beta"])
        self.assertEqual(self.completed_by_bash("fairlead servers add ", gateway), [""])
        self.assertEqual(self.completed_by_bash("fairlead tokens create a", gateway), ["ann"])
        self.assertEqual(self.completed_by_bash("fairlead config get auth.mo", gateway), ["auth.mode"])

    def test_names_are_completed_with_the_gateway_of_the_options(self):
        gateway = self.start()
        self.command("servers", "add", "alpha", "--", "true", gateway=gateway)
        words = ["servers", "show", "--gateway", f"http://127.0.0.1:{gateway.port}", "al"]
        self.assertIn("alpha\t", self.command("__complete", *words, FAIRLEAD_TOKEN=gateway.token))

    def test_nothing_is_printed_without_a_gateway(self):
        done = self.run_command("__complete", "servers", "show", "", FAIRLEAD_GATEWAY="http://127.0.0.1:1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = self.run_command("__complete", "servers", "show", "")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertFalse(os.path.exists(self.path("state/fairlead/fairlead.db")))

    def test_every_script_names_the_shell(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.command("completion", shell)
            self.assertIn("__complete", script)
            if shutil.which(shell):
                check = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}[shell]
                done = subprocess.run(check, input=script, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_manual_pages_have_no_warnings(self):
        directory = self.path("man")
        os.makedirs(directory)
        self.command("man", "--directory", directory)
        pages = sorted(os.listdir(directory))
        for page in ("fairlead.1", "fairlead-serve.1", "fairlead-servers.1", "fairlead-context.1"):
            self.assertIn(page, pages)
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for page in pages:
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], cwd=directory, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page)
        shown = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "fairlead-servers.1"], cwd=directory, capture_output=True, text=True)
        self.assertIn("--visibility", shown.stdout)
        self.assertIn("fairlead servers add", shown.stdout)


if __name__ == "__main__":
    unittest.main()
