# SPDX-License-Identifier: MIT OR Apache-2.0
"""A running guest: QEMU, its control socket, and commands inside.

QEMU emulates the CPUs without hardware support, about ten times slower than the host. It ends with the block that
started it, and also if the script is killed.
"""

import contextlib
import ctypes
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from shared import until
from shared.programs import free_port

from .control import ANSWER_MAX_S, Control
from .places import TOOLS, CannotRun, say

MEMORY_MIB, CPUS = 1024, 2
# Throttles of the data disk and of swap, which is somewhat faster.
DATA_BYTES_S, DATA_REQUESTS_S = 10 << 20, 300
SWAP_BYTES_S, SWAP_REQUESTS_S = 40 << 20, 2000
# Time limits in seconds for a boot, a command in the guest, and a shutdown.
BOOT_MAX_S, COMMAND_MAX_S, END_MAX_S = 240, 60, 20
# A busy host starts a desktop in two minutes, an idle one in ten seconds.
FOCUS_MAX_S = 240
# Number of attempts, since a busy host may be too slow.
BOOTS_MAX = 2
KERNEL_LINE = (
    "console=ttyS0 quiet loglevel=4 panic=5 net.ifnames=0 mitigations=off init_on_alloc=0 psi=1 audit=0 "
    "systemd.show_status=0"
)
# PR_SET_PDEATHSIG of prctl.
PARENT_DEATH_SIGNAL = 1


class Failed(Exception):
    """Error of a command in the guest, with its output."""


class NotBooted(CannotRun):
    """Timeout of a guest's boot."""


def die_with_parent():
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


