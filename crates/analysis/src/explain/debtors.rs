// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients that owe a display server an answer for another client, such as the owner of a selection
//! or a window manager.
//!
//! The server itself is idle meanwhile. It sent the debtor an event when its wait began, and the
//! event stayed unread until the debtor ended the wait.

use crate::decode::messages::{Side, Stream};
use crate::explain::feeders::Feeder;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use tipme_record::Nanos;

/// Maximum time between the event and the start of the server's wait, and between the receipt of
/// the event and the end of the wait.
const NEAR: Nanos = Nanos::from_millis(50);

/// Maximum number of events searched per client.
const EVENTS_MAX: usize = 4_096;

impl Recording {
    /// Returns the thread that left an event of a display server unread throughout a wait of the
    /// server and then ended that wait, with the time of the event. At the mark, it is the thread
    /// with the oldest unread event.
    pub(crate) fn debtor(&self, wait: &Span) -> Option<Feeder> {
        let server = self.tasks.pid(wait.tid, wait.start);
        let lasts = wait.end >= self.mark;
        let by = wait.task_waker().map(|by| self.tasks.pid(by, wait.end));
        let injects = |stream: &Stream| self.messages.injectors().contains(&stream.client);
        let streams = self.messages.streams().iter().filter(|stream| {
            stream.server == server && !injects(stream) && (lasts || by == Some(stream.client))
        });
        let owed = streams.filter_map(|stream| Some((self.unread_since(stream, wait)?, stream)));
        let (since, stream) = owed.min_by_key(|(at, _)| *at)?;
        Some(Feeder { tid: stream.reader(Side::EventReceived), since })
    }

    /// Returns the time of the oldest event that a client left unread throughout a wait of the
    /// server.
    fn unread_since(&self, stream: &Stream, wait: &Span) -> Option<Nanos> {
        let sent = stream.side(Side::EventSent);
        let last = sent.partition_point(|part| part.ts <= wait.start.after(NEAR));
        (0..last)
            .rev()
            .take(EVENTS_MAX)
            .take_while(|index| match stream.received(Side::EventSent, *index) {
                Some((_, taken)) => taken.ts.after(NEAR) >= wait.end,
                None => wait.end >= self.mark,
            })
            .last()
            .and_then(|index| Some(sent.get(index)?.ts))
    }
}
