# SPDX-License-Identifier: MIT OR Apache-2.0
"""Times and places of changes on the screen, logged by a client that knows nothing of the recorder.

Without a compositing manager, XDamage reports every drawing that reaches the screen. With one,
drawing first happens off-screen, so the client compares the pixels of the program's window every
10 ms."""

import atexit
import functools
import pathlib
import shutil
import subprocess
import tempfile

from . import processes

SOURCE = pathlib.Path(__file__).with_name("watch.c")
PERIOD_MS = 10


@functools.cache
def watcher():
    """Compiles the watcher, once for each run of the test."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tipme-field-watch-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    out = folder / "tipme-watch"
    words = ["gcc", "-O2", "-o", out, SOURCE, "-lX11", "-lXext", "-lXdamage"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise processes.CannotRun(f"the watcher cannot be compiled: {done.stderr[:400]}")
    return out


class Log:
    """Change log of a display, read while a watcher writes it: (ns, x, y, width, height) each."""

    def __init__(self, path):
        self.path, self.read, self.known = path, 0, []

    def new_lines(self):
        """Returns the lines since the last call."""
        data = self.path.read_bytes() if self.path.exists() else b""
        whole = data[self.read : data.rfind(b"\n") + 1]
        self.read += len(whole)
        return whole.decode(errors="replace").splitlines()

    def changes(self):
        self.known.extend(tuple(map(int, line.split())) for line in self.new_lines())
        return self.known


class Screen(Log):
    """Log of the watcher of an X display."""

    def __init__(self, session, words):
        super().__init__(session.folder / "changes.log")
        self.file = open(self.path, "wb")
        self.process = session.start("watcher", [watcher(), *words], stdin=subprocess.PIPE, stdout=self.file)

    def look_at(self, place):
        """Sets the region whose pixels are compared."""
        self.process.stdin.write(f"{place.x} {place.y} {place.width} {place.height}\n".encode())
        self.process.stdin.flush()


def make(session):
    polled = session.scenario.compositor != "none"
    return Screen(session, ["pixels", PERIOD_MS] if polled else ["damage"])
