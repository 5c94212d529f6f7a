# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that make themselves wait or compute: the input itself is the fault."""

import time

from .fault import Fault


class Own(Fault):
    """The act itself makes the program busy for `own SECONDS`, after which the fault ends."""

    PARAMETERS = {"seconds": "2"}

    def __init__(self, session, words=""):
        super().__init__(session, words)
        self.hold_s = float(self.seconds) + 0.5

    def end(self):
        return self.act_ns + int(float(self.seconds) * 1e9)


class Ended(Fault):
    """The act makes the program busy until a chord: `ended ctrl+g`."""

    PARAMETERS = {"go": ""}

    def end(self):
        return self.session.input.key(self.go, expects=False)


class Paused(Ended):
    """A chord stops the program's output, and another one continues it: `paused ctrl+s ctrl+q`."""

    PARAMETERS = {"stop": "", "go": ""}

    def begin(self):
        self.session.input.key(self.stop, expects=False)
        time.sleep(0.3)


FAULTS = {"own": Own, "ended": Ended, "paused": Paused}
