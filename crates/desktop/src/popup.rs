// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text in the corner of the screen, for sessions without a notification daemon.
//!
//! The window is not managed by a window manager, receives no keys and grabs nothing: the user
//! keeps typing in the focused window. A click closes it.

use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use crate::plain::plain;
use textwrap::{Options, WordSeparator, WordSplitter};
use tipme_record::Nanos;
use x11rb::COPY_DEPTH_FROM_PARENT;
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ConfigureWindowAux, ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask,
    Font, Gcontext, PropMode, Screen, StackMode, Window, WindowClass,
};
use x11rb::wrapper::ConnectionExt as _;

/// Pixels between popups, and between them and the edge of the screen.
pub const MARGIN: u16 = 12;

/// Maximum length of a text, and of its ending, in characters.
const TEXT_MAX: usize = 1000;
/// Characters of a line.
const COLUMNS: usize = 60;
/// Maximum number of lines of a text; those of its ending come below.
const LINES_MAX: usize = 24;
/// Fonts to try in order.
const FONTS: [&[u8]; 2] = [b"9x15", b"fixed"];
/// Limit of plausible sizes of a character: all lines must fit into a window.
const LETTER_PIXELS_MAX: i16 = 99;
/// Pixels between the border and the text.
const PADDING: u16 = 10;
const BORDER: u16 = 2;
/// Buttons that close it; further ones are those of the wheel.
const BUTTONS: u8 = 3;

/// A text on the screen, until the value is dropped.
pub struct Popup {
    connection: DisplayConnection,
    window: Window,
    ink: Gcontext,
    letters: Letters,
    lines: Vec<String>,
}

/// A font with the size of its characters.
#[derive(Clone, Copy)]
struct Letters {
    font: Font,
    width: u16,
    ascent: u16,
    height: u16,
}

