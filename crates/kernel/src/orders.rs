// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders from a recorder that has dropped its privileges to the process that has kept one: see
//! [`crate::count()`].

use std::io::Read;

/// An order, encoded as three bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterOrder {
    /// Starts the count of the programs' run time; `End` ends it, and is answered with its length.
    Begin,
    End,
    /// Attaches the set of standby programs with this index; `Detach` detaches it.
    Attach(u8),
    Detach(u8),
    /// Samples this CPU, which went offline or came online.
    Sample(u16),
}

/// Encoding of refusals in answers, as numbers beyond any count, from the greatest one down.
const SAMPLE_BASE: u64 = 1 << 8;
const SAMPLE_END: u64 = SAMPLE_BASE + (1 << 16);

impl CounterOrder {
    pub fn bytes(self) -> [u8; 3] {
        let (kind, number) = match self {
            CounterOrder::Begin => (b'1', 0),
            CounterOrder::End => (b'0', 0),
            CounterOrder::Attach(place) => (b'A', u16::from(place)),
            CounterOrder::Detach(place) => (b'D', u16::from(place)),
            CounterOrder::Sample(cpu) => (b'S', cpu),
        };
        let [low, high] = number.to_le_bytes();
        [kind, low, high]
    }

    /// Reads the next order; returns `None` at the end or for an invalid one.
    pub(crate) fn read(from: &mut impl Read) -> Option<CounterOrder> {
        let mut bytes = [0; 3];
        from.read_exact(&mut bytes).ok()?;
        let [kind, low, high] = bytes;
        match kind {
            b'1' => Some(CounterOrder::Begin),
            b'0' => Some(CounterOrder::End),
            b'A' => Some(CounterOrder::Attach(low)),
            b'D' => Some(CounterOrder::Detach(low)),
            b'S' => Some(CounterOrder::Sample(u16::from_le_bytes([low, high]))),
            _ => None,
        }
    }

    /// Returns the answer if the kernel refuses to attach.
    pub(crate) fn refusal(self) -> u64 {
        match self {
            CounterOrder::Attach(place) => u64::MAX - u64::from(place),
            CounterOrder::Sample(cpu) => u64::MAX - SAMPLE_BASE - u64::from(cpu),
            CounterOrder::Begin | CounterOrder::End | CounterOrder::Detach(_) => 0,
        }
    }

    /// Returns the order that an answer refuses; `None` for a length of time or 0.
    pub fn refused(answer: u64) -> Option<CounterOrder> {
        match u64::MAX - answer {
            place @ 0..SAMPLE_BASE => Some(CounterOrder::Attach(place as u8)),
            cpu @ SAMPLE_BASE..SAMPLE_END => Some(CounterOrder::Sample((cpu - SAMPLE_BASE) as u16)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_refusals_are_read_back() {
        let refusable = [
            CounterOrder::Attach(0),
            CounterOrder::Attach(255),
            CounterOrder::Sample(0),
            CounterOrder::Sample(1_023),
        ];
        let others = [CounterOrder::Begin, CounterOrder::End, CounterOrder::Detach(2)];
        let all: Vec<CounterOrder> = refusable.into_iter().chain(others).collect();
        let bytes: Vec<u8> = all.iter().flat_map(|order| order.bytes()).collect();
        let mut from = &bytes[..];
        assert_eq!(std::iter::from_fn(|| CounterOrder::read(&mut from)).collect::<Vec<_>>(), all);
        assert_eq!(
            refusable.map(|order| CounterOrder::refused(order.refusal())),
            refusable.map(Some)
        );
        assert_eq!([0, 1 << 40, u64::MAX - SAMPLE_END].map(CounterOrder::refused), [None; 3]);
        assert_eq!(CounterOrder::read(&mut &b"?__"[..]), None);
    }
}
