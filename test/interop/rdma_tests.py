#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Runs rdma-core's own tests, as Debian's python3-pyverbs has them, on a device of Saker:

    rdma_tests.py FOLDER DEVICE ADDRESS

FOLDER contains `tests`. ADDRESS is the saker's, which no interface of the kernel has. Tests of
other vendors' devices are left out. A test may fail when the device cannot have what it needs:
EXPECTED has these with the reason, and such a test must fail. Prints a line for each test that did
not pass, and a summary. The exit status is 1 when a result is not the expected one.
"""
import collections
import os
import re
import sys
import time
import unittest

MODIFIED = 'the test connects queue pairs without rdma_cm, which no iWARP device can'
RESPONSE = 'the iWARP connection manager has no event CONNECT_RESPONSE'

# The tests that fail, by device, as patterns of their names.
EXPECTED = [
    ('saker0', r'test_(cq_events|parent_domain|qpex|relaxed_ordering|shared_pd)\..*', MODIFIED),
    ('saker0', r'test_cqex\.CqExTestCase\..*', MODIFIED),
    ('saker0', r'test_atomic\.AtomicTest\.test_atomic_(cmp_and_swap|fetch_and_add)', MODIFIED),
    ('saker0', r'test_mr\.(MRTest\.test_mr_rereg|MWTest\.test_(invalidate_)?mw_type).*', MODIFIED),
    ('saker0', r'test_rdmacm\..*_external_qp', RESPONSE),
]
# The messages of tests that skip themselves, by device: features that no wire of the device has.
SKIPS = [
    ('both', r'ODP is not supported.*', 'on-demand paging'),
    ('both', r'Device memory is not supported', 'device memory'),
    ('both', r'Allocating dmabuf is not supported.*', 'memory of a GPU'),
    ('both', r'Create (Raw Packet QP|QP type 8).*', 'raw packets'),
    ('both', r'Create UC QP.*', 'unreliable connections'),
    ('both', r'Multicast is not supported.*', 'multicast'),
    ('both', r'Extended CQ is not supported', 'tag matching'),
    ('both', r'All gid indices populated.*', 'GID tables with gaps'),
    ('sakerf0', r'Extended QP is not supported.*', 'atomic writes'),
    ('saker0', r'(Create UD QP|Create QP type 4|Create AH) .*', 'datagrams'),
    ('saker0', r'Extended QP is not supported.*', 'datagrams, XRC, atomic writes'),
    ('saker0', r'Create XRCD is not supported', 'XRC'),
]
SEND_TIME = 0.2  # seconds
MAC = '02:00:00:00:00:01'  # only tests of raw packets use it
VENDORS = re.compile(r'test_(mlx5|efa|cuda)')


def flat(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from flat(t)
        else:
            yield t


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.lines = collections.OrderedDict()

    def note(self, test, kind, why):
        self.lines[test.id().replace('tests.', '', 1)] = (kind, why.strip())

    def startTest(self, test):
        super().startTest(test)
        self.note(test, 'ok', '')

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, 'skipped', reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, 'bad', f'{err[0].__name__}: {err[1]}')

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, 'bad', f'{err[0].__name__}: {err[1]}')


def look_up(table, device, text):
    for d, pattern, reason in table:
        if d in (device, 'both') and re.fullmatch(pattern, text):
            return reason
    return None


def judge(device, name, kind, why):
    """Returns the kind and the reason of a result, in the light of what is expected."""
    expected = look_up(EXPECTED, device, name)
    if kind == 'bad' and expected:
        return 'expected', f'{expected} ({why})'
    if kind == 'ok' and expected:
        return 'bad', f'it passes, which is not expected: {expected}'
    if kind == 'skipped':
        feature = look_up(SKIPS, device, why)
        return ('skipped', feature) if feature else ('bad', f'it is skipped: {why}')
    return kind, why


def wait_after_sends(utils):
    """test_resize_cq expects that a datagram completes within the time of a Python statement, or
    its queue is not as full as it has to be: here each of its sends takes as long as it needs."""
    send = utils.send

    def patient(agr_obj, *args, **kwargs):
        send(agr_obj, *args, **kwargs)
        if sys._getframe(1).f_code.co_name == 'test_resize_cq':
            time.sleep(SEND_TIME)
    utils.send = patient


def main(folder, device, address):
    sys.argv[1:] = ['--dev', device, '--gid', '0']
    sys.path[:0] = [folder, os.path.join(folder, 'tests')]
    from args_parser import parser
    import tests
    parser.parse_args()
    # The tests look for the device's address at an interface of the kernel.
    sys.modules['tests.base'].RDMATestCase._get_ip_mac = lambda self, dev, port, idx: \
        self.args.append([dev, port, idx, address, MAC])
    wait_after_sends(sys.modules['tests.utils'])
    cases = [t for t in flat(unittest.defaultTestLoader.loadTestsFromModule(tests))
             if not VENDORS.search(t.id())]
    result = Result()
    unittest.TestSuite(cases).run(result)
    count = collections.Counter()
    for name, (kind, why) in result.lines.items():
        kind, why = judge(device, name, kind, why)
        count[kind] += 1
        if kind != 'ok':
            print(f'{kind:8} {name}: {why}')
    print(f"{device}: {count['ok']} passed, {count['skipped']} skipped, "
          f"{count['expected']} cannot pass, {count['bad']} bad")
    return count['bad'] != 0 or count['ok'] == 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
