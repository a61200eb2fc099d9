#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that code of lib, drivers or app can count each reason of the lists XXX_REASONS.

    counters.py ROOT

A check returns the reason as a negative number, and its caller counts it, or code passes it to the
function that counts. The key of a table, a label and a comparison count nothing: they only receive
what other code has named.
"""
import re

from tree import main

LIST = re.compile(r'^#define \w+_REASONS\(X\)((?:.*\\\n)*.*)$', re.M)
ROW = re.compile(r'\bX\((\w+),')
SILENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
ONLY_RECEIVED = re.compile(r'\[\w+\]\s*=(?!=)|\bcase\s+\w+|[=!]=\s*\w+')


def check(tree):
    reasons, named = {}, set()
    for path in tree.code():
        text = tree.text(path)
        for rows in LIST.finditer(text):
            for row in ROW.finditer(text, *rows.span(1)):
                reasons[row.group(1)] = path, text.count('\n', 0, row.start()) + 1
        text = ONLY_RECEIVED.sub(' ', SILENT.sub(' ', LIST.sub(' ', text)))
        named.update(re.findall(r'\w+', text))
    for name, place in reasons.items():
        if name not in named:
            tree.fault(*place, f'No code counts the reason {name}.')


if __name__ == '__main__':
    main(check)
