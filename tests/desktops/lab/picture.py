# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures of the screen: what changed between two of them, and files that are small."""

import dataclasses
import io
import subprocess

from PIL import Image, ImageChops
from stage import processes
from stage.windows import Place

# Difference of a colour that counts, of 255.
CONTRAST = 24
# A banner is at least this large; a caret, a clock or a spinner is not.
BANNER_MIN = (150, 40)
# So large is the difference of the words in a banner that takes the place of another.
WORDS_MIN = (60, 10)
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
    return Image.open(io.BytesIO(shot.communicate(timeout=10)[0])).convert("RGB")


def shell(session):
    """The stage of GNOME Shell, which writes it to a file."""
    path = session.folder / "run/screen.png"
    name, place = "org.gnome.Shell.Screenshot", "/org/gnome/Shell/Screenshot"
    words = ["busctl", f"--address={session.env['DBUS_SESSION_BUS_ADDRESS']}", "call", name, place, name, "Screenshot", "bbs"]
    code, said = session.run([*words, "false", "false", path])
    if code != 0:
        raise processes.CannotRun(f"no picture: {said}")
    return Image.open(path).convert("RGB")


def changed(before, after, region, least=BANNER_MIN):
    """The rectangle of a region that differs between two pictures; nothing where that is smaller than a banner, or than said."""
    box = (region.x, region.y, region.x + region.width, region.y + region.height)
    difference = ImageChops.difference(before.crop(box), after.crop(box)).convert("L")
    found = difference.point(lambda value: 255 if value > CONTRAST else 0).getbbox()
    if not found or found[2] - found[0] < least[0] or found[3] - found[1] < least[1]:
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
    """For a document: with fewer colours, then only the part with the banner, until it fits."""
    part = image.crop((image.width // 4, 0, image.width, image.height // 2))
    for shown, colours in ((image, COLOURS), (image, 32), (part, COLOURS), (part, 32), (part, 16)):
        shown.convert("P", palette=Image.Palette.ADAPTIVE, colors=colours).save(path, optimize=True)
        if path.stat().st_size <= BYTES_MAX:
            return
