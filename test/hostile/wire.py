#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A hostile peer on the other side of a veth, with the kernel's TCP or with its own frames.

    wire.py ATTACK INTERFACE ADDR PORT NUMBER
    wire.py syn|strays|garbage INTERFACE ADDR PORT FILE
    wire.py plain INTERFACE

INTERFACE has an address in ADDR's /24. Attacks with frames of their own use the source address that
ends in 77: the kernel answers ARP requests for it (proxy ARP) and nothing else.
The half-done connections come from the hosts of the /24 that follows ADDR's, all of which must be
local addresses. The program prints "ready" when its preparations are complete, and continues until
SIGTERM. The second form writes the frames of a flood to FILE, each behind its length of two bytes,
for the attack "frames" of hostile.c. The third form has the kernel compute the checksums of all
that it sends over INTERFACE, as the other forms do: a port of net_af_packet offers no offloads.
"""
import array
import fcntl
import random
import resource
import select
import signal
import socket
import struct
import sys
import termios
import time

MPA_REQUEST = b'MPA ID Req Frame' + bytes([0x40, 1]) + struct.pack('>H', 0)
SYN, RST, PSH, ACK = 2, 4, 8, 16
SIOCETHTOOL, ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO = 0x8946, 0x17, 0x1f, 0x24
HOSTS = 250             # sources of half-done connections, where they are many
BURST = 64              # connections that begin, then a pause
PAUSE = 0.001           # seconds
NO_PORT = 24            # IP_BIND_ADDRESS_NO_PORT
SETTLED, PATIENCE = 0.2, 5  # seconds without a new connection; seconds at most


def ready(text):
    print('ready:', text, flush=True)


def hold():
    while True:
        time.sleep(1)


# ---- Peers with the kernel's TCP ----

def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return struct.pack('<I', crc ^ 0xffffffff)


def dial(addr, port, rcvbuf=0, mss=0):
    s = socket.socket()
    if rcvbuf:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    if mss:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss + 12)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.settimeout(5)
    s.connect((addr, port))
    return s


def dial_mpa(addr, port, **options):
    s = dial(addr, port, **options)
    s.sendall(MPA_REQUEST)
    reply = s.recv(20)
    if reply[:16] != b'MPA ID Rep Frame' or reply[16] & 0x20:
        raise OSError(f'no MPA reply but {reply!r}')
    return s


def many(number, one):
    """Makes connections until one fails. Returns them."""
    made = []
    try:
        for _ in range(number):
            made.append(one())
    except OSError as e:
        print(f'connection {len(made)}: {e}', flush=True)
    return made


def stalled(addr, port, number):
    """Requests data, and never reads it."""
    ulpdu = struct.pack('>H', 14) + bytes([0xc1, 0x40]) + bytes(12)

    def one():
        s = dial_mpa(addr, port, rcvbuf=4096)
        s.sendall(ulpdu + crc32c(ulpdu))
        return s
    made = many(number, one)
    ready(f'{len(made)} readers that do not read')
    hold()


def drain(sockets):
    """Waits until the kernel sends nothing more: all is acknowledged, or nobody takes more."""
    before, at = None, time.monotonic()
    while time.monotonic() - at < SETTLED:
        left = 0
        for s in sockets:
            waiting = array.array('i', [0])
            fcntl.ioctl(s, termios.TIOCOUTQ, waiting)
            left += waiting[0]
        if left != before:
            before, at = left, time.monotonic()
        time.sleep(SETTLED / 4)


def unfinished(addr, port, number):
    """Sends the most of one FPDU in small segments, and never its end."""
    fpdu, step, sent = struct.pack('>H', 65532) + bytes(65000), 290, 0
    made = many(number, lambda: dial_mpa(addr, port, mss=step))
    for s in made:
        s.settimeout(2)
        try:
            for at in range(0, len(fpdu), step):
                sent += s.send(fpdu[at:at + step])
        except OSError as e:
            print('send:', e, flush=True)
            break
    drain(made)
    ready(f'{len(made)} connections with {sent} bytes of FPDUs that never end')
    hold()


class Silent:
    """Connections that begin with some bytes, and renew what saker closes."""

    def __init__(self, addr, port, hosts, first):
        self.to, self.hosts, self.first = (addr, port), hosts, first
        octets = addr.split('.')
        self.net = f'{octets[0]}.{octets[1]}.{int(octets[2]) + 1}.'
        self.poll = select.epoll()
        self.sockets, self.begun, self.open = {}, 0, 0

    def begin(self):
        s = socket.socket()
        s.setblocking(False)
        s.setsockopt(socket.IPPROTO_IP, NO_PORT, 1)
        s.bind((f'{self.net}{1 + self.begun % self.hosts}', 0))
        s.connect_ex(self.to)
        self.sockets[s.fileno()] = s
        self.poll.register(s, select.EPOLLOUT)
        self.begun += 1

    def turn(self, seconds):
        """Handles events. Returns the number of connections that saker has closed."""
        closed = 0
        for fd, event in self.poll.poll(seconds):
            s = self.sockets[fd]
            if event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) or not self.opened(s):
                self.poll.unregister(s)
                del self.sockets[fd]
                s.close()
                closed += 1
        return closed

    def opened(self, s):
        """Continues a new connection. Returns whether saker has not reset it meanwhile."""
        try:
            s.sendall(self.first)
        except OSError:
            return False
        self.poll.modify(s, select.EPOLLIN)
        self.open += 1
        return True


def silent(addr, port, number, hosts, first=b''):
    """Connects from some hosts, sends `first`, and renews what saker closes."""
    all_of_them = Silent(addr, port, hosts, first)
    for n in range(number):
        all_of_them.begin()
        if n % BURST == 0:
            all_of_them.turn(PAUSE)
    began = at = time.monotonic()
    before = -1
    while all_of_them.open != before or time.monotonic() - at < SETTLED:
        if all_of_them.open != before:
            before, at = all_of_them.open, time.monotonic()
        all_of_them.turn(SETTLED / 4)
        if time.monotonic() - began > PATIENCE:
            break
    ready(f'{all_of_them.open} of {number} connections that begin with {first!r}')
    while True:
        for _ in range(all_of_them.turn(1)):
            all_of_them.begin()
        time.sleep(0.1)


# ---- Frames ----

def checksum(data):
    if len(data) % 2:
        data += b'\0'
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def neighbor(addr):
    """Returns the Ethernet address of a host, which the kernel has resolved."""
    try:
        dial(addr, 9).close()
    except OSError:   # refused: the host is there
        pass
    with open('/proc/net/arp', encoding='ascii') as table:
        for line in table:
            if line.split()[0] == addr:
                return bytes.fromhex(line.split()[3].replace(':', ''))
    raise OSError(f'no ARP entry of {addr}')


def no_offloads(interface):
    """Has the kernel send whole frames with checksums."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO:
            value = array.array('B', struct.pack('=II', command, 0))
            request = struct.pack('16sP16x', interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(s, SIOCETHTOOL, request)


class Wire:
    """Raw frames on the interface."""

    def __init__(self, interface, addr):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.socket.bind((interface, 0))
        self.socket.settimeout(3)
        self.ether = neighbor(addr) + self.socket.getsockname()[4] + b'\x08\x00'
        self.dst = socket.inet_aton(addr)
        self.src = self.dst[:3] + bytes([77])

    def ip(self, proto, payload, ident=0, frag=0):
        head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(payload), ident, frag, 64, proto, 0,
                           self.src, self.dst)
        head = head[:10] + struct.pack('>H', checksum(head)) + head[12:]
        return self.ether + head + payload

    def tcp(self, sport, dport, seq, ack, flags, data=b'', options=b''):
        head = struct.pack('>HHIIBBHHH', sport, dport, seq & 0xffffffff, ack & 0xffffffff,
                           (20 + len(options)) // 4 << 4, flags, 65535, 0, 0) + options
        pseudo = self.src + self.dst + struct.pack('>HH', 6, len(head) + len(data))
        total = checksum(pseudo + head + data)
        return self.ip(6, head[:16] + struct.pack('>H', total) + head[18:] + data)

    def send(self, frame):
        try:
            self.socket.send(frame)
            return True
        except OSError:   # the device's queue is full
            return False

    def receive_tcp(self, port):
        """Returns seq, ack, flags and data of the next segment to `port`."""
        end = time.monotonic() + 3
        while time.monotonic() < end:
            frame = self.socket.recv(65536)
            if len(frame) < 54 or frame[23] != 6 or frame[26:30] != self.dst:
                continue
            head = 14 + (frame[14] & 15) * 4
            sport, dport, seq, ack, off, flags = struct.unpack('>HHIIBB', frame[head:head + 14])
            if dport == port and sport:
                total = 14 + struct.unpack('>H', frame[16:18])[0]
                return seq, ack, flags, frame[head + (off >> 4) * 4:total]
        raise OSError('no answer')


def syns(wire, port):
    draw = random.Random(1)
    mss = struct.pack('>BBH', 2, 4, 1460)
    return [wire.tcp(draw.randrange(1024, 65536), port, draw.randrange(1 << 32), 0, SYN,
                     options=mss) for _ in range(16384)]


def strays(wire, port):
    """Segments of no connection."""
    draw = random.Random(2)
    return [wire.tcp(draw.randrange(1024, 65536), port, draw.randrange(1 << 32),
                     draw.randrange(1 << 32), ACK, bytes(64)) for _ in range(16384)]


def garbage(wire, port):
    """Frames that are refused at each layer."""
    draw = random.Random(3)
    frames = []
    for i in range(4096):
        noise = draw.randbytes(draw.randrange(8, 512))
        good = wire.tcp(i + 1024, port, i, 0, SYN)
        frames += [
            wire.ip(17, struct.pack('>HHHH', i, 1000 + i % 5000, 8 + len(noise), 0) + noise),
            wire.ip(draw.randrange(256), noise),
            wire.ip(6, noise, i, 0x2000),
            good[:-2] + draw.randbytes(2),
            wire.ether + noise,
            wire.ip(1, b'\x08\0' + struct.pack('>H', checksum(b'\x08\0\0\0' + b'\0' * 32)) +
                    b'\0' * 32),
            wire.ether[:12] + b'\x08\x06' + noise,
        ]
    return frames


def write(path, frames):
    with open(path, 'wb') as file:
        for frame in frames:
            file.write(struct.pack('=H', len(frame)) + frame)


def disordered(wire, port, number):
    """Fills the reassembly queues: single bytes with a gap before each."""
    made, slices = 0, 0
    for n in range(number):
        sport, seq = 20000 + n, 1000
        try:
            wire.send(wire.tcp(sport, port, seq, 0, SYN, options=struct.pack('>BBH', 2, 4, 1460)))
            their = (wire.receive_tcp(sport)[0] + 1) & 0xffffffff
            seq += 1
            wire.send(wire.tcp(sport, port, seq, their, ACK))
            wire.send(wire.tcp(sport, port, seq, their, ACK | PSH, MPA_REQUEST))
            seq += len(MPA_REQUEST)
            while True:
                at, _, flags, data = wire.receive_tcp(sport)
                if flags & RST:
                    raise OSError('reset')
                if data:
                    their = (at + len(data)) & 0xffffffff
                    break
            wire.send(wire.tcp(sport, port, seq, their, ACK))
        except OSError as e:
            print(f'connection {n}: {e}', flush=True)
            break
        for i in range(1100):
            slices += wire.send(wire.tcp(sport, port, seq + 2 + 3 * i, their, ACK, b'x'))
            if i % 64 == 63:
                time.sleep(0.001)
        made += 1
    ready(f'{made} connections with {slices} bytes out of order')
    hold()


def probe(addr, port, number):
    """A correct peer: prints how many connections are accepted, and the longest time in us."""
    good, longest, reason = 0, 0, '-'
    for _ in range(number):
        began = time.monotonic()
        try:
            dial_mpa(addr, port).close()
            good += 1
        except OSError as e:
            reason = e
        longest = max(longest, int((time.monotonic() - began) * 1e6))
    print('probe', good, number - good, 0, longest * 1000, reason)


PEERS = {
    'probe': probe, 'stalled': stalled, 'unfinished': unfinished,
    'half-open': lambda a, p, n: silent(a, p, n, 1),
    'half-open-many': lambda a, p, n: silent(a, p, n, HOSTS),
    'falcon-half': lambda a, p, n: silent(a, p, n, HOSTS, b'R'),
}
FLOODS = {'syn': syns, 'strays': strays, 'garbage': garbage}


def main():
    names = [*PEERS, *FLOODS, 'disordered']
    if len(sys.argv) == 3 and sys.argv[1] == 'plain':
        no_offloads(sys.argv[2])
        return
    if len(sys.argv) != 6 or sys.argv[1] not in names:
        sys.exit(f'{__doc__}\nattacks: {" ".join(names)}')
    name, interface, addr = sys.argv[1:4]
    port, last = int(sys.argv[4]), sys.argv[5]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
    no_offloads(interface)
    if name in PEERS:
        PEERS[name](addr, port, int(last))
    elif name in FLOODS:
        write(last, FLOODS[name](Wire(interface, addr), port))
    else:
        disordered(Wire(interface, addr), port, int(last))


if __name__ == '__main__':
    main()
