# SPDX-License-Identifier: MIT OR Apache-2.0
"""The desktops: session, logout, notification server, and the program for typing."""

import dataclasses

from . import buttons, compositors, picture


@dataclasses.dataclass(frozen=True)
class Desktop:
    name: str
    # Command of the session, as for a display manager, and its XDG_CURRENT_DESKTOP.
    session: tuple
    current: str
    # Name of the notification server in its D-Bus service file.
    server: str
    # Command that ends the session.
    leave: tuple
    # Program of the test, name of its window; `paste` and `save` are its shortcuts.
    program: tuple
    window: str
    # Area of banners, as shares of the screen: left, top, right, bottom.
    banners: tuple
    # Position of a click on the text of a banner, as shares of it; positions of its buttons.
    body: tuple = (0.4, 0.35)
    buttons: object = None
    # Action that opens the page: a click on the text, or the button if a click only dismisses.
    opens: str = "default"
    # Command that invokes an action, if the banner has no buttons.
    invoke: tuple = ()
    wayland: bool = False
    grab: object = picture.x11
    # Preparation of the home before the first login.
    prepare: object = None
    # Command by which the session starts the notification server, if the bus does not.
    serves: tuple = ()
    # Seconds until the program takes keys.
    settle_s: float = 1
    # Needs a system bus, without services.
    needs_system_bus: bool = False
    # Each action needs a banner of its own with the pointer on it, since a banner only stays below the pointer or closes
    # with the first action, or the program's text is beside it.
    hovered: bool = False
    # Command that leads from the first screen of a session to an empty one.
    ready: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)
    # Processes of the started desktop.
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
    banners=(0.25, 0.04, 0.75, 0.3),
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
PLASMA_X11 = Desktop(
    name="plasma-x11",
    session=("startplasma-x11",),
    current="KDE",
    server="plasma_waitforname",
    serves=("plasmashell", "--no-respawn"),
    leave=("busctl", "--user", "call", "org.kde.Shutdown", "/Shutdown", "org.kde.Shutdown", "logout"),
    program=("kwrite", NOTE),
    window="kwrite",
    banners=(0.65, 0.3, 1, 0.93),
    buttons=buttons.in_row((159, 91, 30), 19),
    prepare=compositors.plasma,
    env={"KWIN_COMPOSE": "N", "QT_QUICK_BACKEND": "software"},
    parts=("kwin_x11", "kded5", "ksmserver", "plasmashell"),
)
PLASMA = dataclasses.replace(
    PLASMA_X11,
    name="plasma",
    session=("startplasma-wayland",),
    wayland=True,
    grab=picture.kwin,
    env={
        "KWIN_COMPOSE": "O2", "QT_QUICK_BACKEND": "software", "KWIN_WAYLAND_NO_PERMISSION_CHECKS": "1",
        "KWIN_SCREENSHOT_NO_PERMISSION_CHECKS": "1",
    },
    hovered=True,
    settle_s=4,
    parts=("kwin_wayland", "kded5", "ksmserver", "plasmashell"),
)  # fmt: skip
CINNAMON = Desktop(
    name="cinnamon",
    session=("cinnamon-session-cinnamon2d",),
    current="X-Cinnamon",
    server="",
    leave=("cinnamon-session-quit", "--logout", "--no-prompt", "--force"),
    program=("mousepad", NOTE),
    window="mousepad",
    banners=(0.6, 0, 1, 0.5),
    buttons=buttons.from_left((72, 134, 211), 23),
    needs_system_bus=True,
    hovered=True,
    settle_s=4,
    parts=("cinnamon", "csd-media-keys", "nemo-desktop"),
)
ALL = {one.name: one for one in (XFCE, MATE, SWAY, GNOME, PLASMA_X11, PLASMA, CINNAMON)}
