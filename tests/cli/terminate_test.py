#!/usr/bin/env python3
"""fairlead terminate: exit statuses, output, --watch, and that it never ends a process that is not in the manifest."""
import json
import os
import subprocess
import sys
import unittest

import program

HEADER = '{"fairlead_manifest":1}\n'


def start_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[19])


def manifest_entry(pid, start=None, boot=None):
    """Returns the lines of a process in the manifest."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        current_boot = file.read().strip()
    entry = {"pid": pid, "start": start or start_time(pid), "inode": 0, "boot": boot or current_boot,
             "pid_ns": os.stat("/proc/self/ns/pid").st_ino, "role": "child", "name": "sleeper"}
    return json.dumps(entry) + f"\nkill {pid}\n"


class TerminateTest(program.ProgramTest):
    def sleeper(self):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def manifest(self, *lines, mode=0o600):
        path = self.path("manifest")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEADER + "".join(lines))
        os.chmod(path, mode)
        return path

    def test_processes_of_the_manifest_are_ended_and_printed(self):
        sleeper = self.sleeper()
        path = self.manifest(manifest_entry(sleeper.pid))
        dry = program.run("terminate", path, "--dry-run", "--json")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        report = json.loads(dry.stdout)
        self.assertEqual(report["processes"], [{"pid": sleeper.pid, "name": "sleeper", "by": "entry", "ending": "would end"}])
        self.assertIsNone(sleeper.poll())
        result = program.run("terminate", path)
        self.assertEqual((result.returncode, result.stdout), (0, f"{sleeper.pid}  sleeper  (entry)  ended\n".encode()))
        self.assertEqual(sleeper.wait(program.DEADLINE), -15)

    def test_process_with_a_recycled_pid_is_not_ended(self):
        sleeper = self.sleeper()
        path = self.manifest(manifest_entry(sleeper.pid, start=start_time(sleeper.pid) - 1), manifest_entry(sleeper.pid, boot="another"))
        result = program.run("terminate", path)
        self.assertEqual((result.returncode, result.stdout), (0, b""))
        self.assertIn("1 recycled PIDs, 1 entries of another boot", result.stderr)
        self.assertIsNone(sleeper.poll())

    def test_foreign_cgroup_is_reported_and_its_processes_are_not_ended(self):
        sleeper = self.sleeper()
        fields = json.loads(manifest_entry(sleeper.pid, start=start_time(sleeper.pid) - 1).split("\n")[0])
        path = self.manifest(json.dumps({**fields, "cookie": "9.77", "cgroup": "/"}) + "\n")
        # With --dry-run, because a terminator that used this cgroup would end processes of others.
        report = json.loads(program.run("terminate", path, "--dry-run", "--json").stdout)
        self.assertEqual((report["processes"], report["foreign_cgroups"]), ([], ["/"]))
        self.assertIn('cgroup "/" was skipped: it was not created for', program.run("terminate", path, "--dry-run").stderr)

    def test_invalid_manifests_and_arguments_are_rejected(self):
        path = self.path("manifest")
        with open(path, "w", encoding="utf-8") as file:
            file.write("kill 1\n")
        os.chmod(path, 0o600)
        self.assert_exited(program.run("terminate", path), 2, stderr="is not a manifest")
        self.assert_exited(program.run("terminate", self.manifest(mode=0o622)), 2, stderr="can be written by others")
        self.assert_exited(program.run("terminate", self.path("none")), 3, stderr="No such file")
        self.assert_exited(program.run("terminate"), 2)
        for invalid_pid in ("-1", "0", "x"):
            refused = program.run("terminate", path, "--watch", invalid_pid)
            self.assert_exited(refused, 2)
            self.assertLess(len(refused.stderr), 200, refused.stderr)

    def test_watch_waits_until_the_watched_process_has_ended(self):
        watched, sleeper = self.sleeper(), self.sleeper()
        path = self.manifest(manifest_entry(sleeper.pid))
        terminator = program.start("terminate", path, "--watch", str(watched.pid))
        # The terminator waits: without --watch it would end the process in far less time.
        with self.assertRaises(subprocess.TimeoutExpired):
            terminator.wait(0.5)
        self.assertIsNone(sleeper.poll())
        watched.kill()
        watched.wait(program.DEADLINE)
        out, err = terminator.communicate(timeout=program.DEADLINE)
        self.assertEqual(terminator.returncode, 0, err)
        self.assertIn(b"ended", out)
        self.assertEqual(sleeper.wait(program.DEADLINE), -15)

    def test_watch_does_not_wait_for_a_process_that_has_ended(self):
        gone = self.sleeper()
        gone.kill()
        gone.wait(program.DEADLINE)
        result = program.run("terminate", self.path("none"), "--watch", str(gone.pid))
        self.assertEqual((result.returncode, result.stdout), (0, b""), "without a manifest there is nothing to end")


if __name__ == "__main__":
    unittest.main()
