#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the MPA streams of a capture, checks them, and sorts them for tshark.

    mpa_stream.py CAPTURE [SORTED]

Every TCP stream is reassembled by its sequence numbers, so that retransmitted and late segments do
not matter. Bytes that came twice must be the same both times. Each FPDU is then followed by its
length, from the start-up frames to the last byte: pads must be zero, every marker must stand in its
place and point back to its FPDU, and each CRC32C must be right (RFC 5044 4). IP and TCP checksums
are verified, too. The result is one line of JSON.

SORTED is a capture of the same FPDUs with the same bytes, each in a segment of its own, in the
order in which their last bytes came. tshark can read that whatever TCP did to the segments. Its
dissector of MPA (4.0) assumes that a segment with markers holds one FPDU from its first byte on,
and counts a marker too many when the FPDU ends just where the next marker would stand. It then
takes payload for lengths, and its output is random. FPDUs that end so are not in SORTED
("unfollowed").
"""
import json
import struct
import sys

KEYS = {b'MPA ID Req Frame': 'request', b'MPA ID Rep Frame': 'reply'}
EVERY, MARKER, CRC = 512, 4, 4  # RFC 5044 4.3: octets from one marker to the next
FLAG_M, FLAG_C, FLAG_R = 0x80, 0x40, 0x20
FIN, SYN, RST = 0x01, 0x02, 0x04
OPCODES = ['Write', 'Read Request', 'Read Response', 'Send', 'Send with Invalidate', 'Send with SE',
           'Send with SE and Invalidate', 'Terminate', 'Immediate Data', 'Immediate Data with SE',
           'Atomic Request', 'Atomic Response']


class Fault(Exception):
    """The capture breaks a rule."""


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc_table()


def crc32c(data):
    """Returns the four octets in the order of transmission."""
    crc, table = 0xffffffff, TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xff] ^ crc >> 8
    return struct.pack('<I', crc ^ 0xffffffff)


def internet_sum(data):
    total = sum(struct.unpack(f'>{len(data) // 2}H', data[:len(data) & ~1]))
    if len(data) & 1:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def frames(path):
    with open(path, 'rb') as file:
        head = file.read(24)
        order = '<' if head[:4] in (b'\x4d\x3c\xb2\xa1', b'\xd4\xc3\xb2\xa1') else '>'
        while record := file.read(16):
            yield file.read(struct.unpack(f'{order}IIII', record)[2])


def segment_of(frame):
    """Returns (source, destination), sequence number, flags and payload of a TCP segment, or None
    for any other frame."""
    at, kind = 14, frame[12:14]
    while kind == b'\x81\x00':
        at, kind = at + 4, frame[at + 2:at + 4]
    if kind == b'\x08\x00':
        header, proto = (frame[at] & 15) * 4, frame[at + 9]
        end = at + int.from_bytes(frame[at + 2:at + 4], 'big')
        addresses = frame[at + 12:at + 16], frame[at + 16:at + 20]
        if internet_sum(frame[at:at + header]) != 0xffff:
            raise Fault('a wrong IP checksum')
    elif kind == b'\x86\xdd':
        header, proto = 40, frame[at + 6]
        end = at + 40 + int.from_bytes(frame[at + 4:at + 6], 'big')
        addresses = frame[at + 8:at + 24], frame[at + 24:at + 40]
    else:
        return None
    if proto != 6:
        return None
    tcp = frame[at + header:end]
    if internet_sum(b''.join(addresses) + struct.pack('>HH', 6, len(tcp)) + tcp) != 0xffff:
        raise Fault('a wrong TCP checksum')
    way = (addresses[0], tcp[:2]), (addresses[1], tcp[2:4])
    return way, int.from_bytes(tcp[4:8], 'big'), tcp[13], tcp[(tcp[12] >> 4) * 4:]


class Stream:
    """One direction of a connection."""

    def __init__(self, way):
        self.way = way
        self.isn = None
        self.data = bytearray()  # from the octet behind the SYN on, without a gap
        self.late = {}  # payload behind a gap, by its place
        self.fin = None
        self.fpdus_from = None  # where the first FPDU begins
        self.at = 0  # where the next frame or FPDU begins
        self.startup = None  # flags
        self.reset = False

    def take(self, seq, flags, payload):
        """Adds a segment. Returns False if its payload is out of order or retransmitted."""
        if flags & SYN:
            self.isn = seq
        if self.isn is None:
            raise Fault('a stream has no SYN')
        if flags & SYN:
            return True
        place = seq - self.isn - 1 & 0xffffffff
        expected = len(self.data)
        # The place nearest to the expected one, modulo 2^32.
        place += expected + 0x80000000 - place & ~0xffffffff
        if flags & FIN:
            self.fin = place + len(payload)
        if payload:
            self.late[place] = max(self.late.get(place, b''), payload, key=len)
            if place < expected:
                self.same(place, payload)
            self.advance()
        return not payload or place == expected

    def same(self, place, payload):
        have = self.data[place:place + len(payload)]
        if place < 0 or have != payload[:len(have)]:
            raise Fault(f'the retransmitted octets at {place} differ from the first ones')

    def advance(self):
        for place in sorted(self.late):
            if place > len(self.data):
                return
            payload = self.late.pop(place)
            self.same(place, payload)
            self.data += payload[len(self.data) - place:]


class Fpdu:
    """The FPDU that begins at `at`. Its `end` is None while it is incomplete."""

    def __init__(self, stream, markers, crc):
        data, at = stream.data, stream.at
        self.begin, self.end, self.markers = at, None, 0
        gap = (stream.fpdus_from - at) % EVERY  # to the first marker
        lead = MARKER if markers and gap == 0 else 0
        if len(data) < at + lead + 2:
            return
        ulpdu = int.from_bytes(data[at + lead:at + lead + 2], 'big')
        plain = 2 + ulpdu + (-(2 + ulpdu) % 4) + CRC  # without markers
        if markers and plain > gap:
            self.markers = 1 + (plain - gap - 1) // (EVERY - MARKER)
        whole = plain + MARKER * self.markers
        if len(data) < at + whole:
            return
        self.end = at + whole
        self.raw = bytes(data[at:self.end])
        self.plain = self.without_markers(gap, lead)
        if any(self.plain[2 + ulpdu:-CRC]):
            raise Fault(f'the pad of the FPDU at {at} is not zero')
        if crc and crc32c(self.raw[:-CRC]) != self.raw[-CRC:]:
            raise Fault(f'the CRC of the FPDU at {at} is wrong')
        self.opcode = self.plain[3] & 15
        # See above: a reader that counts (size - gap) / 512 + 1 markers.
        self.followed = not markers or whole <= gap or (whole - gap) % EVERY != 0

    def without_markers(self, gap, lead):
        plain, at = b'', 0
        for n in range(self.markers):
            marker = gap + n * EVERY
            plain += self.raw[at:marker]
            at = marker + MARKER
            want = struct.pack('>HH', 0, marker - lead if marker else 0)
            if self.raw[marker:at] != want:
                raise Fault(f'the marker {marker} octets into the FPDU at {self.begin} '
                            f'is not {want.hex()}')
        return plain + self.raw[at:]


class Sorted:
    """The capture that tshark reads: IPv4, no options, sequence numbers from 0."""

    def __init__(self, path):
        self.file = open(path, 'wb') if path else None
        self.hosts, self.count = {}, 0
        if self.file:
            self.file.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))

    def put(self, way, seq, flags, payload):
        if not self.file:
            return
        ends = [bytes((10, 9, 0, 1 + self.hosts.setdefault(address, len(self.hosts))))
                for address, _ in way]
        tcp = way[0][1] + way[1][1]
        tcp += struct.pack('>IIBBHHH', seq, 1, 0x50, flags, 0xffff, 0, 0) + payload
        pseudo = ends[0] + ends[1] + struct.pack('>HH', 6, len(tcp))
        tcp = tcp[:16] + struct.pack('>H', internet_sum(pseudo + tcp) ^ 0xffff) + tcp[18:]
        ip = struct.pack('>BBHHHBBH', 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0)
        ip += ends[0] + ends[1]
        ip = ip[:10] + struct.pack('>H', internet_sum(ip) ^ 0xffff) + ip[12:]
        frame = bytes((2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0)) + ip + tcp
        self.file.write(struct.pack('<IIII', self.count // 1000, self.count % 1000 * 1000,
                                    len(frame), len(frame)) + frame)
        self.count += 1


class Reader:
    def __init__(self, path):
        self.streams, self.sorted = {}, Sorted(path)
        self.segments = self.again = self.fpdus = self.markers = self.crcs = self.unfollowed = 0
        self.opcodes, self.sorted_opcodes = {}, {}

    def take(self, segment):
        way, seq, flags, payload = segment
        stream = self.streams.setdefault(way, Stream(way))
        if flags & RST:
            stream.reset = True
            return
        self.segments += 1
        self.again += not stream.take(seq, flags, payload)
        if flags & SYN:
            self.sorted.put(way, 0, flags, b'')
        # The first FPDU may arrive before the other end's start-up frame is complete.
        for one in (stream, self.streams.get(way[::-1])):
            while one and self.step(one):
                pass

    def step(self, stream):
        """Reads a start-up frame or an FPDU. Returns whether one was complete."""
        if stream.startup is None:
            return self.begin(stream)
        other = self.streams.get(stream.way[::-1])
        if not other or other.startup is None or stream.at == len(stream.data):
            return False
        crc = bool((stream.startup | other.startup) & FLAG_C)
        fpdu = Fpdu(stream, bool(other.startup & FLAG_M), crc)
        if fpdu.end is None:
            return False
        stream.at = fpdu.end
        self.fpdus += 1
        self.crcs += crc
        self.markers += fpdu.markers
        name = OPCODES[fpdu.opcode] if fpdu.opcode < len(OPCODES) else f'{fpdu.opcode}'
        self.opcodes[name] = self.opcodes.get(name, 0) + 1
        if not fpdu.followed:
            self.unfollowed += 1
            return True
        self.sorted_opcodes[name] = self.sorted_opcodes.get(name, 0) + 1
        self.sorted.put(stream.way, 1 + fpdu.begin, 0x18, fpdu.raw)
        return True

    def begin(self, stream):
        """Reads an MPA Request or Reply Frame: key, flags, revision, length of the private data."""
        data = stream.data
        if len(data) < 20 or len(data) < 20 + int.from_bytes(data[18:20], 'big'):
            return False
        if bytes(data[:16]) not in KEYS or data[16] & FLAG_R:
            raise Fault('a stream does not begin with an MPA start-up frame')
        stream.startup = data[16]
        stream.at = stream.fpdus_from = 20 + int.from_bytes(data[18:20], 'big')
        self.sorted.put(stream.way, 1, 0x18, bytes(data[:stream.at]))
        return True

    def finish(self):
        for way, stream in self.streams.items():
            if stream.reset or way[::-1] in self.streams and self.streams[way[::-1]].reset:
                continue  # a stream that is reset may end anywhere
            if stream.late:
                raise Fault('octets are missing')
            if stream.at != len(stream.data):
                raise Fault(f'{len(stream.data) - stream.at} octets behind the last FPDU')
            if stream.fin not in (None, len(stream.data)):
                raise Fault('the FIN does not follow the last FPDU')
        if not self.fpdus:
            raise Fault('no FPDU')


def main():
    reader = Reader(sys.argv[2] if len(sys.argv) > 2 else None)
    fault = None
    try:
        for frame in frames(sys.argv[1]):
            segment = segment_of(frame)
            if segment:
                reader.take(segment)
        reader.finish()
    except Fault as found:
        fault = str(found)
    names = ('segments', 'again', 'fpdus', 'crcs', 'markers', 'unfollowed', 'opcodes',
             'sorted_opcodes')
    print(json.dumps({name: getattr(reader, name) for name in names} | {'fault': fault}))
    return 1 if fault else 0


sys.exit(main())
