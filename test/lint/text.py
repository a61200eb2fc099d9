#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the form of lines: length, blanks, the end of a file, litter of the formatter, licences.

    text.py ROOT
"""
import re

from tree import main

COLUMNS = 100
TAB = 8
SOURCES = ('*.c', '*.h', '*.sh', '*.py', '*.inc', '*.lua', '*.ini', '*.gp', '*.map', '*.service',
           '*.rules', '*meson.build', 'meson_options.txt')
LONG_LINES = ('*.c', '*.h', '*.sh', '*.py', '*.inc', '*meson.build', '*.md')


def prose_of(lines):
    """Yields the lines of a Markdown page whose length counts: neither tables nor code blocks."""
    fence = None
    for number, line in enumerate(lines, 1):
        m = re.match(r'\s*(```+|~~~+)', line)
        if m and fence in (None, m.group(1)):
            fence = None if fence else m.group(1)
        elif not fence and not re.match(r'\s*\||    ', line):
            # A URL cannot be wrapped.
            yield number, re.sub(r'https?://\S+', '', line)


def check_length(tree, path, lines):
    for number, line in prose_of(lines) if path.endswith('.md') else enumerate(lines, 1):
        columns = len(line.expandtabs(TAB))
        if columns > COLUMNS:
            tree.fault(path, number, f'The line has {columns} columns. {COLUMNS} is the limit.')


def check_blanks(tree, path, lines):
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            tree.fault(path, number, 'The line ends with a blank.')
    if lines[-1] != '':
        tree.fault(path, len(lines), 'The file does not end with a newline.')
    elif len(lines) > 1 and lines[-2] == '':
        tree.fault(path, len(lines) - 1, 'The file ends with an empty line.')


def check_litter(tree, path, lines):
    opened = None
    for number, line in enumerate(lines, 1):
        if re.match(r'\s*\(void\)\s*\w+;\s*$', line):
            tree.fault(path, number, 'The cast to void does nothing: parameters may be unused.')
        m = re.match(r'(.*?)/\*(?!.*\*/)', line)
        if m:
            opened = m.group(1).strip()
        elif '*/' in line:
            if opened and re.match(r'\s*\*/\s*\\?$', line):
                tree.fault(path, number, 'A wrapped comment ends alone. Put it above its line.')
            opened = None


def check(tree):
    for path in tree.files(*LONG_LINES):
        check_length(tree, path, tree.lines(path))
    for path in tree.files('*.c', '*.h'):
        check_litter(tree, path, tree.lines(path))
    for path in tree.files(*SOURCES, '*.md'):
        check_blanks(tree, path, tree.lines(path))
    for path in tree.files(*SOURCES):
        if not any('SPDX-License-Identifier: BSD-3-Clause' in l for l in tree.lines(path)[:3]):
            tree.fault(path, 1, 'The first lines hold no SPDX-License-Identifier.')


if __name__ == '__main__':
    main(check)
