# SPDX-License-Identifier: MIT OR Apache-2.0
"""The desktops: how each is started and left, its notification server, and the program that a person writes in."""

import dataclasses

from . import buttons, compositors, picture


@dataclasses.dataclass(frozen=True)
class Desktop:
    name: str
    # Of the session: what a display manager starts, and what XDG_CURRENT_DESKTOP says.
    session: tuple
    current: str
    # What its notification server is called in the file by which the bus starts it.
    server: str
    # What leaves the session.
    leave: tuple
    # The program of the test, by what its window is known, and the chords that paste into it and save.
    program: tuple
    window: str
    # Where banners come, as shares of the screen: left, top, right, bottom.
    banners: tuple
    # Where the text of a banner is clicked, as shares of it; and where its buttons are.
    body: tuple = (0.4, 0.35)
    buttons: object = None
    # What opens the page: a click on the text, or the button where that only dismisses.
    opens: str = "default"
    # What invokes an action that the banner has no place for.
    invoke: tuple = ()
    wayland: bool = False
    grab: object = picture.x11
    # What the home has before the first login.
    prepare: object = None
    # Seconds until the program takes keys.
    settle_s: float = 1
    # Whether it wants a system bus, with nobody on it.
    needs_system_bus: bool = False
    # Whether its banners stay only below the pointer, which then shows their buttons.
    hovered: bool = False
    # What leads from what a login shows to an empty screen.
    ready: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)
    # What must be running when the desktop is up: the names of processes.
    parts: tuple = ()
    paste: str = "ctrl+v"
    save: str = "ctrl+s"


NOTE = "{home}/note.txt"
XFCE = Desktop(
    name="xfce",
    session=("xfce4-session",),
    current="XFCE",
    server="xfce4-notifyd",
    leave=("xfce4-session-logout", "--logout", "--fast"),
    program=("mousepad", NOTE),
    window="mousepad",
    banners=(0.6, 0.05, 1, 0.6),
    buttons=buttons.from_right(56, 92, 31),
    opens="details",
    env={"XFCE_PANEL_MIGRATE_DEFAULT": "1"},
    parts=("xfwm4", "xfce4-panel", "xfsettingsd", "xfdesktop"),
)
SWAY = Desktop(
    name="sway",
    session=("sway",),
    current="sway",
    server="mako",
    leave=("swaymsg", "exit"),
    program=("foot", "sh", "-c", "cat >>{home}/note.txt"),
    window="foot",
    banners=(0.6, 0.05, 1, 0.6),
    invoke=("makoctl", "invoke", "-n", "{number}", "{key}"),
    wayland=True,
    grab=picture.grim,
    prepare=compositors.sway,
    env={"WLR_BACKENDS": "headless", "WLR_LIBINPUT_NO_DEVICES": "1", "WLR_RENDERER": "pixman"},
    parts=("sway", "swaybar"),
    paste="ctrl+shift+v",
    save="Return",
)
MATE = Desktop(
    name="mate",
    session=("mate-session",),
    current="MATE",
    server="mate-notification-daemon",
    leave=("mate-session-save", "--force-logout"),
    program=("mousepad", NOTE),
    window="mousepad",
    banners=(0.6, 0.05, 1, 0.6),
    buttons=buttons.in_row((197, 127, 64), 27),
    parts=("marco", "mate-panel", "mate-settings-daemon", "caja"),
)
GNOME = Desktop(
    name="gnome",
    session=("gnome-session", "--builtin", "--session=gnome"),
    current="GNOME",
    server="",
    leave=("gnome-session-quit", "--logout", "--no-prompt", "--force"),
    program=("gnome-text-editor", NOTE),
    window="text.editor",
    banners=(0.25, 0.04, 0.75, 0.5),
    buttons=buttons.even(20),
    wayland=True,
    needs_system_bus=True,
    hovered=True,
    ready=("busctl", "--user", "set-property", "org.gnome.Shell", "/org/gnome/Shell", "org.gnome.Shell", "OverviewActive", "b", "false"),
    grab=picture.shell,
    prepare=compositors.gnome,
    env={"XDG_SESSION_DESKTOP": "gnome", "GSK_RENDERER": "cairo"},
    parts=("gnome-shell", "gsd-media-keys"),
    settle_s=3,
)
ALL = {one.name: one for one in (XFCE, MATE, SWAY, GNOME)}
