# SPDX-License-Identifier: BSD-3-Clause
"""The files of a tree, and the report of a check's violations."""
import pathlib
import re
import subprocess
import sys

import rules


class Tree:
    """A working copy of the project, or of a part of it."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.faults = 0

    def files(self, *patterns):
        """Returns the tracked and new files that match a pattern, relative to the root."""
        listed = subprocess.run(
            ['git', '-C', str(self.root), 'ls-files', '-co', '--exclude-standard', '-z', '--',
             *patterns], check=True, stdout=subprocess.PIPE, text=True).stdout.split('\0')
        return sorted({f for f in listed if f and (self.root / f).is_file()})

    def code(self):
        """Returns the C files of the product, without tests."""
        return [f for f in self.files('*.c', '*.h') if f.startswith(rules.CODE)]

    def text(self, path):
        return (self.root / path).read_text(errors='replace')

    def lines(self, path):
        return self.text(path).split('\n')

    def fault(self, path, line, sentence):
        """Reports one violation."""
        print(f'{path}:{line}: {sentence}')
        self.faults += 1

    def layers(self):
        """Returns the names of the libraries, the lowest first."""
        text = re.sub(r'#.*', '', self.text(rules.LAYERS_FILE))
        return re.findall(r"'(\w+)'", re.search(r'layers = \[(.*?)\]', text, re.S).group(1))


def folder_of(path):
    return str(pathlib.PurePosixPath(path).parent)


def room_of(path):
    """Returns the deepest room of rules.ROOMS above the path, or its library, driver or program."""
    if path in rules.HEADERS:
        return rules.HEADERS[path]
    folder = folder_of(path)
    parts = folder.split('/')
    for n in range(len(parts), 2, -1):
        if '/'.join(parts[:n]) in rules.ROOMS:
            return '/'.join(parts[:n])
    return '/'.join(parts[:2])


def may_use(user, used, layers):
    """Returns whether the rules let the first room use the second."""
    if user == used:
        return True
    if any(user.startswith(a) and used.startswith(b) for a, b in rules.NEVER):
        return False
    a, b = user.split('/'), used.split('/')
    if a[:2] == b[:2]:
        return used in rules.ROOMS.get(user, [])
    order = ['lib', 'drivers', 'app']
    if a[0] != b[0]:
        return order.index(a[0]) > order.index(b[0])
    if a[0] != 'lib':
        return used in rules.ROOMS.get(user, [])
    return b[1] in layers and a[1] in layers and layers.index(b[1]) < layers.index(a[1])


def main(check):
    """Runs check(tree, *arguments) as a program: CHECK.py ROOT [ARGUMENT...]."""
    tree = Tree(sys.argv[1])
    check(tree, *sys.argv[2:])
    sys.exit(1 if tree.faults else 0)
