// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the keyboard focus on compositors, as seen by the display tap.

use crate::skeleton::types::holder;
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use tipme_record::{Nanos, Pid};

/// A change of the focus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FocusGained {
    pub at: Nanos,
    /// Pid of the compositor.
    pub server: Pid,
    /// Client with the focus; `None` if there is none.
    pub client: Option<Pid>,
}

/// Unread focus changes from the kernel, at most a page.
pub(crate) struct FocusChanges {
    ring: RingBuffer<'static>,
    changes: Rc<RefCell<Vec<FocusGained>>>,
}

impl FocusChanges {
    pub(crate) fn open(map: &dyn MapCore) -> Result<FocusChanges> {
        let changes = Rc::<RefCell<Vec<FocusGained>>>::default();
        let (received, mut rings) = (Rc::clone(&changes), RingBufferBuilder::new());
        rings.add(map, move |bytes: &[u8]| {
            received.borrow_mut().extend(change(bytes));
            0
        })?;
        Ok(FocusChanges {
            ring: rings.build().context("cannot map the ring of focus changes")?,
            changes,
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's, which lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    /// Returns the changes since the last call.
    pub(crate) fn take(&self) -> Vec<FocusGained> {
        // Changes that cannot be read now are read the next time.
        self.ring.consume().ok();
        self.changes.take()
    }
}

/// Returns the last change of a holder; `None` while the kernel is writing it.
pub(crate) fn of_holder(read: impl Fn() -> holder) -> Option<FocusGained> {
    let (first, again) = (read(), read());
    let same = (first.at, first.server, first.client) == (again.at, again.server, again.client);
    let client = (first.client != 0).then_some(Pid(first.client));
    (same && first.server != 0).then_some(FocusGained {
        at: Nanos(first.at),
        server: Pid(first.server),
        client,
    })
}

/// Parses `struct focus_change`.
fn change(bytes: &[u8]) -> Option<FocusGained> {
    let at = u64::from_ne_bytes(*bytes.first_chunk()?);
    let server = u32::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
    let client = u32::from_ne_bytes(*bytes.get(12..)?.first_chunk()?);
    Some(FocusGained {
        at: Nanos(at),
        server: Pid(server),
        client: (client != 0).then_some(Pid(client)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_where_it_is_whole() {
        let bytes =
            [7u64.to_ne_bytes().as_slice(), &9u32.to_ne_bytes(), &0u32.to_ne_bytes()].concat();
        assert_eq!(
            change(&bytes),
            Some(FocusGained { at: Nanos(7), server: Pid(9), client: None })
        );
        assert_eq!(change(&bytes[..15]), None);
    }
}
