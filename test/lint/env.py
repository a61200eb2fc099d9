#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that saker knows each variable SAKER_... of the environment that a file of the tree reads.

    env.py ROOT

saker refuses a variable SAKER_... that it does not know. A process may have any variable of another
program of Saker, because users export them for all of their programs.
"""
import re

import rules
from tree import main

# How C, Python and shell read a variable.
READS = {
    ('*.c', '*.h'): re.compile(r'getenv\("(SAKER_\w+)"\)'),
    ('*.py',): re.compile(r'(?:environ\.get\(|environ\[|getenv\()[\'"](SAKER_\w+)[\'"]'),
    ('*.sh', '*.inc'): re.compile(r'\$\{?(SAKER_\w+)'),
}
ROW = re.compile(r'^\t\{"([\w-]+)", "([\w-]+)", KIND_', re.M)


def variable_of(section, key):
    """Returns the name that env_name() of the settings makes."""
    name = f'SAKER_{key}' if section == 'saker' else f'SAKER_{section}_{key}'
    return name.upper().replace('-', '_')


def list_of(text, name):
    """Returns the initializer of an array."""
    return re.search(rf'\b{name}\[\] = \{{(.*?)\}};', text, re.S).group(1)


def reads_of(tree):
    """Yields where a file reads a variable, and which."""
    for patterns, read in READS.items():
        for path in tree.files(*patterns):
            for number, line in enumerate(tree.lines(path), 1):
                for name in read.findall(line):
                    yield path, number, name


def stands_for(entry, name):
    return name.startswith(entry) if entry.endswith('_') else name == entry


def check(tree):
    text = tree.text(rules.ENVIRONMENT_FILE)
    others = re.findall(r'"(\w+)"', list_of(text, rules.ENVIRONMENT_LIST))
    settings = {variable_of(*row) for row in ROW.findall(list_of(text, rules.SETTINGS_LIST))}
    reads = list(reads_of(tree))
    for path, number, name in reads:
        if name not in settings and not any(stands_for(entry, name) for entry in others):
            tree.fault(path, number, f'{rules.ENVIRONMENT_LIST} in {rules.ENVIRONMENT_FILE} lacks '
                                     f'{name}.')
    for entry in others:
        if not any(stands_for(entry, name) for _, _, name in reads):
            number = text.count('\n', 0, text.index(f'"{entry}"')) + 1
            tree.fault(rules.ENVIRONMENT_FILE, number, f'No file reads {entry}.')


if __name__ == '__main__':
    main(check)
