#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A QEMU guest that runs Debian's stock kernel with Linux's soft-iWARP (siw): the peer of the
interoperability tests.

    guest.py build                    fetch the kernel, build siw.ko and the initial RAM disk
    guest.py backports                fetch QEMU of bookworm-backports, too, for pmd= NICs
    guest.py boot [NIC...]            start a guest; prints nothing but errors
    guest.py run [-t SECONDS] COMMAND run COMMAND with bash in the guest, with its output and status
    guest.py console                  print the guest's kernel messages
    guest.py monitor COMMAND          a command of QEMU's monitor: stop, cont, system_reset
    guest.py ask COMMAND              the same, and print the answer: info virtio-status PATH
    guest.py reset                    reset the guest and wait until it is up again; it must have
                                      been booted with $SAKER_GUEST_REBOOT set
    guest.py stop                     end the guest

A NIC is `vhost=SOCKET,ADDRESS/LEN[,ADDRESS/LEN...][,mtu=N][,mac=MAC][,offload][,nosiw]`: a virtio
device whose other end is the vhost-user socket SOCKET. Without `offload` it sends frames with
complete checksums and no segments larger than the MTU. Without `nosiw` it gets a siw device.
`pmd=MODEL[,mtu=N]` is a NIC for DPDK's driver of the model: igb, e1000, e1000e, vmxnet3, virtio or
virtio-packed. All of them are on one hub, the virtio ones on taps pmd0, pmd1 in the caller's
network namespace. They belong to vfio-pci behind an IOMMU, and to uio_pci_generic where the model
does not work so. Their PCI addresses and -device options are in /share/pmd. They need QEMU of
bookworm-backports, which `guest.py backports` fetches and unpacks beside the guests. With
`,kernel` the NICs stay with the kernel's driver, no huge pages are reserved, and EAL has all its
drivers, as on a host where nothing has been prepared.
`ivshmem=FILE` is no NIC but an ivshmem-plain device whose memory is FILE, with the file's size.
Where FILE is a socket, it is an ivshmem-doorbell device whose server listens there, and with `,irq`
one whose interrupts saker-irqd can have: it has 8 vectors, and the guest an IOMMU.

The guest's root is the host's, read-only over 9p, under a RAM overlay: every program of the host is
there under the same path. /share is a folder that both sides may write. The kernel package is only
unpacked, and siw (which Debian leaves out) is built against the kernel's headers. State is in
$SAKER_GUEST_DIR (default: saker-guest under the temporary directory), in one folder for each
$SAKER_GUEST_NAME.

Everything runs under software emulation unless $SAKER_GUEST_ACCEL is kvm. $SAKER_GUEST_MEM (MiB)
and $SAKER_GUEST_CPUS are the guest's memory and processors. $SAKER_GUEST_START is a bash command
that the guest runs by itself at each start, before it is ready.
"""
import argparse
import contextlib
import glob
import io
import lzma
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import uuid

CACHE = os.environ.get("SAKER_GUEST_DIR", os.path.join(tempfile.gettempdir(), "saker-guest"))
NAME = os.environ.get("SAKER_GUEST_NAME", "siw")
ACCEL = os.environ.get("SAKER_GUEST_ACCEL", "tcg")
MEMORY_MB = int(os.environ.get("SAKER_GUEST_MEM", "640"))
CPUS = os.environ.get("SAKER_GUEST_CPUS", "2")
START = os.environ.get("SAKER_GUEST_START", "")
HERE = os.path.join(CACHE, NAME)
QEMU_BACKPORTS = os.path.join(CACHE, "qemu/usr/bin/qemu-system-x86_64")
PACKAGES = [
    "qemu-system-x86", "qemu-system-data", "seabios", "busybox-static", "cpio", "kmod", "xz-utils",
    "make", "gcc", "linux-source-6.1", "ibverbs-providers", "ibverbs-utils", "rdmacm-utils",
    "rdma-core", "iproute2", "iputils-ping",
]
BOOT_MODULES = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"]

INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /host /ram /root
$b mount -t proc none /proc
$b mount -t sysfs none /sys
$b mount -t devtmpfs none /dev
for m in $($b cat /modules/order); do $b insmod /modules/$m; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /host &&
$b mount -t tmpfs none /ram && $b mkdir /ram/upper /ram/work &&
$b mount -t overlay -o lowerdir=/host,upperdir=/ram/upper,workdir=/ram/work none /root &&
$b mkdir -p /root/share &&
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none share /root/share ||
exec $b sh
for d in proc sys dev; do $b mount --move /$d /root/$d; done
exec $b switch_root /root /bin/bash /share/agent
"""

