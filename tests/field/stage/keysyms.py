# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of keys that are no letters or digits, as X11 has them."""

NAMES = {
    " ": "space", "\n": "Return", ".": "period", ",": "comma", "-": "minus", "/": "slash", "(": "parenleft",
    ")": "parenright", ":": "colon", ";": "semicolon", "=": "equal", "'": "apostrophe", '"': "quotedbl", "*": "asterisk",
    "_": "underscore", "+": "plus", "<": "less", ">": "greater", "|": "bar", "&": "ampersand", "!": "exclam", "$": "dollar",
    "%": "percent", "~": "asciitilde", "#": "numbersign", "{": "braceleft", "}": "braceright", "[": "bracketleft",
    "]": "bracketright", "\\": "backslash", "@": "at", "?": "question",
}  # fmt: skip
