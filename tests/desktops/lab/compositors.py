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
