# SPDX-License-Identifier: MIT OR Apache-2.0
"""Breakages of one part of a session, for the duration of a context."""

import contextlib
import os
import signal
import subprocess
import threading
import time

from shared import until
from stage import processes

from . import bus, hitch

CHORD_OF_SWAY, CHORD_OF_GNOME = "Ctrl+Alt+minus", "<Control><Alt>minus"
GNOME_KEYS = "org.gnome.settings-daemon.plugins.media-keys"
FOREIGN = "/org/gnome/settings-daemon/plugins/media-keys/custom-keybindings/foreign/"
# Ctrl+Alt+Minus and Ctrl+Alt+F9 as codes of Qt.
QT_KEY, QT_FREE_KEY = 0x0C00002D, 0x0D000038
# Action of another program in KDE's daemon of global shortcuts, and flags: program and action, their texts.
FOREIGN_OF_KDE = ("foreign.desktop", "take", "Foreign", "Take")
SET_PRESENT, NO_AUTOLOADING = 2, 4
# Time until a session has restarted its shell.
SERVED_AFTER_S = 0.2
SETTINGS = (".config", ".local/share")


def owner(session, name):
    """Returns the process that owns a name of the session bus, or None."""
    code, said = ask_bus(session, "GetConnectionUnixProcessID", "s", name)
    return int(said.split()[1]) if code == 0 else None


def ask_bus(session, *words):
    bus_name = "org.freedesktop.DBus"
    return call(session, bus_name, "/org/freedesktop/DBus", bus_name, *words)


def call(session, *words):
    return session.run(["busctl", f"--address={session.env['DBUS_SESSION_BUS_ADDRESS']}", "call", *words])


def ask_kde(session, *words):
    """Calls the daemon of global shortcuts."""
    return call(session, "org.kde.kglobalaccel", "/kglobalaccel", "org.kde.KGlobalAccel", *words)


@contextlib.contextmanager
def settings_read_only(session):
    """Makes all files and folders of the user's settings read-only."""
    modes = {path: path.stat().st_mode & 0o777 for path in of_settings(session)}
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        make_writable(session, modes)


def make_writable(session, modes=None):
    for path in of_settings(session):
        path.chmod((modes or {}).get(path, path.stat().st_mode & 0o777 | 0o200))


def of_settings(session):
    """Returns the files and folders of the user's settings, without links."""
    tops = [session.folder / "home" / top for top in SETTINGS]
    return [path for top in tops if top.exists() for path in (top, *top.rglob("*")) if not path.is_symlink()]


@contextlib.contextmanager
def key_taken(session):
    """Gives the key to another program: by a grab, a line of the configuration, or a shortcut of the settings."""
    name = session.desktop.name
    if name == "sway":
        file = session.folder / "home/.config/sway/config"
        kept = file.read_text()
        file.write_text(f"{kept}bindsym {CHORD_OF_SWAY} exec true\n")
        session.run(["swaymsg", "reload"])
        undo = lambda: (file.write_text(kept), session.run(["swaymsg", "reload"]))  # noqa: E731
    elif name == "gnome":
        for key, value in (("name", "Another"), ("command", "true"), ("binding", CHORD_OF_GNOME)):
            session.run(["gsettings", "set", f"{GNOME_KEYS}.custom-keybinding:{FOREIGN}", key, value])
        session.run(["gsettings", "set", GNOME_KEYS, "custom-keybindings", f"['{FOREIGN}']"])
        undo = lambda: session.run(["gsettings", "reset", GNOME_KEYS, "custom-keybindings"])  # noqa: E731
    elif name == "plasma":
        action = (str(len(FOREIGN_OF_KDE)), *FOREIGN_OF_KDE)
        ask_kde(session, "doRegister", "as", *action)
        ask_kde(session, "setShortcut", "asaiu", *action, "1", str(QT_KEY), str(SET_PRESENT | NO_AUTOLOADING))
        undo = lambda: ask_kde(session, "unregister", "ss", *FOREIGN_OF_KDE[:2])  # noqa: E731
    else:
        undo = grab(session)
    time.sleep(1)
    try:
        yield
    finally:
        undo()
        time.sleep(1)


def grab(session):
    from Xlib import XK, X, display

    os.environ["XAUTHORITY"] = str(session.folder / "authority")
    other = display.Display(session.display)
    code = other.keysym_to_keycode(XK.string_to_keysym("minus"))
    other.screen().root.grab_key(code, X.ControlMask | X.Mod1Mask, False, X.GrabModeAsync, X.GrabModeAsync)
    other.sync()
    return other.close


@contextlib.contextmanager
def recorder_ended(session):
    processes.end({session.recorder.pid})
    try:
        yield
    finally:
        if session.recorder.poll() is not None:
            start_recorder(session)


def start_recorder(session):
    """Starts a recorder without the socket of the previous one, so that it is known when it answers."""
    for path in (session.folder / "state").rglob("*.sock"):
        path.unlink()
    session.start_recorder()


@contextlib.contextmanager
def recorder_restarted(session):
    """Replaces the recorder that the agent knows."""
    processes.end({session.recorder.pid})
    start_recorder(session)
    yield


@contextlib.contextmanager
def recorder_stopped(session):
    """Stops the process, as with a hanging disk."""
    os.kill(session.recorder.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(session.recorder.pid, signal.SIGCONT)
        time.sleep(1)


def as_root(session, words):
    words = [session.tipme, *words, "--state-dir", session.folder / "state"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    session.say(f"{words}: {done.returncode} {done.stdout} {done.stderr}")
    return done.stdout + done.stderr


def asked(begin, end):
    """Returns a breakage by a command of root, and the command that undoes it."""

    @contextlib.contextmanager
    def broken(session):
        as_root(session, begin)
        try:
            yield
        finally:
            as_root(session, end)

    return broken


@contextlib.contextmanager
def agent_ended(session):
    processes.end({session.agent()})
    yield


@contextlib.contextmanager
def no_server(session):
    """Ends the server, and keeps the bus from starting one. Plasma's service only waits for its shell."""
    services = session.folder / "services"
    named = [file for file in services.iterdir() if f"Name={bus.NOTIFICATIONS}\n" in file.read_text()]
    named = [] if session.desktop.serves else named
    for file in named:
        file.rename(session.folder / file.name)
    reload_bus(session)
    end_server(session)
    try:
        yield
    finally:
        for file in named:
            (session.folder / file.name).rename(file)
        reload_bus(session)
        serve(session)


@contextlib.contextmanager
def server_dies(session):
    """Ends the server after the first notification of a press."""
    kept, died = session.ear.take, []

    def take(at, said):
        kept(at, said)
        if said.get("member") == "Notify" and not died and session.ear.shown[-1].summary.startswith(hitch.CAPTURED):
            died.append(at)
            end_server(session)
            threading.Timer(SERVED_AFTER_S, serve, (session,)).start()

    session.ear.take = take
    try:
        yield
    finally:
        session.ear.take = kept


def end_server(session):
    if pid := owner(session, bus.NOTIFICATIONS):
        processes.send(pid, signal.SIGKILL)
        time.sleep(0.1)


def serve(session):
    """Starts a server that no bus starts, as the session would."""
    if session.desktop.serves and not owner(session, bus.NOTIFICATIONS):
        session.start("server-again", session.desktop.serves)
        until(lambda: owner(session, bus.NOTIFICATIONS), "the notification server did not start", 20, 0.5)


def reload_bus(session):
    ask_bus(session, "ReloadConfig")
    time.sleep(0.5)
