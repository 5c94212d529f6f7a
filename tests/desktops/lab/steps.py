# SPDX-License-Identifier: MIT OR Apache-2.0
"""Steps of a user: setup, a hitch, the hot key, its banner and actions, logout, login, and a second press."""

import time

from shared import until

from . import hitch

BANNER_MAX_MS = 2000
AGENT_END_MAX_S, AGENT_COME_MAX_S = 5, 20
# A compositor that renders on the CPU may need seconds to copy a text.
COPIED_MAX_S = 10


def do(session, results):
    """Runs all steps of one desktop; returns its first banner, or None. If a banner closes after an action, each action gets a
    hitch of its own."""
    banner = begin(session, results)
    if not banner or not banner.note:
        return None
    in_time(session, results, banner, "banner")
    now = banner
    for action in (copy, reject, details):
        if session.desktop.hovered and action is not copy:
            hitch.stop_program(session)
            now = hitch.press(session)
        action(session, results, now)
    leave(session, results)
    back(session, results)
    session.open_program()
    hitch.work(session)
    again = answer(session, results, "banner after login")
    in_time(session, results, again, "banner after login")
    undo(session, results)
    return banner


def do_short(session, results):
    """Runs the steps from login to the first banner, and undo."""
    banner = begin(session, results)
    undo(session, results)
    return banner


def begin(session, results):
    """Runs the steps from login to the first banner, which it returns; None if setup failed."""
    results.met(session, "login", True, f"{' '.join(session.desktop.session)}: {', '.join(session.desktop.parts)} run")
    recorder(session, results)
    if not setup(session, results):
        return None
    session.open_program()
    hitch.work(session)
    return answer(session, results, "banner")


def recorder(session, results):
    code, said = session.ask("status")
    line = next((line for line in said.splitlines() if line.startswith("recording")), said)
    results.met(session, "recorder", "since" in line, line)
    return code


def setup(session, results):
    code, said = session.ask("setup", "--yes")
    met = code == 0 and "A test press marked" in said and "Ready: yes" in said
    results.met(session, "setup", met, said)
    _, doctor = session.ask("doctor")
    results.met(session, "doctor", doctor.startswith("Ready: yes"), doctor.splitlines()[0] if doctor else "nothing")
    return met


def answer(session, results, step):
    """Checks that a banner after hitch and key names the program and the cause."""
    hitch.stop_program(session)
    banner = hitch.press(session)
    met = banner.note and banner.screen_ms is not None and banner.place
    names = met and any(word in banner.note.summary + banner.note.body for word in session.names())
    results.met(session, step, names and "stopped" in banner.note.body, banner.words())
    return banner


def in_time(session, results, banner, step):
    slow = banner.screen_ms is None or banner.screen_ms > BANNER_MAX_MS
    results.met(session, f"{step} in time", not slow, f"press to banner {banner.screen_ms or -1:.0f} ms (bar {BANNER_MAX_MS} ms)")


def copy(session, results, banner):
    """Checks *Copy* by a paste into the program."""
    begin = session.act(banner, "copy")
    copied = session.ear.wait(begin, ("Copied",), COPIED_MAX_S) if begin else None
    detail = f"after {hitch.ms(copied.ns, begin):.0f} ms: {copied.body}" if copied else "no confirmation"
    results.met(session, "copy", copied, detail)
    text = session.pasted()
    summary = banner.note.summary.split(";")[0]
    results.met(session, "paste", summary[:20] in text and len(text) > len(summary), text[-160:] or "nothing")
    if copied:
        session.dismiss(copied)


def reject(session, results, banner):
    """Checks that *Not this* is stored and counted."""
    begin = session.act(banner, "wrong")
    kept = session.ear.wait(begin, ("Noted",), 5) if begin else None
    _, said = session.ask("incidents", "--json")
    met = kept and "something else" in kept.summary and '"user_right":false' in said.replace(" ", "")
    results.met(session, "not this", met, kept.summary if kept else "nothing was kept")


def details(session, results, banner):
    """Checks that a click on the notification, or its button, opens the page."""
    opened = session.folder / "home/opened"
    session.act(banner, session.desktop.opens)
    until(opened.exists, None, 8, 0.1)
    time.sleep(0.3)
    page = opened.read_text().strip() if opened.exists() else "no page was opened"
    results.met(session, "details", page.endswith(".html"), page)


def leave(session, results):
    """Checks the logout, with the text saved, since the program would otherwise ask for it at the next start."""
    session.focus()
    session.input.key(session.desktop.save)
    time.sleep(0.5)
    agent = session.agent()
    took = session.log_out()
    ended = until(lambda: not session.agent(), None, AGENT_END_MAX_S, 0.1) and agent
    detail = f"the session ended after {took:.1f} s" if took is not None else "the session did not end"
    results.met(session, "logout", took is not None and ended, f"{detail}; agent {agent} {'ended' if ended else 'is still there'}")
    session.end_rest()


def back(session, results):
    session.log_in()
    until(session.agent, None, AGENT_COME_MAX_S, 0.1)
    time.sleep(1)
    _, said = session.ask("status")
    results.met(session, "login again", session.agent() and said.startswith("Ready: yes"), said.splitlines()[0] if said else "nothing")


def undo(session, results):
    code, said = session.ask("setup", "--undo", "--yes")
    results.met(session, "undo", code == 0 and not session.agent(), said)
