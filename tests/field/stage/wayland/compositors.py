# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compositors without a screen, started as an unprivileged user."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from shared import until

from .. import processes

# Display numbers that sway tries in sequence; here from the end, since others begin at the start.
NUMBERS = range(32, 0, -1)
START_MAX_S = 30
SWAY = """output HEADLESS-1 resolution {width}x{height}
xwayland disable
default_border none
include {home}/remote/letter
"""
ENVIRONMENT = {
    "sway": {"WLR_BACKENDS": "headless", "WLR_LIBINPUT_NO_DEVICES": "1", "WLR_RENDERER": "pixman"},
    "mutter": {},
    "kwin_wayland": {"KWIN_COMPOSE": "Q", "KWIN_WAYLAND_NO_PERMISSION_CHECKS": "1"},
}


def start(session):
    """Starts the scenario's compositor, and waits until it listens."""
    name = session.scenario.manager
    session.env.update(ENVIRONMENT[name])
    display = f"wayland-{free_number()}"
    session.start("server", COMMANDS[name](session, display))
    socket = session.folder / "run" / display
    if not until(socket.exists, None, START_MAX_S):
        raise session.failure(f"{name} did not start", "server")
    time.sleep(1)
    session.env["WAYLAND_DISPLAY"] = session.display = display


def free_number():
    """Returns a number that no compositor of this machine has, since the recorder distinguishes
    them by it."""
    sockets = pathlib.Path("/proc/net/unix").read_text()
    taken = {int(number) for number in re.findall(r"/wayland-(\d+)$", sockets, re.MULTILINE)}
    return next(number for number in NUMBERS if number not in taken)


def sway(session, display):
    """Starts sway, which chooses its number by itself: the lock files of lower numbers are
    taken."""
    width, height = session.SIZE
    config = session.folder / "home/.config/sway.conf"
    config.write_text(SWAY.format(width=width, height=height, home=session.folder / "home"))
    os.chmod(config, 0o644)
    for number in range(1, int(display.removeprefix("wayland-"))):
        (session.folder / f"run/wayland-{number}.lock").mkdir()
    return ["sway", "-c", config]


def mutter(session, display):
    width, height = session.SIZE
    return ["mutter", "--headless", "--virtual-monitor", f"{width}x{height}", "--wayland", "--no-x11", "--wayland-display", display]


def kwin(session, display):
    """Starts a copy of KWin: with the file's capability it would not start here."""
    width, height = session.SIZE
    copy = session.folder / "kwin_wayland"
    shutil.copyfile(shutil.which("kwin_wayland"), copy)
    copy.chmod(0o755)
    return [copy, "--virtual", "--width", width, "--height", height, "--socket", display, "--no-lockscreen"]


COMMANDS = {"sway": sway, "mutter": mutter, "kwin_wayland": kwin}


def sway_message(session, *words):
    return ["swaymsg", "-s", next((session.folder / "run").glob("sway-ipc.*")), *words]


def ask_sway(session, *words):
    """Returns sway's reply to a command of its IPC protocol."""
    done = processes.start(sway_message(session, "-r", *words), session.env, stdout=subprocess.PIPE, text=True)
    return json.loads(done.communicate(timeout=10)[0])


def focused(tree):
    """Returns the process of the focused window in sway's tree, or None."""
    if tree.get("focused") and "pid" in tree:
        return tree["pid"]
    below = (focused(node) for node in (*tree["nodes"], *tree["floating_nodes"]))
    return next((pid for pid in below if pid), None)
