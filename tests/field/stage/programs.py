# SPDX-License-Identifier: MIT OR Apache-2.0
"""Unmodified programs: how each is started, and by what its window is known."""

import dataclasses
import os
import pathlib
import time

from . import processes


@dataclasses.dataclass(frozen=True)
class Program:
    words: tuple
    window: str
    # Where a click is harmless, and gives the text the focus: shares of the window, or pixels.
    body: tuple = (0.5, 0.6)
    # A chord that opens a menu, and where a click opens one.
    menu: str = ""
    menu_at: tuple = ()
    # Keys before anything else, such as i in vim.
    prelude: str = ""
    # Seconds to wait after its window is there.
    settle_s: float = 0.5
    # The caret or something else changes by itself.
    blinks: bool = True
    # Return starts a command.
    shell: bool = False
    # So long after a button was pressed by its key its toolkit clicks it: GTK 4's ACTIVATE_TIMEOUT, QAbstractButton::animateClick.
    acts_after_ms: int = 0
    # What precedes a fault.
    usual: tuple = ("typing", "clicking", "typing", "typing")


VICTIMS = pathlib.Path(__file__).resolve().parent.parent / "victims"
FOX = """user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("app.update.enabled", false);
user_pref("termsofuse.bypassNotification", true);
"""
XTERM = ("xterm", "-geometry", "84x28+40+40", "-fa", "Monospace", "-fs", "10", "-e")
BASH = ("bash", "--norc", "-i")
RC = ("bash", "--rcfile", "{home}/rc", "-i")
TERMINAL = {"blinks": False, "shell": True}
MENUS = {"menu": "alt+f", "menu_at": (20, 12)}
PAGES = {"usual": ("paging", "paging"), "blinks": False}
FILES = {"usual": ("paging", "clicking", "paging"), "blinks": False}
EMACS = ("emacs", "-q", "--no-splash", "-g", "80x30+60+60")
PROFILE = "--user-data-dir={home}/profile"
CHROMIUM = ("chromium", "--no-first-run", "--no-default-browser-check", "--window-size=900,600", "--window-position=60,60",
            "--password-store=basic", PROFILE, "file://{home}/page.html")  # fmt: skip

