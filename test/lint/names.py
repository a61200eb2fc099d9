#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that each static function of lib, drivers and app has a name of its own.

    names.py ROOT

A backtrace, a profile and a breakpoint name a function without its file. .clang-format puts a
definition's name at the beginning of the line below its type.
"""
import re

import rules
from tree import main

DEFINITION = re.compile(r'^static\b[^;{}()=]*?\b(\w+)\(', re.M)


def check(tree):
    seen = {}
    for path in [p for p in tree.code() if not p.startswith(rules.OWN_NAMES)]:
        text = re.sub(r'__attribute__\(\(.*?\)\)', '', tree.text(path))
        for m in DEFINITION.finditer(text):
            # A prototype ends with a semicolon where a definition has a brace.
            if not re.match(r'[^;{]*\{', text[m.end():]):
                continue
            number = text.count('\n', 0, m.start(1)) + 1
            name = m.group(1)
            if name in seen:
                tree.fault(path, number, f'The static function {name} exists in {seen[name]}, too.')
            else:
                seen[name] = f'{path}:{number}'


if __name__ == '__main__':
    main(check)
