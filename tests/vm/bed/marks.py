# SPDX-License-Identifier: MIT OR Apache-2.0
"""The hot key, and the incidents that it causes."""

# Hot keys by QEMU's names, and the wait for the resulting file, in seconds.
MARK_KEYS, FILE_MAX_S = ("ctrl", "alt", "minus"), 120


def incidents(machine):
    listed = machine.run("ls /var/lib/tipme/incidents/*.tipme 2>/dev/null || true")
    return set(listed.split())


def new_incident(machine, before, seconds=FILE_MAX_S):
    """Returns the new incident; None on a timeout."""
    known = " ".join(sorted(before)) or "none"
    look = (
        "for file in /var/lib/tipme/incidents/*.tipme; do "
        f"case ' {known} ' in *\" $file \"*) ;; *) test -e $file && echo $file && exit 0;; esac; done"
    )
    command = f"for try in $(seq {seconds * 4}); do {look}; sleep 0.25; done"
    return machine.run(command, seconds + 30).strip() or None