# The guest's first process. It brings the guest up, then reads ids of commands from the control
# port, one per line, and runs them.
AGENT = """#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t tmpfs none /run
mkdir -p /dev/pts /dev/shm && mount -t devpts none /dev/pts && mount -t tmpfs none /dev/shm
kernel=$(uname -r)
mkdir -p "/usr/lib/modules/$kernel"
mount --bind "$(cat /share/modules)/lib/modules/$kernel" "/usr/lib/modules/$kernel"
hostname saker-guest
ulimit -l unlimited
echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
# siw of Linux 6.1 has a race when a socket's send buffer fills: a program's ibv_post_send() and the
# kernel's thread siw_tx then send from one state at the same time, and bytes go out twice. So no
# buffer fills.
echo "4096 33554432 33554432" > /proc/sys/net/ipv4/tcp_wmem
ip link set lo up
[ -s /share/start ] && setsid bash /share/start > /share/start.out 2>&1 < /dev/null &
. /share/network
for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" = control ] && control=/dev/${port##*/}
done
exec 3<> "$control"
touch /share/ready
while true; do
    read -r id <&3 || { sleep 0.1; continue; }
    [ -e "/share/$id.cmd" ] && [ ! -e "/share/$id.out" ] || continue
    : > "/share/$id.out"
    (
        cd /root
        setsid bash "/share/$id.cmd" > "/share/$id.out" 2>&1 < /dev/null
        echo $? > "/share/$id.tmp" && mv "/share/$id.tmp" "/share/$id.status"
    ) &
done
"""


def die(text):
    sys.exit(f"guest.py: {text}")


def sh(*args, **kw):
    return subprocess.run(args, check=True, **kw)


def kernel_version():
    built = os.path.join(CACHE, "kernel")
    if os.path.exists(built):
        return open(built).read().strip()
    out = subprocess.run(["apt-cache", "depends", "linux-image-amd64"],
                         capture_output=True, text=True).stdout
    found = re.search(r"Depends: linux-image-(6\.1\.\S*-amd64)", out)
    if not found:
        die("apt has no linux-image-amd64; is `apt-get update` possible here?")
    return found.group(1)


def installed(packages):
    out = subprocess.run(["dpkg-query", "-W", "-f=${Status}\n", *packages],
                         capture_output=True, text=True)
    return out.stdout.count("install ok installed") == len(packages)


def build():
    os.makedirs(CACHE, exist_ok=True)
    stamp = os.path.join(CACHE, "built")
    k = kernel_version()
    packages = PACKAGES + [f"linux-headers-{k}"]
    if not installed(packages):
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        sh("apt-get", "install", "-y", "-q", "--no-install-recommends", *packages, env=env,
           stdout=subprocess.DEVNULL)
    if os.path.exists(stamp) and open(stamp).read() == k:
        return
    unpack_kernel(k)
    build_siw(k)
    build_initrd(k)
    open(os.path.join(CACHE, "kernel"), "w").write(k)
    open(stamp, "w").write(k)


