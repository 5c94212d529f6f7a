# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files in a home that desktops need, mainly to start without a screen."""

import shutil

SWAY = """include /etc/sway/config
output HEADLESS-1 resolution {width}x{height}
output * bg #305070 solid_color
exec dbus-update-activation-environment WAYLAND_DISPLAY SWAYSOCK XDG_CURRENT_DESKTOP
xwayland disable
"""


def sway(session, width, height):
    """Writes a user's configuration, which includes the distribution's; a bar and mako are part of it."""
    folder = session.folder / "home/.config/sway"
    folder.mkdir()
    (folder / "config").write_text(SWAY.format(width=width, height=height))


GNOME_SHELL = """[Desktop Entry]
Type=Application
Name=GNOME Shell
Exec=/usr/bin/gnome-shell --wayland --headless --unsafe-mode --virtual-monitor {width}x{height}
X-GNOME-Autostart-Phase=DisplayServer
X-GNOME-Provides=panel;windowmanager;
X-GNOME-Autostart-Notify=true
X-GNOME-AutoRestart=false
X-GNOME-HiddenUnderSystemd=true
NoDisplay=true
"""


def gnome(session, width, height):
    """Writes the session's entry of the shell with a virtual monitor; --unsafe-mode allows screenshots."""
    folder = session.folder / "home/.local/share/applications"
    folder.mkdir(parents=True)
    (folder / "org.gnome.Shell.desktop").write_text(GNOME_SHELL.format(width=width, height=height))


PLASMA = {
    # Without programs of the previous session.
    "ksmserverrc": "[General]\nloginMode=emptySession\n",
    "ksplashrc": "[KSplash]\nEngine=none\n",
    "kdeglobals": "[KDE]\nAnimationDurationFactor=0\n",
    "kwinrc": "[Plugins]\nblurEnabled=false\ncontrastEnabled=false\n",
}
KWIN = """#!/bin/sh
exec {real} --virtual --width {width} --height {height} "$@"
"""


def plasma(session, width, height):
    """Disables splash screen and effects, and puts a headless compositor before the installed one in PATH."""
    for name, text in PLASMA.items():
        (session.folder / "home/.config" / name).write_text(text)
    if not session.desktop.wayland:
        return
    # A copy, since a file with capabilities may be refused here, with the same name, which selects its platform.
    real = session.folder / "bin/real/kwin_wayland"
    real.parent.mkdir()
    shutil.copyfile(shutil.which("kwin_wayland"), real)
    shim = session.folder / "bin/kwin_wayland"
    shim.write_text(KWIN.format(real=real, width=width, height=height))
    for path in (real.parent, real, shim):
        path.chmod(0o755)
