#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutates single lines of protocol code and reports which mutants the unit tests do not catch.

    test/mutate.py [--seed SEED] [--count N] [--lib LIB]... [--at PATH:LINE]... [--jobs N]
                   [--least SHARE] [--folder FOLDER] [--list]

A mutant changes one line: a comparison, a constant, an operator, a call that it skips, two
arguments that it swaps. The seed chooses lines and changes. The choice of a line depends on nothing
but the seed and the line, so a sample stays the same when other lines or tests change.

The script works in a copy of the tree, FOLDER/tree, and builds it with the counters of gcov. It
runs each test program of the libraries once without mutants to record which lines it executes. For
a mutant it builds and runs the programs that execute the line, the fastest first, until one fails.

A mutant that the compiler refuses does not count. A run that exceeds its time counts as caught.
test/mutants-equivalent.txt lists mutants that do not change what the code does, with the reason;
they do not count either. The exit status is 0 when the share of caught mutants reaches --least.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ['wire', 'tcp', 'iwarp', 'rdma', 'falcon', 'rof', 'net']
# The folders of test/unit whose programs run: those of the libraries, and what stands on them.
TEST_FOLDERS = LIBRARIES + ['engine', 'sim', 'app']
EQUIVALENT = ROOT / 'test' / 'mutants-equivalent.txt'
# "test: share a set-up, and mend the layout of three comments"
SEED = '6ab63552f0354dbddbf1c1b0d93fee398184ded0'
# With a fixed seed, gcc compiles a file to the same bytes each time. So the record of a program's
# lines, which has the program's checksum, holds for the next run.
C_ARGS = '-frandom-seed=saker'

# Lines whose changes have no effect that a test could see: checks of the code itself, hints for the
# processor, printed text.
WITHOUT_EFFECT = re.compile(r'\b(assert|_Static_assert|\w*prefetch\w*'
                            r'|__builtin_unreachable|sk_log\w*)\s*\(')
OPERATORS = [
    (r'<=', '<'), (r'>=', '>'), (r'==', '!='), (r'!=', '=='), (r'(?<= )<(?= )', '<='),
    (r'(?<= )>(?= )', '>='), (r'&&', '||'), (r'\|\|', '&&'), (r'(?<= )\+(?= )', '-'),
    (r'(?<= )-(?= )', '+'), (r'(?<= )\*(?= )', '/'), (r'(?<= )/(?= )', '*'), (r'<<', '>>'),
    (r'>>', '<<'), (r'(?<= )&(?= )', '|'), (r'(?<= )\|(?= )', '&'), (r'\+=', '-='),
    (r'-=', '+='), (r'\|=', '&='), (r'(?<!&)&=', '|='), (r'\+\+', '--'), (r'--', '++'),
    (r'\btrue\b', 'false'), (r'\bfalse\b', 'true'), (r'!(?=[\w(])', ''),
]
NUMBER = re.compile(r'(?<![\w.])(0x[0-9a-fA-F]+|\d+)(?=[uUlL]*(?![\w.]))')
CALL = re.compile(r'^\t+[a-zA-Z_]\w*\([^;]*\);$')
SIMPLE = r'[&*]?[a-zA-Z_][\w.>-]*(?:\[\w+\])?'
SWAPPED = re.compile(rf'(?<=[(,])(\s*)({SIMPLE})(,\s*)({SIMPLE})(?=[,)])')
KEYWORD = re.compile(r'\t+(if|for|while|switch|return|S?TAILQ_FOREACH\w*)\b')

Mutant = collections.namedtuple('Mutant', 'path line old new')


