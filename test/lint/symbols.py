#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the symbols of a build's libraries against the rules of rooms and prefixes, and that a
symbol with external linkage has a user in another file.

    symbols.py ROOT BUILD

Only libraries that BUILD/build.ninja names count: those of an older configuration stay on disk.
"""
import pathlib
import re
import subprocess

import rules
from tree import folder_of, main, may_use, room_of


class Library:
    """A library's symbols by object file, and the room of its folder. A static library is read
    itself. Of a shared one, which hides symbols, the objects are read."""

    def __init__(self, build, path):
        self.path = path
        self.room = room_of(path)
        self.defined, self.undefined = {}, {}
        files = [build / path]
        if path.endswith('.so'):
            files = sorted((build / f'{path}.p').glob('*.o'))
        listing = subprocess.run(['nm', '-P', '-A', '-g', *map(str, files)], check=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in listing.stdout.splitlines():
            m = re.match(r'[^:]*?([^][/:]+)\.o\]?: (\S+) (\S)', line)
            if m is None:
                continue
            source, name, kind = m.groups()
            if kind == 'U':
                self.undefined.setdefault(name, source)
            elif kind in 'TDBRCV':
                self.defined.setdefault(name, source)

    def uses(self):
        """Returns the symbols that another library defines, each with its first object file."""
        return {n: s for n, s in self.undefined.items() if n not in self.defined}


def place_of(tree, library, source, name):
    """Returns the file and line where a symbol stands. Meson writes core/ring.c as core_ring.c."""
    folder = folder_of(library.path)
    cuts = [m.start() for m in re.finditer('_', source)]
    for path in [source] + [source[:c] + '/' + source[c + 1:] for c in cuts]:
        if (tree.root / folder / path).is_file():
            for number, line in enumerate(tree.lines(f'{folder}/{path}'), 1):
                if re.search(rf'\b{name}\b', line):
                    return f'{folder}/{path}', number
            return f'{folder}/{path}', 1
    return f'{library.path}({source}.o)', 1


def check_layers(tree, libraries):
    layers = tree.layers()
    owners = {}
    for library in libraries:
        for name in library.defined:
            owners.setdefault(name, []).append(library)
    for library in libraries:
        for name, source in sorted(library.uses().items()):
            rooms = sorted({a.room for a in owners.get(name, [])})
            if rooms and not any(may_use(library.room, room, layers) for room in rooms):
                tree.fault(*place_of(tree, library, source, name),
                           f'{library.room} may not use {name} of {" and ".join(rooms)}.')


def check_prefixes(tree, libraries):
    layers = tree.layers()
    for library in libraries:
        room = '/'.join(library.room.split('/')[:2])
        wanted = rules.PREFIXES.get(room)
        if wanted is None:
            tree.fault(library.path, 1, f'test/lint/rules.py has no prefix for {room}.')
            continue
        # An installed library carries copies of objects of the libraries below it.
        known = {n for a in libraries if a is not library and
                 may_use(library.room, a.room, layers) for n in a.defined}
        known |= {n[1:] for n in wanted if n.startswith('=')}
        for name, source in sorted(library.defined.items()):
            if name not in known and not name.startswith(tuple(wanted)):
                tree.fault(*place_of(tree, library, source, name),
                           f'The name {name} carries no prefix of {room} ({" ".join(wanted)}).')


def check_users(tree, libraries):
    """A file uses a symbol when it names it, or when its object does: through a header's inline
    function."""
    words = {f: set(re.findall(r'\w+', tree.text(f))) for f in tree.files('*.c')}
    used = {name for library in libraries for name in library.undefined}
    for library in libraries:
        wanted = rules.INTERNAL.get('/'.join(library.room.split('/')[:2]), [''])
        for name, source in sorted(library.defined.items()):
            if not name.startswith(tuple(wanted)) or name in used:
                continue
            path, line = place_of(tree, library, source, name)
            if not any(name in w for f, w in words.items() if f != path):
                tree.fault(path, line, f'No other file uses {name}.')


def check(tree, build):
    build = pathlib.Path(build)
    ninja = (build / 'build.ninja').read_text()
    # The client's shared library has the objects of the static one.
    paths = re.findall(r'^build ((?:lib|drivers)/\S+\.a|drivers/\S+\.so): ', ninja, re.M)
    libraries = [Library(build, path) for path in paths
                 if path not in rules.REPLACERS and (build / path).is_file()]
    if not libraries:
        tree.fault(build, 1, 'The build holds no library.')
    check_layers(tree, libraries)
    check_prefixes(tree, libraries)
    check_users(tree, libraries)


if __name__ == '__main__':
    main(check)
