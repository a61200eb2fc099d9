#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the transcript in the README's section "Use it", and compares what the commands print with
what the page shows. Numbers and the width of columns do not count.

    readme.py BUILD FOLDER MEMORY    FOLDER takes the place of /tmp, MEMORY that of --in-memory

The first command of the page builds, which has been done. A command `./saker` has a terminal of its
own, and runs until the end. `./sakerctl` and `head` are repeated until they print what the page
shows, since what they show takes its time.
"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

SECONDS = 60  # the bound of each wait, reached only when something is broken


def transcript():
    """Returns a list of [command, lines that it prints]."""
    section = open("README.md").read().partition("\n## Use it\n")[2].partition("\n## ")[0]
    steps = []
    for line in re.findall(r"^    (.*)$", section, re.M):
        if line.startswith("$ "):
            steps.append([line[2:], []])
        elif steps and steps[-1][0].endswith("\\"):
            steps[-1][0] = steps[-1][0][:-1] + line.strip()
        elif steps and not line.startswith("build/app/"):
            steps[-1][1].append(line)
    return steps


def masked(line):
    return re.sub(r"\s+", " ", re.sub(r"0x[0-9a-f]+|\d+", "N", line)).strip()


class Shell:
    """A bash whose output is read line by line."""

    def __init__(self, folder):
        self.folder, self.lines, self.at = folder, [], 0
        self.bash = subprocess.Popen(["bash"], cwd=folder, stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     start_new_session=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.bash.stdout:
            self.lines.append(line.rstrip("\n"))

    def run(self, command):
        """Runs a command without waiting for it; what came before is no longer looked at."""
        self.at = len(self.lines)
        self.bash.stdin.write(command + "\necho 'the end'\n")
        self.bash.stdin.flush()

    def printed(self):
        new = self.lines[self.at:]
        return [line for line in new if line != "the end"], "the end" in new

    def stop(self):
        os.killpg(self.bash.pid, signal.SIGTERM)
        self.bash.stdin.close()
        self.bash.wait()


def is_shown(shell, command, shown, again):
    """Returns whether the command prints the lines `shown` in time."""
    until = time.monotonic() + SECONDS
    want = [masked(line) for line in shown]
    shell.run(command)
    while time.monotonic() < until:
        lines, ended = shell.printed()
        if ended and [masked(line) for line in lines] == want:
            return True
        if ended and again:
            shell.run(command)
        time.sleep(0.1)
    print(f"$ {command}", "the README shows:", *shown, "but it prints:", *lines, sep="\n")
    return False


def answers(command):
    """Returns whether the saker of a command has made its socket."""
    path = re.search(r"--socket (\S+)", command)[1]
    until = time.monotonic() + SECONDS
    while not os.path.exists(path):
        if time.monotonic() > until:
            print(f"$ {command}", "it does not start", sep="\n")
            return False
        time.sleep(0.1)
    return True


def listens(shell, command):
    """Returns whether a program that a command has started in the background listens, or needs
    not to."""
    socket = re.search(r"(\S+)\.sock\b", command)
    if not command.endswith("&") or ">" in command or not socket:
        return True
    control = socket[1].partition("=")[2] or socket[1]
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for number in range(8):
            view = subprocess.run([f"{shell.folder}/sakerctl", "--socket", control + ".control",
                                   "-j", "show", "client", str(number)], capture_output=True)
            if view.returncode == 0 and json.loads(view.stdout)["clients"][0]["listeners"] > 0:
                return True
        time.sleep(0.1)
    print(f"$ {command}", "it does not listen", sep="\n")
    return False


def main():
    build, folder, memory = sys.argv[1:]
    os.environ["TERM"] = "dumb"
    steps = transcript()
    if len(steps) < 10 or not steps[0][0].startswith("meson setup build "):
        sys.exit("the README has another transcript")
    shell, good = Shell(build + "/app"), True
    for command, shown in steps[1:]:
        command = command.replace("/tmp/", folder + "/").replace("--in-memory", memory)
        qpn = [re.search(r"0x[0-9a-f]+", line) for line in shell.printed()[0]]
        # The page's number of a QP becomes the one that the command before has printed.
        command = re.sub(r"(?<=show qp )0x[0-9a-f]+", next((q[0] for q in qpn if q), "none"),
                         command)
        if command.startswith("./saker "):
            command = re.sub(r"--file-prefix (\w+)", rf"--file-prefix readme{os.getpid()}\1",
                             command)
            shell.run(f"{command} >{folder}/saker.log 2>&1 &")
            good = answers(command)
        else:
            again = command.startswith(("./sakerctl ", "head "))
            good = is_shown(shell, command, shown, again) and listens(shell, command)
        if not good:
            break
    shell.stop()
    print(f"{len(steps)} commands of the README" if good else "the README is wrong")
    sys.exit(not good)


if __name__ == "__main__":
    main()
