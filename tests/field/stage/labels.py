# SPDX-License-Identifier: MIT OR Apache-2.0
"""Comparison of the decoded Wayland messages with the truth.

The truth is the log of the program's own library with WAYLAND_DEBUG=client: it has the names of
interfaces and messages from the protocol's XML, and knows the interface of each object. The
recorder starts before the program, or after it: then it has seen no object being created."""

import datetime
import subprocess
import time

from shared import machine

from . import acts, processes, programs
from .scenarios import TABLE, Scenario
from .wayland import debuglog, session

PAIRS = (
    ("foot", "sway"),
    ("foot", "mutter"),
    ("gnome-text-editor", "sway"),
    ("gnome-text-editor", "mutter"),
    ("kwrite", "kwin_wayland"),
    ("featherpad", "mutter"),
    ("chromium", "sway"),
    ("chromium", "mutter"),
)
NAMES = ("key pressed", "key released", "button pressed", "button released", "enter", "leave", "commit", "done", "presented")
# Maximum share of missing messages; none may be wrong.
MISSED_MAX = 0.01
# Maximum distance of a message and its label: the log has the time at which a request was made or
# an event was read. Messages this close to the start or the end of the recording may be on either
# side of it.
APART_NS, EDGE_NS = 1_000_000_000, 50_000_000


class Session(session.Session):
    """A session with a program that logs its messages on every compositor."""

    copied = False

    def record_options(self):
        # Longer than a session.
        return (*super().record_options(), "--window", "120")

    def __init__(self, scenario, tipme, after):
        super().__init__(scenario, tipme)
        self.after = after

    def open(self):
        self.make_folders()
        self.start_display()
        if not self.after:
            self.start_recorder()
        self.start_input()
        programs.start(self)
        if self.after:
            self.start_recorder()

    def start_recorder(self):
        super().start_recorder()
        while not (line := self.recorder.stdout.readline()).startswith("recording"):
            if not line:
                raise processes.CannotRun("the recorder did not begin")
        self.begin_ns = processes.now_ns()

    def cover(self):
        """Lets another window take the focus, and give it back."""
        other = self.start("beside", ["qterminal"])
        time.sleep(4)
        processes.end({other.pid})
        time.sleep(1)


def logged(path):
    """Returns the library's log: (ns, name), by time."""
    frames, found = set(), []
    for line in path.read_text(errors="replace").splitlines():
        match = debuglog.LINE.search(line)
        if not match:
            continue
        stamp, sent, interface, number, message, arguments = match.groups()
        if (interface, message) == ("wl_surface", "frame"):
            frames.add(debuglog.NEW.search(arguments).group(1))
        name = name_of(interface, message, arguments, sent, number in frames)
        if name == "done":
            frames.discard(number)
        if name:
            found.append((processes.now_ns() - debuglog.age_us(stamp) * 1000, name))
    return found


def name_of(interface, message, arguments, sent, is_frame):
    """Returns the words for a message; nothing for other kinds."""
    if (interface, message) in (("wl_keyboard", "key"), ("wl_pointer", "button")):
        word = "key" if interface == "wl_keyboard" else "button"
        return f"{word} {'released' if arguments.endswith(' 0') else 'pressed'}"
    if interface == "wl_keyboard" and message in ("enter", "leave"):
        return message
    if (interface, message) == ("wl_surface", "commit") and sent:
        return "commit"
    if (interface, message) == ("wl_callback", "done") and is_frame:
        return "done"
    return "presented" if (interface, message) == ("wp_presentation_feedback", "presented") else None


def labelled(options, incident, pids):
    """Returns the decoded messages of some processes: (ns, name), by time."""
    tool = options.tipme.parent / "examples/message-labels"
    if not tool.exists():
        raise processes.CannotRun(f"there is no {tool}: cargo build -p tipme-tests --example message-labels")
    lines = subprocess.run([tool, incident], capture_output=True, text=True, check=True).stdout.splitlines()
    found = (line.split(" ", 2) for line in lines)
    return [(int(at), name.rstrip("*")) for at, pid, name in found if int(pid) in pids]


