#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes programs for the fuzz target `engine`, one for each whole operation: connecting on both
transports, each opcode, datagrams, XRC, limits, endings, frames that are lost, doubled or changed.
Or those of the target `fast`: many requests in a turn, of all opcodes and sizes.

    seeds.py FOLDER [engine|fast]

test/fuzz/corpus has what libFuzzer keeps of them (fuzz_engine -merge=1).
"""
import pathlib
import random
import sys

(COMMAND, BASICS, CONNECT, PAIR, DATAGRAMS, XRC, SEND, RECEIVE, POLL, SCRIBBLE, TURNS, TIME, FATES,
 FRAME, REPLAY, LEAVE, BELL, DEAF, RAW, BURST) = range(20)
(QUERY_DEVICE, PD_CREATE, PD_DESTROY, MR_CREATE, MR_DESTROY, CQ_CREATE, CQ_DESTROY, SRQ_CREATE,
 SRQ_DESTROY, QP_CREATE, QP_MODIFY, QP_QUERY, QP_DESTROY, LISTEN, UNLISTEN, CONNECT_TO, ACCEPT,
 REJECT, DISCONNECT, REGION_DROP, MW_CREATE, MW_DESTROY, AH_CREATE, AH_DESTROY, XRCD_OPEN,
 XRCD_CLOSE, SRQ_MODIFY, QP_OPEN, RESOLVE) = range(1, 30)
PLAIN, KEYED, MARKERS = range(3)
FALCON = 1
SIGNALED, SOLICITED, FENCE, INLINE = 1, 2, 4, 8
DROP_ALL = 0x55  # a byte of FATES: the next four frames are lost
MS = 10  # TIME's operand for about a millisecond: 1 us << 10


def who(client, other, more=0):
    return client | other << 2 | more << 4


def step(kind, client, other, *operands):
    return bytes([kind, who(client, other), *operands])


def command(client, other, op, *operands):
    """A command without patches, if it gets all of its operands."""
    return step(COMMAND, client, other, op, *operands, 0)


def turns(n):
    return step(TURNS, 0, 0, n - 1)


def send(client, other, opcode, flags=SIGNALED, target=0, length=1000, qp=0, times=1):
    return step(SEND, client, other, qp, opcode, flags | (times - 1) << 6, target, length >> 8,
                length & 255)


def receive(client, which=0, count=4, shift=0):
    return step(RECEIVE, client, client, which, (count - 1) << 4 | shift)


def poll(client, arm=1):
    return step(POLL, client, client, arm)


def connect(client, other, qp, how=0, more=0):
    return step(CONNECT, client, other, qp, how, more)


def replay(back, to, patches, fix=True, cut=None):
    how = to | (2 if fix else 0) | (4 if cut else 0)
    out = step(REPLAY, 0, 0, back, how, (cut or 0) >> 8, (cut or 0) & 255, len(patches))
    for at, value in patches:
        out += bytes([at >> 8, at & 255, value])
    return out


def later(back, to, ahead, payload, more=False):
    """A packet of the peer that follows a kept one on its Falcon connection. `more`: the next frame
    arrives in the same turn."""
    how = to | 2 | (8 if more else 0) | 16 | ahead << 5
    return step(REPLAY, 0, 0, back, how, 0, payload, 0)


def exchange(a, b):
    """Each opcode in both directions, with receives, and the completions taken."""
    out = b''
    for x, y in ((a, b), (b, a)):
        out += receive(y, 0, 12)
        for opcode in range(13):
            length = 9000 if opcode in (0, 3, 5) else 300
            out += send(x, y, opcode, SIGNALED | SOLICITED, 0, length) + turns(12)
        out += send(x, y, 3, SIGNALED | INLINE, 0, 100) + turns(20) + poll(x) + poll(y, 2)
    return out


def everything(world):
    """Programs for one configuration, by name."""
    pairs = {'far': (0, 2), 'near': (0, 1), 'self': (0, 3)}
    out = {}
    for transport in (0, FALCON):
        for name, (a, b) in pairs.items():
            for style, qp in {'': 0, '_inline': 0x50, '_signal': 0xa0}.items():
                out[f'exchange_{transport}_{name}{style}'] = \
                    connect(a, b, transport | qp) + exchange(a, b)
        base = connect(0, 2, transport)
        out[f'atomics_{transport}'] = base + b''.join(
            send(0, 2, op, SIGNALED | FENCE, 0, 8, times=3) + turns(20) for op in (7, 8, 12, 5))
        out[f'no_receive_{transport}'] = base + send(0, 2, 0) + turns(60) + step(TIME, 0, 0, MS) \
            + turns(40) + receive(2) + turns(40) + step(TIME, 0, 0, MS + 2) + turns(60)
        out[f'window_{transport}'] = base + command(2, 0, MW_CREATE, 0) + \
            command(2, 0, MW_CREATE, 1) + send(2, 0, 11, SIGNALED, 1) + turns(10) + \
            send(0, 2, 3, SIGNALED, 4) + turns(30) + send(2, 0, 10, SIGNALED, 4) + turns(10) + \
            send(0, 2, 5, SIGNALED, 4) + turns(30) + command(2, 0, MW_DESTROY, 0)
        out[f'shared_{transport}'] = step(BASICS, 2, 2) + command(2, 0, SRQ_CREATE, 0x2d) + \
            connect(0, 2, transport | 8) + receive(2, 16, 6) + \
            b''.join(send(0, 2, 0) + turns(20) for _ in range(4)) + \
            command(2, 0, SRQ_MODIFY, 9) + turns(10) + poll(2) + command(2, 0, SRQ_DESTROY, 0)
        for name, how in {'orderly': 0, 'abort': 0x80}.items():
            out[f'end_{name}_{transport}'] = base + send(0, 2, 3, times=4) + \
                command(0, 2, DISCONNECT, 0, how, 0) + turns(40) + command(2, 0, QP_QUERY, 0) + \
                step(TIME, 0, 0, MS) + turns(20) + command(2, 0, QP_DESTROY, 0) + turns(20)
        out[f'leave_{transport}'] = base + send(0, 2, 5, times=4) + step(LEAVE, 0, 0) + turns(30)
        out[f'overflow_{transport}'] = step(BASICS, 0, 0) + command(0, 0, CQ_DESTROY, 0) + \
            command(0, 0, CQ_CREATE, 1) + base + \
            b''.join(send(0, 2, 3, times=4) + turns(8) for _ in range(6))
        out[f'bad_access_{transport}'] = base + step(SEND, 0, 2, 0, 3, 0x11, 0, 1, 0, 6, 0, 0, 0,
                                                     9) + turns(40) + poll(0) + poll(2)
        out[f'bad_entry_{transport}'] = base + \
            step(SEND, 0, 2, 0, 0, 0x11, 0, 1, 0, 0, 0, 99, 1, 0xff) + turns(30)
        out[f'bad_length_{transport}'] = base + receive(2, 0, 4, 10) + send(0, 2, 0, 1, 0, 5000) \
            + turns(40)
        out[f'reset_{transport}'] = base + send(0, 2, 5, times=2) + \
            command(0, 2, QP_MODIFY, 0, 0) + turns(30) + command(0, 2, CONNECT_TO, 0, 0, 0) + \
            turns(60)
        out[f'error_{transport}'] = base + receive(0) + command(0, 2, QP_MODIFY, 0, 6) + \
            turns(30) + poll(0)
        out[f'reject_{transport}'] = step(BASICS, 0, 2) + step(BASICS, 2, 0) + \
            command(2, 0, LISTEN, 2, 0, 0) + command(0, 2, QP_CREATE, transport, 0) + \
            command(0, 2, CONNECT_TO, 0, 0, 0x10) + turns(60) + \
            command(2, 0, REJECT, 0, 0, 0x10) + turns(40)
        out[f'unanswered_{transport}'] = step(BASICS, 0, 2) + step(BASICS, 2, 0) + \
            command(2, 0, LISTEN, 2, 0, 0) + command(0, 2, QP_CREATE, transport, 0) + \
            command(0, 2, CONNECT_TO, 0, 0, 0) + turns(60) + command(2, 0, UNLISTEN, 0) + turns(40)
        out[f'refused_{transport}'] = step(BASICS, 0, 2) + step(BASICS, 2, 0) + \
            command(0, 2, QP_CREATE, transport, 0) + command(0, 2, CONNECT_TO, 0, 0, 0) + \
            turns(60)
        for how in (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x48, 0x68):
            out[f'terms_{transport}_{how:02x}'] = connect(0, 2, transport, how) + \
                receive(2) + send(0, 2, 0) + send(2, 0, 3) + turns(40)
        for more in (0x01, 0x02, 0x04, 0x08, 0x14, 0x20, 0x40, 0x80):
            out[f'offers_{transport}_{more:02x}'] = connect(0, 2, transport, 0, more) + \
                receive(0) + send(2, 0, 0) + send(0, 2, 12, 1, 0, 8) + turns(40)
        for seed in range(4):
            luck = random.Random(seed)
            program = step(FATES, 0, 0, *luck.randbytes(4)) if seed > 1 else b''
            program += base + receive(2, 0, 16)
            for i in range(12):
                program += step(FATES, 0, 0, *luck.randbytes(4)) + \
                    send(0, 2, (0, 3, 5, 8)[i % 4], 1, 0, luck.randrange(9000)) + turns(24) + \
                    step(TIME, 0, 0, luck.randrange(6, 15))
            out[f'bad_wire_{transport}_{seed}'] = program
        for seed in range(8):
            luck = random.Random(seed)
            program = base + receive(2, 0, 16) + receive(0, 0, 16)
            for i in range(12):
                program += send(0, 2, (0, 3, 5, 7)[i % 4], 1, 0, luck.randrange(2000)) + turns(4)
                patches = [(luck.choice([14, 34, 42, 54, 66, 74]) + luck.randrange(24),
                            luck.randrange(256)) for _ in range(luck.randrange(1, 4))]
                program += replay(luck.randrange(6), luck.randrange(2), patches, True,
                                  luck.choice([None, 20, 60]))
            out[f'changed_{transport}_{seed}'] = program
    for payload in (0, 7, 60, 255):
        for opcode in (0, 3, 5):
            for back in range(3):
                out[f'later_{opcode}_{payload}_{back}'] = connect(0, 2, FALCON) + \
                    step(FATES, 0, 0, *([DROP_ALL] * 4)) + send(0, 2, opcode) + turns(2) + \
                    step(FATES, 0, 0, 0, 0, 0, 0) + later(back, 1, 0, 0, True) + \
                    later(back, 1, 1, payload, True) + later(back, 1, 2, payload) + turns(20) + \
                    receive(2) + turns(40)
    for x, y in ((0, 2), (0, 1), (0, 0)):
        for flags in (0, 8):
            out[f'pair_{x}{y}_{flags}'] = step(PAIR, x, y, 1 | flags) + exchange(x, y)
    out['pair_absent'] = step(BASICS, 0, 0) + step(BASICS, 2, 2) + \
        command(2, 0, QP_CREATE, 1, 0) + command(0, 2, QP_CREATE, 1, 0) + \
        b''.join(command(0, 2, QP_MODIFY, 0, 8 | s) for s in (1, 2, 3)) + receive(0) + \
        send(0, 2, 3) + b''.join(step(TIME, 0, 0, 18) + turns(4) for _ in range(12)) + poll(0)
    for x, y in ((0, 2), (0, 1), (0, 0)):
        out[f'datagrams_{x}{y}'] = step(DATAGRAMS, x, y, 0) + receive(y, 0, 8) + \
            receive(x, 0, 8) + send(x, y, 0) + send(x, y, 2, 1, 0, 200, times=3) + turns(60) + \
            send(y, x, 0, 1, 0, 300) + turns(40) + send(x, y, 3) + send(x, y, 0, 1, 0, 20000) + \
            turns(20) + poll(x) + poll(y) + command(x, y, AH_DESTROY, 0)
    out['lookup'] = step(DATAGRAMS, 0, 2, 0) + command(2, 0, LISTEN, 2, 0, 1) + \
        command(0, 2, QP_CREATE, 3, 0) + command(0, 2, RESOLVE, 1, 0, 16) + turns(60) + \
        command(2, 0, ACCEPT, 0, 0, 16) + turns(40) + command(0, 2, RESOLVE, 1, 0, 0) + \
        turns(60) + command(2, 0, REJECT, 0, 0, 16) + turns(40)
    for how in (1, 4, 5):
        for x, y in ((0, 2), (1, 0)):
            out[f'xrc_{how}_{x}{y}'] = step(XRC, x, y, how) + receive(y, 16, 8) + \
                send(x, y, 0) + turns(30) + send(x, y, 3) + send(x, y, 5) + turns(30) + \
                send(x, y, 8, 1, 0, 8) + send(x, y, 2, times=3) + turns(40) + poll(x) + poll(y) + \
                command(3, y, XRCD_OPEN, how & 3) + command(3, y, QP_OPEN, 0) + \
                command(3, y, QP_QUERY, 0) + command(y, x, QP_DESTROY, 0) + turns(20) + \
                command(3, y, QP_DESTROY, 0) + command(y, x, XRCD_CLOSE, 0) + \
                command(y, x, SRQ_DESTROY, 0) + command(y, x, XRCD_CLOSE, 0)
    out['queries'] = step(BASICS, 0, 0) + command(0, 0, QUERY_DEVICE) + \
        command(0, 0, REGION_DROP, 1) + command(0, 0, PD_DESTROY, 0) + \
        command(0, 0, MR_DESTROY, 0) + command(0, 0, CQ_DESTROY, 0) + command(0, 0, PD_DESTROY, 0)
    out['regions'] = step(BASICS, 0, 0) + b''.join(command(0, 0, MR_CREATE, how) for how in
                                                   (1, 2, 3, 4, 8)) + \
        step(COMMAND, 0, 0, MR_CREATE, 0, 1, 12, 255, 255, 255, 255)
    out['quotas'] = step(BASICS, 0, 0) + b''.join(
        command(0, 0, op, 4 if op == QP_CREATE else 1, 0) for op in
        (QP_CREATE, CQ_CREATE, MR_CREATE, SRQ_CREATE, PD_CREATE, AH_CREATE) for _ in range(12))
    out['bells'] = connect(0, 2, 0) + b''.join(
        bytes([BELL, who(0, 0, s)]) + n.to_bytes(4, 'big') for s in (0, 1)
        for n in (0, 1, 99, 0xffffffff, 0x80000000)) + send(0, 2, 3) + turns(20)
    for area in range(8):
        out[f'scribble_{area}'] = connect(0, 2, FALCON) + receive(2) + send(0, 2, 0, times=2) + \
            step(SCRIBBLE, 0, 0, area, 0, 0, 31, *([0xff] * 32)) + turns(10) + \
            step(SCRIBBLE, 2, 0, area, 0, 4, 31, *range(32)) + send(0, 2, 3) + turns(20)
    out['deaf'] = step(DEAF, 0, 0) + b''.join(command(0, 0, PD_CREATE) + command(0, 0, QUERY_DEVICE)
                                              for _ in range(40))
    out['raw'] = b''.join(step(RAW, 0, 0, op, 40, *range(40)) for op in range(32))
    arp = bytes.fromhex('ffffffffffff0200000000010806000108000604000102000000000' '1'
                        '0a0000020000000000000a000001')
    echo = bytes.fromhex('ffffffffffff020000000001080045000020000000004001000'
                         '00a0000020a0000010800000000010001') + bytes(4)
    udp = bytes.fromhex('ffffffffffff02000000000108004500003c000000004011000'
                        '00a0000020a0000011388' '03e8' '00280000') + bytes(32)
    syn = bytes.fromhex('ffffffffffff02000000000108004500002800000000400600000a0000020a000001'
                        '13881b5a0000000100000000500210000000' '0000')
    for name, frame in {'arp': arp, 'echo': echo, 'udp': udp, 'syn': syn}.items():
        for how in (0, 2, 6):
            out[f'frame_{name}_{how}'] = step(BASICS, 0, 0) + command(0, 0, LISTEN, 2, 0, 0) + \
                step(FRAME, 0, 0, how, len(frame), *frame) + turns(20) + \
                step(FRAME, 0, 0, how, len(frame) - 9, *frame[:-9]) + turns(4)
    return {name: bytes([world]) + program for name, program in out.items()}


def burst(client, other, opcode, length, count=16, flags=0, more=0, qp=0, turn=True, target=0):
    """Requests for one turn; with `turn`, the turn follows. `more`: elements beyond the first."""
    return step(BURST, client, other, qp, opcode, flags | more << 4, target, length >> 8,
                length & 255, (count - 1) | (128 if turn else 0))


def wait(luck):
    return turns(24) + step(TIME, 0, 0, luck.randrange(6, 15))


def any_requests(luck, fates, qps):
    """Requests of all kinds from both sides, on so many QPs, with lost frames or without."""
    out = b''
    for i in range(14):
        a, b = luck.choice(((0, 2), (2, 0)))
        qp = luck.randrange(qps)
        opcode = luck.choice((0, 0, 1, 2, 3, 3, 3, 4, 5, 7, 8, 12))
        flags = luck.choice((0, 0, SIGNALED, SIGNALED | SOLICITED, SIGNALED | FENCE, INLINE))
        length = luck.choice((0, 1, 7, 8, 8, 8, 64, 64, 65, 200, 1000, 1024, 1400, 1500, 4096,
                              9000)) if not flags & INLINE else luck.choice((0, 1, 8, 24, 100))
        if opcode < 3:
            out += receive(b, qp, luck.randrange(1, 9))
        if fates:
            out += step(FATES, 0, 0, *(luck.randbytes(2) + bytes(2)))
        out += burst(a, b, opcode, length, luck.choice((1, 2, 8, 16)), flags,
                     luck.choice((0, 0, 0, 1, 2)), qp, luck.random() < 0.7)
        if luck.random() < 0.4:
            out += wait(luck)
        if luck.random() < 0.3:
            out += poll(a) + poll(b)
    return out + wait(luck) + poll(0) + poll(2)


def in_bursts():
    """Programs for the target `fast`, by name."""
    out = {}
    for transport in (0, FALCON):
        for style, qp in {'': 0, '_inline': 0x50, '_signal': 0xa0}.items():
            base = connect(0, 2, transport | qp)
            for length in (1, 8, 64, 1000, 9000):
                out[f'writes_{transport}{style}_{length}'] = base + b''.join(
                    burst(0, 2, 3, length, 15) + burst(2, 0, 3, length, 1, SIGNALED) + turns(8)
                    for _ in range(4)) + turns(30) + poll(0) + poll(2)
                out[f'sends_{transport}{style}_{length}'] = base + receive(2, 0, 16) + \
                    receive(0, 0, 16) + burst(0, 2, 0, length, 12) + \
                    burst(2, 0, 0, length, 3, SIGNALED | SOLICITED) + \
                    burst(2, 0, 2, length, 6, SIGNALED | SOLICITED) + turns(40) + poll(0) + poll(2)
                out[f'reads_{transport}{style}_{length}'] = base + burst(0, 2, 5, length, 8) + \
                    burst(0, 2, 3, length, 2, FENCE) + burst(2, 0, 8, 8, 4) + turns(40) + poll(0)
        for fates in (0, 1):
            for seed in range(6):
                luck = random.Random(seed)
                qps = 1 + seed % 2
                out[f'any_{transport}_{fates}_{seed}'] = \
                    b''.join(connect(0, 2, transport | luck.choice((0, 0x50, 0x70, 0xa0)))
                             for _ in range(qps)) + any_requests(luck, fates, qps)
    for fates in (0, 1):
        for seed in range(6):
            luck = random.Random(100 + seed)
            out[f'both_{fates}_{seed}'] = connect(0, 2, 0) + connect(0, 2, FALCON | 0x50) + \
                any_requests(luck, fates, 2)
    return out


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ['engine'], ['fast']):
        sys.exit(__doc__.strip())
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if sys.argv[2:] == ['fast']:
        programs = {f'{crc}_{name}': bytes([crc]) + program for crc in (0, 1)
                    for name, program in in_bursts().items()}
    else:
        programs = {f'{world}_{name}': program for world in (PLAIN, KEYED, MARKERS)
                    for name, program in everything(world).items()}
    for name, program in programs.items():
        (folder / name).write_bytes(program)


main()
