#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy 14 with the checks of .clang-tidy over the sources of lib, drivers and app.

    tidy.py ROOT BUILD

BUILD/compile_commands.json has the commands. A source without a finding is remembered in
BUILD/tidy.json, with a digest of its text, its headers and its command: only what changed is
checked again.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess

import rules
from includes import includes_of
from tree import main

# gcc's options of whole-program optimisation, which clang does not have.
EXTRA = '--extra-arg=-Wno-ignored-optimization-argument'


def headers_of(tree, path, seen):
    """Adds the headers of the tree that a file includes, directly or not, to a set."""
    for _, header in includes_of(tree, path):
        if header not in seen:
            seen.add(header)
            headers_of(tree, header, seen)
    return seen


def digest_of(tree, source, command):
    parts = [tree.text('.clang-tidy'), command]
    parts += [tree.text(f) for f in [source, *sorted(headers_of(tree, source, set()))]]
    return hashlib.sha256('\0'.join(parts).encode()).hexdigest()


def path_of(tree, build, path):
    """Returns the path below the root of what clang-tidy names from there or from the build."""
    inside = tree.root / path
    return os.path.relpath(inside if inside.is_file() else build / path, tree.root)


def findings_of(tree, build, source):
    """Returns the findings as (path, line, sentence). Errors of the compiler are findings."""
    out = subprocess.run(['clang-tidy-14', '-p', str(build), '--quiet', EXTRA, source],
                         cwd=tree.root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True).stdout
    return [(path_of(tree, build, m.group(1)), int(m.group(2)), m.group(3)) for m in
            re.finditer(r'^(\S+?):(\d+):\d+: (?:warning|error): (.*)$', out, re.M)]


def check(tree, build):
    build = pathlib.Path(build)
    commands = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        source = os.path.relpath(build / entry['file'], tree.root)
        if source.startswith(rules.CODE) and (tree.root / source).is_file():
            commands.setdefault(source, entry['command'])
    memory = build / 'tidy.json'
    clean = json.loads(memory.read_text()) if memory.is_file() else {}
    digests = {s: digest_of(tree, s, c) for s, c in commands.items()}
    todo = [s for s in sorted(commands) if clean.get(s) != digests[s]]
    faults = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda s: findings_of(tree, build, s), todo)
        for source, findings in zip(todo, results):
            faults.update(findings)
            clean[source] = None if findings else digests[source]
    memory.write_text(json.dumps({s: d for s, d in clean.items() if d and s in commands}))
    for fault in sorted(faults):
        tree.fault(*fault)
    print(f'{len(commands)} sources, {len(todo)} of them checked now')


if __name__ == '__main__':
    main(check)
