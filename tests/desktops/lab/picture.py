# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures of the screen: what changed between two of them, and files that are small."""

import dataclasses
import subprocess

from PIL import Image, ImageChops
from stage import processes
from stage.windows import Place

# Difference of a colour that counts, of 255.
CONTRAST = 24
# A banner is at least this large; a caret, a clock or a spinner is not.
BANNER_MIN = (150, 40)
COLOURS = 64
# Pictures of documents are no larger.
BYTES_MAX = 60_000


def x11(session):
    """The root window of an X display."""
    from PIL import ImageGrab

    return ImageGrab.grab(xdisplay=session.display)


def grim(session):
    """The output of a compositor with zwlr_screencopy_v1."""
    shot = processes.start(["grim", "-t", "ppm", "-"], session.env, stdout=subprocess.PIPE)
    data = shot.communicate(timeout=10)[0]
    from io import BytesIO

    return Image.open(BytesIO(data)).convert("RGB")


def changed(before, after, region):
    """The rectangle of a region that differs between two pictures; nothing where that is smaller than a banner."""
    box = (region.x, region.y, region.x + region.width, region.y + region.height)
    difference = ImageChops.difference(before.crop(box), after.crop(box)).convert("L")
    found = difference.point(lambda value: 255 if value > CONTRAST else 0).getbbox()
    if not found or found[2] - found[0] < BANNER_MIN[0] or found[3] - found[1] < BANNER_MIN[1]:
        return None
    left, top, right, bottom = found
    return Place(region.x + left, region.y + top, right - left, bottom - top)


@dataclasses.dataclass
class Frame:
    """A picture, and when it was asked for and had."""

    begin_ns: int
    end_ns: int
    image: Image.Image


def frame(session):
    begin = processes.now_ns()
    image = session.grab()
    return Frame(begin, processes.now_ns(), image)


def save(image, path):
    """With so few colours that it is small."""
    image.convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS).save(path, optimize=True)


def save_small(image, path):
    """For a document: with fewer colours, then smaller, until it fits."""
    for colours, scale in ((COLOURS, 1), (32, 1), (32, 0.75), (16, 0.75), (16, 0.5)):
        size = (int(image.width * scale), int(image.height * scale))
        image.resize(size, Image.Resampling.LANCZOS).convert("P", palette=Image.Palette.ADAPTIVE, colors=colours).save(path, optimize=True)
        if path.stat().st_size <= BYTES_MAX:
            return
