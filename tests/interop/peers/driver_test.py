#!/usr/bin/env python3
"""run.py with a toolchain that is absent, a registry that cannot be reached, and a peer that does not build.

The toolchains are a script of ours, so that nothing is installed and every machine can run this.
"""
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True  # keeps the source tree unchanged

import install
from table import PEERS

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = {"python-1": ["python3"], "python-2": ["python3"], "go": ["go"], "rust": ["cargo", "rustc"], "java": ["javac", "java", "mvn"]}
TOOLCHAIN = """#!/bin/sh
case "$*" in
*"index versions "* | "list -m "* | "info "* | *validate) exit "$FAKE_REGISTRY" ;;
--version | -version | version) echo "${0##*/} $FAKE_VERSION" ;;
"-m venv "*) /bin/mkdir -p "$3/bin" && /bin/cp "$0" "$3/bin/python" ;;
*" install "* | "build "* | *copy-dependencies* | "-nowarn "*)
  echo "error: as told" && echo "more of it"
  case "$0" in $FAKE_BROKEN) exit 1 ;; esac ;;
esac
"""
ALL, NONE = "*", ""


def ends(pid):
    """Waits until a process that is not a child process has ended. Returns False if it has not ended in time."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 60)[0])
    finally:
        os.close(process)


class DriverTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = pathlib.Path(scratch.name)
        self.root = self.build / "interop" / "peers"
        self.bin = self.build / "bin"
        self.bin.mkdir()
        silence = unittest.mock.patch("builtins.print")
        silence.start()
        self.addCleanup(silence.stop)

    def toolchain(self, name, version="99.0", registry=True, broken=NONE):
        """Makes the toolchain of one installation the only one on the PATH. `broken` is a pattern of programs that fail."""
        for program in PROGRAMS[name]:
            (self.bin / program).write_text(TOOLCHAIN)
            (self.bin / program).chmod(0o755)
        self.environment(FAKE_VERSION=version, FAKE_REGISTRY="0" if registry else "1", FAKE_BROKEN=broken)

    def environment(self, **variables):
        patch = unittest.mock.patch.dict(os.environ, {"PATH": str(self.bin), **variables})
        patch.start()
        self.addCleanup(patch.stop)

    def outcome(self, name):
        ((how, reason),) = install.install(name, self.root).items()
        return how, reason

    def run_peer(self, peer):
        return subprocess.run([sys.executable, HERE / "run.py", self.build, "run", peer], capture_output=True, text=True, timeout=60)

    def test_every_installation_has_a_toolchain(self):
        self.assertEqual(set(install.VERSIONS), set(PROGRAMS))
        self.assertLessEqual({peer.installation for peer in PEERS.values()}, set(PROGRAMS))

    def test_installation_is_absent_without_its_toolchain(self):
        self.environment()
        for name, programs in PROGRAMS.items():
            with self.subTest(name):
                self.assertEqual(self.outcome(name), ("absent", f"{programs[0]} is not installed"))

    def test_installation_is_absent_when_its_toolchain_is_too_old(self):
        for name, programs in PROGRAMS.items():
            with self.subTest(name):
                self.toolchain(name, version="1.2")
                how, reason = self.outcome(name)
                self.assertEqual(how, "absent")
                self.assertIn(f"{programs[0]} 1.2 is too old", reason)

    def test_installation_is_absent_when_it_fails_and_the_registry_does_not_answer(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.toolchain(name, registry=False, broken=ALL)
                how, reason = self.outcome(name)
                self.assertEqual(how, "absent")
                self.assertRegex(reason, "the registry of .* is out of reach: error: as told")

    def test_installation_is_broken_when_it_fails_and_the_registry_answers(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.toolchain(name, broken=ALL)
                how, reason = self.outcome(name)
                self.assertEqual(how, "broken")
                self.assertIn("failed: error: as told", reason)

    def test_java_is_broken_when_it_does_not_compile_whatever_the_registry_says(self):
        self.toolchain("java", registry=False, broken="*/javac")
        self.assertEqual(self.outcome("java"), ("broken", "javac failed: error: as told"))

    def test_command_that_takes_too_long_fails_and_leaves_no_process(self):
        left = self.build / "pid"
        succeeded, output = install.execute(["/bin/sh", "-c", f"sleep 600 & echo $! > {left}; wait"], seconds=5)
        self.assertEqual((succeeded, output), (False, "not finished in 5 s"))
        self.assertTrue(ends(int(left.read_text())))

    def test_installation_is_kept_and_not_repeated(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.toolchain(name)
                self.assertEqual(self.outcome(name)[0], "installed")
                self.toolchain(name, broken=ALL)
                self.assertEqual(self.outcome(name)[0], "installed")

    def test_installation_that_failed_is_tried_again(self):
        self.toolchain("go", broken=ALL)
        self.assertEqual(self.outcome("go")[0], "broken")
        self.toolchain("go")
        self.assertEqual(self.outcome("go")[0], "installed")

    def test_peer_is_skipped_with_the_reason_when_its_installation_is_absent(self):
        self.toolchain("go", registry=False, broken=ALL)
        self.outcome("go")
        done = self.run_peer("go")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("not tried here: go (the registry of go build is out of reach", done.stdout)
        self.assertIn("out of reach", (self.root / "go.absent").read_text())

    def test_peer_fails_with_the_reason_when_its_installation_is_broken(self):
        self.toolchain("go", broken=ALL)
        self.outcome("go")
        done = self.run_peer("go")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("go cannot be run: go build failed: error: as told", done.stderr)
        self.assertFalse((self.root / "go.absent").exists())

    def test_peer_fails_when_nothing_was_installed(self):
        done = self.run_peer("python-servers")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("is not installed", done.stderr)


if __name__ == "__main__":
    unittest.main()
