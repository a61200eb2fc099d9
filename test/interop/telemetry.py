#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""telemetry.py SOCKET COMMAND: sends a command to a DPDK process and prints its answer as JSON."""
import json
import socket
import sys

with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
    s.settimeout(30)
    s.connect(sys.argv[1])
    room = json.loads(s.recv(1024))["max_output_len"]
    s.send(sys.argv[2].encode())
    print(json.dumps(next(iter(json.loads(s.recv(room)).values()))))
