#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the form of lines: length, blanks, the end of a file, litter of the formatter, licences;
and the first words of sentences in comments and pages.

    text.py ROOT
"""
import re

from tree import main

COLUMNS = 100
TAB = 8
SOURCES = ('*.c', '*.h', '*.sh', '*.py', '*.inc', '*.lua', '*.ini', '*.gp', '*.map', '*.service',
           '*.rules', '*meson.build', 'meson_options.txt')
LONG_LINES = ('*.c', '*.h', '*.sh', '*.py', '*.inc', '*meson.build', '*.md')


HASHES = ('*.sh', '*.inc', '*.py', '*meson.build', 'meson_options.txt')
# The first word of a sentence: at the start of a line if the one before has ended, behind the end
# of a sentence, or in a cell of a table.
OPENER = re.compile(r'(?:^|(?<=[.:!?])\s+|\|\s*)(?:[-*] +)?[*(]*'
                    r'(What|Whatever|Who|Whoever|Whose|Nobody)\b')


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


def c_comments(text):
    """Yields the lines of comments. An empty line ends each comment."""
    for m in re.finditer(r'"(?:\\.|[^"\\\n])*"|/\*(.*?)\*/', text, re.S):
        if m.group(1) is not None:
            first = text.count('\n', 0, m.start()) + 1
            for number, line in enumerate(m.group(1).split('\n'), first):
                yield number, re.sub(r'^\s*\* ?', '', line)
            yield number, ''


def hash_comments(text):
    """Yields the lines of comments and of Python's docstrings, and empty lines between them."""
    quoted = False
    for number, line in enumerate(text.split('\n'), 1):
        parts = line.split('"""')
        m = re.match(r'(.*?)(?:^|\s)#(?!!)(.*)', line)
        if quoted or len(parts) > 1:
            if not quoted:
                yield number, ''
            yield number, parts[0] if quoted else parts[1]
            quoted ^= len(parts) % 2 == 0
        elif m:
            if m.group(1).strip():
                yield number, ''
            yield number, m.group(2)
        else:
            yield number, ''


def page_prose(text):
    """Yields the lines of a Markdown page, and empty lines for headings and blocks of code."""
    fence = blank = None
    for number, line in enumerate(text.split('\n'), 1):
        m = re.match(r'\s*(```+|~~~+)', line)
        if m:
            fence = None if fence else m.group(1)
        code = m or fence or (blank and line.startswith('    '))
        if re.match(r'\s*([-*|]|\d+\.) ?', line):
            yield number, ''
        yield number, '' if code or line.startswith('#') else line
        blank = not line.strip() or code


def check_stars(tree, path):
    text = tree.text(path)
    for m in re.finditer(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', text, re.S):
        if m.group()[0] == '"':
            continue
        lines = m.group().split('\n')[1:]
        for number, line in enumerate(lines, text.count('\n', 0, m.start()) + 2):
            if re.match(r'\s*\*[^\s*/]', line):
                tree.fault(path, number, 'A blank is missing behind the * of a comment.')


def check_openers(tree, path, prose):
    """Reports sentences that begin with a word which stands for the subject."""
    begins = True
    for number, line in prose:
        line = line.strip()
        for m in OPENER.finditer(line):
            if begins or m.start() > 0 or line[0] == '|':
                tree.fault(path, number,
                           f'A sentence begins with "{m.group(1)}". Name its subject.')
        begins = not line or line[-1] in '.:!?|'


def check(tree):
    for path in tree.files(*LONG_LINES):
        check_length(tree, path, tree.lines(path))
    for path in tree.files('*.c', '*.h'):
        check_litter(tree, path, tree.lines(path))
        check_stars(tree, path)
        check_openers(tree, path, c_comments(tree.text(path)))
    for path in tree.files(*HASHES):
        check_openers(tree, path, hash_comments(tree.text(path)))
    for path in tree.files('*.md'):
        check_openers(tree, path, page_prose(tree.text(path)))
    for path in tree.files(*SOURCES, '*.md'):
        check_blanks(tree, path, tree.lines(path))
    for path in tree.files(*SOURCES):
        if not any('SPDX-License-Identifier: BSD-3-Clause' in l for l in tree.lines(path)[:3]):
            tree.fault(path, 1, 'The first lines hold no SPDX-License-Identifier.')


if __name__ == '__main__':
    main(check)
