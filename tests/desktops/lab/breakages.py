# SPDX-License-Identifier: MIT OR Apache-2.0
"""Breakages: tipme's messages while one part of a session is broken, and whether its remedy, followed literally, repairs it."""

import contextlib
import dataclasses
import re
import time

from shared import until
from stage import processes
from stage.windows import Windows
from Xlib import error

from . import beside, breaking, hitch

ALL = ("xfce", "mate", "cinnamon", "plasma-x11", "plasma", "sway", "gnome")
# Cinnamon and GNOME have no session without their shell, which is the notification server.
WITH_SERVER = ("xfce", "mate", "plasma-x11", "plasma", "sway")
# A bus has one GNOME Shell.
WITH_SECOND = tuple(name for name in ALL if name != "gnome")
# Maximum time until a message on a press, and until the effect of a remedy, in seconds.
SAID_MAX_S, MENDED_MAX_S = 10, 12
STEPS_MAX = 3
# Time for the answer of an earlier press, during whose mark another one may be refused.
ANSWER_S = 2
COMMAND = re.compile(r"(?:sudo )?tipme (?:setup|agent|resume|record|status)\b(?: --?[\w-]+(?: [A-Z]+)?| &)*")
# Messages before the answer.
PASSING = ("Captured", "The recorder does not answer yet")
FREE_KEY = "ctrl+alt+F9"


@dataclasses.dataclass(frozen=True)
class Breakage:
    name: str
    broken: object
    on: tuple = ALL
    # Without agent and key before: setup comes first, then a press.
    fresh: bool = False
    # Actions by hand: the words that ask for one, and the action.
    by_hand: tuple = ()
    # Cannot be repaired, but a press is answered nevertheless.
    answered: bool = False
    # A press marks, although the verdict cannot find its cause.
    marks: bool = False


def bind_by_hand(session, text):
    """Binds the named command in the desktop's own configuration."""
    command = re.search(r"this command: (.+? --press mark)", text).group(1)
    socket = max((session.folder / "run").glob("sway-ipc.*"))
    session.run(["swaymsg", "-s", socket, "--", f"bindsym {breaking.CHORD_OF_SWAY} exec {command}"])
    if "press it" in text:
        session.input.key(hitch.KEY)


def choose_in_kde(session, _):
    """Chooses a free key, as System Settings do."""
    action = ("4", "tipme.desktop", "_launch", "", "")
    breaking.ask_kde(session, "setForeignShortcut", "asai", *action, "1", str(breaking.QT_FREE_KEY))


BY_HAND = (("in the settings of the desktop to this command", bind_by_hand), ("in System Settings", choose_in_kde))
WRITABLE = (("writable|Permission denied|read-only", lambda session, _: breaking.make_writable(session)),)
WAIT = (("in a minute", lambda _, __: time.sleep(beside.SILENT_S)),)
CONTINUE = ((r"check whether it hangs", lambda session, _: processes.send(session.recorder.pid, 18)),)

BREAKAGES = (
    Breakage("portal refuses", beside.portal("refuse"), fresh=True, by_hand=BY_HAND),
    Breakage("portal silent for 25 s", beside.portal("silent", beside.SILENT_S), fresh=True, by_hand=WAIT + BY_HAND),
    Breakage("settings read-only", breaking.settings_read_only, fresh=True, by_hand=WRITABLE),
    Breakage("key taken by another program", breaking.key_taken, fresh=True, by_hand=BY_HAND),
    Breakage("recorder ended", breaking.recorder_ended),
    Breakage("recorder restarted", breaking.recorder_restarted, answered=True),
    Breakage("recorder stands still", breaking.recorder_stopped, by_hand=CONTINUE),
    Breakage("recording paused", breaking.asked(["pause"], ["resume"])),
    Breakage("input paused", breaking.asked(["pause", "--input"], ["resume"]), marks=True),
    Breakage("agent ended", breaking.agent_ended),
    Breakage("no notification server", breaking.no_server, WITH_SERVER, answered=True),
    Breakage("notification server dies after \"captured\"", breaking.server_dies, WITH_SERVER, answered=True),
    Breakage("second session of the same user", beside.second_session, WITH_SECOND),
)  # fmt: skip


def do(session, results, only):
    """Tests the breakages of the desktop, each from a repaired session."""
    for one in BREAKAGES:
        if session.desktop.name in one.on and (not only or one.name in only):
            session.ask("setup", *(["--undo"] if one.fresh else []), "--yes")
            row = Trial(session, one).run()
            results.write_breakage(row)
            session.ask("setup", *(["--undo"] if one.fresh else []), "--yes")
            results.met(session, one.name, not row["wrong"], "; ".join(row["wrong"]) or row["status"])
            session.clear()


