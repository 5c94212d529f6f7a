# SPDX-License-Identifier: MIT OR Apache-2.0
"""Services that answer late: started by the message bus, queried over sockets, or queried by a
library."""

import pathlib
import time

from . import fault, processes, scripts, waiting
from .scripts import Logged

KEYRING = """
log("begin")
time.sleep(float(sys.argv[1]))
log("end")
sys.exit(1)
"""
SERVICE = """[D-BUS Service]
Name={name}
Exec={command}
"""

# A print server that delays its answers until it receives a line.
PRINT = """
server, go = listening(), threading.Event()
def serve(one):
    data = b""
    while b"\\r\\n\\r\\n" not in data:
        more = one.recv(65536)
        if not more:
            return
        data += more
    log("asked"); go.wait()
    body = b"\\x02\\x00\\x04\\x06\\x00\\x00\\x00\\x01\\x01G\\x00\\x12attributes-charset\\x00\\x05utf-8"
    body += b"H\\x00\\x1battributes-natural-language\\x00\\x02en\\x03"
    head = f"HTTP/1.1 200 OK\\r\\nContent-Type: application/ipp\\r\\nConnection: close\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    one.sendall(head.encode() + body); one.close()
def accept():
    while True:
        in_thread(serve, server.accept()[0])
in_thread(accept); hold(); go.set(); released()
"""

# A listener on a path that accepts connections and closes them when it receives a line.
SOCKET = """
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); server.listen(8)
kept, late = [], [True]
def accept():
    while True:
        one = server.accept()[0]
        kept.append(one) if late[0] else one.close()
in_thread(accept); hold(); late[0] = False
at = now()
for one in kept:
    one.close()
released(at)
"""

LOCK = """
file = open(sys.argv[1], "w"); fcntl.lockf(file, fcntl.LOCK_EX)
hold(); fcntl.lockf(file, fcntl.LOCK_UN); released()
"""

# Another user's key, in a file.
MAKE_KEY = """mkdir -m 700 other && export GNUPGHOME=$PWD/other
gpg -q --batch --passphrase '' --quick-gen-key somebody ed25519 sign never && gpg --export somebody > key.asc
gpgconf --kill gpg-agent; GNUPGHOME= HOME=$PWD gpg -q --batch --homedir $PWD/.gnupg -k"""


class Activation(Logged):
    """The message bus starts a service that ends without taking its name: `activation 2.4`."""

    NAME, PARAMETERS = "org.freedesktop.secrets", {"seconds": "2.4"}

    @staticmethod
    def prepare(session, seconds="2.4"):
        script = scripts.write(session, "keyring-slow", KEYRING)
        folder = session.folder / "home/share/dbus-1/services"
        folder.mkdir(parents=True)
        service = folder / f"{Activation.NAME}.service"
        service.write_text(SERVICE.format(name=Activation.NAME, command=f"{script} {seconds}"))
        session.env["XDG_DATA_HOME"] = str(session.folder / "home/share")


class Released(waiting.Held):
    """A script holds something until it receives a line to release it."""

    SCRIPT, NAME, PARAMETERS = "", "", {}

    def words(self):
        return ()

    def script(self):
        return self.NAME, self.SCRIPT, *self.words()


class Print(Released):
    """The print server accepts connections, and answers requests late."""

    SCRIPT, NAME = PRINT, "print-server"

    @staticmethod
    def prepare(session):
        session.env["CUPS_SERVER"] = f"127.0.0.1:{session.port}"


class Listener(Released):
    """A service on a socket accepts connections and sends nothing: `listener NAME`."""

    SCRIPT, PARAMETERS = SOCKET, {"NAME": ""}

    def words(self):
        return (self.session.folder / "home/peer",)


class Directory(Released):
    """The name service cache, which the C library queries for users and groups, does not answer."""

    SCRIPT, NAME, AS_USER = SOCKET, "directory-cache", False
    PLACE = pathlib.Path("/run/nscd")

    def words(self):
        return (self.PLACE / "socket",)

    def settle(self):
        self.PLACE.mkdir()
        self.undo += [self.PLACE.rmdir, lambda: (self.PLACE / "socket").unlink(missing_ok=True)]
        super().settle()


class Packages(Released):
    """An unattended upgrade holds the lock of the package manager."""

    SCRIPT, NAME = LOCK, "upgrade-nightly"

    @staticmethod
    def prepare(session):
        folder = session.folder / "home/dpkg"
        settings = session.folder / "home/apt.conf"
        settings.write_text(f"""Dir::State::status "{folder}/status"; Dir::State::lists "{folder}"; Dir::Cache "{folder}";
DPkg::Lock::Timeout "9";
""")
        scripts.own(settings)
        session.env["APT_CONFIG"] = str(settings)

    def words(self):
        folder = self.session.folder / "home/dpkg"
        folder.mkdir()
        scripts.own(folder, 0o755)
        (folder / "status").touch()
        scripts.own(folder / "status")
        return (folder / "lock-frontend",)


class Claimed(Released):
    """A live script holds a lock file with its process id, as GnuPG writes them."""

    NAME = "keyring-sync"
    SCRIPT = """
path = os.path.join(HOME, ".gnupg/pubring.kbx.lock")
open(path, "w").write(f"{os.getpid():10d}\\n{os.uname().nodename}\\n")
hold(); os.unlink(path); released()
"""

    def ready(self):
        folder = self.session.folder / "home/.gnupg"
        folder.mkdir(mode=0o700)
        scripts.own(folder, 0o700)
        scripts.run(["sh", "-c", MAKE_KEY], self.session)


class Stale(fault.Fault):
    """A lock file of an ended process; it is removed after a while."""

    HOLD_S, bounded = 5.2, False

    def settle(self):
        self.path = self.session.folder / "home/.cookies-c"
        self.path.touch()
        scripts.own(self.path, 0o600)

    def end(self):
        self.path.unlink()
        at = processes.now_ns()
        time.sleep(2.5)
        return at


FAULTS = {
    "activation": Activation, "print": Print, "listener": Listener, "directory": Directory, "packages": Packages,
    "claimed": Claimed, "stale": Stale,
}  # fmt: skip
