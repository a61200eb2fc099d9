#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the messages of commits: those since origin's branch, or the last 30 without an origin.

    commits.py ROOT [RANGE]
"""
import re
import subprocess

from tree import main

COLUMNS = 72


def git(tree, *arguments):
    return subprocess.run(['git', '-C', str(tree.root), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout.strip()


def faults_of(title, body):
    if len(title) > COLUMNS:
        yield f'The title has {len(title)} characters. {COLUMNS} is the limit.'
    if not re.match(r'[\w.][\w./*{}-]*(, [\w./*{}-]+)*: \S', title):
        yield 'The title does not begin with the part of the tree and a colon.'
    if ';' in title:
        yield 'The title holds a semicolon: a commit has one topic.'
    if title.endswith('.'):
        yield 'The title ends with a full stop.'
    if not body.strip():
        yield 'The message has no body: it lacks the reason of the change.'
    for line in body.splitlines():
        # A URL or a quoted line of output cannot be wrapped.
        if len(line) > COLUMNS and ' ' in line.strip() and not line.startswith('    '):
            yield f'A line of the body has {len(line)} characters. {COLUMNS} is the limit.'
            break


def check(tree, commits=None):
    if commits is None:
        base = git(tree, 'rev-parse', '--abbrev-ref', 'origin/HEAD')
        commits = f'{base}..HEAD' if base and base != 'origin/HEAD' else '-30'
    for message in git(tree, 'log', '--no-merges', '--format=%h%n%B%x00', commits).split('\0'):
        if message.strip():
            commit, title, *body = message.strip().split('\n')
            for sentence in faults_of(title, '\n'.join(body)):
                tree.fault('commit', commit, sentence)


if __name__ == '__main__':
    main(check)