def unpack_kernel(k):
    tree = os.path.join(CACHE, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as tmp:
        sh("apt-get", "download", "-q", f"linux-image-{k}", cwd=tmp,
           stdout=subprocess.DEVNULL)
        sh("dpkg", "-x", glob.glob(tmp + "/*.deb")[0], tree)
    if not os.path.isdir(tree + "/usr/lib"):  # depmod needs the merged layout
        shutil.rmtree(tree + "/usr", ignore_errors=True)
        os.symlink(".", tree + "/usr")


def build_siw(k):
    with tempfile.TemporaryDirectory(dir=CACHE) as src:
        sh("tar", "-xJf", "/usr/src/linux-source-6.1.tar.xz", "-C", src, "--strip-components=5",
           "linux-source-6.1/drivers/infiniband/sw/siw")
        sh("make", "-s", "-C", f"/usr/src/linux-headers-{k}", f"M={src}", "CONFIG_RDMA_SIW=m",
           "modules", stdout=subprocess.DEVNULL)
        extra = os.path.join(CACHE, "tree/lib/modules", k, "extra")
        os.makedirs(extra, exist_ok=True)
        sh("strip", "-g", "-o", os.path.join(extra, "siw.ko"), os.path.join(src, "siw.ko"))
    sh("depmod", "-b", os.path.join(CACHE, "tree"), k)


def build_initrd(k):
    with tempfile.TemporaryDirectory(dir=CACHE) as d:
        os.makedirs(d + "/bin")
        os.makedirs(d + "/modules")
        shutil.copy("/bin/busybox", d + "/bin/busybox")
        order = []
        for m in BOOT_MODULES:
            out = sh("modprobe", "-d", os.path.join(CACHE, "tree"), "-S", k, "--show-depends", m,
                     capture_output=True, text=True).stdout
            for path in re.findall(r"^insmod (\S+)", out, re.M):
                name = os.path.basename(path)
                if name not in order:
                    order.append(name)
                    shutil.copy(path, d + "/modules/" + name)
        open(d + "/modules/order", "w").write("\n".join(order) + "\n")
        open(d + "/init", "w").write(INIT)
        os.chmod(d + "/init", 0o755)
        names = "\n".join(os.path.relpath(os.path.join(r, f), d)
                          for r, ds, fs in os.walk(d) for f in ds + fs)
        with open(os.path.join(CACHE, "initrd"), "wb") as out:
            sh("cpio", "-o", "-H", "newc", "--quiet", input=names.encode(), stdout=out, cwd=d)


def kernel_image(k):
    """Returns the unpacked kernel. QEMU starts it by PVH, so that a guest under emulation need not
    unpack it."""
    image, packed = f"{CACHE}/vmlinux-{k}", f"{CACHE}/tree/boot/vmlinuz-{k}"
    if os.path.exists(image):
        return image
    # Documentation/x86/boot.rst: setup_sects, payload_offset, payload_length
    b = open(packed, "rb").read()
    at, length = struct.unpack_from("<II", b, 0x248)
    at += (b[0x1f1] + 1) * 512
    try:
        whole = lzma.LZMADecompressor().decompress(b[at:at + length])
    except lzma.LZMAError:
        return packed
    with tempfile.NamedTemporaryFile(dir=CACHE, delete=False) as out:
        out.write(whole)
    os.rename(out.name, image)
    return image


def backports():
    """Unpacks QEMU of bookworm-backports, which has igb, beside the installed one."""
    qemu = os.path.join(CACHE, "qemu")
    if os.path.exists(QEMU_BACKPORTS):
        return
    out = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
                          "Created-By: Packages"], capture_output=True, text=True).stdout
    mirrors = [line.split()[0] for line in out.splitlines() if line.endswith(" bookworm")]
    if not mirrors:
        die("apt has no mirror of bookworm")
    with tempfile.TemporaryDirectory(dir=CACHE) as tmp:
        for d in ("lists/partial", "cache/archives/partial", "got"):
            os.makedirs(f"{tmp}/{d}")
        with open(tmp + "/list", "w") as f:
            f.write("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
                    f"{mirrors[0]} bookworm-backports main\n")
        apt = ["apt-get", "-q", "-o", f"Dir::Etc::SourceList={tmp}/list",
               "-o", "Dir::Etc::SourceParts=/dev/null", "-o", f"Dir::State::Lists={tmp}/lists",
               "-o", f"Dir::Cache={tmp}/cache", "-o", "APT::Sandbox::User=root"]
        sh(*apt, "update", stdout=subprocess.DEVNULL)
        sh(*apt, "download", "-t", "bookworm-backports", "qemu-system-x86", "qemu-system-common",
           "qemu-system-data", cwd=tmp + "/got", stdout=subprocess.DEVNULL)
        shutil.rmtree(qemu, ignore_errors=True)
        for deb in glob.glob(tmp + "/got/*.deb"):
            sh("dpkg", "-x", deb, qemu)


