#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the symbols of a build's static libraries against the rules of rooms and prefixes.

    symbols.py ROOT BUILD

Only archives that BUILD/build.ninja names count: those of an older configuration stay on disk.
"""
import pathlib
import re
import subprocess

import rules
from tree import folder_of, main, may_use, room_of


class Archive:
    """One static library: its symbols by object file, and the room of its folder."""

    def __init__(self, build, path):
        self.path = path
        self.room = room_of(path)
        self.defined, self.undefined = {}, {}
        listing = subprocess.run(['nm', '-P', '-A', '-g', str(build / path)], check=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in listing.stdout.splitlines():
            m = re.match(r'.*\[(.+?)\.o\]: (\S+) (\S)', line)
            if m is None:
                continue
            source, name, kind = m.groups()
            if kind == 'U':
                self.undefined.setdefault(name, source.split('/')[-1])
            elif kind in 'TDBRCV':
                self.defined.setdefault(name, source.split('/')[-1])

    def uses(self):
        """Returns the symbols that another archive defines, each with its first object file."""
        return {n: s for n, s in self.undefined.items() if n not in self.defined}


def place_of(tree, archive, source, name):
    """Returns the file and line where a symbol stands. Meson writes core/ring.c as core_ring.c."""
    folder = folder_of(archive.path)
    cuts = [m.start() for m in re.finditer('_', source)]
    for path in [source] + [source[:c] + '/' + source[c + 1:] for c in cuts]:
        if (tree.root / folder / path).is_file():
            for number, line in enumerate(tree.lines(f'{folder}/{path}'), 1):
                if re.search(rf'\b{name}\b', line):
                    return f'{folder}/{path}', number
            return f'{folder}/{path}', 1
    return f'{archive.path}({source}.o)', 1


def check_layers(tree, archives):
    layers = tree.layers()
    owners = {}
    for archive in archives:
        for name in archive.defined:
            owners.setdefault(name, []).append(archive)
    for archive in archives:
        for name, source in sorted(archive.uses().items()):
            rooms = sorted({a.room for a in owners.get(name, [])})
            if rooms and not any(may_use(archive.room, room, layers) for room in rooms):
                tree.fault(*place_of(tree, archive, source, name),
                           f'{archive.room} may not use {name} of {" and ".join(rooms)}.')


def check_prefixes(tree, archives):
    for archive in archives:
        library = '/'.join(archive.room.split('/')[:2])
        wanted = rules.PREFIXES.get(library)
        if wanted is None:
            tree.fault(archive.path, 1, f'test/lint/rules.py has no prefix for {library}.')
            continue
        # An installed library carries copies of objects of the libraries below it.
        known = {n for a in archives if a is not archive for n in a.defined}
        known |= {n[1:] for n in wanted if n.startswith('=')}
        for name, source in sorted(archive.defined.items()):
            if name not in known and not name.startswith(tuple(wanted)):
                tree.fault(*place_of(tree, archive, source, name),
                           f'The name {name} carries no prefix of {library} ({" ".join(wanted)}).')


def check(tree, build):
    build = pathlib.Path(build)
    ninja = (build / 'build.ninja').read_text()
    paths = re.findall(r'^build ((?:lib|drivers)/\S+\.a): ', ninja, re.M)
    archives = [Archive(build, path) for path in paths if (build / path).is_file()]
    if not archives:
        tree.fault(build, 1, 'The build holds no static library.')
    check_layers(tree, archives)
    check_prefixes(tree, archives)


if __name__ == '__main__':
    main(check)
