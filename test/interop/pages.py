#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Walks through doc/real-nic.md and doc/benchmarking.md. The commands come from the pages: a page
that changes changes what is run.

    pages.py check          every command of the pages is run by the walk or listed with a reason
    pages.py walk BUILD [PART...]    the same, and the walk or some parts of it, in the guest that
                            guest.py has booted: kernel bound jumbo engines bonding local

A command is a line of an indented block, or inline code with a blank in it, unless it is a setting,
an option or another form of NOT_COMMANDS. host1 and host2 are two folders /run of the guest, each
with a NIC of its own; the NICs are on one hub. Commands that need no NIC run here, without
the guest.
"""
import re
import subprocess
import sys

PAGES = {"nic": "doc/real-nic.md", "bench": "doc/benchmarking.md"}
GUEST = "test/interop/guest.py"

# The words that a reader replaces, and sizes for which the guest is too small.
REPLACED = {
    "host1": {"0000:3b:00.0": "0000:01:00.0", "0000:3b:00.1": "0000:02:00.0", "eth1": "eth0",
              "-l 2": "-l 0", "0@2,1@3": "0@0,1@1", "0@2": "0@0"},
    "host2": {"0000:3b:00.0": "0000:03:00.0", "eth1": "eth2", "-l 2": "-l 1", "0@2": "0@1",
              "0=192.0.2.1/24": "0=192.0.2.2/24"},
    "here": {"0@2,1@3": "0@0,1@1"},
}
HOSTS = ("host1", "host2")
# The guest has two emulated processors, which a saker that polls would keep from the programs.
APPENDED = {"saker": "--idle sleep", "saker-perf": "-n 40 --rounds 1"}
ALL_SIZES = "-n 3 --rounds 1"

NOT_COMMANDS = [
    r"[\w-]+ = \S+", r"\[.*\]( [\w-]+ = \S+)?", r"--?\w[^ ]* \S+", r"(BW|99%|99.9%) \w+",
    r"(wire_)?removed yes",
]

COLUMNS = "columns.sh runs it and compares the columns"
NAMED = "the page names the command, and not its words"
# page, section, beginning of the command, reason
LISTED = [
    ("nic", "Without rebinding anything", "ethtool -N", "igb's driver has no such filter"),
    ("nic", "Bind the NIC", "driverctl", "it starts with systemd, which the guest does not have"),
    ("nic", "Bind the NIC", "isolcpus=2", "the kernel's command line"),
    ("nic", "Bind the NIC", "chrt -f 40", "priority.sh: it needs lcores that nothing else uses"),
    ("nic", "Families of NICs", "ip link set PF", "QEMU's igb is no virtual function"),
    ("nic", "Limits that were found", "dpdk-testpmd --forward-mode=txonly --txpkts",
     "nic.sh, with virtio-packed"),
    ("nic", "Limits that were found", "dpdk-testpmd --forward-mode=txonly --txq", "nic.sh, e1000"),
    ("nic", "Jumbo frames", "show counters nonzero", NAMED),
    ("nic", "Flow control", "ethtool -A", NAMED),
    ("nic", "A NIC that is removed", "show port info", NAMED),
    ("nic", "A NIC that is removed", "show vms", NAMED),
    ("nic", "A NIC that is removed", "sakerctl port attach 0", "nic.sh removes a NIC"),
    ("nic", "Without root", "chown :saker", "privilege.sh, with the privileges of the unit"),
    ("nic", "Without root", "ulimit -l", "privilege.sh"),
    ("bench", "Between two hosts", "show counters nonzero", NAMED),
    ("bench", "Beside perftest", "saker-run ib_write_bw -d saker0 -R -a HOST", COLUMNS),
    ("bench", "Beside perftest", "saker-run ib_write_bw -d saker0 -R -a -n", COLUMNS),
    ("bench", "Beside perftest", "saker-run ib_write_lat", COLUMNS),
    ("bench", "Beside perftest", "saker-perf --client a.sock --connect 10.5.0.2 --test bw",
     COLUMNS),
    ("bench", "Beside perftest", "saker-perf --client a.sock --connect 10.5.0.2 --test lat",
     COLUMNS),
]


class Command:
    def __init__(self, page, section, host, text):
        self.page, self.section, self.host, self.used = page, section, host, False
        self.text = re.sub(r"\s+# .*$", "", text).strip()

    def __str__(self):
        return f"{PAGES[self.page]}, {self.section}: {self.text}"


def blocks(text):
    """Yields each heading, each indented block and each paragraph of a page: kind, lines."""
    kind, lines = None, []
    for line in text.split("\n") + [""]:
        new = (None if not line.strip() else "heading" if line.startswith("#") else
               "code" if line.startswith("    ") else "prose")
        if new != kind or kind == "heading":
            if lines:
                yield kind, lines
            kind, lines = new, []
        lines.append(line)


def commands_of(page):
    """Returns a page's commands, and its blocks of settings by section."""
    section, commands, settings = "", [], {}
    for kind, lines in blocks(open(PAGES[page]).read()):
        if kind == "heading":
            section = lines[0].lstrip("# ")
        elif kind == "code" and lines[0].strip().startswith("["):
            settings[section] = "".join(line.strip() + "\n" for line in lines)
        elif kind == "code":
            transcript = any(re.match(r"\s*\$ ", line) for line in lines)
            joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
            for line in joined.split("\n"):
                prompt, host, text = re.fullmatch(r"\s*((\w*)\$ )?(.*)", line).groups()
                if prompt or not transcript:
                    commands.append(Command(page, section, host or None, text))
        elif kind == "prose":
            for code in re.findall(r"`([^`]+)`", "\n".join(lines)):
                code = re.sub(r"\s+", " ", code)
                if " " in code and not any(re.fullmatch(r, code) for r in NOT_COMMANDS):
                    commands.append(Command(page, section, None, code))
    return commands, settings


