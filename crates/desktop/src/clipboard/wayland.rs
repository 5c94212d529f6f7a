// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clipboard of a compositor by the protocol `zwlr_data_control_v1` (sway, KWin and others), which
//! needs neither window nor focus.

use crate::compositor::{CompositorLink, CompositorState, socket};
use crate::error::DisplayError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{retry_on_intr, write};
use tipme_record::Nanos;
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_client::{Connection, Dispatch, QueueHandle, delegate_noop, event_created_child};
use wayland_protocols_wlr::data_control::v1::client::zwlr_data_control_device_v1::{
    self, EVT_DATA_OFFER_OPCODE, ZwlrDataControlDeviceV1,
};
use wayland_protocols_wlr::data_control::v1::client::zwlr_data_control_manager_v1::ZwlrDataControlManagerV1;
use wayland_protocols_wlr::data_control::v1::client::zwlr_data_control_offer_v1::ZwlrDataControlOfferV1;
use wayland_protocols_wlr::data_control::v1::client::zwlr_data_control_source_v1::{
    self, ZwlrDataControlSourceV1,
};

/// Offered MIME types of the text.
const FORMS: [&str; 5] =
    ["text/plain;charset=utf-8", "text/plain", "UTF8_STRING", "STRING", "TEXT"];
/// Maximum number of pending requests for the text.
const REQUESTS_MAX: usize = 16;
/// Maximum time for a program to read the text.
const WRITE_TIMEOUT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

delegate_noop!(CompositorState: ignore ZwlrDataControlManagerV1);
delegate_noop!(CompositorState: ignore ZwlrDataControlOfferV1);

/// A compositor's clipboard that this process owns, as long as the value lives.
pub(super) struct WaylandClipboard {
    link: CompositorLink,
    text: String,
}

impl WaylandClipboard {
    /// Takes the clipboard; returns `None` if the compositor lacks the protocol.
    ///
    /// # Errors
    /// Fails if there is no compositor, or it does not accept the text.
    pub(super) fn take(text: &str) -> Result<Option<WaylandClipboard>, DisplayError> {
        let name = std::env::var("WAYLAND_DISPLAY").unwrap_or_default();
        let mut link = CompositorLink::open(&socket(&name)?)?;
        let (Some(manager), Some(seat)) =
            (link.bind::<ZwlrDataControlManagerV1>(1), link.bind::<WlSeat>(1))
        else {
            return Ok(None);
        };
        let handle = link.handle();
        let source = manager.create_data_source(&handle, ());
        FORMS.iter().for_each(|form| source.offer((*form).to_owned()));
        let device = manager.get_data_device(&seat, &handle, ());
        // The device first reports the current contents of the clipboard.
        link.settle()?;
        link.heard.clipboard.is_current = false;
        device.set_selection(Some(&source));
        link.settle()?;
        let news = &link.heard.clipboard;
        if news.is_lost || !news.is_current {
            return Err(link.lost("it did not accept the text; copy again"));
        }
        Ok(Some(WaylandClipboard { link, text: text.to_owned() }))
    }

    /// Serves requests for the text until a deadline; returns `true` while this process owns the
    /// clipboard.
    ///
    /// # Errors
    /// Fails if the compositor is gone.
    pub(super) fn serve(&mut self, deadline: Nanos) -> Result<bool, DisplayError> {
        while self.link.wait(deadline, |heard| {
            heard.clipboard.is_lost || !heard.clipboard.requests.is_empty()
        })? {
            for request in std::mem::take(&mut self.link.heard.clipboard.requests) {
                give(&request, self.text.as_bytes());
            }
            if self.link.heard.clipboard.is_lost {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Writes the text to a program that requested it; stops if that does not read.
fn give(to: &OwnedFd, text: &[u8]) {
    // Possibly a pipe without a reader: the write must not block.
    let flags = fcntl_getfl(to).unwrap_or(OFlags::empty());
    if fcntl_setfl(to, flags | OFlags::NONBLOCK).is_err() {
        return;
    }
    let mut left = text;
    while !left.is_empty() {
        let mut ready = [PollFd::from_borrowed_fd(to.as_fd(), PollFlags::OUT)];
        if poll(&mut ready, Some(&WRITE_TIMEOUT)).unwrap_or(0) == 0 {
            return;
        }
        match retry_on_intr(|| write(to, left)) {
            Ok(written) => left = &left[written.min(left.len())..],
            Err(_) => return,
        }
    }
}

impl Dispatch<ZwlrDataControlSourceV1, ()> for CompositorState {
    fn event(
        heard: &mut CompositorState,
        _: &ZwlrDataControlSourceV1,
        event: zwlr_data_control_source_v1::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<CompositorState>,
    ) {
        use zwlr_data_control_source_v1::Event;
        match event {
            // Closing the pipe of a request beyond the bound gives it an empty text.
            Event::Send { fd, .. } if heard.clipboard.requests.len() < REQUESTS_MAX => {
                heard.clipboard.requests.push(fd);
            }
            Event::Cancelled => heard.clipboard.is_lost = true,
            _ => {}
        }
    }
}

impl Dispatch<ZwlrDataControlDeviceV1, ()> for CompositorState {
    fn event(
        heard: &mut CompositorState,
        _: &ZwlrDataControlDeviceV1,
        event: zwlr_data_control_device_v1::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<CompositorState>,
    ) {
        use zwlr_data_control_device_v1::Event;
        match event {
            Event::Selection { id } => {
                heard.clipboard.is_current = id.is_some();
                id.iter().for_each(ZwlrDataControlOfferV1::destroy);
            }
            Event::Finished => heard.clipboard.is_lost = true,
            _ => {}
        }
    }

    event_created_child!(CompositorState, ZwlrDataControlDeviceV1, [
        EVT_DATA_OFFER_OPCODE => (ZwlrDataControlOfferV1, ())
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;
    use std::fs::File;
    use std::io::Read;

    #[test]
    fn a_text_longer_than_a_pipe_is_written_whole() {
        let (reader, writer) = pipe().expect("a pipe");
        let text = "a verdict ".repeat(6 << 10);
        let given = text.clone();
        let writing = std::thread::spawn(move || give(&writer, given.as_bytes()));
        let mut read = String::new();
        File::from(reader).read_to_string(&mut read).expect("it is written");
        writing.join().expect("it ends");
        assert!(read == text, "{} of {} bytes", read.len(), text.len());
    }
}
