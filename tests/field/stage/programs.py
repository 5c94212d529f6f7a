# SPDX-License-Identifier: MIT OR Apache-2.0
"""Start of unmodified programs; their table is programs.toml."""

import dataclasses
import os
import pathlib
import time
import tomllib

from . import processes


@dataclasses.dataclass(frozen=True)
class Program:
    words: tuple
    window: str
    # Position of a harmless click that focuses the text: shares of the window, or pixels.
    body: tuple = (0.5, 0.6)
    # Chord that opens a menu, and position of a click that opens one.
    menu: str = ""
    menu_at: tuple = ()
    # Keys before anything else, such as i in vim.
    prelude: str = ""
    # Wait after its window has opened, in seconds.
    settle_s: float = 0.5
    # Return starts a command.
    shell: bool = False
    # Delay of the toolkit's click after a button was pressed by its key: GTK 4's ACTIVATE_TIMEOUT,
    # QAbstractButton::animateClick.
    acts_after_ms: int = 0
    # Acts before a fault.
    usual: tuple = ("typing", "clicking", "typing", "typing")


VICTIMS = pathlib.Path(__file__).resolve().parent.parent / "victims"
FOX = """user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("app.update.enabled", false);
user_pref("termsofuse.bypassNotification", true);
"""
TABLE = tomllib.loads(VICTIMS.with_name("programs.toml").read_text())
PROGRAMS = {name: Program(**keys) for name, keys in TABLE.items()}


def start(session):
    """Starts the program, waits until its window is visible, focused, and quiet."""
    program = PROGRAMS[session.scenario.program]
    prepare(session)
    if session.scenario.beside:
        beside(session)
    words = [word.format(home=session.folder / "home") for word in program.words]
    start_victim(session, words)
    window = session.windows.wait_for(program.window, 60)
    if not window:
        raise session.failure(f"no window of {words[0]}", "program")
    session.window = window
    time.sleep(program.settle_s)
    fit(session)
    focus(session, program)
    if program.prelude:
        session.input.write(program.prelude)
    if not session.wait_quiet():
        session.say("the screen did not become quiet")


def start_victim(session, words):
    """If a server of the test resolves names, the program sees a resolv.conf of its own."""
    if not session.scenario.fault.startswith("names"):
        session.start("program", words)
        return
    resolv = session.folder / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.77\noptions timeout:4 attempts:1\n")
    resolv.chmod(0o644)
    inner = f"mount --bind {resolv} /etc/resolv.conf && exec setpriv --reuid {processes.USER} --regid {processes.user().pw_gid}"
    inner += ' --clear-groups -- "$@"'
    session.start("program", ["unshare", "-m", "sh", "-c", inner, "sh", *words], as_user=False)


def beside(session):
    """Opens another window, as a target for alt-tab."""
    words = session.scenario.beside.split()
    session.start("beside", words)
    if not session.windows.wait_for(words[2] if words[1:2] == ["-name"] else words[0], 30):
        raise processes.CannotRun(f"no window of {session.scenario.beside}")


def prepare(session):
    """Makes files that some programs need in their home."""
    home = session.folder / "home"
    for name in ("page.html", "button.py", "panel.py", "dial.py", "restless.py", "Button.java"):
        (home / name).write_text((VICTIMS / name).read_text().replace("PORT", str(session.port)))
        os.chmod(home / name, 0o644)
    (home / "note.txt").write_text("a note\n" * 9)
    os.chown(home / "note.txt", processes.user().pw_uid, processes.user().pw_gid)
    (home / "fox").mkdir(exist_ok=True)
    (home / "fox/user.js").write_text(FOX)
    os.chown(home / "fox", processes.user().pw_uid, processes.user().pw_gid)
    if session.scenario.program == "swing":
        processes.start(["javac", "-d", home, home / "Button.java"], session.env).wait()


def fit(session):
    """Resizes large windows so that all of their decoration is on the screen."""
    place = session.place()
    if place.width > 1000 or place.height > 660:
        session.windows.resize(session.window, min(place.width, 900), min(place.height, 600))
        time.sleep(0.5)
    session.screen.look_at(session.windows.frame(session.window))


def focus(session, program):
    """Moves the pointer into the window, and clicks there."""
    for _ in range(3):
        session.input.click(*session.place().at(*program.body))
        time.sleep(0.6)
        if session.windows.has_focus(session.window):
            return
    raise processes.CannotRun("the window did not get the focus")
