#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the fields that tshark reads in Falcon frames with those that falcon_frames wrote.

    falcon_fields.py FOLDER keys|none|wrong|damaged

FOLDER is falcon_frames' output. With keys, each field of each frame must have the value that was
written, and no other field of these protocols may appear. Without keys, encrypted frames must show
their PSP header and, in transport mode, the CID, and nothing behind it. With a wrong key, the
frames of its SPI must show the same, and a bad integrity check value. Damaged: the dissector must
not fail on frames that are cut short or have wrong bytes.
"""
import pathlib
import random
import struct
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
mode = sys.argv[2]
ENCRYPTED = {'0', '1'}  # versions of PSP
AUTHENTICATED = {'2', '3'}
NAMED_SPI = 0x12345678  # has a key of its own in the options


def meant_frames():
    for line in (folder / 'meant').read_text().splitlines():
        yield dict(pair.split('=', 1) for pair in line.split(' ')[1:])


def without_keys(frame):
    """Returns the fields that a reader without the key sees."""
    version = frame['psp.version']
    if version in ENCRYPTED:
        left = {k: v for k, v in frame.items()
                if not k.startswith(('falcon.', 'rof.')) and k != 'psp.icv_good'}
        if frame['psp.next'] == '252':
            left['falcon.cid'] = frame['falcon.cid']
        if int(frame['eth.type']) == 0x0800:
            left.pop('ipv6.flow', None)  # of the inner header
        return left
    if version in AUTHENTICATED:
        return {k: v for k, v in frame.items() if k != 'psp.icv_good'}
    return frame


def expected(frame):
    """Returns the fields that a frame must show."""
    if mode == 'none':
        return without_keys(frame)
    if mode == 'wrong' and int(frame['psp.spi']) == NAMED_SPI:
        return {**without_keys(frame), 'psp.icv_good': '0'}
    return frame


def key_options():
    text = (folder / 'options').read_text()
    if mode == 'wrong':
        wrong = text.replace(f'{NAMED_SPI:08x}=fe', f'{NAMED_SPI:08x}=ff')
        if wrong == text:
            sys.exit('the options hold no key of the named SPI')
        text = wrong
    return [] if mode == 'none' else text.splitlines()


def read(names, options, capture='frames.pcap'):
    command = ['tshark', '-X', 'lua_script:config/falcon.lua', '-r', str(folder / capture),
               '-o', 'udp.check_checksum:TRUE', *options,
               '-T', 'fields', '-E', 'separator=/t', '-E', 'occurrence=f']
    for name in names:
        command += ['-e', name]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f'tshark: {run.stderr}')
    for line in run.stdout.splitlines():
        yield dict(zip(names, line.split('\t')))


def same(want, got):
    if want is None or got == '':
        return want is None and got == ''
    if want.startswith('x'):
        return want[1:] == got.replace(':', '')
    return int(want) == ({'True': 1, 'False': 0}[got] if got in ('True', 'False') else int(got, 0))


def damaged_frame(frame):
    """Returns the frame with a shorter UDP payload and matching lengths, or with other bytes in
    it."""
    frame = bytearray(frame)
    over_ipv6 = frame[12:14] == b'\x86\xdd'
    udp = 14 + (40 if over_ipv6 else 20)
    if random.random() < 0.4:
        del frame[random.randrange(udp + 8, len(frame) + 1):]
        struct.pack_into('>H', frame, udp + 4, len(frame) - udp)
        length = len(frame) - (udp if over_ipv6 else 14)
        struct.pack_into('>H', frame, 18 if over_ipv6 else 16, length)
        return frame
    for _ in range(random.randrange(1, 4)):
        frame[random.randrange(udp + 8, len(frame))] = random.randrange(256)
    return frame


def damage(copies):
    data = (folder / 'frames.pcap').read_bytes()
    out, at = [data[:24]], 24
    while at < len(data):
        length = struct.unpack_from('<I', data, at + 8)[0]
        for _ in range(copies):
            frame = damaged_frame(data[at + 16:at + 16 + length])
            out += [struct.pack('<IIII', 0, 0, len(frame), len(frame)), frame]
        at += 16 + length
    (folder / 'damaged.pcap').write_bytes(b''.join(out))


def read_damaged():
    random.seed(1)
    damage(4)
    names = ['_ws.lua.error', 'psp.spi', 'falcon.type', 'falcon.bad_length']
    seen = list(read(names, key_options(), 'damaged.pcap'))
    errors = [got for got in seen if got['_ws.lua.error']]
    if errors:
        sys.exit(f'the dissector fails: {errors[0]}')
    found = {name: sum(got[name] != '' for got in seen) for name in names[1:]}
    if min(found.values()) < 50:
        sys.exit(f'tshark reads too few fields: {found}')
    print(f'{len(seen)} damaged frames, {found}')


def main():
    if mode == 'damaged':
        read_damaged()
        return
    frames = list(meant_frames())
    names = sorted({name for frame in frames for name in frame})
    names += ['_ws.malformed', '_ws.lua.error', '_ws.expert.message']
    seen = list(read(names, key_options()))
    if len(frames) < 1000 or len(seen) != len(frames):
        sys.exit(f'{len(frames)} frames were written, {len(seen)} read')
    values = 0
    for number, (want, got) in enumerate(zip(frames, seen), 1):
        want = expected(want)
        for name in names:
            if not same(want.get(name), got[name]):
                sys.exit(f'frame {number}: {name} is {got[name]!r}, written was {want.get(name)}')
        values += len(want)
    print(f'{len(frames)} frames, {len(names)} fields, {values} values as written')


main()