class Walk:
    """A walk that only looks the commands up."""

    def __init__(self):
        self.commands, self.settings, self.faults = [], {}, []
        for page in PAGES:
            commands, settings = commands_of(page)
            self.commands += commands
            self.settings[page] = settings

    def find(self, page, section, start, host=None):
        for c in self.commands:
            if (c.page, c.section) == (page, section) and c.text.startswith(start) and \
                    host in (None, c.host):
                c.used = True
                return c
        self.fault(f"{PAGES[page]}, {section}: no command '{start}'")
        return Command(page, section, host, start)

    def fault(self, text):
        print(text)
        self.faults.append(text)

    def check(self):
        """Marks the listed commands, and finds those that are neither run nor listed."""
        for page, section, start, _ in LISTED:
            found = [c for c in self.commands if (c.page, c.section) == (page, section) and
                     c.text.startswith(start) and not c.used]
            for c in found:
                c.used = True
            if not found:
                self.fault(f"{PAGES[page]}, {section}: '{start}' is listed, but absent or run")
        for c in self.commands:
            if not c.used:
                self.fault(f"{c}: neither run nor listed")
        if len(self.commands) < 40:
            self.fault(f"only {len(self.commands)} commands were found")

    # The parts that a dry walk leaves out.
    def say(self, text):
        pass

    def shell(self, host, script, seconds=120):
        return 0, ""

    def expect(self, pattern, text, what):
        pass

    def run(self, command, host="host1", more="", fails=False):
        return ""

    def saker(self, command, host, more="", queue=None):
        pass

    def stop(self):
        pass

    def pair(self, first, second, fails=False):
        return ""

    def monitor(self, command):
        pass


class Broken(Exception):
    pass


