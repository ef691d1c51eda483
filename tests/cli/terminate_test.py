#!/usr/bin/env python3
"""fairlead terminate, from outside: exit statuses, output, --watch, and that it never ends the wrong process."""
import json
import os
import subprocess
import sys
import time
import unittest

import program

HEADER = '{"fairlead_manifest":1}\n'


def start_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[19])


def line(pid, start=None, boot=None):
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        here = file.read().strip()
    entry = {"pid": pid, "start": start or start_time(pid), "inode": 0, "boot": boot or here,
             "pid_ns": os.stat("/proc/self/ns/pid").st_ino, "role": "child", "name": "sleeper"}
    return json.dumps(entry) + f"\nkill {pid}\n"


class Terminate(program.ProgramTest):
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

    def test_ends_what_is_named_and_says_so(self):
        sleeper = self.sleeper()
        path = self.manifest(line(sleeper.pid))
        dry = program.run("terminate", path, "--dry-run", "--json")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        told = json.loads(dry.stdout)
        self.assertEqual(told["processes"], [{"pid": sleeper.pid, "name": "sleeper", "by": "entry", "ending": "would end"}])
        self.assertIsNone(sleeper.poll())
        result = program.run("terminate", path)
        self.assertEqual((result.returncode, result.stdout), (0, f"{sleeper.pid}  sleeper  (entry)  ended\n".encode()))
        self.assertEqual(sleeper.wait(program.DEADLINE), -15)

    def test_leaves_a_recycled_number_alone(self):
        sleeper = self.sleeper()
        path = self.manifest(line(sleeper.pid, start=start_time(sleeper.pid) - 1), line(sleeper.pid, boot="another"))
        result = program.run("terminate", path)
        self.assertEqual((result.returncode, result.stdout), (0, b""))
        self.assertIn("1 numbers that are others' now, 1 entries of another boot", result.stderr)
        self.assertIsNone(sleeper.poll())

    def test_reports_a_cgroup_that_is_not_ours_and_leaves_it_alone(self):
        sleeper = self.sleeper()
        fields = json.loads(line(sleeper.pid, start=start_time(sleeper.pid) - 1).split("\n")[0])
        path = self.manifest(json.dumps({**fields, "cookie": "9.77", "cgroup": "/"}) + "\n")
        # Dry: if it were followed, processes of others would be ended.
        told = json.loads(program.run("terminate", path, "--dry-run", "--json").stdout)
        self.assertEqual((told["processes"], told["foreign_cgroups"]), ([], ["/"]))
        self.assertIn('the cgroup "/" was not created for', program.run("terminate", path, "--dry-run").stderr)

    def test_refuses_what_is_no_manifest(self):
        path = self.path("manifest")
        with open(path, "w", encoding="utf-8") as file:
            file.write("kill 1\n")
        os.chmod(path, 0o600)
        self.assert_ended(program.run("terminate", path), 2, stderr="is not a manifest")
        self.assert_ended(program.run("terminate", self.manifest(mode=0o622)), 2, stderr="can be written by others")
        self.assert_ended(program.run("terminate", self.path("none")), 3, stderr="No such file")
        self.assert_ended(program.run("terminate"), 2)
        for nobody in ("-1", "0", "x"):
            refused = program.run("terminate", path, "--watch", nobody)
            self.assert_ended(refused, 2)
            self.assertLess(len(refused.stderr), 200, refused.stderr)

    def test_watches_first(self):
        watched, sleeper = self.sleeper(), self.sleeper()
        path = self.manifest(line(sleeper.pid))
        terminator = program.start("terminate", path, "--watch", str(watched.pid))
        # It waits: whoever is not waited for is gone in far less time.
        with self.assertRaises(subprocess.TimeoutExpired):
            terminator.wait(0.5)
        self.assertIsNone(sleeper.poll())
        watched.kill()
        watched.wait(program.DEADLINE)
        out, err = terminator.communicate(timeout=program.DEADLINE)
        self.assertEqual(terminator.returncode, 0, err)
        self.assertIn(b"ended", out)
        self.assertEqual(sleeper.wait(program.DEADLINE), -15)

    def test_watching_one_that_is_gone_or_younger_does_not_wait(self):
        gone = self.sleeper()
        gone.kill()
        gone.wait(program.DEADLINE)
        result = program.run("terminate", self.path("none"), "--watch", str(gone.pid))
        self.assertEqual((result.returncode, result.stdout), (0, b""), "nothing was started, nothing is to end")


if __name__ == "__main__":
    unittest.main()
