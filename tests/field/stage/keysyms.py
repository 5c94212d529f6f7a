# SPDX-License-Identifier: MIT OR Apache-2.0
"""X11 names of keys that are neither letters nor digits."""

NAMES = {
    " ": "space", "\n": "Return", ".": "period", ",": "comma", "-": "minus", "/": "slash", "(": "parenleft",
    ")": "parenright", ":": "colon", ";": "semicolon", "=": "equal", "'": "apostrophe", '"': "quotedbl", "*": "asterisk",
    "_": "underscore", "+": "plus", "<": "less", ">": "greater", "|": "bar", "&": "ampersand", "!": "exclam", "$": "dollar",
    "%": "percent", "~": "asciitilde", "#": "numbersign", "{": "braceleft", "}": "braceright", "[": "bracketleft",
    "]": "bracketright", "\\": "backslash", "@": "at", "?": "question",
}  # fmt: skip