class GuestWalk(Walk):
    """A walk in the guest."""

    def __init__(self, build):
        super().__init__()
        self.build = build

    def say(self, text):
        print("==", text, flush=True)

    def shell(self, host, script, seconds=120):
        words = f"export PATH={self.build}/app:$PATH TERM=dumb; cd /root; {script}"
        run = [GUEST, "run", "-t", str(seconds)]
        if host == "here":
            words, run = words.replace("cd /root; ", ""), ["timeout", str(seconds), "bash", "-c"]
        if host == "host2":
            words = f"nsenter -m -t $(cat /share/host2) bash -c '{quoted(words)}'"
        done = subprocess.run([*run, words], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def words(self, command, host, more="", device=""):
        """Returns what a reader would type for the command."""
        text = command.text.replace("iface=eth1", "iface=eth1" + device)
        for old, new in REPLACED[host].items():
            text = text.replace(old, new)
        programs = [w for w in text.split() if w in APPENDED]
        appended = [ALL_SIZES if re.search(r" -a( -|$)", text) else APPENDED[programs[0]]
                    ] if programs else []
        text = " ".join([text, *appended, *([more] if more else [])])
        print(f"{host}$ {text}", flush=True)
        return text

    def expect(self, pattern, text, what):
        if not re.search(pattern, text, re.M):
            raise Broken(f"{what}: no '{pattern}' in:\n{text}")

    def run(self, command, host="host1", more="", fails=False):
        rc, out = self.shell(host, self.words(command, host, more), 240)
        if (rc != 0) != fails:
            raise Broken(f"{command}: status {rc}:\n{out}")
        return out

    def saker(self, command, host, more="", queue=None):
        # The socket is there when the saker accepts clients.
        words = self.words(command, host, more, f",start_queue={queue}" if queue else "")
        rc, out = self.shell(host, f"""
            setsid {words} >/run/saker.log 2>&1 </dev/null &
            echo $! >/run/saker.pid
            for i in $(seq 600); do
                [ -S /run/saker/saker.sock ] && exit 0
                kill -0 $! || break
                sleep 0.1
            done
            cat /run/saker.log; exit 1""")
        if rc:
            raise Broken(f"{command}: saker does not start:\n{out}")

    def stop(self):
        for host in HOSTS:
            rc, out = self.shell(host, """
                kill $(cat /run/saker.pid)
                for i in $(seq 600); do
                    kill -0 $(cat /run/saker.pid) 2>/dev/null || exit 0
                    sleep 0.1
                done
                cat /run/saker.log; exit 1""")
            if rc:
                raise Broken(f"the saker of {host} does not end:\n{out}")

    def pair(self, first, second, fails=False):
        """Runs the command of host1, which listens, and that of host2, which connects."""
        rc, out = self.shell("host1", f"""
            setsid nice -n 5 timeout 300 {self.words(first, "host1")} \\
                >/run/listen.log 2>&1 </dev/null &
            echo $! >/run/listen.pid
            until grep -q ^listening /run/listen.log; do
                kill -0 $! || {{ cat /run/listen.log; exit 1; }}
                sleep 0.1
            done""", 60)
        if rc:
            raise Broken(f"{first}: {out}")
        rc, out = self.shell("host2", f"nice -n 5 timeout 300 {self.words(second, 'host2')}",
                             310)
        if fails:
            self.shell("host1", "kill $(cat /run/listen.pid)")
        _, other = self.shell("host1", """
            for i in $(seq 600); do
                kill -0 $(cat /run/listen.pid) 2>/dev/null || break
                sleep 0.1
            done
            cat /run/listen.log; tail -n 5 /run/saker.log""")
        if (rc != 0) != fails:
            raise Broken(f"{second}: status {rc}:\n{out}\nthe listening end:\n{other}")
        print(out, end="", flush=True)
        return out

    def monitor(self, command):
        subprocess.run([GUEST, "monitor", command], check=True)


def quoted(words):
    return words.replace("'", "'\\''")


def check_it(w, driver):
    """The section "Check it", for two sakers that run."""
    commands = [w.find("nic", "Check it", "saker-perf", h) for h in ("host1", "host2")]
    out = w.pair(*commands)
    w.expect(r"^errors +0 .*compared byte by byte", out, "saker-perf")
    out = w.run(w.find("nic", "Check it", "sakerctl show port info all"))
    w.expect(rf"^driver +{driver}$", out, "show port info")
    counters = w.run(w.find("nic", "Check it", "sakerctl show counters nonzero"))
    w.expect(r"\A(?!.*\bWIRE_)", counters.replace("\n", " "), "show counters")
    return out, counters


def wrong_queue(w, start):
    """A queue of two, which receives no ARP."""
    w.say("net_af_xdp on the second queue")
    for host in HOSTS:
        w.saker(start, host, queue=1)
    out = w.pair(*[w.find("nic", "Check it", "saker-perf", h) for h in ("host1", "host2")],
                 fails=True)
    w.expect("unreachable: Connection timed out", out, "saker-perf")
    out = w.run(w.find("nic", "Check it", "sakerctl show counters nonzero"), "host2")
    w.expect("NET_NEIGHBOR_FAILED", out, "show counters")
    w.stop()


def kernel_ports(w):
    """The NICs stay with the kernel."""
    section = "Without rebinding anything"
    pages = w.find("nic", "Huge pages", "dpdk-hugepages.py")
    up = [w.find("nic", section, start) for start in ("ip link set", "ethtool -K")]
    for driver in "net_af_packet", "net_af_xdp":
        w.say(driver)
        w.run(pages)
        start = w.find("nic", section, f"saker -l 2 --no-pci --in-memory --vdev {driver}")
        for host in HOSTS:
            for command in up:
                w.run(command, host)
        if driver == "net_af_xdp":
            wrong_queue(w, start)
            for host in HOSTS:
                w.run(w.find("nic", section, "ethtool -L"), host)
        for host in HOSTS:
            w.saker(start, host)
        check_it(w, driver)
        if driver == "net_af_packet":
            out = w.run(w.find("nic", section, "sysctl net.ipv4.ip_forward"))
            w.expect(r"ip_forward = 0$", out, "sysctl")
            out = w.run(pages, fails=True)
            w.expect("Unable to set pages", out, "dpdk-hugepages.py beside a saker")
        w.stop()


BIND = "Bind the NIC"


def bind(w):
    section = BIND
    w.say("binding")
    w.expect("iommu_group", w.run(w.find("nic", section, "ls -d")), "ls")
    w.run(w.find("nic", section, "modprobe"))
    out = w.run(w.find("nic", section, "dpdk-devbind.py --status-dev"))
    w.expect(r"^0000:01:00.0 .*if=eth0 drv=igb unused=.*vfio-pci", out, "dpdk-devbind.py")
    for host in HOSTS:
        w.run(w.find("nic", section, "ip link set eth1 down"), host)
        w.run(w.find("nic", section, "dpdk-devbind.py -b"), host)
    out = w.run(w.find("nic", section, "dpdk-devbind.py --status-dev"))
    w.expect(r"^0000:01:00.0 .*drv=vfio-pci unused=igb", out, "dpdk-devbind.py")
    w.expect(r"^(-1|0)$", w.run(w.find("nic", section, "cat")), "numa_node")
    w.run(w.find("nic", "Huge pages", "dpdk-hugepages.py"))


def bound_ports(w):
    start = w.find("nic", BIND, "saker -l 2 -a")
    w.say("start, and check it")
    for host in HOSTS:
        w.saker(start, host)
    out = w.run(w.find("nic", BIND, "sakerctl show port info all"))
    for line in "link up +yes", "rx interrupts +yes", "tx tcp checksum +yes", "tso bytes +[1-9]":
        w.expect(f"^{line}", out, "show port info")
    _, counters = check_it(w, "net_e1000_igb")
    for counter in "ENG_RX_CKSUM", "ENG_TX_CKSUM", "ENG_TX_TSO":
        w.expect(rf"\b{counter} ", counters, "show counters")
    show = w.find("nic", "Sleeping", "show loops")
    _, out = w.shell("host1", f"sakerctl {show.text}")
    w.expect(r"^port wakes +[1-9]", out, "show loops")
    clients(w)
    w.stop()


def jumbo(w):
    w.say("jumbo frames and several transport stages")
    start = w.find("nic", BIND, "saker -l 2 -a")
    # Two sakers have the huge pages that the page reserves for one.
    w.shell("host1", """printf '%s\\n' '[saker]' 'transports = 2' 'total-num-mbufs = 16384' \\
        '[port 0]' 'mtu = 9000' >/etc/jumbo.ini""")
    for host in HOSTS:
        w.saker(start, host, "--config /etc/jumbo.ini")
    out, _ = check_it(w, "net_e1000_igb")
    for line in "mtu +9000", "rx queues +2", "rss +(?!none)":
        w.expect(f"^{line}", out, "show port info")
    w.stop()


def bonding(w):
    w.say("bonding")
    w.shell("host1", "ip link set eth1 down; dpdk-devbind.py -b vfio-pci 0000:02:00.0")
    settings = w.settings["nic"].get("Bonding", "")
    w.shell("host1", f"cat >/etc/saker.ini <<'INI'\n{settings}INI")
    w.saker(w.find("nic", "Bonding", "saker -l 2"), "host1")
    w.saker(w.find("nic", BIND, "saker -l 2 -a"), "host2")
    out, _ = check_it(w, "net_bonding")
    for line in "tx tcp checksum +yes", "tso bytes +[1-9]":
        w.expect(f"^{line}", out, "show port info")
    w.monitor("set_link nic0 off")
    out, _ = check_it(w, "net_bonding")
    w.expect("^link up +yes", out, "show port info")
    w.monitor("set_link nic0 on")
    w.stop()


def clients(w):
    """The clients of "Between two hosts", while two sakers run."""
    w.say("benchmark, clients of saker")
    out = w.pair(*[w.find("bench", "Between two hosts", "saker-perf --client", h)
                   for h in ("host1", "host2")])
    w.expect(r"^8388608 ", out, "saker-perf")


def engines(w):
    w.say("benchmark, engines of their own")
    out = w.pair(*[w.find("bench", "Between two hosts", "saker-perf --lcores", h)
                   for h in ("host1", "host2")])
    w.expect(r"^errors +0", out, "saker-perf")


def one_machine(w):
    w.say("benchmark on one machine")
    section = "On one machine"
    for start in ("saker-perf", "saker-perf --test bw -a", "saker-perf --transport falcon",
                  "chrt -f 50"):
        out = w.run(w.find("bench", section, start), "here")
        w.expect(r"^8388608 " if " -a" in start or "chrt" in start else r"^errors +0", out, start)


PARTS = {"kernel": kernel_ports, "bound": bound_ports, "jumbo": jumbo, "engines": engines,
         "bonding": bonding, "local": one_machine}


def walk(w, parts):
    for part in PARTS:
        if part == "bound" and set(parts) & {"bound", "jumbo", "engines", "bonding"}:
            bind(w)
        if part in parts:
            PARTS[part](w)


def main():
    dry = Walk()
    walk(dry, PARTS)
    dry.check()
    if dry.faults:
        sys.exit(1)
    print(f"{len(dry.commands)} commands, {len(LISTED)} of them listed with a reason")
    if sys.argv[1] == "walk":
        parts = sys.argv[3:] or PARTS
        if not set(parts) <= set(PARTS):
            sys.exit(f"the parts are {', '.join(PARTS)}")
        try:
            walk(GuestWalk(sys.argv[2]), parts)
        except Broken as e:
            sys.exit(f"FAIL: {e}")


if __name__ == "__main__":
    main()
