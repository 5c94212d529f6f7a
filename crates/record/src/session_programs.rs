// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that draw a session: window managers, compositors and shells. Any process can take such
//! a name.

/// X11 window managers; some are Wayland compositors as well.
pub const WINDOW_MANAGERS: [&str; 40] = [
    "afterstep",
    "awesome",
    "blackbox",
    "bspwm",
    "budgie-wm",
    "cinnamon",
    "compiz",
    "ctwm",
    "cwm",
    "dwm",
    "e16",
    "enlightenment",
    "evilwm",
    "fluxbox",
    "fvwm",
    "fvwm2",
    "fvwm3",
    "gala",
    "gnome-shell",
    "herbstluftwm",
    "i3",
    "icewm",
    "jwm",
    "kwin_wayland",
    "kwin_x11",
    "marco",
    "matchbox-window-manager",
    "metacity",
    "muffin",
    "mutter",
    "notion",
    "openbox",
    "pekwm",
    "ratpoison",
    "sawfish",
    "spectrwm",
    "twm",
    "wmaker",
    "xfwm4",
    "xmonad",
];

/// Other display servers, compositors and shells.
const OTHERS: [&str; 15] = [
    "Hyprland",
    "Xorg",
    "Xwayland",
    "cage",
    "compton",
    "labwc",
    "niri",
    "phoc",
    "picom",
    "plasmashell",
    "river",
    "sway",
    "wayfire",
    "weston",
    "xcompmgr",
];

/// Maximum bytes of a process name in the kernel.
pub const NAME_BYTES: usize = 15;

/// Returns `true` if this is the name of a program that draws a session, whole or cut off by the
/// kernel.
pub fn draws_session(comm: &str) -> bool {
    let mut names = WINDOW_MANAGERS.iter().chain(&OTHERS);
    names.any(|name| *name == comm || name.get(..NAME_BYTES) == Some(comm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_known_as_the_kernel_keeps_them() {
        let whole = ["xfwm4", "matchbox-window-manager", "sway", "plasmashell"];
        assert!(whole.into_iter().chain(["matchbox-window"]).all(draws_session));
        assert!(!["matchbox", "sway-launcher", "", "cc1"].into_iter().any(draws_session));
    }
}
