# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of sessions under Wayland: calm ones, and faults from life."""

from .life import HOGGED, STOPPED, STOPPED_HELPER, STOPPED_OWNER, WAITS
from .scenarios import Scenario

SHELL = ("typing", "selecting", "scrolling", "clicking", "typing", "hovering")
TEXT = ("typing", "erasing", "clicking", "scrolling", "typing", "hovering", "typing")

# What suffers where the file system in user space does not answer.
REMOTE = (("stopped peer-wait", "helper sender driver"),)
THROTTLED = (("cpu-throttled", "any"),)
FROZEN = (("stopped", "any"),)
FROZEN_SERVER = (("stopped", "server"),)
TRACED = (("stopped", "program debugger"),)
TRACED_SERVER = (("stopped", "server debugger"),)
LOCKED = (("lock-wait", "helper driver"),)
COMPUTES = (("own-computation", "program"),)

CALM = (
    # program, compositor, acts
    ("foot", "sway", SHELL),
    ("foot", "mutter", SHELL),
    ("kwrite", "sway", TEXT),
    ("qterminal", "sway", SHELL),
    ("qterminal", "kwin_wayland", SHELL),
    ("gnome-text-editor", "sway", TEXT),
    ("gnome-text-editor", "mutter", TEXT),
    ("gnome-text-editor", "kwin_wayland", TEXT),
    ("featherpad", "sway", TEXT),
    ("featherpad", "mutter", TEXT),
    ("featherpad", "kwin_wayland", TEXT),
    ("kwrite", "mutter", TEXT),
    ("kwrite", "kwin_wayland", TEXT),
    ("chromium", "sway", TEXT),
    ("chromium", "mutter", TEXT),
    ("chromium", "kwin_wayland", TEXT),
    ("restless", "sway", TEXT),
    ("restless", "mutter", TEXT),
)