def masked(text):
    """Returns the text with blanks in place of comments, strings and characters."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, lambda m: re.sub(r'[^\n]', ' ', m.group()), text, flags=re.DOTALL)


def code_lines(path):
    """Yields number, line and masked line of each line in a function or in an initialised table."""
    text = path.read_text()
    inside = False
    lines = zip(text.splitlines(), masked(text).splitlines())
    for number, (line, code) in enumerate(lines, 1):
        if re.match(r'(\{|.*= \{)$', code.rstrip()) and not code.startswith('\t'):
            inside = True
        elif code.startswith('}'):
            inside = False
        elif inside and code.startswith('\t') and not WITHOUT_EFFECT.search(code):
            yield number, line, code.rstrip()


def changes(line, code):
    """Yields each changed form of a line."""
    for pattern, other in OPERATORS:
        for m in re.finditer(pattern, code):
            yield line[:m.start()] + other + line[m.end():]
    for m in NUMBER.finditer(code):
        value = int(m.group(), 0)
        for other in {value + 1, max(value - 1, 0)} - {value}:
            yield line[:m.start()] + str(other) + line[m.end():]
    for m in SWAPPED.finditer(code):
        if m.group(2) != m.group(4):
            swapped = m.group(1) + m.group(4) + m.group(3) + m.group(2)
            yield line[:m.start()] + swapped + line[m.end():]
    if CALL.match(code) and not KEYWORD.match(code):
        yield re.match(r'\t+', line).group() + '(void)0;'


def order(*parts):
    return hashlib.sha256('\0'.join(str(p) for p in parts).encode()).digest()


def sample(libraries, seed):
    """Returns a mutant of each line of the libraries that has one, in the order of the seed."""
    found = []
    for path in sorted(p for lib in libraries for p in (ROOT / 'lib' / lib).glob('*.c')):
        name = str(path.relative_to(ROOT))
        same = collections.Counter()
        for number, line, code in code_lines(path):
            place = (seed, name, line, same[line])
            same[line] += 1
            forms = sorted(set(changes(line, code)), key=lambda new: order(*place, new))
            if forms:
                found.append((order(*place), Mutant(name, number, line, forms[0])))
    return [mutant for _, mutant in sorted(found)]


def equivalents():
    """Reads the listed mutants: PATH, the line and the changed line, each below the other and
    indented, then the reason until an empty line. Ends the program when a line no longer exists."""
    listed = set()
    for entry in re.split(r'\n\s*\n', EQUIVALENT.read_text()):
        rows = [row for row in entry.splitlines() if row.strip() and not row.startswith('#')]
        if not rows:
            continue
        if len(rows) < 4:
            sys.exit(f'{EQUIVALENT}: an entry lacks a line or its reason: {rows[0]}')
        path, old, new = (row.strip() for row in rows[:3])
        if old not in (line.strip() for line in (ROOT / path).read_text().splitlines()):
            sys.exit(f'{EQUIVALENT}: {path} has no such line: {old}')
        listed.add((path, old, new))
    return listed


running = set() # the process groups of test programs


def run(command, seconds, **more):
    """Runs a command in a process group of its own. Returns its status, or None after the time."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True, **more) as process:
        running.add(process.pid)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None
        finally:
            running.discard(process.pid)


def end(*_):
    """Ends the test programs with this one: a mutant may never end by itself."""
    for group in list(running):
        os.killpg(group, signal.SIGKILL)
    os._exit(1)


class Copy:
    """A copy of the tree with a build folder."""

    def __init__(self, folder, jobs):
        self.tree, self.build, self.jobs = folder / 'tree', folder / 'build', jobs
        self.synchronise()
        self.configure()

    def synchronise(self):
        """Copies the files that differ, and no others, so that ninja builds little."""
        names = subprocess.run(['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard'],
                               check=True, capture_output=True, text=True).stdout.splitlines()
        names = {name for name in names if (ROOT / name).is_file()}
        for name in names:
            source, target = ROOT / name, self.tree / name
            if not target.is_file() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        for path in [p for p in self.tree.rglob('*') if p.is_file()]:
            if str(path.relative_to(self.tree)) not in names:
                path.unlink()

    def configure(self):
        if not (self.build / 'build.ninja').is_file():
            options = ['-Db_coverage=true', '-Doptimization=g', '-Dwerror=false',
                       f'-Dc_args={C_ARGS}']
            subprocess.run(['meson', 'setup', *options, self.build, self.tree], check=True,
                           stdout=subprocess.DEVNULL)

    def ninja(self, targets):
        command = ['ninja', '-C', str(self.build), '-j', str(self.jobs), *targets]
        return subprocess.run(command, capture_output=True, text=True)

    def write(self, mutant, line):
        path = self.tree / mutant.path
        lines = path.read_text().splitlines(keepends=True)
        lines[mutant.line - 1] = line + '\n'
        path.write_text(''.join(lines))


