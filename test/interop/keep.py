#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A service manager's store of descriptors, as systemd has it (FileDescriptorStoreMax), where no
service manager runs.

    keep.py store FOLDER                keep what services send to FOLDER/notify
    keep.py exec FOLDER COMMAND...      run COMMAND with all of that, in this process
    keep.py list FOLDER                 print the names of what is kept
"""
import array
import json
import os
import selectors
import socket
import sys

PASSED_FIRST = 3  # sd_listen_fds(3)
MOST = 253  # descriptors in one message of a Unix socket


class Store:
    def __init__(self, folder):
        self.kept = []  # (name, descriptor)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(folder + "/notify")
        self.give = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.give.bind(folder + "/give")
        self.give.listen()

    def hear(self):
        """Takes one datagram of sd_notify(3)."""
        room = socket.CMSG_SPACE(MOST * array.array("i").itemsize)
        state, control, _, _ = self.notify.recvmsg(4096, room)
        fds = array.array("i")
        for level, kind, data in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data)
        words = dict(line.partition("=")[::2] for line in state.decode().splitlines())
        name = words.get("FDNAME", "stored")
        if "FDSTORE" in words:
            self.kept += [(name, fd) for fd in fds]
        elif "FDSTOREREMOVE" in words:
            for fd in [fd for n, fd in self.kept if n == name]:
                os.close(fd)
            self.kept = [(n, fd) for n, fd in self.kept if n != name]

    def pass_all(self):
        client, _ = self.give.accept()
        names = json.dumps([n for n, _ in self.kept]).encode()
        socket.send_fds(client, [names], [fd for _, fd in self.kept])
        client.close()

    def run(self):
        with selectors.DefaultSelector() as s:
            s.register(self.notify, selectors.EVENT_READ, self.hear)
            s.register(self.give, selectors.EVENT_READ, self.pass_all)
            while True:
                for key, _ in s.select():
                    key.data()


def taken(folder):
    """Returns the names and descriptors of all that is kept."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(folder + "/give")
        names, fds, _, _ = socket.recv_fds(s, 65536, MOST)
    return json.loads(names), fds


def execute(folder, command):
    names, fds = taken(folder)
    # The descriptors may be in the places of others: all move up first.
    above = PASSED_FIRST + len(fds) + max(fds, default=0)
    for i, fd in enumerate(fds):
        os.dup2(fd, above + i, inheritable=False)
    for i in range(len(fds)):
        os.dup2(above + i, PASSED_FIRST + i)
    os.environ.update(NOTIFY_SOCKET=folder + "/notify", LISTEN_PID=str(os.getpid()),
                      LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=":".join(names))
    os.execvp(command[0], command)


def main():
    verb, folder, *command = sys.argv[1:]
    if verb == "store":
        Store(folder).run()
    elif verb == "exec":
        execute(os.path.realpath(folder), command)
    elif verb == "list":
        print("\n".join(sorted(taken(folder)[0])))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