impl Popup {
    /// Prepares a window that shows a text. The last lines of the text are always visible, however
    /// long it is.
    ///
    /// # Errors
    /// Fails if the display is not usable, or has no font.
    pub fn make(target: &DisplayTarget, text: &str, ending: &str) -> Result<Popup, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        let letters = Letters::open(&connection)?;
        let [window, ink] = [connection.new_id()?, connection.new_id()?];
        let popup = Popup { connection, window, ink, letters, lines: lines(text, ending) };
        popup.make_window()?;
        popup.name(&format!("{}\n\n{}", plain(text, TEXT_MAX), plain(ending, TEXT_MAX)))?;
        Ok(popup)
    }

    fn make_window(&self) -> Result<(), DisplayError> {
        let (connection, wire, screen) = (&self.connection, self.connection.wire(), self.screen()?);
        let (dark, light) = (screen.black_pixel, screen.white_pixel);
        let look =
            CreateWindowAux::new().background_pixel(light).border_pixel(dark).override_redirect(1);
        let look = look.event_mask(EventMask::EXPOSURE | EventMask::BUTTON_PRESS);
        let (depth, class) = (COPY_DEPTH_FROM_PARENT, WindowClass::INPUT_OUTPUT);
        let [width, height] = self.size().map(|outer| outer - 2 * BORDER);
        let root = screen.root;
        connection.done(wire.create_window(
            depth,
            self.window,
            root,
            0,
            0,
            width,
            height,
            BORDER,
            class,
            0,
            &look,
        ))?;
        let ink = CreateGCAux::new().foreground(dark).background(light).font(self.letters.font);
        connection.done(wire.create_gc(self.ink, self.window, &ink))
    }

    /// Sets the properties that identify the window to tests, screen readers and compositors.
    fn name(&self, text: &str) -> Result<(), DisplayError> {
        let (connection, wire, window) = (&self.connection, self.connection.wire(), self.window);
        let kind = connection.atom(b"_NET_WM_WINDOW_TYPE")?;
        let notification = [connection.atom(b"_NET_WM_WINDOW_TYPE_NOTIFICATION")?];
        let replace = PropMode::REPLACE;
        let atom = AtomEnum::ATOM;
        connection.done(wire.change_property32(replace, window, kind, atom, &notification))?;
        let (name, utf8) = (connection.atom(b"_NET_WM_NAME")?, connection.atom(b"UTF8_STRING")?);
        let title = text.as_bytes();
        connection.done(wire.change_property8(replace, window, name, utf8, title))?;
        let (name, latin, title) = (AtomEnum::WM_NAME, AtomEnum::STRING, ascii(text));
        connection.done(wire.change_property8(replace, window, name, latin, title.as_bytes()))
    }

    /// Its height on the screen.
    pub fn height(&self) -> u16 {
        self.size()[1]
    }

    /// Width and height, with the border. All popups have the same width, since they are stacked.
    fn size(&self) -> [u16; 2] {
        let inner = [(COLUMNS, self.letters.width), (self.lines.len(), self.letters.height)];
        inner.map(|(count, pixels)| {
            (count as u16).saturating_mul(pixels).saturating_add(2 * (PADDING + BORDER))
        })
    }

    /// Maps it above all windows, at most `top` pixels from the top of the screen. It is on the
    /// right, or on the left if the pointer would be on it, since keys may go to the window below
    /// the pointer.
    ///
    /// # Errors
    /// Fails if the display is no longer usable.
    pub fn show(&self, top: u16) -> Result<(), DisplayError> {
        let (connection, wire, screen) = (&self.connection, self.connection.wire(), self.screen()?);
        let [width, height] = self.size();
        let left = screen.width_in_pixels.saturating_sub(width + MARGIN);
        let top = top.min(screen.height_in_pixels.saturating_sub(height));
        let pointer = connection.reply(wire.query_pointer(screen.root))?;
        let is_pointed_at =
            is_within(pointer.root_x, left, width) && is_within(pointer.root_y, top, height);
        let left = if is_pointed_at { MARGIN } else { left };
        let place = ConfigureWindowAux::new()
            .x(i32::from(left))
            .y(i32::from(top))
            .stack_mode(StackMode::ABOVE);
        connection.done(wire.configure_window(self.window, &place))?;
        connection.done(wire.map_window(self.window))
    }

    /// Redraws it as necessary until the deadline; returns `false` as soon as it was clicked.
    ///
    /// # Errors
    /// Fails if the display is no longer usable.
    pub fn serve(&self, deadline: Nanos) -> Result<bool, DisplayError> {
        while let Some(event) = self.connection.event(deadline)? {
            match event {
                Event::Expose(part) if part.count == 0 => self.draw()?,
                Event::ButtonPress(click) if click.detail <= BUTTONS => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Draws the lines; those up to the first empty one are the headline.
    fn draw(&self) -> Result<(), DisplayError> {
        let (Letters { ascent, height, .. }, left) = (self.letters, PADDING as i16);
        let baselines =
            (PADDING + ascent..).step_by(usize::from(height)).map(|baseline| baseline as i16);
        let mut in_headline = true;
        for (line, baseline) in self.lines.iter().zip(baselines) {
            let (connection, wire) = (&self.connection, self.connection.wire());
            connection.done(wire.image_text8(
                self.window,
                self.ink,
                left,
                baseline,
                line.as_bytes(),
            ))?;
            in_headline &= !line.is_empty();
            if in_headline {
                // Text drawn twice, a pixel apart, is bold.
                let bold = [&[line.len() as u8, 0], line.as_bytes()].concat();
                connection.done(wire.poly_text8(
                    self.window,
                    self.ink,
                    left + 1,
                    baseline,
                    &bold,
                ))?;
            }
        }
        Ok(())
    }

    fn screen(&self) -> Result<&Screen, DisplayError> {
        let screens = &self.connection.wire().setup().roots;
        screens.first().ok_or_else(|| {
            DisplayError::lost(self.connection.display(), "the server has no screen")
        })
    }
}

impl Letters {
    fn open(connection: &DisplayConnection) -> Result<Letters, DisplayError> {
        let wire = connection.wire();
        let font = connection.new_id()?;
        if !FONTS.iter().any(|name| connection.done(wire.open_font(font, name)).is_ok()) {
            let reason = "there is neither the font 9x15 nor fixed; install its fonts";
            return Err(DisplayError::lost(connection.display(), reason));
        }
        let font_info = connection.reply(wire.query_font(font))?;
        let [width, ascent, descent] =
            [font_info.max_bounds.character_width, font_info.font_ascent, font_info.font_descent]
                .map(|pixels| pixels.clamp(1, LETTER_PIXELS_MAX) as u16);
        Ok(Letters { font, width, ascent, height: ascent + descent })
    }
}

fn is_within(at: i16, from: u16, length: u16) -> bool {
    u16::try_from(at).is_ok_and(|at| at.wrapping_sub(from) < length)
}

/// Returns the wrapped lines of a text in characters that every font has.
fn wrapped(text: &str) -> Vec<String> {
    let options = Options::new(COLUMNS).word_separator(WordSeparator::AsciiSpace);
    let options = options.word_splitter(WordSplitter::NoHyphenation);
    let text = ascii(&plain(text, TEXT_MAX));
    textwrap::wrap(&text, &options).into_iter().map(|line| line.into_owned()).collect()
}

/// Returns the lines of a popup.
fn lines(text: &str, ending: &str) -> Vec<String> {
    let mut lines = wrapped(text);
    if lines.len() > LINES_MAX {
        lines.truncate(LINES_MAX);
        lines.push("...".to_owned());
    }
    lines.push(String::new());
    lines.extend(wrapped(ending));
    lines
}

fn ascii(text: &str) -> String {
    text.chars()
        .map(|letter| if matches!(letter, ' '..='~' | '\n') { letter } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_between_words_with_its_ending_below() {
        let text = format!("Summary\n\n{}<b> \u{1b}é", "some words ".repeat(11));
        let lines = lines(&text, "a click");
        assert_eq!(lines[..2], ["Summary", ""]);
        assert_eq!(lines[2], "some words some words some words some words some words some");
        assert_eq!(lines[4..], ["(b) ??", "", "a click"]);
        assert!(lines.iter().all(|line| line.len() <= COLUMNS));
    }

    #[test]
    fn a_long_word_is_broken_and_a_long_text_cut_but_for_its_ending() {
        let words = lines(&"x".repeat(COLUMNS + 1), "y");
        assert_eq!(words[1..], ["x", "", "y"]);
        let rows = lines(&"x\n".repeat(99), "y");
        assert_eq!(rows[LINES_MAX - 1..], ["x", "...", "", "y"]);
        assert_eq!(lines(&"x".repeat(9999), "y").concat().len(), TEXT_MAX + " ...y".len());
    }
}
