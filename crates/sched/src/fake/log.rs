// SPDX-License-Identifier: MIT OR Apache-2.0
//! An in-memory journal, and the crash that it shares with the machine.

use crate::journal::Log;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

/// Counts steps and simulates a crash after some of them: from then on every operation fails.
#[derive(Clone, Default)]
pub(crate) struct CrashPoint {
    left: Rc<Cell<Option<usize>>>,
    /// Number of steps refused after the crash.
    missed: Rc<Cell<usize>>,
    /// Total number of attempted steps.
    pub(crate) taken: Rc<Cell<usize>>,
}

impl CrashPoint {
    pub(crate) fn set(&self, steps: Option<usize>) {
        self.left.set(steps);
        self.missed.set(0);
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.left.get() == Some(0)
    }

    /// Returns `true` if the step still happens.
    pub(super) fn burn(&self) -> bool {
        self.taken.set(self.taken.get() + 1);
        match self.left.get() {
            None => true,
            Some(0) => {
                self.missed.set(self.missed.get() + 1);
                false
            }
            Some(left) => {
                self.left.set(Some(left - 1));
                true
            }
        }
    }
}

/// A journal shared by successive runs of the program.
#[derive(Clone, Default)]
pub(crate) struct MemoryLog {
    bytes: Rc<RefCell<Vec<u8>>>,
    pub(crate) crash_point: CrashPoint,
    /// Number of bytes of the last line that a crashed write leaves behind.
    pub(crate) torn: Rc<Cell<usize>>,
}

impl MemoryLog {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.borrow().clone()
    }

    pub(crate) fn set(&self, bytes: &[u8]) {
        *self.bytes.borrow_mut() = bytes.to_vec();
    }
}

impl Log for MemoryLog {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.bytes())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.crash_point.burn() {
            self.bytes.borrow_mut().extend(bytes);
            return Ok(());
        }
        // Only the write interrupted by the crash is torn.
        if self.crash_point.missed.get() == 1 {
            let torn = self.torn.take().min(bytes.len());
            self.bytes.borrow_mut().extend(&bytes[..torn]);
        }
        Err(io::Error::other("stopped"))
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.crash_point.burn() {
            return Err(io::Error::other("stopped"));
        }
        self.set(bytes);
        Ok(())
    }
}
