# SPDX-License-Identifier: MIT OR Apache-2.0
"""Windows of a display: found by their class, with their position and the focus."""

import dataclasses
import os
import re

from shared import until
from Xlib import X, Xatom, display, error


@dataclasses.dataclass(frozen=True)
class Place:
    """A rectangle on the screen."""

    x: int
    y: int
    width: int
    height: int

    def at(self, right, down):
        """Returns a point inside: shares of the width and the height, or pixels if they are 2 or
        more."""
        horizontal = self.x + (right if right >= 2 else right * self.width)
        vertical = self.y + (down if down >= 2 else down * self.height)
        return int(horizontal), int(vertical)

    def holds(self, other):
        """Returns True if a changed region touches this one."""
        x, y, width, height = other
        return x < self.x + self.width and self.x < x + width and y < self.y + self.height and self.y < y + height


class Windows:
    """A connection to the display, used while nothing is measured."""

    # True if the position of a window locates its changes on the screen.
    located = True

    def __init__(self, name, authority):
        os.environ["XAUTHORITY"] = str(authority)
        self.display = display.Display(name)
        self.root = self.display.screen().root
        self.state = self.display.intern_atom("WM_STATE")

    def close(self):
        self.display.close()

    def managed(self):
        """Returns top-level windows of clients that are managed, or at least mapped."""
        return [window for window in self.below(self.root, 4) if self.is_client(window)]

    def below(self, window, depth):
        try:
            children = window.query_tree().children
        except error.XError:
            return
        for child in children:
            yield child
            if depth > 1:
                yield from self.below(child, depth - 1)

    def is_client(self, window):
        try:
            state = window.get_property(self.state, X.AnyPropertyType, 0, 2)
            return bool(state) and window.get_attributes().map_state == X.IsViewable
        except error.XError:
            return False

    def words(self, window):
        """Returns class and title."""
        try:
            names = window.get_wm_class() or ("", "")
            title = window.get_property(Xatom.WM_NAME, X.AnyPropertyType, 0, 100)
            text = title.value if title else ""
            return " ".join(names) + " " + (text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text))
        except error.XError:
            return ""

    def find(self, pattern):
        """Returns the last managed window whose class or title matches."""
        matching = [window for window in self.managed() if re.search(pattern, self.words(window), re.IGNORECASE)]
        return matching[-1] if matching else None

    def wait_for(self, pattern, timeout_s):
        return until(lambda: self.find(pattern), None, timeout_s, 0.2)

    def place(self, window):
        size = window.get_geometry()
        at = window.translate_coords(self.root, 0, 0)
        return Place(-at.x, -at.y, size.width, size.height)

    def frame(self, window):
        """Returns the position of the window with its decoration, which is that of its ancestor
        below the root."""
        while True:
            above = window.query_tree().parent
            if above == 0 or above.id == self.root.id:
                return self.place(window)
            window = above

    def has_focus(self, window):
        focus = self.display.get_input_focus().focus
        if not hasattr(focus, "id"):
            return False
        wanted = {window.id} | {child.id for child in self.below(window, 6)}
        while focus.id != self.root.id:
            if focus.id in wanted:
                return True
            focus = focus.query_tree().parent
            if focus == 0:
                return False
        return False

    def resize(self, window, width, height):
        window.configure(width=width, height=height)
        self.display.sync()
