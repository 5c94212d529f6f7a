# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the desktops of Wayland need in a home before they start without a screen."""

SWAY = """include /etc/sway/config
output HEADLESS-1 resolution {width}x{height}
output * bg #305070 solid_color
exec dbus-update-activation-environment WAYLAND_DISPLAY SWAYSOCK XDG_CURRENT_DESKTOP
xwayland disable
"""


def sway(session, width, height):
    """A person's own configuration, beside the one of the distribution; a bar and mako come with these."""
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
    """The session's entry of the shell, with a monitor that is none; --unsafe-mode lets its screen be copied."""
    folder = session.folder / "home/.local/share/applications"
    folder.mkdir(parents=True)
    (folder / "org.gnome.Shell.desktop").write_text(GNOME_SHELL.format(width=width, height=height))