class Machine:
    """One guest, for the duration of a `with` block."""

    def __init__(self, qemu, kernel, image, memory_mib=MEMORY_MIB, cpus=CPUS):
        self.qemu, self.kernel, self.image, self.memory_mib, self.cpus = qemu, kernel, image, memory_mib, cpus
        self.process = self.control = None
        self.booted_s, self.has_display = None, False

    def __enter__(self):
        for boots in range(1, BOOTS_MAX + 1):
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tipme-vm-"))
            try:
                self.start()
                return self
            except NotBooted as error:
                self.end()
                if boots == BOOTS_MAX:
                    raise
                say(f"guest {self.kernel.series}: {error}")
                say(f"guest {self.kernel.series}: this machine may be busy; boot {boots + 1} of {BOOTS_MAX}")
            except BaseException:
                self.end()
                raise

    def __exit__(self, *_):
        self.end()

    def start(self):
        begin = time.monotonic()
        self.port = free_port()
        errors = (self.folder / "qemu.log").open("wb")
        modules = str(self.libraries() / "qemu")
        environment = {"QEMU_MODULE_DIR": modules, "TMPDIR": str(self.folder), "PATH": "/usr/bin"}
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, env=environment,
            start_new_session=True, preexec_fn=die_with_parent,
        )  # fmt: skip
        self.await_control()
        self.await_boot(begin + BOOT_MAX_S)
        self.booted_s = time.monotonic() - begin

    def libraries(self):
        return self.qemu / "usr/lib/x86_64-linux-gnu"

    def command(self):
        """Returns the command of QEMU with its own loader and libraries, independent of the host's."""
        loaders = [self.qemu / folder / "ld-linux-x86-64.so.2" for folder in ("lib64", "lib/x86_64-linux-gnu")]
        loader = next(path for path in loaders if path.is_file())
        search = f"{self.libraries()}:{self.qemu / 'lib/x86_64-linux-gnu'}"
        forward = f"hostfwd=tcp:127.0.0.1:{self.port}-:22"
        command = [loader, "--library-path", search, self.qemu / "usr/bin/qemu-system-x86_64"]
        for folder in ("qemu", "seabios"):
            command += ["-L", self.qemu / "usr/share" / folder]
        command += ["-accel", "tcg,thread=multi,tb-size=256", "-machine", "q35", "-cpu", "max", "-smp", self.cpus]
        command += ["-m", self.memory_mib, "-nodefaults", "-no-user-config", "-vga", "std", "-display", "none"]
        command += ["-kernel", self.kernel.image, "-initrd", self.kernel.first, "-append", KERNEL_LINE]
        command += [*self.disk("root", self.image.root, ""), *self.disks()]
        command += ["-netdev", f"user,id=net,restrict=on,{forward}", "-device", "virtio-net-pci,netdev=net,romfile="]
        command += ["-device", "virtio-rng-pci", "-serial", f"file:{self.folder / 'serial.log'}", "-no-reboot"]
        command += ["-qmp", f"unix:{self.folder / 'control'},server=on,wait=off"]
        return [str(word) for word in command]

    def disks(self):
        slow = f",throttling.bps-total={DATA_BYTES_S},throttling.iops-total={DATA_REQUESTS_S}"
        swap = f",throttling.bps-total={SWAP_BYTES_S},throttling.iops-total={SWAP_REQUESTS_S}"
        return [*self.disk("data", self.image.data, slow), *self.disk("swap", self.image.swap, swap)]

    def disk(self, name, path, more):
        """Returns the options of a disk, whose changes go to a temporary file."""
        drive = f"file={path},if=none,id={name},format=raw,snapshot=on,cache=unsafe{more}"
        return ["-drive", drive, "-device", f"virtio-blk-pci,drive={name}"]

    def expect_alive(self):
        if self.process.poll() is not None:
            raise CannotRun(f"QEMU ended with code {self.process.returncode}: {self.last_words()}")

    def last_words(self):
        texts = []
        for name in ("qemu.log", "serial.log"):
            path = self.folder / name
            texts += path.read_text(errors="replace").splitlines()[-8:] if path.exists() else []
        return "\n".join(texts)

    def await_control(self):
        def opened():
            self.expect_alive()
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                return Control(self.folder / "control")

        self.control = until(opened, "QEMU opened no control socket", ANSWER_MAX_S)

    def await_boot(self, deadline):
        """Waits for a shell, and for the end of systemd's start."""
        while time.monotonic() < deadline:
            self.expect_alive()
            with contextlib.suppress(Failed, subprocess.TimeoutExpired):
                self.run("true", 15)
                self.run("timeout 60 systemctl is-system-running --wait || true", 90)
                return
            time.sleep(0.5)
        raise NotBooted(f"the guest did not boot within {BOOT_MAX_S} s: {self.last_words()}")

    def shell(self):
        """Returns the ssh command; all commands share one connection."""
        options = {
            "ControlMaster": "auto", "ControlPath": self.folder / "ssh", "ControlPersist": "600",
            "HostKeyAlias": "tipme-vm", "UserKnownHostsFile": self.image.known_hosts, "StrictHostKeyChecking": "yes",
            "BatchMode": "yes", "IdentitiesOnly": "yes", "ConnectTimeout": "15", "LogLevel": "ERROR",
            "ServerAliveInterval": "15", "ServerAliveCountMax": "20",
        }  # fmt: skip
        words = ["ssh", "-F", "none", "-i", str(self.image.key), "-p", str(self.port)]
        for name, value in options.items():
            words += ["-o", f"{name}={value}"]
        return [*words, "root@127.0.0.1"]

    def run(self, command, seconds=COMMAND_MAX_S, codes=(0,), data=None):
        """Runs a shell command in the guest with a time limit; returns its standard output."""
        remote = f"timeout {seconds} bash -c {shlex.quote(command)}"
        feed = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([*self.shell(), remote], capture_output=True, timeout=seconds + 30, check=False, **feed)
        if done.returncode not in codes:
            words = (done.stderr + done.stdout).decode(errors="replace").strip()
            raise Failed(f"{command.split(chr(10))[0][:80]}: code {done.returncode}: {words[-600:]}")
        return done.stdout.decode(errors="replace")

    @contextlib.contextmanager
    def begun(self, command, seconds, ready):
        """Starts a command that runs during the block; waits for its line `ready`."""
        remote = f"timeout {seconds} {command}"
        one = subprocess.Popen([*self.shell(), remote], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            for line in one.stdout:
                if line.strip() == ready:
                    break
            else:
                raise Failed(f"{command} ended before it said {ready!r}")
            yield one
        finally:
            one.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(timeout=seconds)
            one.kill()
            one.wait()

    def retry(self, command, seconds, pause_s=0.5):
        """Repeats a command in the guest until it succeeds; returns its output."""
        return self.run(f"until {command}; do sleep {pause_s}; done", seconds).strip()

    def focused(self):
        """Waits for a program with the focus; returns its process id."""
        return self.run(f"{TOOLS}/await-focus", FOCUS_MAX_S).strip()

    def properties(self, *names):
        """Returns properties of the recorder's service."""
        shown = self.run(f"systemctl show {' '.join(f'-p {name}' for name in names)} tipmed")
        values = dict(line.split("=", 1) for line in shown.splitlines())
        return tuple(values[name] for name in names)

    @contextlib.contextmanager
    def staging(self):
        """Yields a folder whose contents are then copied onto the guest's root."""
        with tempfile.TemporaryDirectory(prefix="tipme-vm-stage-") as folder:
            yield pathlib.Path(folder)
            command = ["tar", "-C", folder, "--owner=0", "--group=0", "-c", *sorted(os.listdir(folder))]
            packed = subprocess.run(command, capture_output=True, check=True, timeout=60)
        self.run("tar -C / --no-overwrite-dir -x", 120, data=packed.stdout)

    def read(self, path):
        """Returns the contents of a file in the guest."""
        command = [*self.shell(), f"timeout {COMMAND_MAX_S} cat {shlex.quote(path)}"]
        return subprocess.run(command, capture_output=True, check=True, timeout=COMMAND_MAX_S + 30).stdout

    def end(self):
        """Ends QEMU and removes its files."""
        subprocess.run([*self.shell(), "-O", "exit"], capture_output=True, check=False) if self.process else None
        if self.process and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_MAX_S)
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
