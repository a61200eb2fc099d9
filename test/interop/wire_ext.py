#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the start-up frames and FPDUs that tshark found with those that wire_ext posted or
iwarp_frames emitted.

    wire_ext.py MEANT <PDML

A line of MEANT is a direction and fields, "out iwarp_ddp.qn=1 ...", values in hexadecimal. Every
field must exist with that value, in every message, in order. No message may be missing, and none
may be extra. Every CRC must be good. tshark 4.0 has names for all fields of FetchAdd, CmpSwap and
their responses. It has none for Immediate Data ("Unknown" opcodes 8 and 9), for the draft's Swap
("Unknown" operation 1, whose swap data it shows as compare data), and for payload. Those are
compared as "body": the ULPDU's bytes behind the header, which has 14 bytes when tagged and 18 when
untagged (RFC 5041 4).
"""
import sys
import xml.etree.ElementTree as ET

PORTS = range(7900, 7902)
TITLES = {None: 'MPA start-up frame', 0: 'Write', 1: 'Read Request', 2: 'Read Response', 3: 'Send',
          4: 'Send with Invalidate', 5: 'Send with SE', 6: 'Send with SE and Invalidate',
          7: 'Terminate', 8: 'Immediate Data', 9: 'Immediate Data with SE', 10: 'Atomic Request',
          11: 'Atomic Response'}


def meant(path):
    with open(path) as lines:
        for line in lines:
            way, *fields = line.split()
            yield way, {name: int(value, 16) for name, value in (f.split('=') for f in fields)}


def packets():
    for _, element in ET.iterparse(sys.stdin.buffer):
        if element.tag == 'packet':
            yield element
            element.clear()


def field(element, name):
    return element.find(f'.//field[@name="{name}"]')


def fields(element):
    """Returns the names and values of all fields below the element. A name that occurs twice has
    the value None."""
    found = {}
    for f in element.iter('field'):
        if f.get('value'):
            name = f.get('name')
            found[name] = None if name in found else int(f.get('value'), 16)
    return found


def messages():
    """Yields direction, fields and faults of each FPDU."""
    for packet in packets():
        layers = [p for p in packet.iter('proto') if p.get('name') == 'iwarp_ddp_rdmap']
        framing = [f for f in packet.iter('field') if f.get('name') == 'iwarp_mpa.fpdu']
        faults = [p.get('name') for p in packet.iter('proto') if p.get('name') == '_ws.malformed']
        if len(layers) != len(framing):
            faults.append(f'{len(framing)} FPDUs, {len(layers)} decoded')
        startup = [f for f in packet.iter('field')
                   if f.get('name') in ('iwarp_mpa.req', 'iwarp_mpa.rep')]
        for frame in startup:
            way = 'out' if frame.get('name') == 'iwarp_mpa.req' else 'back'
            yield way, fields(frame), faults
        if not framing:
            continue
        payload = field(packet, 'tcp.payload')
        raw, start = bytes.fromhex(payload.get('value')), int(payload.get('pos'))
        to = int(field(packet, 'tcp.dstport').get('show'))
        for fpdu, layer in zip(framing, layers):
            seen = {**fields(fpdu), **fields(layer)}
            ulpdu = int(fpdu.get('pos')) - start + 2
            header = 14 if seen['iwarp_ddp.tagged_flag'] else 18
            body = raw[ulpdu + header:ulpdu + seen['iwarp_mpa.ulpdulength']]
            seen['body'] = int.from_bytes(body, 'big') if body else None
            crc = field(fpdu, 'iwarp_mpa.crc_check')
            bad = faults if crc is not None and 'Good' in crc.get('showname') else faults + ['CRC']
            yield 'out' if to in PORTS else 'back', seen, bad


def compare(n, want, got):
    """Returns the faults of the n-th message."""
    way, fields_meant = want
    seen_way, seen, faults = got
    if seen_way != way:
        faults = faults + [f'goes {seen_way}, not {way}']
    for name, value in fields_meant.items():
        if seen.get(name) != value:
            is_ = 'absent' if seen.get(name) is None else f'{seen[name]:x}'
            faults = faults + [f'{name} is {is_}, not {value:x}']
    return [f'message {n}: {fault}' for fault in faults]


def main():
    wanted, seen = list(meant(sys.argv[1])), list(messages())
    faults = []
    if len(wanted) != len(seen):
        faults.append(f'{len(seen)} messages, {len(wanted)} were posted')
    counts = {}
    for n, (want, got) in enumerate(zip(wanted, seen)):
        faults += compare(n, want, got)
        title = TITLES[want[1].get('iwarp_rdma.opcode')]
        messages_, fields_ = counts.get(title, (0, 0))
        counts[title] = messages_ + 1, fields_ + len(want[1])
    for title, (messages_, fields_) in counts.items():
        print(f'{title:27} {messages_:3} messages {fields_:4} fields')
    print('\n'.join(faults[:20]) if faults else 'as posted')
    return 1 if faults or not wanted else 0


sys.exit(main())