class Pmd:
    """A NIC for a driver of DPDK. A PCI Express one is behind a root port, so that it can be
    removed."""
    VIRTIO = "virtio-net-pci,disable-legacy=on,iommu_platform=on"
    DEVICES = {"virtio": VIRTIO, "virtio-packed": VIRTIO + ",packed=on"}

    def __init__(self, index, text):
        parts = text.partition("=")[2].split(",")
        self.index, self.model, self.kernel = index, parts[0], "kernel" in parts
        self.options = "".join("," + p.replace("mtu=", "host_mtu=") for p in parts[1:]
                               if p != "kernel")
        self.mac = f"52:54:00:5a:50:{index + 1:02x}"
        self.port = self.model != "e1000"
        self.address = f"0000:{index + 1:02x}:00.0" if self.port else f"0000:00:{index + 24:02x}.0"

    def device(self):
        """Returns the -device, which the monitor's device_add takes, too."""
        place = f"bus=root{self.index}" if self.port else f"bus=pcie.0,addr={self.index + 24:#x}"
        return (f"{self.DEVICES.get(self.model, self.model)},id=nic{self.index},"
                f"netdev=pmd{self.index},mac={self.mac},romfile=,{place}{self.options}")

    def qemu(self):
        i = self.index
        args = []
        if self.port:
            args += ["-device", f"pcie-root-port,id=root{i},bus=pcie.0,addr={i + 16:#x},"
                                f"chassis={i + 1},slot={i + 1}"]
        if self.model.startswith("virtio"):
            args += ["-netdev", f"tap,id=pmd{i},ifname=pmd{i},script=no,downscript=no,vhost=off"]
        else:
            args += ["-netdev", f"hubport,id=pmd{i},hubid=0"]
        return args + ["-device", self.device()]

    def network(self):
        """Binds the NIC, and leaves EAL the drivers that are of use: it opens all of them."""
        if self.kernel:
            return f'modprobe {self.model}\necho "{self.address} {self.device()}" >>/share/pmd\n'
        return f"""
if [ ! -e /run/pmds ]; then
    folder=$(echo /usr/lib/x86_64-linux-gnu/dpdk/pmds-*)
    mkdir /run/pmds /dev/hugepages
    mount -t hugetlbfs none /dev/hugepages
    for d in bus_pci bus_vdev bus_auxiliary mempool_ring mempool_stack net_e1000 net_vmxnet3 \\
        net_virtio net_ring; do
        cp -d $folder/librte_$d.so* /run/pmds
    done
    mount --bind /run/pmds $folder
    modprobe -a vfio_pci vfio_iommu_type1 uio_pci_generic
    cat >/run/bind <<'BIND'
for d in vfio-pci uio_pci_generic; do
    echo $d >/sys/bus/pci/devices/$1/driver_override
    [ -e /sys/bus/pci/devices/$1/driver ] &&
        echo $1 >/sys/bus/pci/devices/$1/driver/unbind
    echo $1 >/sys/bus/pci/drivers_probe
    [ -e /sys/bus/pci/devices/$1/driver ] && break
done
BIND
fi
bash /run/bind {self.address}
echo "{self.address} {self.device()}" >>/share/pmd
"""


class Nic:
    def __init__(self, index, text):
        kind, _, rest = text.partition("=")
        if kind != "vhost":
            die(f"unknown NIC kind '{kind}'")
        self.index, parts = index, rest.split(",")
        self.socket, self.mtu, self.offload, self.addresses = parts[0], 1500, False, []
        self.siw = True
        self.mac = f"52:54:00:5a:4b:{index + 1:02x}"
        for p in parts[1:]:
            if p.startswith("mtu="):
                self.mtu = int(p[4:])
            elif p.startswith("mac="):
                self.mac = p[4:]
            elif p == "offload":
                self.offload = True
            elif p == "nosiw":
                self.siw = False
            else:
                self.addresses.append(p)

    def qemu(self):
        # INTx (vectors=0): without irqfd, as under emulation, QEMU 7.2 crashes on MSI-X of a
        # vhost-user device.
        features = "" if self.offload else (
            ",csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,"
            "guest_ufo=off,host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off")
        vectors = ",vectors=0" if ACCEL == "tcg" else ""
        return ["-chardev", f"socket,id=c{self.index},path={self.socket}",
                "-netdev", f"vhost-user,id=n{self.index},chardev=c{self.index}",
                "-device", f"virtio-net-pci,netdev=n{self.index},mac={self.mac},romfile="
                           f"{vectors}{features}"]

    def network(self):
        dev = f"eth{self.index}"
        lines = ["modprobe -a virtio_net" + (" ib_uverbs rdma_ucm siw" if self.siw else "")]
        lines += [f"ip link set {dev} mtu {self.mtu} up"]
        for a in self.addresses:
            lines += [f"ip addr add {a} dev {dev}{' nodad' if ':' in a else ''}"]
        lines += [f"rdma link add siw{self.index} type siw netdev {dev}"] if self.siw else []
        return "\n".join(lines) + "\n"


