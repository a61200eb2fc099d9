#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Writes the table of programs in doc/run-your-program.md from what the scripts beside this one print:

    table.py                 runs the scripts of SCRIPTS first (some 10 minutes)
    table.py LOG...          reads their output instead

A row is a program, or several; a cell is the number of runs that passed on a device, "-" where the
device's protocol does not allow the program, with a note, or "not run". A program that ran on no
device has no row. A script that fails ends this one, which then leaves the page as it is.
"""
import re
import subprocess
import sys

PAGE = 'doc/run-your-program.md'
BEGIN, END = '<!-- results -->\n', '<!-- end of results -->\n'
SCRIPTS = ('verbs', 'rdmacm', 'rsocket', 'cluster', 'iser', 'pyverbs')
DEVICES = {'iwarp': 'saker0', 'falcon': 'sakerf0', 'saker0': 'saker0', 'sakerf0': 'sakerf0'}
# The lines that a script prints about a run that passed: the device and the program.
RUNS = (re.compile(r'ok    (iwarp|falcon):? (.+)'),
        re.compile(r'(saker0|sakerf0): (i\S+ .+) \(\d+ s\)'))
TESTS = re.compile(r'(saker0|sakerf0): (\d+) passed, (\d+) skipped, (\d+) cannot pass, 0 bad')

OWN = 'The program connects its queue pairs itself, which iWARP does not have.'
DATAGRAMS = 'Datagrams are Falcon\'s.'
# The title of each row, the runs that belong to it, and for a device that cannot: why.
ROWS = (
    ('perftest over rdma_cm (`-R`): latency, bandwidth, atomics, events', r'ib_.* -R.*', {}),
    ('perftest with its own connections (`-x 0`)', r'ib_(?!.* -R).*', {'saker0': OWN}),
    ('`ibv_rc_pingpong`, `ibv_srq_pingpong`, `ibv_ud_pingpong`, `ibv_xsrq_pingpong`',
     r'ibv_\w+_pingpong .*', {'saker0': OWN}),
    ('`rping`', r'rping.*', {}),
    ('`ucmatose`', r'ucmatose.*', {}),
    ('`rdma_server`, `rdma_client`', r'rdma_server.*', {}),
    ('`cmtime`, 1000 connections', r'cmtime.*', {}),
    ('`udaddy`', r'udaddy.*', {'saker0': DATAGRAMS}),
    ('`rstream`, `riostream`, `rcopy`', r'(rstream|riostream|rcopy).*', {}),
    ('`iperf3`', r'iperf3.*', {}),
    ('`nc`, both ways', r'nc, .*', {}),
    ('web servers (lighttpd, Python) and `curl`', r'.* and curl', {}),
    ('UCX: `ucx_perftest`, RC and UD, polling and sleeping', r'UCX .*', {'saker0': OWN}),
    ('MPICH at its defaults, and over UD', r'MPICH.*', {'saker0': OWN}),
    ('Open MPI (`--mca pml ucx --mca osc ucx`)', r'Open MPI.*', {'saker0': OWN}),
    ('iSER: tgtd, libiscsi', r'iSER.*', {}),
)


def runs_of(text):
    """Yields the device and the program of each run that passed."""
    for line in text.splitlines():
        for pattern in RUNS:
            m = pattern.fullmatch(line)
            if m:
                yield DEVICES[m.group(1)], m.group(2)
                break


def cell(runs, device, pattern, cannot, notes):
    n = sum(1 for d, program in runs if d == device and re.fullmatch(pattern, program))
    if n == 0 and device in cannot:
        if cannot[device] not in notes:
            notes.append(cannot[device])
        return f'- ({notes.index(cannot[device]) + 1})'
    return f'{n} passed' if n else 'not run'


def table(text):
    runs, notes, lines = list(runs_of(text)), [], []
    for title, pattern, cannot in ROWS:
        cells = [cell(runs, d, pattern, cannot, notes) for d in ('saker0', 'sakerf0')]
        if cells != ['not run', 'not run']:
            lines.append(f'| {title} | {cells[0]} | {cells[1]} |')
    tests = {m.group(1): m.groups()[1:] for m in TESTS.finditer(text)}
    cells = ['{} passed, {} skipped, {} cannot pass (t)'.format(*tests[d]) if d in tests
             else 'not run' for d in ('saker0', 'sakerf0')]
    lines.append(f'| rdma-core\'s own tests (pyverbs) | {cells[0]} | {cells[1]} |')
    head = ['| program | saker0 | sakerf0 |', '|---|---|---|']
    foot = [''] + [f'({i + 1}) {n}' for i, n in enumerate(notes)]
    foot += ['(t) `test/interop/pyverbs.sh -v` prints each with its reason.']
    return '\n'.join(head + lines + foot) + '\n'


def output(script):
    done = subprocess.run([f'test/interop/{script}.sh'], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f'{script}.sh ends with status {done.returncode}')
    return done.stdout


def main(logs):
    texts = [open(f).read() for f in logs] if logs else [output(s) for s in SCRIPTS]
    for text in texts:
        if 'FAIL' in text:
            sys.exit('a script failed: ' + re.search('.*FAIL.*', text).group())
    with open(PAGE) as f:
        page = f.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    with open(PAGE, 'w') as f:
        f.write(page[:begin] + table('\n'.join(texts)) + page[end:])


if __name__ == '__main__':
    main(sys.argv[1:])