class Program:
    """A test program: its path in the build folder, and what it executes without mutants."""

    def __init__(self, copy, test):
        self.copy = copy
        self.path = str(pathlib.Path(test['cmd'][0]).relative_to(copy.build))
        self.folder = self.path.split('/')[2]
        self.env = {**os.environ, **test['env'], 'GCOV_ERROR_FILE': '/dev/null'}
        self.command = [*test['cmd'], '--fail-fast']
        self.seconds, self.lines = 0, {}

    def record(self):
        """Runs the program and keeps the executed lines in a file, until the program changes.
        Returns whether it passes."""
        digest = hashlib.sha256((self.copy.build / self.path).read_bytes()).hexdigest()
        kept = self.copy.build / (self.path + '.lines.json')
        known = json.loads(kept.read_text()) if kept.is_file() else {}
        if known.get('digest') != digest:
            known = {'digest': digest, **self.measure()}
            kept.write_text(json.dumps(known))
        self.seconds = known['seconds']
        self.lines = {path: set(lines) for path, lines in known['lines'].items()}
        return known['status'] == 0

    def measure(self):
        counters = self.copy.build / 'counters'
        shutil.rmtree(counters, ignore_errors=True)
        start = time.monotonic()
        status = run(self.command, 600, env={**self.env, 'GCOV_PREFIX': str(counters)},
                     cwd=self.copy.build)
        seconds = time.monotonic() - start
        return {'status': status, 'seconds': seconds, 'lines': self.executed(counters)}

    def executed(self, counters):
        """Returns the executed lines of each file of the libraries."""
        data = [p for p in counters.rglob('*.gcda') if re.search(r'lib_\w+_|/lib/', str(p))]
        for path in data: # gcov looks for the notes beside the data
            notes = pathlib.Path('/') / path.relative_to(counters).with_suffix('.gcno')
            path.with_suffix('.gcno').symlink_to(notes)
        if not data:
            return {}
        text = subprocess.run(['gcov', '--json-format', '--stdout', *data], capture_output=True,
                              text=True, cwd=self.copy.build).stdout
        lines = collections.defaultdict(set)
        for report in map(json.loads, text.splitlines()):
            for file in report['files']:
                path = os.path.normpath(self.copy.build / file['file'])
                path = os.path.relpath(path, self.copy.tree)
                if re.match(rf'lib/({"|".join(LIBRARIES)})/', path):
                    lines[path] |= {row['line_number'] for row in file['lines'] if row['count']}
        return {path: sorted(numbers) for path, numbers in lines.items()}

    def reaches(self, path, line):
        """Returns whether the program executes the line, or without one anything of the file."""
        lines = self.lines.get(path, set())
        return bool(lines) if line is None else line in lines

    def passes(self):
        """Runs the program without counters. Returns False when it fails or takes too long."""
        limit = 30 + 10 * self.seconds
        return run(self.command, limit, env={**self.env, 'GCOV_PREFIX': '/dev/null'},
                   cwd=self.copy.build) == 0


class Trial:
    """Tries mutants, one after the other."""

    def __init__(self, copy):
        self.copy = copy
        self.programs = self.recorded()
        self.executed = collections.defaultdict(set)
        for program in self.programs:
            for path, lines in program.lines.items():
                self.executed[path] |= lines

    def recorded(self):
        tests = json.loads(subprocess.run(['meson', 'introspect', '--tests', str(self.copy.build)],
                                          check=True, capture_output=True).stdout)
        paths = tuple(f'{self.copy.build}/test/unit/{folder}/' for folder in TEST_FOLDERS)
        programs = [Program(self.copy, t) for t in tests if t['cmd'][0].startswith(paths)]
        built = self.copy.ninja([p.path for p in programs])
        if built.returncode != 0:
            sys.exit(built.stdout[-4000:])
        passing = []
        for program in programs:
            if program.record():
                passing.append(program)
            else:
                print(f'{program.path} fails without mutants: it is left out', flush=True)
        return passing

    def reaching(self, mutant):
        """Returns the programs that execute the line, those of its library and the fast ones first.
        A line without a counter counts as executed with the nearest one above it."""
        text = (self.copy.tree / mutant.path).read_text().splitlines()
        executed = self.executed.get(mutant.path, set())
        line = mutant.line
        while line not in executed and re.match(r'\t|#|$', text[line - 1]):
            line -= 1
        if text[line - 1].endswith('= {'): # a table has no counters
            line = None
        home = mutant.path.split('/')[1]
        found = [p for p in self.programs if p.reaches(mutant.path, line)]
        return sorted(found, key=lambda p: (p.folder != home, p.seconds))

    def catches(self, mutant):
        """Returns 'refused' by the compiler, 'caught', or the number of programs that pass."""
        programs = self.reaching(mutant)
        for start in range(0, len(programs), 2 * self.copy.jobs):
            some = programs[start:start + 2 * self.copy.jobs]
            built = self.copy.ninja([p.path for p in some])
            if built.returncode != 0 or warned(built.stdout, mutant.path):
                return 'refused'
            with concurrent.futures.ThreadPoolExecutor(self.copy.jobs) as pool:
                if not all(pool.map(Program.passes, some)):
                    return 'caught'
        return len(programs)

    def outcome(self, mutant):
        self.copy.write(mutant, mutant.new)
        try:
            return self.catches(mutant)
        finally:
            self.copy.write(mutant, mutant.old)