PROGRAMS = {
    "foot": Program(("foot", *BASH), "foot", **TERMINAL),
    "foot-vim": Program(("foot", "vim", "-u", "NONE", "--not-a-term"), "foot", blinks=False, prelude="iab"),
    "kwrite": Program(("kwrite", "{home}/note.txt"), "kwrite", settle_s=3),
    "xterm": Program((*XTERM, *BASH), "^xterm", **TERMINAL),
    "xterm-rc": Program((*XTERM, *RC), "^xterm", **TERMINAL),
    "xterm-fish": Program((*XTERM, "fish"), "^xterm", settle_s=1, **TERMINAL),
    "foot-rc": Program(("foot", *RC), "foot", **TERMINAL),
    "xterm-history": Program((*XTERM, "env", "HISTFILE={home}/remote/letter", "PROMPT_COMMAND=history -a", *BASH), "^xterm", **TERMINAL),
    "xterm-filter": Program((*XTERM, "env", "LESSOPEN=|colourise %s", "less", "/etc/services", "one.log"), "^xterm", **PAGES),
    "xterm-less": Program((*XTERM, "less", "/etc/services"), "^xterm", **PAGES),
    "xterm-vim": Program((*XTERM, "vim", "-u", "NONE", "--not-a-term"), "^xterm", blinks=False, prelude="iab"),
    "tmux": Program((*XTERM, "tmux", "-f", "/dev/null", "new-session", *BASH), "^xterm", settle_s=1, **TERMINAL),
    "tmux-rc": Program((*XTERM, "tmux", "-f", "/dev/null", "new-session"), "^xterm", settle_s=1, **TERMINAL),
    "tmux-vim": Program((*XTERM, "tmux", "-f", "/dev/null", "new-session", "vim -u NONE -n"), "^xterm", blinks=False,
                        prelude="iab", settle_s=1),
    "xfce4-terminal": Program(("xfce4-terminal", "--disable-server"), "xfce4-terminal", settle_s=1, **TERMINAL),
    "screen": Program((*XTERM, "screen", "-c", "/dev/null", *BASH), "^xterm", settle_s=1, **TERMINAL),
    "qterminal": Program(("qterminal", "-e", "bash --norc -i"), "qterminal", settle_s=2, **TERMINAL),
    "mousepad": Program(("mousepad",), "mousepad", **MENUS),
    "mousepad-ibus": Program(("sh", "-c", "ibus-daemon --panel disable & sleep 3; GTK_IM_MODULE=ibus exec mousepad"),
                             "mousepad", **MENUS),
    "featherpad": Program(("featherpad",), "featherpad", **MENUS),
    "gnome-text-editor": Program(("gnome-text-editor", "-s"), "text.editor", settle_s=2),
    "emacs": Program(EMACS, "emacs", settle_s=2, menu_at=(20, 8), body=(0.5, 0.5)),
    "gvim": Program(("gvim", "-u", "NONE", "-f", "-geometry", "80x28"), "gvim", prelude="iab", settle_s=1.5),
    "idle": Program(("idle", "-n"), "idle|shell", settle_s=2, menu_at=(20, -10)),
    "panel": Program(("/usr/bin/python3", "-B", "{home}/panel.py"), "panel", settle_s=2, body=(0.5, 0.3), acts_after_ms=250),
    "dial": Program(("/usr/bin/python3", "-B", "{home}/dial.py"), "dial", settle_s=2, body=(0.5, 0.3), acts_after_ms=100),
    "restless": Program(("/usr/bin/python3", "-B", "{home}/restless.py"), "restless", settle_s=3),
    "tk": Program(("/usr/bin/python3", "-B", "{home}/button.py"), "button", settle_s=1),
    "swing": Program(("java", "-cp", "{home}", "Button"), "Button", settle_s=3),
    "pcmanfm": Program(("pcmanfm", "--no-desktop", "/usr/share"), "pcmanfm", settle_s=2, **MENUS, **FILES),
    "thunar": Program(("thunar", "/usr/share"), "thunar", settle_s=2, **MENUS, **FILES),
    "chromium": Program(CHROMIUM, "chromium", settle_s=6, body=(0.5, 0.7)),
    "firefox": Program(("firefox-esr", "--no-remote", "--profile", "{home}/fox", "file://{home}/page.html"), "firefox",
                       settle_s=10, body=(0.5, 0.4)),
    "libreoffice": Program(("soffice", "--writer", "--norestore", "--nologo", "--nofirststartwizard"), "libreoffice.*writer",
                           settle_s=10, menu="alt+f"),
}  # fmt: skip


def start(session):
    """Starts the program, waits until its window can be seen, has the focus, and is quiet."""
    program = PROGRAMS[session.scenario.program]
    prepare(session)
    if session.scenario.beside:
        beside(session)
    words = [word.format(home=session.folder / "home") for word in program.words]
    start_victim(session, words)
    window = session.windows.wait_for(program.window, 60)
    if not window:
        raise processes.CannotRun(f"no window of {words[0]}: {(session.folder / 'program.log').read_text()[-300:]}")
    session.window = window
    time.sleep(program.settle_s)
    fit(session)
    focus(session, program)
    if program.prelude:
        session.input.write(program.prelude)
    if not session.wait_quiet():
        session.say("the screen did not become quiet")


def start_victim(session, words):
    """Where names are asked of a server of the test, the program sees another resolv.conf than everybody else."""
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
    """Another window, for alt-tab to have somewhere to go."""
    words = session.scenario.beside.split()
    session.start("beside", words)
    if not session.windows.wait_for(words[2] if words[1:2] == ["-name"] else words[0], 30):
        raise processes.CannotRun(f"no window of {session.scenario.beside}")


def prepare(session):
    """Files that some programs want in their home."""
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
    """Gives large windows a size at which all of their decoration is on the screen."""
    place = session.place()
    if place.width > 1000 or place.height > 660:
        session.windows.resize(session.window, min(place.width, 900), min(place.height, 600))
        time.sleep(0.5)
    session.screen.look_at(session.windows.frame(session.window))


def focus(session, program):
    """Puts the pointer into the window, and clicks there."""
    for _ in range(3):
        session.input.click(*session.place().at(*program.body))
        time.sleep(0.6)
        if session.windows.has_focus(session.window):
            return
    raise processes.CannotRun("the window did not get the focus")
