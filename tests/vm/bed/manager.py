# SPDX-License-Identifier: MIT OR Apache-2.0
"""The manager under systemd and cgroup v2: it favours the focused program, reports that, and restores everything.

Its effects are read from /proc and /sys, independently of its reports.
"""

import json
import typing

from shared import until

from .machine import Failed
from .results import ABSENT

# Control group without another manager, with the required controllers.
GROUP = "/sys/fs/cgroup/tipme-vm"
DELEGATE = (
    f"echo '+cpu +io +memory' >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p {GROUP}; "
    f"for pid in $(pgrep -x 'xterm|openbox|cat'); do echo $pid >{GROUP}/cgroup.procs; done"
)
AS_ROOT = "-E XAUTHORITY=/run/tipme-vm/auth"
AS_USER = "--uid=user -E XAUTHORITY=/home/user/.Xauthority -E HOME=/home/user -E XDG_RUNTIME_DIR=/run/user/1000"
CALLER = "runuser -u user -- env XDG_RUNTIME_DIR=/run/user/1000"


class Way(typing.NamedTuple):
    """A back end: the manager's options, the expected effect on the terminal, and preparation. `user` is the account of the
    manager, `caller` that of its clients."""

    options: str
    sign: str
    first: str = "true"
    user: str = AS_ROOT
    caller: str = ""


WAYS = {
    "systemd": Way("--backend systemd", "weight 3000"),
    # The helper serves the user of the active session.
    "helper": Way("", "xterm -8", "systemctl start tipme-manage-helper", AS_USER, CALLER),
    # Off by default on Debian's older kernels, which the manager reports.
    "autogroup": Way("--backend autogroup", "nice -10", "echo 1 >/proc/sys/kernel/sched_autogroup_enabled"),
    "nice": Way("--backend nice", "xterm -8"),
    # This back end does not touch processes in a unit of systemd. Moving them out ends the session, so it comes last.
    "cgroup": Way(f"--backend cgroup --cgroup {GROUP}", "weight 3000", DELEGATE),
}
# Time limits in seconds: until it is ready, until it reacts to the focus, until it has restored everything.
READY_MAX_S, FOCUS_MAX_S, STOP_MAX_S = 120, 60, 60
PROGRAMS = "xterm openbox Xorg tipme cat"
# Group, nice value, policy, autogroup and the group's weight of each process.
LOOK = (
    f"for pid in $(pgrep -x '{PROGRAMS.replace(' ', '|')}'); do test $pid = \"$1\" && continue; "
    "echo $(ps -o pid=,comm=,ni=,cls= -p $pid) $(cat /proc/$pid/cgroup) "
    "$(cut -d' ' -f2- /proc/$pid/autogroup 2>/dev/null) weight "
    "$(cat /sys/fs/cgroup$(cut -d: -f3- /proc/$pid/cgroup)/cpu.weight 2>/dev/null); done"
)


def manager(machine, results):
    if "manage" not in machine.run("tipme --help").split():
        results.add("manager", ABSENT, "this build has no manager")
        return
    for name, way in WAYS.items():
        try:
            one_way(machine, results, name, way)
        except Failed as error:
            results.met(f"manager, {name}", False, error)
        finally:
            end = "systemctl stop tipme-vm-manager tipme-manage-helper; systemctl reset-failed tipme-vm-manager"
            machine.run(f"({end}) 2>/dev/null || true", 90)


def one_way(machine, results, name, way):
    machine.run(way.first)
    before = look(machine)
    pid = start(machine, name, way)
    during = await_sign(machine, pid, way.sign)
    why = machine.run(f"{way.caller} tipme why $(pgrep -x xterm | head -n1) || true").strip()
    status = json.loads(machine.run(f"{way.caller} tipme manage status --json"))
    machine.run("systemctl stop tipme-vm-manager", STOP_MAX_S)
    after = look(machine)
    left = [f"{what} was {before[task]}" for task, what in after.items() if task in before and before[task] != what]
    changed = [task for task, what in during.items() if task in before and before[task] != what]
    terminal = next((task for task in changed if during[task].startswith("xterm")), None)
    seen = f"{during[terminal]} (was {before[terminal]}), {len(changed)} processes in all" if terminal else "no terminal"
    detail = f"changed: {seen}. why xterm: {why}. left changed: {'; '.join(left) or 'nothing'}"
    signed = terminal and way.sign in during[terminal]
    helped = (status.get("helper") is not None) == (name == "helper")
    results.met(f"manager, {name}", bool(signed) and helped and not left and ": focused, since" in why, detail)


def start(machine, name, way):
    """Starts the manager as a service; returns its process id once it is ready."""
    log = f"/run/tipme-vm/manager-{name}.log"
    output = f"-p StandardOutput=file:{log} -p StandardError=file:{log}.err -p RuntimeDirectory=tipme-vm-manager"
    command = f"tipme manage {way.options} --display :0"
    machine.run(f"systemd-run --unit=tipme-vm-manager {way.user} {output} /usr/local/bin/{command}")
    wait = f"for try in $(seq {READY_MAX_S}); do grep -q ^managing {log} && exit 0; sleep 1; done"
    machine.run(f"{wait}; cat {log} {log}.err; exit 1", READY_MAX_S + 30)
    return machine.run("systemctl show -p MainPID --value tipme-vm-manager").strip()


def await_sign(machine, pid, sign):
    """Returns the processes' scheduling once the terminal shows the effect, or after a timeout."""
    has_it = lambda: any(what.startswith("xterm") and sign in what for what in look(machine, pid).values())  # noqa: E731
    until(has_it, None, FOCUS_MAX_S, 1)
    return look(machine, pid)


def look(machine, pid=""):
    """Returns how each program of the desktop is scheduled, by process id."""
    lines = machine.run(f"set -- {pid or 0}; {LOOK}").splitlines()
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
