# SPDX-License-Identifier: BSD-2-Clause
"""A bare Debian with systemd, under an emulator."""

import contextlib
import glob
import os
import re
import shutil
import socket
import tempfile
import time

import lib
from lib import need
from packages import output
from real import BUILT

SUITE = "bookworm"
HOST = "10.0.2.2"  # the loopback of this machine, as the other one sees it
NEEDED = ["systemd-sysv", "dbus", "linux-image-amd64", "curl", "procps"]
# a shell without a line editor: it reads commands, and prints nothing but what these say
SHELL = """[Unit]
After=multi-user.target
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/dash -c 'stty -F /dev/ttyS1 raw -echo; exec /bin/dash -s </dev/ttyS1 2>&1 | cat >/dev/ttyS1'
Restart=always
[Install]
WantedBy=default.target
"""
NETWORK = f"[Match]\nName=en*\n[Network]\nAddress=10.0.2.15/24\nGateway={HOST}\n"


def sources():
    """Where this machine has its packages from."""
    text = "".join(open(f).read() for f in glob.glob("/etc/apt/sources.list.d/*.sources") + glob.glob("/etc/apt/sources.list"))
    found = re.search(r"(?m)^(?:URIs:|deb(?: \[.*\])?) *(\S+)", text)
    need(found, "no sources of packages")
    return found[1]


def system(package):
    """A folder with the system's disk, with what a package depends on, and its kernel; made once."""
    folder = os.path.join(BUILT, f"system-{SUITE}")
    if os.path.exists(folder):
        return folder
    # of each dependency the first choice, without versions
    depends = [re.split(r"[ |]", d)[0] for d in output("dpkg-deb", "-f", package, "Depends").strip().split(", ")]
    with tempfile.TemporaryDirectory() as root:
        output(lib.tool("debootstrap"), "--variant=minbase", f"--include={','.join(NEEDED + depends)}", SUITE, root, sources())
        for path, text in (("etc/systemd/system/shell.service", SHELL), ("etc/systemd/network/all.network", NETWORK), ("etc/hostname", "machine\n")):
            with open(os.path.join(root, path), "w") as f:
                f.write(text)
        output("chroot", root, "systemctl", "enable", "shell", "systemd-networkd")
        made = f"{folder}.new"
        shutil.rmtree(made, ignore_errors=True)
        os.makedirs(made)
        for name in ("vmlinuz", "initrd.img"):
            shutil.copy(glob.glob(f"{root}/boot/{name}-*")[0], f"{made}/{name}")
        output(lib.tool("mke2fs"), "-q", "-t", "ext4", "-d", root, f"{made}/disk", "3G")
    os.rename(made, folder)
    return folder


class Machine:
    """It has begun, with these files in /root."""

    def __init__(self, system, files):
        self.system, self.folder = system, lib.temp()
        os.mkdir(self.folder)
        self.disk = f"{self.folder}/disk"
        output("cp", "--sparse=always", f"{system}/disk", self.disk)
        for name, path in files.items():
            output(lib.tool("debugfs"), "-w", "-R", f"write {path} /root/{name}", self.disk)

    def __enter__(self):
        # cx16: see scripts/check-kernels
        argv = [lib.tool("qemu-system-x86_64"), "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max,cx16=off", "-smp", "2", "-m", "1500", "-display", "none"]
        argv += ["-monitor", "none", "-kernel", f"{self.system}/vmlinuz", "-initrd", f"{self.system}/initrd.img", "-append", "root=/dev/vda rw console=ttyS0 quiet"]
        argv += ["-drive", f"file={self.disk},if=virtio,format=raw,cache=unsafe", "-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n"]
        argv += ["-serial", f"file:{self.folder}/console", "-serial", f"unix:{self.folder}/shell,server,nowait"]
        self.p = lib.start(argv)
        lib.wait_until(lambda: os.path.exists(f"{self.folder}/shell"), "the emulator")
        self.shell = socket.socket(socket.AF_UNIX)
        self.shell.connect(f"{self.folder}/shell")
        self.marks = 0
        self.wait_up(1)
        return self

    def __exit__(self, *args):
        self.shell.close()
        lib.stop(self.p)
        os.unlink(self.disk)

    def console(self):
        with open(f"{self.folder}/console", errors="replace") as f:
            return f.read()

    def wait_up(self, boots):
        """For the shell, which comes when somebody may log in; what is sent before it is lost."""
        lib.wait_until(lambda: self.console().count("login:") >= boots, lambda: f"the machine to be up: {self.console()[-500:]!r}", 240)

        def answers():
            with contextlib.suppress(AssertionError):
                return self.try_run("true", 5)[0] == 0
            return False

        lib.wait_until(answers, "the shell")

    def try_run(self, command, seconds=120):
        """Exit status, and what it said."""
        self.marks += 1
        mark, said = f"end-{self.marks}", ""
        self.shell.sendall(f'{{ {command}\n}} </dev/null 2>&1; echo "{mark}" "$?" end\n'.encode())
        self.shell.settimeout(1)
        end = time.monotonic() + seconds
        while not (found := re.search(rf"(?s)(.*){mark} (\d+) end\n", said)):
            need(time.monotonic() < end, f"{command!r}: not within {seconds} s; it said {said[-1000:]!r}")
            with contextlib.suppress(TimeoutError):
                said += self.shell.recv(65536).decode(errors="replace").replace("\r", "")
        return int(found[2]), re.sub(r"(?m)^end-\d+ \d+ end\n", "", found[1])

    def run(self, command, seconds=120):
        status, said = self.try_run(command, seconds)
        need(status == 0, f"{command!r}: exit status {status}: {said[-2000:]}")
        return said

    def reboot(self):
        boots = self.console().count("login:")
        self.run("(sleep 1; systemctl reboot) >/dev/null 2>&1 &")
        self.wait_up(boots + 1)
