// SPDX-License-Identifier: MIT OR Apache-2.0
//! Window that answers every key and records its own time stamps: the ground truth for recordings.

use crate::clock;
use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use std::time::Duration;
use tipme_record::Nanos;
use x11rb::COPY_DEPTH_FROM_PARENT;
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask, Gcontext, ImageFormat, Rectangle,
    Window, WindowClass,
};

/// Time stamps of one key press.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamps {
    /// The event was read from the socket.
    pub received: Nanos,
    /// The drawing requests were sent.
    pub drawn: Nanos,
    /// The server's answer to a request behind the drawing arrived.
    pub finished: Nanos,
}

/// The window.
pub struct EchoWindow {
    connection: DisplayConnection,
    window: Window,
    paint: Gcontext,
    keys: u32,
}

impl EchoWindow {
    /// Maps the window; the window manager gives it the focus.
    pub fn open(target: &DisplayTarget) -> Result<EchoWindow, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        let (wire, root) = (connection.wire(), connection.root());
        let (window, paint) = (connection.new_id()?, connection.new_id()?);
        let screen = wire
            .setup()
            .roots
            .first()
            .map_or((0, 1), |screen| (screen.black_pixel, screen.white_pixel));
        let look =
            CreateWindowAux::new().background_pixel(screen.1).event_mask(EventMask::KEY_PRESS);
        let made = wire.create_window(
            COPY_DEPTH_FROM_PARENT,
            window,
            root,
            40,
            40,
            400,
            200,
            0,
            WindowClass::INPUT_OUTPUT,
            0,
            &look,
        );
        connection.send(made)?;
        let colours =
            CreateGCAux::new().foreground(screen.0).background(screen.1).graphics_exposures(0);
        connection.done(wire.create_gc(paint, window, &colours))?;
        connection.done(connection.wire().map_window(window))?;
        Ok(EchoWindow { connection, window, paint, keys: 0 })
    }

    /// Waits for a key press and answers it; returns `None` on a timeout.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Stamps>, DisplayError> {
        self.receive(timeout)?.map(|received| self.answer(received)).transpose()
    }

    /// Waits for a key press; returns the time of its receipt, or `None` on a timeout. The caller
    /// then calls [`EchoWindow::answer`].
    pub fn receive(&mut self, timeout: Duration) -> Result<Option<Nanos>, DisplayError> {
        let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
        while let Some(event) = self.connection.event(deadline)? {
            if let Event::KeyPress(_) = event {
                return Ok(Some(clock::now()));
            }
        }
        Ok(None)
    }

    /// Draws the answer to a received key.
    pub fn answer(&mut self, received: Nanos) -> Result<Stamps, DisplayError> {
        self.keys += 1;
        self.draw()?;
        let drawn = clock::now();
        self.connection.reply(self.connection.wire().get_input_focus())?;
        Ok(Stamps { received, drawn, finished: clock::now() })
    }

    /// Draws a white picture of 250 pixels square: more than a socket takes at once, and its bytes
    /// pass for long requests.
    pub fn picture(&self) -> Result<(), DisplayError> {
        const SIDE: u16 = 250;
        let wire = self.connection.wire();
        let depth = wire.setup().roots.first().map_or(24, |screen| screen.root_depth);
        let pixels = vec![0xff; usize::from(SIDE) * usize::from(SIDE) * 4];
        let format = ImageFormat::Z_PIXMAP;
        let sent =
            wire.put_image(format, self.window, self.paint, SIDE, SIDE, 0, 0, 0, depth, &pixels);
        self.connection.send(sent)?;
        self.connection.flush()
    }

    fn draw(&self) -> Result<(), DisplayError> {
        let wire = self.connection.wire();
        let place = Rectangle { x: (self.keys % 38 * 10) as i16, y: 60, width: 8, height: 16 };
        self.connection.send(wire.poly_fill_rectangle(self.window, self.paint, &[place]))?;
        let text = self.keys.to_string();
        let written = wire.image_text8(self.window, self.paint, 10, 30, text.as_bytes());
        self.connection.send(written)?;
        self.connection.flush()
    }
}