class Trial:
    def __init__(self, session, one):
        self.session, self.one, self.wrong, self.seen, self.begin_ns = session, one, [], set(), processes.now_ns()
        self.windows = session.windows
        if not self.windows and "Xwayland" in map(processes.comm, processes.descendants()):
            self.windows = Windows(session.env["DISPLAY"], session.env["XAUTHORITY"])

    def run(self):
        row = {"breakage": self.one.name}
        if self.one.fresh:
            with self.one.broken(self.session):
                row |= {"setup": shorten(self.session.ask("setup", "--yes")[1])} | self.state()
                row |= {"agent": self.of_agent(), **self.press(row["status"])}
                self.judge(row)
                row["mended"] = self.mend(row["setup"] + "\n" + row["status"])
        else:
            with self.one.broken(self.session):
                row |= self.press(self.first("status") if self.one.answered else "") | self.state()
                row["agent"] = self.of_agent()
                self.judge(row)
                row["mended"] = self.mend(row["status"])
            self.session.ask("setup", "--yes")
            time.sleep(ANSWER_S)
            with self.one.broken(self.session):
                row["setup"] = shorten(self.session.ask("setup", "--yes")[1])
                self.mend(row["setup"] + "\n" + self.first("status"))
        return row | {"wrong": self.wrong}

    def first(self, verb):
        said = self.session.ask(verb)[1]
        # A headline may be wrapped.
        return " ".join(said.split("\n\n")[0].split("\nrecording ")[0].split())

    def state(self):
        status, doctor = self.first("status"), self.first("doctor")
        doctor = re.split(r" (?=Nothing |Without these)", doctor)[0]
        if not status.startswith(doctor) and not doctor.startswith(status):
            self.wrong.append(f"doctor says otherwise: {doctor}")
        return {"status": status, "doctor": doctor}

    def of_agent(self):
        """Returns the agent's own notifications, which have no buttons and are not about a press."""
        notes = [note for note in self.session.ear.shown if note.ns >= self.begin_ns and not note.actions]
        return [f"{note.summary}: {note.body}" for note in notes if not note.summary.startswith((*hitch.CAPTURED, "The mark"))]

    def press(self, status):
        """Presses the key from the status, or the usual one; returns the number of incidents and all messages."""
        key = re.match(r"Ready: yes, ([\w+]+) marks", status)
        session, incidents = self.session, self.session.folder / "state/incidents"
        time.sleep(ANSWER_S)
        before, begin = set(incidents.glob("*.tipme")), processes.now_ns()
        old = set(self.popups())
        session.input.key(key.group(1).lower() if key else hitch.KEY)
        limit, said = time.monotonic() + SAID_MAX_S, []
        while time.monotonic() < limit:
            shown = [f"{note.summary}: {note.body}" for note in list(session.ear.shown) if note.ns >= begin]
            said = shown + [f"popup: {text}" for text in self.popups() if text not in old]
            marked = len(set(incidents.glob("*.tipme")) - before)
            failed = any("The mark failed" in text for text in said)
            if failed or marked and not all(any(word in text for word in PASSING) for text in said):
                break
            time.sleep(0.3)
        return {"press": [" ".join(text.split()) for text in said] or ["nothing"], "marked": marked}

    def popups(self):
        """Returns the texts of tipme's windows on an X display, if the session has one."""
        windows, texts = self.windows, []
        if not windows:
            return []
        name = windows.display.intern_atom("_NET_WM_NAME")
        for window in windows.root.query_tree().children:
            with contextlib.suppress(error.XError):  # a closed window
                texts.append(window.get_full_text_property(name) or "")
        return [text for text in texts if "A click closes this" in text]

    def judge(self, row):
        """Checks that the status is right about presses, and that a verdict was shown."""
        ready = row["status"].startswith("Ready: yes")
        if (ready or self.one.marks) != (row["marked"] == 1):
            self.wrong.append(f"\"{row['status'][:10]}\", and a press made {row['marked']} incidents")
        elsewhere = "read the answer with: tipme diagnose" in row["status"]
        if ready and not elsewhere and all(text == "nothing" or text.startswith(PASSING) for text in row["press"]):
            self.wrong.append("no verdict is shown")
        if not ready and len(set(COMMAND.findall(row["status"]))) > 1:
            self.wrong.append("more than one remedy")

    def mend(self, text, step=1):
        """Follows the remedy of a text, then that of its output, and so on; returns the remedies or the failure."""
        if self.is_ready(0):
            return "ready as it is"
        action, remedy = self.remedy(text)
        if not remedy:
            self.wrong.append(f"dead end: no remedy in: {text[-200:]}")
            return "dead end"
        if remedy in self.seen or step > STEPS_MAX:
            self.wrong.append(f"circle: {remedy} again")
            return "circle"
        self.seen.add(remedy)
        said = action() or ""
        if self.is_ready(MENDED_MAX_S if step == STEPS_MAX else 4):
            self.seen.discard(remedy)
            return remedy
        return f"{remedy}, " + self.mend(said + "\n" + self.first("status"), step + 1)

    def is_ready(self, timeout_s):
        return until(lambda: self.first("status").startswith("Ready: yes"), None, timeout_s, 0.5)

    def remedy(self, text):
        for words, action in self.one.by_hand:
            if (found := re.search(words, text)) and found.group(0) not in self.seen:
                return lambda: action(self.session, text), found.group(0)
        commands = [one.strip() for one in COMMAND.findall(text)]
        fresh = [one for one in commands if one not in self.seen] or commands
        return (lambda: self.follow(fresh[0]), fresh[0]) if fresh else (None, None)

    def follow(self, command):
        """Runs a command literally, except for a free key as KEY and the folder of this test."""
        session = self.session
        words = command.replace("KEY", FREE_KEY).split()
        if words[:3] == ["sudo", "tipme", "record"]:
            return breaking.start_recorder(session)
        if words[0] == "sudo":
            return breaking.as_root(session, words[2:])
        if words[1] == "agent":
            session.start("by-hand", [session.tipme, *words[1:][: -1 if words[-1] == "&" else None], "--state-dir", session.folder / "state"])
            time.sleep(2)
            return (session.folder / "by-hand.log").read_text()[-400:]
        return session.ask(*words[1:], *(["--yes"] if words[1] == "setup" else []))[1]


def shorten(said):
    """Removes lines on successful steps, and paths of incidents."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(("already", "to do", "done"))]
    return re.sub(r"\s+", " ", re.sub(r"/\S+/incidents/\S+", "an incident", " / ".join(lines)))
