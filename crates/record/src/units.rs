// SPDX-License-Identifier: MIT OR Apache-2.0
//! Newtypes for quantities that must not be confused.

use crate::declare::CType;
use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty) = $c:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl CType for $name {
            const C: &'static str = $c;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

unit!(
    /// A CLOCK_MONOTONIC time, or a duration, in nanoseconds.
    Nanos(u64) = "__u64"
);
unit!(
    /// A thread id in the initial PID namespace; 0 is the idle task of some CPU.
    Tid(u32) = "__u32"
);
unit!(
    /// A process id (thread group id) in the initial PID namespace.
    Pid(u32) = "__u32"
);
unit!(
    /// A CPU number.
    Cpu(u32) = "__u32"
);
unit!(
    /// A device number in the kernel's encoding: major << 20
    ///
    /// minor.
    Device(u32) = "__u32"
);
unit!(
    /// Content hash of a stack in the stack table; 0 if no stack was taken.
    StackId(u32) = "__u32"
);

impl Nanos {
    /// Returns the time from `earlier` to `self`, saturating at zero.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns milliseconds as a fraction.
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the time `span` before `self`, saturating at zero.
    pub fn before(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(span.0))
    }

    /// Returns the time `span` after `self`, saturating at the maximum.
    pub fn after(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }

    /// Returns a span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// Returns a span of whole seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs.saturating_mul(1_000_000_000))
    }
}

impl Device {
    /// Returns major and minor number.
    pub fn parts(self) -> (u32, u32) {
        (self.0 >> 20, self.0 & 0xf_ffff)
    }
}
