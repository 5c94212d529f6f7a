# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of faults from life."""

from .scenarios import Scenario

STOPPED = (("stopped", "stopped sender"),)
STOPPED_OWNER = (("stopped peer-wait", "stopped owner sender"),)
WAITS = (("lock-wait peer-wait network-wait", "helper"),)
HOGGED = (("cpu-competition", "hogs"),)

# Title: program, window manager, compositing manager, injector, fault, acts, truth, accepted causes, beside.
ROWS = {
    "stopped-mousepad": ("mousepad", "openbox", "none", "lasting", "stop program", ("key x", "key y"), "first", STOPPED, ""),
    "stopped-featherpad": ("featherpad", "xfwm4", "none", "passing", "stop program", ("key x",), "first", STOPPED, ""),
    "stopped-xterm": ("xterm", "openbox", "none", "passing", "stop program", ("key x",), "first", STOPPED, ""),
    "stopped-manager": ("xterm", "xfwm4", "none", "lasting", "stop manager", ("beside beside",), "first:screen", STOPPED,
                        "xterm -name beside -geometry 40x10+800+500"),
    "stopped-less": ("xterm-less", "openbox", "none", "lasting", "stop program/less", ("key Page_Down",), "first",
                     (("stopped peer-wait child-wait", "stopped sender"),), ""),
    "stopped-owner-xterm": ("xterm", "openbox", "none", "lasting", "selection primary", ("key shift+Insert",), "first",
                            STOPPED_OWNER, ""),
    "stopped-owner-mousepad": ("mousepad", "xfwm4", "none", "lasting", "selection clipboard", ("key ctrl+v",), "after",
                               STOPPED_OWNER, ""),
    "flock-command": ("xterm", "openbox", "none", "lasting", "held flock", ("command flock lock echo done",), "last", WAITS, ""),
    "sqlite-locked": ("xterm", "openbox", "none", "lasting", "held sqlite",
                      ("command sqlite3 -cmd '.timeout 9000' data.db 'select * from t'",), "last", WAITS, ""),
    "fifo-command": ("xterm", "xfwm4", "none", "passing", "held fifo", ("command cat fifo",), "last", WAITS, ""),
    "tcp-late": ("xterm", "openbox", "none", "lasting", "held tcp", ("command head -1 </dev/tcp/127.0.0.1/{said}",), "last",
                 (("network-wait peer-wait", "helper ~127.0.0.1"),), ""),
    "tcp-late-curl": ("xterm", "openbox", "none", "lasting", "held tcp", ("command curl -s http://127.0.0.1:{said}/",), "last",
                      (("network-wait peer-wait", "helper ~127.0.0.1"),), ""),
    "grab-mousepad": ("mousepad", "openbox", "none", "lasting", "grab", ("key x",), "first", (("server-grab", "helper"),), ""),
    "hog-fifo-mousepad": ("mousepad", "openbox", "none", "lasting", "hogs fifo 2", ("write abc",), "slowest", HOGGED, ""),
    "quota-mousepad": ("mousepad", "openbox", "none", "lasting", "quota", ("write abcdef",), "slowest",
                       (("cpu-throttled", "any"),), ""),
    "freeze-mousepad": ("mousepad", "openbox", "none", "lasting", "freeze", ("key x",), "first",
                        (("stopped", "any"),), ""),
    "vim-sleep": ("xterm-vim", "openbox", "none", "lasting", "own 2.5", ("write :sleep 2", "*key Return", "key i"), "after",
                  (("timer-sleep", "program"),), ""),
}  # fmt: skip

SCENARIOS = tuple(
    Scenario(program, manager, compositor, injector, acts, fault, accept, truth=truth, beside=beside, title=title)
    for title, (program, manager, compositor, injector, fault, acts, truth, accept, beside) in ROWS.items()
)