def warned(output, path):
    """Returns whether the compiler warned of a file, which the project's build refuses. Two
    warnings do not count: that of missing parentheses, which is about form, and that of
    uninitialised variables, which gcc finds by chance where it optimises as little as here."""
    return re.search(rf'{re.escape(path)}:\d+:\d+: warning: .*\[-W(?!maybe-uninit|parentheses)',
                     output)


def report(outcomes):
    """Yields the survivors and a line of figures for each library."""
    yield '  mutants that no unit test catches'
    for mutant, outcome in outcomes:
        if isinstance(outcome, int):
            yield f'  {mutant.path}:{mutant.line} ({outcome} programs)'
            yield f'    {mutant.old.strip()}\n    {mutant.new.strip()}'
    rows = collections.defaultdict(collections.Counter)
    for mutant, outcome in outcomes:
        for row in (mutant.path.split('/')[1], 'all'):
            rows[row]['survived' if isinstance(outcome, int) else outcome] += 1
    yield (f'\n  {"library":10} {"caught":>6} {"of":>5} {"share":>6} {"equivalent":>11}'
           f' {"refused":>8}')
    for name, row in sorted(rows.items(), key=lambda r: (r[0] == 'all', r[0])):
        mutants = row['caught'] + row['survived']
        yield (f'  {name:10} {row["caught"]:6} {mutants:5} {row["caught"] / max(mutants, 1):6.2f}'
               f' {row["equivalent"]:11} {row["refused"]:8}')


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seed', default=SEED, help=f'text that chooses the lines ({SEED[:7]}...)')
    parser.add_argument('--count', type=int, default=150, help='mutants that count (150)')
    parser.add_argument('--lib', action='append', choices=LIBRARIES, help='only this library')
    parser.add_argument('--at', action='append', metavar='PATH:LINE', help='only this line')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='programs at a time')
    parser.add_argument('--least', type=float, default=0.9, help='share to be caught (0.9)')
    parser.add_argument('--folder', type=pathlib.Path, default=ROOT / 'build-mutate',
                        help='where the copy stands (build-mutate)')
    parser.add_argument('--list', action='store_true', help='print the mutants, and try none')
    return parser.parse_args()


def main():
    options = arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    mutants = sample(options.lib or LIBRARIES, options.seed)
    if options.at:
        mutants = [m for m in mutants if f'{m.path}:{m.line}' in options.at]
    listed = equivalents()
    if options.list:
        for mutant in mutants[:options.count]:
            print(f'{mutant.path}:{mutant.line}', mutant.old.strip(), mutant.new.strip(),
                  sep='\n    ')
        return 0
    trial = Trial(Copy(options.folder.resolve(), options.jobs))
    outcomes, counted = [], 0
    for mutant in mutants:
        if counted == options.count:
            break
        if (mutant.path, mutant.old.strip(), mutant.new.strip()) in listed:
            outcome = 'equivalent'
        else:
            start = time.monotonic()
            outcome = trial.outcome(mutant)
            word = f'survived {outcome} programs' if isinstance(outcome, int) else outcome
            print(f'{mutant.path}:{mutant.line} {word} ({time.monotonic() - start:.0f} s)\n'
                  f'    {mutant.old.strip()}\n    {mutant.new.strip()}', flush=True)
        counted += outcome == 'caught' or isinstance(outcome, int)
        outcomes.append((mutant, outcome))
    text = '\n'.join(report(outcomes)) + '\n'
    (options.folder / 'mutants.txt').write_text(text)
    print(text, end='')
    caught = sum(outcome == 'caught' for _, outcome in outcomes)
    return 0 if caught >= options.least * counted else 1


if __name__ == '__main__':
    sys.exit(main())
