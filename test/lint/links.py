#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the links of Markdown pages lead to files and headings that exist.

    links.py ROOT

Paths in backquotes that begin with a folder of the tree are checked as well: a page that names a
file that moved misleads its reader.
"""
import posixpath
import re

from tree import folder_of, main

FOLDERS = ('app/', 'config/', 'doc/', 'drivers/', 'lib/', 'test/')
LINK = re.compile(r'\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^()\s>]+)>?(?:\s+"[^"]*")?\)')
REFERENCE = re.compile(r'^\s*\[[^\]]+\]:\s*<?([^\s>]+)')


def text_of(lines):
    """Yields the lines outside of code blocks."""
    fence = None
    for number, line in enumerate(lines, 1):
        m = re.match(r'\s*(```+|~~~+)', line)
        if m and fence in (None, m.group(1)):
            fence = None if fence else m.group(1)
        elif not fence:
            yield number, line


def anchors_of(lines):
    """Returns the anchors of a page's headings by GitHub's rule."""
    anchors, seen = set(), {}
    for _, line in text_of(lines):
        anchors |= set(re.findall(r'<a (?:name|id)="([^"]+)"', line))
        m = re.match(r'#{1,6}\s+(.*?)\s*#*\s*$', line)
        if m is None:
            continue
        title = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', m.group(1)).lower()
        anchor = re.sub(r'[^\w\- ]', '', title).replace(' ', '-')
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        anchors.add(f'{anchor}-{count}' if count else anchor)
    return anchors


def check_link(tree, path, number, target):
    if re.match(r'[a-z]+:', target):
        return
    name, _, anchor = target.partition('#')
    page = posixpath.normpath(posixpath.join(folder_of(path), name)) if name else path
    if not (tree.root / page).exists():
        tree.fault(path, number, f'The link leads to {page}, which does not exist.')
    elif anchor and page.endswith('.md') and anchor not in anchors_of(tree.lines(page)):
        tree.fault(path, number, f'The link leads to #{anchor}, which {page} does not have.')


def check_path(tree, path, number, name):
    """Checks a path in backquotes. `lib/tcp/ack.[ch]` and `doc/*.md` are patterns, and a part in
    capitals, as in `drivers/net/NAME`, stands for a name."""
    name = re.sub(r':\d+$', '', name)
    if not name.startswith(FOLDERS) or not re.fullmatch(r'[\w./*\[\]-]+', name):
        return
    if any(re.fullmatch(r'[A-Z_]+(\.[ch])?', part) for part in name.split('/')):
        return
    if not any(tree.root.glob(name.rstrip('/'))):
        tree.fault(path, number, f'The file {name} does not exist.')


def check(tree):
    for path in tree.files('*.md'):
        for number, line in text_of(tree.lines(path)):
            for name in re.findall(r'`([^`]+)`', line):
                check_path(tree, path, number, name)
            line = re.sub(r'`[^`]*`', 'code', line)
            for target in LINK.findall(line) + REFERENCE.findall(line):
                check_link(tree, path, number, target)


if __name__ == '__main__':
    main(check)
