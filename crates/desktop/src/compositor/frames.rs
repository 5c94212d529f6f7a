// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times at which a compositor shows something new, as a user in front of its screen sees it.

use super::frame::{Frame, FrameShape};
use super::link::{CompositorLink, CompositorState, TIMEOUT};
use crate::clock;
use crate::error::DisplayError;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use tipme_record::Nanos;
use wayland_client::protocol::wl_buffer::WlBuffer;
use wayland_client::protocol::wl_output::WlOutput;
use wayland_client::protocol::wl_shm::WlShm;
use wayland_client::protocol::wl_shm_pool::WlShmPool;
use wayland_client::{Connection, Dispatch, Proxy, QueueHandle, WEnum, delegate_noop};
use wayland_protocols_wlr::screencopy::v1::client::zwlr_screencopy_frame_v1::{
    self, ZwlrScreencopyFrameV1,
};
use wayland_protocols_wlr::screencopy::v1::client::zwlr_screencopy_manager_v1::ZwlrScreencopyManagerV1;

delegate_noop!(CompositorState: ignore WlBuffer);
delegate_noop!(CompositorState: ignore WlShm);
delegate_noop!(CompositorState: ignore WlShmPool);
delegate_noop!(CompositorState: ignore ZwlrScreencopyManagerV1);

/// First protocol version that can wait for damage.
const VERSION: u32 = 2;

/// Maximum size of a frame in bytes.
const BYTES_MAX: u64 = 256 << 20;

/// Detects when the first output of a compositor shows something new, by the protocol
/// `zwlr_screencopy_v1`.
pub struct FrameWatch {
    link: CompositorLink,
    manager: ZwlrScreencopyManagerV1,
    output: WlOutput,
    shm: WlShm,
    /// Buffer for frames; its contents are ignored.
    buffer: Option<WlBuffer>,
    /// The requested frame.
    asked: Option<ZwlrScreencopyFrameV1>,
}

impl FrameWatch {
    /// Starts to watch; returns `None` if the compositor lacks the protocol.
    ///
    /// # Errors
    /// Fails if the compositor is not reachable.
    pub fn open(socket: &Path) -> Result<Option<FrameWatch>, DisplayError> {
        let mut link = CompositorLink::open(socket)?;
        let manager = link
            .bind(VERSION)
            .filter(|manager: &ZwlrScreencopyManagerV1| manager.version() == VERSION);
        let (output, shm) = (link.bind(1), link.bind(1));
        let (Some(manager), Some(output), Some(shm)) = (manager, output, shm) else {
            return Ok(None);
        };
        Ok(Some(FrameWatch { link, manager, output, shm, buffer: None, asked: None }))
    }

    /// Waits until something new is shown; returns the time of that, or `None` on a timeout.
    ///
    /// # Errors
    /// Fails if the compositor is gone, or gives no frame.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Nanos>, DisplayError> {
        if self.asked.is_none() {
            self.asked = Some(self.ask()?);
        }
        let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
        if !self.link.wait(deadline, |heard| heard.frame.shown.is_some() || heard.frame.failed)? {
            return Ok(None);
        }
        self.asked.take().as_ref().inspect(|frame| frame.destroy());
        let shown = std::mem::take(&mut self.link.heard.frame).shown;
        shown.map(Some).ok_or_else(|| self.link.lost("it no longer provides screenshots"))
    }

    /// Requests a frame once something has changed.
    fn ask(&mut self) -> Result<ZwlrScreencopyFrameV1, DisplayError> {
        self.link.heard.frame = Frame::default();
        let frame = self.manager.capture_output(0, &self.output, &self.link.handle(), ());
        let deadline = clock::now().after(TIMEOUT);
        self.link.wait(deadline, |heard| heard.frame.shape.is_some() || heard.frame.failed)?;
        let shape = self
            .link
            .heard
            .frame
            .shape
            .ok_or_else(|| self.link.lost("it provides no screenshots"))?;
        if self.buffer.is_none() {
            self.buffer = Some(self.make_buffer(shape)?);
        }
        self.buffer.as_ref().inspect(|buffer| frame.copy_with_damage(buffer));
        Ok(frame)
    }

    fn make_buffer(&self, shape: FrameShape) -> Result<WlBuffer, DisplayError> {
        let bytes = u64::from(shape.stride) * u64::from(shape.height);
        if bytes == 0 || bytes > BYTES_MAX {
            return Err(self.link.lost(format!("a screenshot of {bytes} bytes is too large")));
        }
        let memory = memfd_create("screen", MemfdFlags::CLOEXEC)
            .and_then(|file| ftruncate(&file, bytes).map(|()| file));
        let memory = memory.map_err(|error| self.link.lost(error))?;
        let handle = self.link.handle();
        let pool = self.shm.create_pool(memory.as_fd(), bytes as i32, &handle, ());
        let (width, height, stride) =
            (shape.width as i32, shape.height as i32, shape.stride as i32);
        let buffer = pool.create_buffer(0, width, height, stride, shape.format, &handle, ());
        pool.destroy();
        Ok(buffer)
    }
}

impl Dispatch<ZwlrScreencopyFrameV1, ()> for CompositorState {
    fn event(
        heard: &mut CompositorState,
        _: &ZwlrScreencopyFrameV1,
        event: zwlr_screencopy_frame_v1::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<CompositorState>,
    ) {
        use zwlr_screencopy_frame_v1::Event;
        match event {
            Event::Buffer { format: WEnum::Value(format), width, height, stride } => {
                heard.frame.shape = Some(FrameShape { format, width, height, stride });
            }
            Event::Ready { tv_sec_hi, tv_sec_lo, tv_nsec } => {
                let seconds = u64::from(tv_sec_hi) << 32 | u64::from(tv_sec_lo);
                heard.frame.shown = Some(Nanos(
                    seconds.saturating_mul(1_000_000_000).saturating_add(tv_nsec.into()),
                ));
            }
            Event::Failed => heard.frame.failed = true,
            _ => {}
        }
    }
}