def pid():
    """Returns the process id of the guest of this name, or None."""
    try:
        p = int(open(HERE + "/pid").read())
        return p if HERE.encode() in open(f"/proc/{p}/cmdline", "rb").read() else None
    except (OSError, ValueError):
        return None


def boot(nics):
    for _ in range(3):
        start(nics)
        if clock_is_right():
            return
        stop()
    die("the guest's clock is wrong")


def clock_is_right():
    """Compares the guest's clock with the host's. A guest that calibrated its clock while the host
    was busy may run many times too fast, and all its timeouts with it."""
    def sample():
        before = time.monotonic()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run("cat /proc/uptime", 30)
        return before, float(out.getvalue().split()[0]), time.monotonic()
    try:
        first = sample()
        time.sleep(1)
        second = sample()
    except (IndexError, ValueError):  # the command's own timeout ended before it began
        return False
    # The host's time between the two samples has these bounds.
    least, most = second[0] - first[2], second[2] - first[0]
    return least / 2 < second[1] - first[1] < most * 2


def start(nics):
    if pid():
        die(f"the guest '{NAME}' is running already")
    shutil.rmtree(HERE, ignore_errors=True)
    share = HERE + "/share"
    os.makedirs(share)
    k = kernel_version()
    shared = [n.partition("=")[2] for n in nics if n.startswith("ivshmem=")]
    nics = [n for n in nics if not n.startswith("ivshmem=")]
    pmds = any(n.startswith("pmd=") for n in nics)
    irqs = any(n.endswith(",irq") for n in shared)
    reserve = any(n.startswith("pmd=") and not n.endswith(",kernel") for n in nics)
    iommu = pmds or irqs
    nics = [(Pmd if n.startswith("pmd=") else Nic)(i, n) for i, n in enumerate(nics)]
    open(share + "/agent", "w").write(AGENT)
    open(share + "/start", "w").write(START)
    open(share + "/modules", "w").write(os.path.join(CACHE, "tree"))
    open(share + "/network", "w").write("".join(n.network() for n in nics))
    cpu = {"tcg": "max", "kvm": "host"}[ACCEL]
    # 7.2 has no igb, and cuts a TSO frame on a hub into IP fragments.
    qemu = [QEMU_BACKPORTS, "-L", CACHE + "/qemu/usr/share/qemu", "-L", "/usr/share/seabios",
            "-L", "/usr/share/qemu"] if pmds else ["qemu-system-x86_64"]
    args = [*qemu, "-accel", ACCEL + (",thread=multi" if ACCEL == "tcg" else ""),
            "-cpu", cpu, "-smp", CPUS, "-m", str(MEMORY_MB),
            "-nodefaults", "-no-user-config", "-display", "none",
            *([] if os.environ.get("SAKER_GUEST_REBOOT") else ["-no-reboot"]),
            # A vhost-user back end maps the guest's memory.
            "-object", f"memory-backend-memfd,id=ram,size={MEMORY_MB}M,share=on",
            "-machine", "q35,memory-backend=ram" + (",kernel-irqchip=split" if iommu else ""),
            *(["-device", "intel-iommu,intremap=on,device-iotlb=on"] if iommu else []),
            "-kernel", kernel_image(k), "-initrd", f"{CACHE}/initrd",
            # The kernel tests its timer behind an IOMMU, and gives up where the host is busy.
            "-append", "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable "
                       "random.trust_cpu=1 net.ifnames=0 noautogroup" +
                       (" intel_iommu=on no_timer_check" if iommu else "") +
                       (f" hugepages={MEMORY_MB // 4}" if reserve else ""),
            "-serial", f"file:{HERE}/console",
            "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
            "-fsdev", f"local,id=share,path={share},security_model=none",
            "-device", "virtio-9p-pci,fsdev=share,mount_tag=share",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=control,path={HERE}/control,server=on,wait=off",
            "-device", "virtserialport,chardev=control,name=control",
            "-monitor", f"unix:{HERE}/monitor,server=on,wait=off",
            "-device", "virtio-rng-pci", "-pidfile", HERE + "/pid"]
    for n in nics:
        args += n.qemu()
    for i, text in enumerate(shared):
        path, _, irq = text.partition(",")
        if stat.S_ISSOCK(os.stat(path).st_mode):
            args += ["-chardev", f"socket,id=bell{i},path={path}",
                     "-device", f"ivshmem-doorbell,chardev=bell{i},vectors={8 if irq else 1}"]
            continue
        size = os.stat(path).st_size
        args += ["-object",
                 f"memory-backend-file,id=shared{i},mem-path={path},size={size},share=on",
                 "-device", f"ivshmem-plain,memdev=shared{i}"]
    # QEMU stays in this session. In one of its own, as -daemonize makes, Linux schedules it as a
    # group (sched(7), autogroup), and its main loop, which sleeps most of the time, has so small a
    # share of a processor where others are busy that the guest's timers stop for seconds.
    with open(HERE + "/qemu.log", "w") as log:
        process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT)
    while not pid():
        if process.poll() is not None:
            die("QEMU did not start: " + open(HERE + "/qemu.log").read().strip())
        time.sleep(0.05)
    wait_for(share + "/ready", 180)


