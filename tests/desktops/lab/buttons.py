# SPDX-License-Identifier: MIT OR Apache-2.0
"""Positions of a banner's buttons, from their number, their place in the row, and the banner's rectangle."""


def from_right(last, pitch, up):
    """A row at the right, by distances: from the edge to the last button's middle, between buttons, from below."""
    return lambda at, count, place: (place.x + place.width - last - pitch * (count - 1 - at), place.y + place.height - up)


def in_row(rights, up):
    """A row of buttons of different widths at the right, by the distances of three middles from the edge."""
    return lambda at, count, place: (place.x + place.width - rights[len(rights) - count + at], place.y + place.height - up)


def from_left(lefts, up):
    """The same at the left."""
    return lambda at, _count, place: (place.x + lefts[at], place.y + place.height - up)


def even(up):
    """Buttons of equal width across the banner."""
    return lambda at, count, place: (place.x + place.width * (2 * at + 1) // (2 * count), place.y + place.height - up)
