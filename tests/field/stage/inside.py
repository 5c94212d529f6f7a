# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that make themselves wait or compute: the input itself is the fault."""

from .fault import Fault


class Own(Fault):
    """Nothing is done from outside; the act makes the program busy for `own SECONDS`."""

    bounded = False

    def __init__(self, session, seconds="2"):
        super().__init__(session)
        self.hold_s = float(seconds)


FAULTS = {"own": Own}