def compare(true, said, begin, end):
    """Counts the messages of `true`, those of them that are missing, and the wrong ones of
    `said`, by pairing them in order of time."""
    true, said = ([at for at in times if begin <= at <= end] for times in (true, said))
    inner = range(begin + EDGE_NS, end - EDGE_NS)
    paired = missed = wrong = 0
    while true and said:
        if abs(true[0] - said[0]) <= APART_NS:
            true.pop(0), said.pop(0)
            paired += 1
        elif true[0] < said[0]:
            missed += true.pop(0) in inner
        else:
            wrong += said.pop(0) in inner
    missed += sum(at in inner for at in true)
    return paired + missed, missed, wrong + sum(at in inner for at in said)


def one(options, program, compositor, after):
    """Returns numbers of all, missing and wrong messages by name."""
    acts_of = "wayland-shell" if programs.PROGRAMS[program].shell else "wayland-text"
    scenario = Scenario(program, compositor, acts=tuple(TABLE["acts"][acts_of]))
    with Session(scenario, options.tipme, after) as opened:
        acts.perform(opened, scenario.acts)
        opened.cover()
        acts.perform(opened, ("typing",))
        opened.wait_quiet(5)
        end = opened.mark(opened.folder / "incident.tipme")
        pids = {opened.roles["program"]} | processes.descendants(opened.roles["program"])
        true = logged(opened.folder / "program.log")
        said = labelled(options, opened.folder / "incident.tipme", pids)
    times = lambda found, name: sorted(at for at, of in found if of == name)  # noqa: E731
    return {name: compare(times(true, name), times(said, name), opened.begin_ns, end) for name in NAMES}


def summed(counts):
    return [sum(column) for column in zip(*counts)]


def cell(counts):
    whole, missed, wrong = counts
    return f"{whole}" if not missed and not wrong else f"{whole} ({missed} missed, {wrong} wrong)"


def run(options):
    """Runs all pairs, each in both orders; returns True if few enough are missing and none is
    wrong."""
    rows = []
    chosen = [pair for pair in PAIRS if not options.only or any(word in " ".join(pair) for word in options.only.split(","))]
    for program, compositor in chosen:
        for after in (False, True):
            counts = one(options, program, compositor, after)
            rows.append((f"{program} on {compositor}", "after" if after else "before", counts))
            print(*rows[-1][:2], {name: cell(count) for name, count in counts.items() if count[0]}, flush=True)
    if options.out:
        write(options.out, rows)
    whole, missed, wrong = summed(count for row in rows for count in row[2].values())
    print(f"{whole} messages, {missed} missed, {wrong} wrong")
    return not wrong and missed <= MISSED_MAX * whole


HEAD = """# Labels of messages

Decoded Wayland messages, compared with the log of the program's own library, which has the names of the protocol's XML
(`tests/field`). The recorder starts before or after the program. Each cell has the number of
messages, and of missed and wrong ones, if any. Written by `make labels`.
"""


def write(path, rows):
    when = datetime.date.today().isoformat()
    lines = [HEAD, f"{when}, commit {machine.commit()}, {machine.processor()}.", ""]
    lines += ["| program | recorder | " + " | ".join(NAMES) + " |", "|---" * (len(NAMES) + 2) + "|"]
    lines += [f"| {title} | {order} | " + " | ".join(cell(counts[name]) for name in NAMES) + " |" for title, order, counts in rows]
    for order in ("before", "after"):
        whole, missed, wrong = summed(count for row in rows if row[1] == order for count in row[2].values())
        lines += ["", f"- recorder {order} the program: **{whole} messages, {missed} missed, {wrong} wrong**"]
    path.write_text("\n".join(lines) + "\n")
