# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that make themselves wait or compute: the input itself is the fault."""

import time

from .fault import Fault


class Own(Fault):
    """Nothing is done from outside: the act makes the program busy for `own SECONDS`, which is when the fault ends."""

    def __init__(self, session, seconds="2"):
        super().__init__(session)
        self.busy_s = float(seconds)
        self.hold_s = self.busy_s + 0.5

    def end(self):
        return self.act_ns + int(self.busy_s * 1e9)


class Ended(Fault):
    """The act makes the program busy until a chord: `ended ctrl+g`."""

    def __init__(self, session, chord):
        super().__init__(session)
        self.chord = chord

    def end(self):
        return self.session.input.key(self.chord, expects=False)


class Paused(Ended):
    """A chord stops what the program shows, and another lets it go on: `paused ctrl+s ctrl+q`."""

    WORDS = 2

    def __init__(self, session, stop, go):
        super().__init__(session, go)
        self.stop = stop

    def begin(self):
        self.session.input.key(self.stop, expects=False)
        time.sleep(0.3)


FAULTS = {"own": Own, "ended": Ended, "paused": Paused}
