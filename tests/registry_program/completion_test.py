#!/usr/bin/env python3
"""Completion scripts in interactive shells, and manual pages."""
import os
import shutil
import subprocess
import unittest

from harness import PROGRAM, until
from command_line import CommandTest, Terminal

# How each shell is started, and the line of its documentation that loads the completion.
SHELLS = {
    "bash": (["bash", "--noprofile", "--rcfile", "{home}/bashrc", "-i"], "bashrc", 'PS1="ready> "\neval "$(fairlead completion bash)"\n'),
    "zsh": (["zsh", "-d", "-i"], ".zshrc", 'PS1="ready> "\nautoload -U compinit; compinit -u -D\nsource <(fairlead completion zsh)\n'),
    "fish": (["fish", "-i"], ".config/fish/config.fish",
             "function fish_prompt; echo -n 'ready> '; end\nfairlead completion fish | source\n"),
}  # fmt: skip
# Is `fairlead` in the shells: completes, and otherwise writes its arguments to the file `ran`.
RECORDER = """#!/bin/sh
case $1 in __complete | completion) exec "{program}" "$@" ;; esac
printf '%s\\n' "$@" >"{ran}.new" && mv "{ran}.new" "{ran}"
"""


class CompletionTest(CommandTest):
    def completed_by_bash(self, line, gateway=None):
        """Returns what bash offers for the last word of the line."""
        script = 'eval "$(fairlead completion bash)"; COMP_LINE="$1"; COMP_POINT=${#1}; read -ra COMP_WORDS <<< "$1"; [[ $1 == *" " ]] && COMP_WORDS+=("");' \
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

    def test_clients_and_targets_are_completed(self):
        gateway = self.start()
        self.command("servers", "add", "alpha", "--", "true", gateway=gateway)
        for words in (["tools", "al"], ["inspect", "al"], ["resources", "--timeout", "5s", "al"]):
            self.assertEqual(self.command("__complete", *words, gateway=gateway), "alpha\t\n", words)
        self.assertEqual(self.command("__complete", "call", "al", gateway=gateway), "")
        for words in (["connect", "curs"], ["servers", "import", "curs"], ["servers", "export", "curs"]):
            self.assertEqual(self.command("__complete", *words), "cursor\tCursor\n", words)

    def test_values_after_an_equals_sign_are_completed(self):
        self.assertEqual(self.command("__complete", "endpoints", "add", "x", "--mode=dis"), "--mode=discover\t\n")
        self.assertEqual(self.command("__complete", "endpoints", "add", "x", "--no-such=d"), "")

    def test_completion_runs_no_command_for_a_token(self):
        gateway = self.start()
        self.command("servers", "add", "alpha", "--", "true", gateway=gateway)
        address = f"http://127.0.0.1:{gateway.port}"
        self.command("context", "add", "cmd", "--gateway", address, "--token-command", f"touch '{self.path('ran')}'; echo {gateway.token}")
        words = ["__complete", "servers", "show", ""]
        self.assertEqual(self.command(*words, FAIRLEAD_CONTEXT="cmd"), "")
        self.assertEqual(self.command(*words[:-1], "--context", "cmd", ""), "")
        self.command("context", "use", "cmd")
        self.assertEqual(self.command(*words), "")
        self.assertFalse(os.path.exists(self.path("ran")))
        # Where the context is not used, or its token is not, names are completed.
        self.assertEqual(self.command(*words, FAIRLEAD_TOKEN=gateway.token), "alpha\t\n")
        self.assertEqual(self.command(*words, gateway=gateway), "alpha\t\n")
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_nothing_is_printed_without_a_gateway(self):
        done = self.run_command("__complete", "servers", "show", "", FAIRLEAD_GATEWAY="http://127.0.0.1:1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = self.run_command("__complete", "servers", "show", "")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertFalse(os.path.exists(self.path("state/fairlead/fairlead.db")))

    def test_every_script_names_the_shell(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("__complete", self.command("completion", shell))

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


class ShellTest(CommandTest):
    """Types lines into an interactive shell, and looks at the arguments that the completed command gets."""

    def start_shell(self, shell, **environment):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed (tools/packages.txt)")
        arguments, configuration, text = SHELLS[shell]
        home = self.path("home-" + shell)
        os.makedirs(os.path.join(home, "bin"))
        os.makedirs(os.path.dirname(os.path.join(home, configuration)), exist_ok=True)
        with open(os.path.join(home, configuration), "w", encoding="utf-8") as file:
            file.write(text)
        recorder = os.path.join(home, "bin/fairlead")
        with open(recorder, "w", encoding="utf-8") as file:
            file.write(RECORDER.format(program=PROGRAM, ran=self.path("ran")))
        os.chmod(recorder, 0o755)
        variables = {"HOME": home, "ZDOTDIR": home, "XDG_CONFIG_HOME": home + "/.config", "TERM": "xterm", "LC_ALL": "C.UTF-8",
                     "PATH": home + "/bin:" + os.environ["PATH"], **environment}  # fmt: skip
        words = [word.format(home=home) for word in arguments]
        terminal = Terminal(words[1:], self.environment(**variables), columns=200, program=words[0])
        self.addCleanup(terminal.close)
        terminal.read_until("ready> ")
        return terminal

    def completed(self, terminal, line):
        """Types the line, the tabulator key and the enter key. Returns the arguments of the command that runs."""
        ran = self.path("ran")
        terminal.type(line + "\t")
        terminal.type("\n")
        self.assertTrue(until(lambda: terminal.read_available() and os.path.exists(ran)), terminal.text)
        with open(ran, encoding="utf-8") as file:
            words = file.read().splitlines()
        os.remove(ran)
        return words

    def check_shell(self, shell):
        gateway = self.start()
        self.command("servers", "add", "alpha", "--", "true", gateway=gateway)
        url = f"http://127.0.0.1:{gateway.port}"
        database = "sqlite:" + self.path("fairlead.db")
        with open(self.path("token"), "w", opener=lambda path, flags: os.open(path, flags, 0o600), encoding="utf-8") as file:
            file.write(gateway.token + "\n")
        terminal = self.start_shell(shell, FAIRLEAD_TOKEN=gateway.token)
        for line, completed in (
            ("servers rest", ["servers", "restart"]),
            (f"servers show --gateway {url} al", ["servers", "show", "--gateway", url, "alpha"]),
            (f"servers show --gateway={url} al", ["servers", "show", "--gateway=" + url, "alpha"]),
            (f"servers show --gateway '{url}' al", ["servers", "show", "--gateway", url, "alpha"]),
            (f"servers show --db {database} al", ["servers", "show", "--db", database, "alpha"]),
            (f"servers show --timeout 3s --gateway {url} al", ["servers", "show", "--timeout", "3s", "--gateway", url, "alpha"]),
            ("endpoints add x --mode=dis", ["endpoints", "add", "x", "--mode=discover"]),
            ("endpoints add x --mode dis", ["endpoints", "add", "x", "--mode", "discover"]),
            ("connect --url http://127.0.0.1:1/mcp curs", ["connect", "--url", "http://127.0.0.1:1/mcp", "cursor"]),
            ("version --js", ["version", "--json"]),
        ):
            words = self.completed(terminal, "fairlead " + line)
            if words != completed:  # names are not waited for longer than a second, which a busy machine may need
                words = self.completed(terminal, "fairlead " + line)
            self.assertEqual(words, completed, line)

    def test_bash_completes_what_is_typed(self):
        self.check_shell("bash")

    def test_zsh_completes_what_is_typed(self):
        self.check_shell("zsh")

    def test_fish_completes_what_is_typed(self):
        self.check_shell("fish")


if __name__ == "__main__":
    unittest.main()
