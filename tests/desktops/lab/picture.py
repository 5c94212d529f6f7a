# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures of the screen: differences between two of them, and small files."""

import dataclasses
import io
import subprocess

from PIL import Image, ImageChops
from stage import processes
from stage.windows import Place

# Minimum difference of a colour channel, of 255.
CONTRAST = 24
# Maximum width of a caret in pixels.
CARET_WIDTH = 4
# Minimum size of a banner, larger than a caret, clock or spinner.
BANNER_MIN = (150, 40)
# Minimum difference of the text when a banner replaces another.
WORDS_MIN = (60, 10)
COLOURS = 64
# Maximum file size of pictures in documents.
BYTES_MAX = 60_000


def x11(session, place=None):
    """Grabs the root window of an X display."""
    from PIL import ImageGrab

    return ImageGrab.grab(xdisplay=session.display, bbox=place and corners(place))


def grim(session, place=None):
    """Grabs the output of a compositor with zwlr_screencopy_v1."""
    part = ["-g", f"{place.x},{place.y} {place.width}x{place.height}"] if place else []
    shot = processes.start(["grim", "-t", "ppm", *part, "-"], session.env, stdout=subprocess.PIPE)
    return Image.open(io.BytesIO(shot.communicate(timeout=10)[0])).convert("RGB")


def shell(session, place=None):
    """Grabs the screen by GNOME Shell, which blocks meanwhile, for the whole screen at least half a second."""
    path = session.folder / "run/screen.png"
    name, at = "org.gnome.Shell.Screenshot", "/org/gnome/Shell/Screenshot"
    words = ["busctl", f"--address={session.env['DBUS_SESSION_BUS_ADDRESS']}", "call", name, at, name]
    how = ["ScreenshotArea", "iiiibs", place.x, place.y, place.width, place.height] if place else ["Screenshot", "bbs", "false"]
    code, said = session.run([*words, *how, "false", path])
    if code != 0:
        raise processes.CannotRun(f"no picture: {said}")
    return Image.open(path).convert("RGB")


KWIN = """
import dbus, os, sys
name = 'org.kde.KWin.ScreenShot2'
kwin = dbus.Interface(dbus.SessionBus().get_object('org.kde.KWin', '/org/kde/KWin/ScreenShot2'), name)
for line in sys.stdin:
    x, y, width, height = map(int, line.split())
    reader, writer = os.pipe()
    taken = kwin.CaptureArea(dbus.Int32(x), dbus.Int32(y), dbus.UInt32(width), dbus.UInt32(height), {}, dbus.types.UnixFd(writer))
    os.close(writer)
    with open(reader, 'rb') as file:
        sys.stdout.buffer.write(b'%d %d %d\\n' % (taken['width'], taken['height'], taken['stride']) + file.read())
    sys.stdout.buffer.flush()
"""


def kwin(session, place=None):
    """Grabs the screen by a helper that requests it from KWin."""
    if not session.camera or session.camera.poll() is not None:
        words = ["/usr/bin/python3", "-B", "-c", KWIN]
        session.camera = session.start("camera", words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    place = place or Place(0, 0, *session.SIZE)
    session.camera.stdin.write(f"{place.x} {place.y} {place.width} {place.height}\n".encode())
    session.camera.stdin.flush()
    width, height, stride = map(int, session.camera.stdout.readline().split())
    return Image.frombuffer("RGB", (width, height), session.camera.stdout.read(stride * height), "raw", "BGRX", stride, 1)


def is_blank(image):
    """Returns True if the picture has only one colour, as before the first drawing of a desktop."""
    return all(low == high for low, high in image.getextrema())


def corners(place):
    return (place.x, place.y, place.x + place.width, place.y + place.height)


def changed(before, after, region, least=BANNER_MIN):
    """Returns the rectangle of a region that differs between two pictures, or None if it is smaller than `least`."""
    difference = ImageChops.difference(before.crop(corners(region)), after.crop(corners(region))).convert("L")
    found = difference.point(lambda value: 255 if value > CONTRAST else 0)
    rows = lines(found, (1, found.height))
    if not rows:
        return None
    top, bottom = rows[1], rows[3]
    columns = lines(found.crop((0, top, found.width, bottom)), (found.width, 1))
    if not columns or columns[2] - columns[0] < least[0] or bottom - top < least[1]:
        return None
    return Place(region.x + columns[0], region.y + top, columns[2] - columns[0], bottom - top)


def lines(found, size):
    """Returns the bounds of the rows or columns that differ by more than a blinking caret."""
    across = found.width * found.height // (size[0] * size[1])
    return found.resize(size, Image.Resampling.BOX).point(lambda mean: 255 if mean * across > CARET_WIDTH * 255 else 0).getbbox()


@dataclasses.dataclass
class Frame:
    """A picture of a part of the screen, with the times of request and result."""

    begin_ns: int
    end_ns: int
    image: Image.Image


def frame(session, place):
    begin = processes.now_ns()
    image = session.grab(place)
    return Frame(begin, processes.now_ns(), image)


def save(image, path):
    """Saves with few colours, as a small file."""
    image.convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS).save(path, optimize=True)


def save_small(image, path, region):
    """Saves for a document: with fewer colours, then only the area of banners, until the file is small enough."""
    part = image.crop(corners(region))
    for shown, colours in ((image, COLOURS), (image, 32), (part, COLOURS), (part, 32), (part, 16)):
        shown.convert("P", palette=Image.Palette.ADAPTIVE, colors=colours).save(path, optimize=True)
        if path.stat().st_size <= BYTES_MAX:
            return
