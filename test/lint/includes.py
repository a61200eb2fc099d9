#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the #include lines of lib, drivers and app against the rules of rooms.

    includes.py ROOT
"""
import posixpath
import re

import rules
from tree import folder_of, main, may_use, room_of


def includes_of(tree, path):
    """Yields the line number and path of each header of the tree that a file includes."""
    for number, line in enumerate(tree.lines(path), 1):
        m = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if m is None:
            continue
        beside = posixpath.normpath(posixpath.join(folder_of(path), m.group(1)))
        for header in (beside, 'lib/' + m.group(1), m.group(1)):
            if (tree.root / header).is_file():
                yield number, header
                break


def check_private(tree, path, number, header):
    folder = folder_of(header)
    if not header.endswith('_priv.h') or folder_of(path) == folder:
        return
    if folder_of(path) not in rules.PRIVATE_USERS.get(folder, []):
        tree.fault(path, number, f'{header} is private to {folder}.')


def check_circles(tree, graph):
    """Reports each edge of a folder to a folder that reaches it again."""
    def reaches(start, goal):
        seen, todo = set(), [start]
        while todo:
            at = todo.pop()
            if at == goal:
                return True
            if at not in seen:
                seen.add(at)
                todo += graph.get(at, {})
        return False

    for user in sorted(graph):
        for used, (path, number) in sorted(graph[user].items()):
            if reaches(used, user):
                tree.fault(path, number, f'{user} and {used} stand in a circle of includes.')


def check(tree):
    layers = tree.layers()
    graph = {}
    for path in tree.code():
        for number, header in includes_of(tree, path):
            user, used = room_of(path), room_of(header)
            if not may_use(user, used, layers):
                tree.fault(path, number, f'{user} may not include {used} ({header}).')
            check_private(tree, path, number, header)
            folder = rules.HEADERS.get(header, folder_of(header))
            if folder != folder_of(path) and path not in rules.HEADERS:
                graph.setdefault(folder_of(path), {}).setdefault(folder, (path, number))
    check_circles(tree, graph)


if __name__ == '__main__':
    main(check)
