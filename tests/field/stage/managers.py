# SPDX-License-Identifier: MIT OR Apache-2.0
"""Window managers and compositing managers in common use."""

import time

from . import processes

TWMRC = 'RandomPlacement\nUsePPosition "on"\nNoGrabServer\n'
# Command by window manager; the second one does its own compositing.
COMMANDS = {
    "openbox": (["openbox", "--sm-disable"], None),
    "xfwm4": (["xfwm4", "--compositor=off"], ["xfwm4", "--compositor=on", "--vblank=off"]),
    "marco": (["marco", "--no-composite", "--sm-disable"], ["marco", "--composite", "--sm-disable"]),
    "metacity": (["metacity", "--no-composite", "--sm-disable"], ["metacity", "--composite", "--sm-disable"]),
    "icewm": (["icewm"], None),
    "twm": (["twm"], None),
    "kwin_x11": (["kwin_x11"], ["kwin_x11"]),
}
PICOM = ["picom", "--backend", "xrender", "--config", "/dev/null"]


def start(session):
    """Starts both, and waits until the window manager controls the display."""
    name, compositor = session.scenario.manager, session.scenario.compositor
    (session.folder / "home/.twmrc").write_text(TWMRC)
    plain, composing = COMMANDS[name]
    if name == "kwin_x11":
        session.env["KWIN_COMPOSE"] = "O2" if compositor == "own" else "N"
    words = composing if compositor == "own" else plain
    process = session.start("manager", words)
    time.sleep(1.5)
    if process.poll() is not None:
        raise processes.CannotRun(f"{name} ended with {process.returncode}")
    if compositor == "picom":
        picom = session.start("compositor", PICOM)
        time.sleep(1)
        if picom.poll() is not None:
            raise processes.CannotRun(f"picom ended with {picom.returncode}")
