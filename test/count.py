#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the tests in a meson testlog.json.

Prints `PASSED FAILED SKIPPED`. On stderr it prints the name of each failed test and the end of its
output. A TAP program counts by its lines, any other program as one test. A program that died or
reported nothing counts as a failure whatever it printed. So does a report of the leak sanitizer,
which Criterion does not treat as a failure.
"""
import json
import re
import sys

passed = failed = skipped = 0
for line in open(sys.argv[1]):
    t = json.loads(line)
    out = t.get("stdout", "")
    rows = re.findall(r"^(not ok|ok)\b(.*)$", out, re.M)
    bad = [r for s, r in rows if s == "not ok"]
    skip = [r for s, r in rows if s == "ok" and re.search(r"# *skip", r, re.I)]
    good = len(rows) - len(bad) - len(skip)
    if t["result"] == "SKIP":
        skip, good = skip or [t["name"]], 0
    elif t["result"] == "OK" and not rows:
        good = 1
    elif t["result"] != "OK" and not bad:
        bad = [f"{t['name']}: {t['result']}"]
    leak = re.search(r"ERROR: (Leak|Address|Thread|Memory)Sanitizer|runtime error:",
                     out + t.get("stderr", ""))
    if leak:
        bad.append(f"{t['name']}: {leak.group(0)}")
    for b in bad:
        print(f"FAILED {t['name']} {b}", file=sys.stderr)
    if bad:
        rest = [r for r in (out + t.get("stderr", "")).splitlines() if not re.match(r"ok\b", r)]
        print(*("        " + r for r in rest[-20:]), sep="\n", file=sys.stderr)
    passed, failed, skipped = passed + good, failed + len(bad), skipped + len(skip)
print(passed, failed, skipped)