def wait_for(path, seconds):
    end = time.monotonic() + seconds
    while not os.path.exists(path):
        if not pid():
            die("the guest has died; its last messages:\n" + tail(HERE + "/console"))
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def tail(path, lines=20):
    try:
        return "".join(open(path, errors="replace").readlines()[-lines:])
    except OSError:
        return ""


def run(command, seconds):
    if not pid():
        die(f"no guest '{NAME}' is running")
    silent = HERE + "/silent"
    if os.path.exists(silent):
        die("the guest did not answer before: " + open(silent).read())
    job = uuid.uuid4().hex
    base = f"{HERE}/share/{job}"
    open(base + ".cmd", "w").write(f"timeout -k 5 {seconds} bash -c {quote(command)}\n")
    # The port serves one connection at a time, and what the guest has not read when a connection
    # ends is lost: the connection stays until the guest has begun.
    for _ in range(10):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(HERE + "/control")
            s.sendall(job.encode() + b"\n")
            if wait_for(base + ".out", 10):
                break
    ended = os.path.exists(base + ".out") and wait_for(base + ".status", seconds + 30)
    if os.path.exists(base + ".out"):
        sys.stdout.write(open(base + ".out", errors="replace").read())
    sys.stdout.flush()
    if not ended:
        # The guest's own timeout would have ended the command.
        open(silent, "w").write(command)
        die(f"the guest does not answer: {command}\nits last messages:\n{tail(HERE + '/console')}\n"
            f"its processors:\n{processors()}")
    return int(open(base + ".status").read())


def processors():
    """Where the guest's processors stand, which /proc/kallsyms of such a kernel explains."""
    try:
        lines = monitor("info registers -a").splitlines()
    except OSError:
        return "QEMU's monitor does not answer"
    return "\n".join(l for l in lines if re.match("(CPU#|RIP|EIP)", l))


def monitor(command):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(HERE + "/monitor")
        s.sendall(command.encode() + b"\n")
        seen = b""
        while seen.count(b"(qemu)") < 2:  # the greeting, and the end of the answer
            got = s.recv(4096)
            if not got:
                break
            seen += got
    return seen.decode(errors="replace")


def reset():
    os.unlink(HERE + "/share/ready")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(HERE + "/silent")
    monitor("system_reset")
    if not wait_for(HERE + "/share/ready", 180):
        die("the guest does not come back")


def quote(s):
    return "'" + s.replace("'", "'\\''") + "'"


def stop():
    p = pid()
    if p:
        os.kill(p, signal.SIGTERM)
        for _ in range(100):
            if not pid():
                return
            time.sleep(0.05)
        os.kill(p, signal.SIGKILL)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(dest="verb", required=True)
    sub.add_parser("build")
    sub.add_parser("backports")
    sub.add_parser("boot").add_argument("nics", nargs="*")
    r = sub.add_parser("run")
    r.add_argument("-t", type=int, default=120)
    r.add_argument("command")
    sub.add_parser("console")
    sub.add_parser("monitor").add_argument("command")
    sub.add_parser("ask").add_argument("command")
    sub.add_parser("reset")
    sub.add_parser("stop")
    a = ap.parse_args()
    if a.verb == "build":
        build()
    elif a.verb == "backports":
        backports()
    elif a.verb == "boot":
        boot(a.nics)
    elif a.verb == "run":
        sys.exit(run(a.command, a.t))
    elif a.verb == "console":
        print(tail(HERE + "/console", 200), end="")
    elif a.verb == "monitor":
        monitor(a.command)
    elif a.verb == "ask":
        print(monitor(a.command))
    elif a.verb == "reset":
        reset()
    elif a.verb == "stop":
        stop()


if __name__ == "__main__":
    main()
