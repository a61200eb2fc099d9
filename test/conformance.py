#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the pages doc/conformance*.md and doc/tcp.md name tests that exist and run.

A row's last column holds tests in backquotes, `suite::test` of a Criterion program or the path of a
script or program below test/. Or it begins with "open:", "not applicable:" or "differs:" and gives
a reason. A test of test/unit/tcp whose name ends with a section of an RFC must have a row.
"""
import os
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
tcp_page = root / 'doc' / 'tcp.md'
pages = sorted((root / 'doc').glob('conformance*.md')) + [tcp_page]


def is_run(path):
    """Returns whether the suite runs a test. A script must be executable: test/run.sh runs those. A
    source must stand in its folder's meson.build, by its name or, in a list of names with a common
    beginning, by the end of its name."""
    if path.suffix != '.c':
        return os.access(path, os.X_OK)
    text = (path.parent / 'meson.build').read_text()
    words = path.stem.split('_')
    names = ['_'.join(words[i:]) for i in range(len(words))]
    return any(f"'{name}'" in text for name in names + [path.name])


def criterion_tests(folder='unit'):
    pattern = re.compile(r'^(?:Test|ParameterizedTest|Theory)\(\s*(?:\([^)]*\),\s*)?(\w+),\s*(\w+)',
                         re.MULTILINE)
    return {'::'.join(m.groups())
            for path in (root / 'test' / folder).rglob('*.c') if is_run(path)
            for m in pattern.finditer(path.read_text())}


def cells(line):
    return [c.strip() for c in line.strip().strip('|').split('|')]


def faults_of(number, line, tests):
    shown = cells(line)[-1]
    names = re.findall(r'`([^`]+)`', shown)
    if re.match(r'(open|not applicable|differs): \S', shown):
        names = [name for name in names if '::' in name]
    elif not names:
        yield f'{number}: the row names neither a test nor a reason'
    for name in names:
        if '::' in name:
            if name not in tests:
                yield f'{number}: no such test: {name}'
        elif not name.startswith('test/') or not (root / name).is_file():
            yield f'{number}: no such file: {name}'
        elif not is_run(root / name):
            yield f'{number}: the suite does not run {name}'


def rows_of(page):
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith('|') and not re.match(r'\|\s*(-|§)', line):
            yield number, line


def tests_without_row():
    """Yields the tests of TCP that are named after a section, and that no row of its page names."""
    page = tcp_page.read_text()
    for name in sorted(criterion_tests('unit/tcp')):
        if re.search(r'_rfc\d+', name) and f'`{name}`' not in page:
            yield f'{tcp_page}: no row names {name}'


def main():
    tests = criterion_tests()
    faults, rows, still_open = [], 0, 0
    for page in pages:
        for number, line in rows_of(page):
            rows += 1
            still_open += cells(line)[-1].startswith('open:')
            faults += [f'{page}:{fault}' for fault in faults_of(number, line, tests)]
    faults += tests_without_row()
    if not tests or len(pages) < 3 or rows < 100:
        faults.append(f'only {len(tests)} tests, {len(pages)} pages and {rows} rows were found: '
                      'is this the right tree?')
    print(*faults, sep='\n', end='\n' if faults else '')
    print(f'{rows} rows, {still_open} open, {len(faults)} faults')
    return 1 if faults else 0


sys.exit(main())
