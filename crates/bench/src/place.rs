// SPDX-License-Identifier: MIT OR Apache-2.0
//! Displays on the command line.

use crate::measure::MeasureDisplay;
use crate::screen::Place;
use tipme_desktop::DisplayTarget;

/// Parses a private display or a running compositor. The recorder identifies compositors by the
/// number of their socket.
pub fn place(text: &str) -> Result<Place, String> {
    let name = text.rsplit('/').next().unwrap_or_default();
    let number = name.strip_prefix("wayland-").map(|number| number.parse::<u32>().is_ok());
    match text {
        "x11" => Ok(Place::X11),
        "wayland" => Ok(Place::Wayland),
        _ if number == Some(true) => Ok(Place::Compositor(text.to_owned())),
        _ => Err(format!("{text:?} is neither x11, wayland nor a compositor such as wayland-0")),
    }
}

/// Parses the same, or an existing X display.
pub fn measure_display(text: &str) -> Result<MeasureDisplay, String> {
    match place(text) {
        Ok(place) => Ok(MeasureDisplay::Own(place)),
        Err(_) => DisplayTarget::parse(text).map(MeasureDisplay::Display).map_err(|_| {
            format!("{text:?} is neither an X display such as :0, nor x11, wayland or a compositor such as wayland-0")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compositors_are_named_as_their_sockets_are() {
        assert_eq!([place("x11"), place("wayland")], [Ok(Place::X11), Ok(Place::Wayland)]);
        for name in ["wayland-0", "/run/user/1000/wayland-12"] {
            assert_eq!(place(name), Ok(Place::Compositor(name.to_owned())));
        }
        assert!(
            ["wayland-", ":0", "wayland-0/", "", "wayland-x"]
                .into_iter()
                .all(|name| place(name).is_err())
        );
    }

    #[test]
    fn an_x_display_is_not_a_compositor() {
        assert!(matches!(
            measure_display(":7"),
            Ok(MeasureDisplay::Display(DisplayTarget { display: 7, .. }))
        ));
        assert!(matches!(
            measure_display("wayland-7"),
            Ok(MeasureDisplay::Own(Place::Compositor(_)))
        ));
        assert!(measure_display("waylan").is_err());
    }
}
