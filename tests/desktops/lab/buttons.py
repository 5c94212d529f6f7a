# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where a banner has its buttons: from their number, the place in their row, and the banner's rectangle."""


def from_right(last, pitch, up):
    """A row at the right: how far the middle of the last is from the banner's edge, from button to button, and from below."""
    return lambda at, count, place: (place.x + place.width - last - pitch * (count - 1 - at), place.y + place.height - up)


def in_row(rights, up):
    """A row at the right whose buttons are as wide as their words: how far the middle of each of three is from the edge."""
    return lambda at, count, place: (place.x + place.width - rights[len(rights) - count + at], place.y + place.height - up)


def from_left(lefts, up):
    """The same at the left."""
    return lambda at, _count, place: (place.x + lefts[at], place.y + place.height - up)


def even(up):
    """Each has the same share of the whole width."""
    return lambda at, count, place: (place.x + place.width * (2 * at + 1) // (2 * count), place.y + place.height - up)