# Title: program, compositor, fault, acts, truth, accepted causes.
FAULTS = {
    # Stopped programs and compositors.
    "wl-stopped-foot": ("foot", "sway", "stop program", ("key x",), "first", STOPPED),
    "wl-stopped-gnome-text-editor": ("gnome-text-editor", "mutter", "stop program", ("key x",), "first", STOPPED),
    "wl-stopped-featherpad": ("featherpad", "kwin_wayland", "stop program", ("key x", "key y"), "first", STOPPED),
    "wl-stopped-restless": ("restless", "sway", "stop program", ("key x",), "first", STOPPED),
    "wl-stopped-kwrite": ("kwrite", "mutter", "stop program", ("key x",), "first", STOPPED),
    "wl-stopped-chromium": ("chromium", "sway", "stop program", ("key x",), "first", STOPPED),
    "wl-stopped-chromium-kwin": ("chromium", "kwin_wayland", "stop program", ("key x",), "first", STOPPED),
    "wl-stopped-shell": ("foot", "sway", "stop program/bash", ("key x",), "first", STOPPED_HELPER),
    "wl-stopped-sway": ("foot", "sway", "stop server", ("key x",), "first", STOPPED),
    "wl-stopped-sway-editor": ("gnome-text-editor", "sway", "stop server", ("key x",), "first", STOPPED),
    "wl-stopped-kwin": ("featherpad", "kwin_wayland", "stop server", ("key x",), "first", STOPPED),
    "wl-stopped-owner": ("gnome-text-editor", "sway", "selection clipboard", ("key ctrl+v",), "after", STOPPED_OWNER),
    "wl-stopped-owner-foot": ("foot", "sway", "selection clipboard", ("key ctrl+shift+v",), "after", STOPPED_OWNER),
    "wl-stopped-owner-qt": ("featherpad", "sway", "selection clipboard", ("key ctrl+v", "key x"), "first", STOPPED_OWNER),
    "wl-freeze-foot": ("foot", "sway", "freeze program unified", ("key x",), "first", FROZEN),
    "wl-freeze-sway": ("foot", "sway", "freeze server", ("key x",), "first", FROZEN_SERVER),
    "wl-freeze-sway-unified": ("gnome-text-editor", "sway", "freeze server unified", ("key x",), "first", FROZEN_SERVER),
    "wl-freeze-sway-lasts": ("foot", "sway", "freeze server unified", ("key x",), "mark", FROZEN_SERVER),
    "wl-traced-foot": ("foot", "sway", "traced", ("key x",), "first", TRACED),
    "wl-traced-editor": ("gnome-text-editor", "mutter", "traced", ("key x",), "first", TRACED),
    "wl-traced-sway": ("foot", "sway", "traced server", ("key x",), "first", TRACED_SERVER),
    "wl-traced-foot-lasts": ("foot", "sway", "traced", ("key x",), "mark", TRACED),
    "wl-freeze-kwrite": ("kwrite", "kwin_wayland", "freeze", ("key x",), "first", FROZEN),
    # Compositors without a CPU, and blocked.
    "wl-starved-sway": ("foot", "sway", "starved fifo 1", ("write abc",), "slowest", HOGGED),
    "wl-starved-sway-editor": ("gnome-text-editor", "sway", "starved fifo 1", ("write abc",), "slowest", HOGGED),
    "wl-starved-sway-shell": ("foot", "sway", "starved urgent 4", ("write abcdef",), "slowest", HOGGED),
    "wl-starved-kwin": ("featherpad", "kwin_wayland", "starved fifo 1", ("write abc",), "slowest", HOGGED),
    "wl-blocked-sway": ("foot", "sway", "settings", ("key x",), "first", REMOTE),
    "wl-blocked-sway-editor": ("featherpad", "sway", "settings", ("key x",), "first", REMOTE),
    # What commands wait for.
    "wl-flock": ("foot", "sway", "held flock", ("command flock lock echo done",), "last", WAITS),
    "wl-flock-mutter": ("foot", "mutter", "held flock", ("command flock lock echo done",), "last", WAITS),
    "wl-fifo-qterminal": ("qterminal", "kwin_wayland", "held fifo", ("command cat fifo",), "last", WAITS),
    "wl-sqlite": ("foot", "mutter", "held sqlite",
                  ("command sqlite3 -cmd '.timeout 9000' data.db 'select * from t'",), "last", WAITS),
    "wl-tcp-late": ("foot", "sway", "held tcp", ("command curl -s http://127.0.0.1:{port}/",), "last",
                    (("network-wait peer-wait", "helper driver ~127.0.0.1"),)),
    "wl-remote-ls": ("foot", "mutter", "remote", ("command ls remote",), "last", REMOTE),
    "wl-disk-fsync": ("foot", "sway", "disk",
                      ("command dd if=/dev/zero of=disk/note bs=4k count=1 conv=fsync status=none",), "last",
                      (("fsync disk-queue", "helper ~nightly-backup ~loop"),)),
    "wl-flock-bound": ("foot", "sway", "held flock", ("write bind -x '\"\\C-t\": flock lock echo done'", "key Return", "*key ctrl+t"),
                       "after", LOCKED),
    "wl-flock-completion": ("foot", "sway", "held flock", ("write complete -C 'flock lock echo done' that", "key Return",
                            "write that ", "*key Tab"), "first", LOCKED),
    "wl-flock-click": ("panel", "sway", "held flock", ("click 0.25 0.95",), "after", LOCKED),
    "wl-flock-thread": ("panel", "sway", "held flock", ("click 0.75 0.95",), "after", LOCKED),
    "wl-flock-click-qt": ("dial", "sway", "held flock", ("click 0.25 0.92",), "after", LOCKED),
    "wl-flock-thread-qt": ("dial", "sway", "held flock", ("click 0.75 0.92",), "after", LOCKED),
    # A button that is pressed by its key acts by a timer only: no input is late.
    "wl-flock-key-mutter": ("panel", "mutter", "held flock", ("key alt+l",), "still", LOCKED),
    "wl-flock-key-sway": ("panel", "sway", "held flock", ("key alt+l",), "still", LOCKED),
    "wl-flock-key-kwin": ("dial", "kwin_wayland", "held flock", ("key alt+l",), "still", LOCKED),
    "wl-flock-thread-mutter": ("panel", "mutter", "held flock", ("key alt+t",), "still", LOCKED),
    "wl-flock-thread-kwin": ("dial", "kwin_wayland", "held flock", ("key alt+t",), "still", LOCKED),
    "wl-flock-thread-lasts": ("panel", "sway", "held flock", ("click 0.75 0.95",), "mark", LOCKED),
    # Others on the CPUs, and programs that compute.
    "wl-hog-fifo": ("foot", "sway", "hogs fifo 2", ("write abc",), "slowest", HOGGED),
    "wl-hog-fifo-restless": ("restless", "sway", "hogs fifo 2", ("write abc",), "slowest", HOGGED),
    "wl-hog-fifo-editor": ("gnome-text-editor", "sway", "hogs fifo 2", ("write abc",), "slowest", HOGGED),
    "wl-quota": ("gnome-text-editor", "sway", "quota", ("write abcdef",), "slowest", THROTTLED),
    "wl-quota-sway": ("foot", "sway", "quota server", ("write abcdef",), "letters", THROTTLED),
    "wl-quota-featherpad": ("featherpad", "kwin_wayland", "quota", ("write abcdef",), "slowest", THROTTLED),
    "wl-restless-computes": ("restless", "sway", "own 2", ("key F8",), "after", COMPUTES),
    "wl-vim-system": ("foot-vim", "sway", "own 2", ("key Escape", "write :call system('sleep 2')", "*key Return"), "after",
                      (("child-wait", "program ~sleep"),)),
    "wl-chromium-script": ("chromium", "sway", "own 2", ("key F8",), "after:bottom", COMPUTES),
    "wl-chromium-asks": ("chromium", "sway", "held tcp", ("key F9",), "after:bottom",
                         (("network-wait peer-wait", "helper driver ~127.0.0.1"),)),
}  # fmt: skip

SCENARIOS = (
    *(Scenario(program, manager, acts=acts) for program, manager, acts in CALM),
    *(
        Scenario(program, manager, acts=acts, fault=fault, accept=accept, truth=truth, title=title)
        for title, (program, manager, fault, acts, truth, accept) in FAULTS.items()
    ),
)
