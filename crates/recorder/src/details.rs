// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details recorded beyond the usual: permanently by an option of the recorder, or temporarily on
//! request.
//!
//! A request ends by itself, even if its client is gone. A user has one request per detail, the
//! latest; a detail stays on while any request for it lasts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tipme_control::{Rates, RecordedDetail};
use tipme_kernel::Detail;
use tipme_record::Nanos;
use tipme_record::incident::DetailSpan;

/// Maximum duration of a request, in seconds.
const SECONDS_MAX: u32 = 3_600;

/// Maximum number of simultaneous requests by all users; root is exempt.
const WISHES_MAX: usize = 40;

/// Maximum burst of requests by one user other than root, and the time after which one more is
/// allowed.
const BURST: u32 = 8;
const EVERY: Duration = Duration::from_secs(5);

/// Maximum number of past spans remembered.
const SPANS_MAX: usize = 64;

/// A user's request to record a detail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wish {
    detail: Detail,
    uid: u32,
    until: Nanos,
}

/// Details recorded in a window.
pub(crate) struct DetailTimes {
    /// Details on for the whole window by an option of the recorder.
    pub(crate) always: Vec<Detail>,
    /// Spans of details recorded on request.
    pub(crate) asked: Vec<DetailSpan>,
}

impl DetailTimes {
    /// Returns the names of all details recorded in any part of the window, in the order of
    /// [`Detail::ALL`].
    pub(crate) fn names(&self) -> Vec<String> {
        let any = Detail::ALL.into_iter().filter(|detail| {
            self.always.contains(detail) || self.asked.iter().any(|span| span.name == detail.name())
        });
        any.map(|detail| detail.name().to_owned()).collect()
    }
}

/// Current and past details.
pub(crate) struct Details {
    always: Vec<Detail>,
    wishes: Vec<Wish>,
    /// Details now on by request, with their start.
    running: Vec<(Detail, Nanos)>,
    past: VecDeque<DetailSpan>,
    rates: Rates,
}

impl Details {
    pub(crate) fn new(always: &[Detail]) -> Details {
        Details {
            always: always.to_vec(),
            wishes: Vec::new(),
            running: Vec::new(),
            past: VecDeque::new(),
            rates: Rates::new(BURST, EVERY),
        }
    }

    /// Requests details for a user for a time; zero withdraws the request.
    ///
    /// # Errors
    /// The reason of a refusal, as a message for the user; nothing has changed then.
    pub(crate) fn wish(
        &mut self,
        uid: u32,
        details: &[Detail],
        seconds: u32,
        now: Nanos,
    ) -> Result<(), String> {
        if seconds > SECONDS_MAX {
            return Err(format!(
                "{seconds} s are too long; more detail is recorded for {SECONDS_MAX} s at most"
            ));
        }
        if uid != 0
            && let Some(wait) = self.rates.take(uid, Instant::now())
        {
            let seconds = wait.as_secs() + 1;
            return Err(format!("user {uid} asks too often for more detail; wait {seconds} s"));
        }
        let mut wishes = self.wishes.clone();
        wishes.retain(|wish| wish.uid != uid || !details.contains(&wish.detail));
        if seconds > 0 && uid != 0 && wishes.len() + details.len() > WISHES_MAX {
            return Err(
                "too many users want more detail; wait until their requests end (tipme status)"
                    .to_owned(),
            );
        }
        self.wishes = wishes;
        let until = now.after(Nanos::from_secs(seconds.into()));
        let wanted = Detail::ALL
            .into_iter()
            .filter(|detail| details.contains(detail) && !self.always.contains(detail));
        self.wishes.extend(wanted.map(|detail| Wish { detail, uid, until }));
        Ok(())
    }

    /// Ends expired requests; returns `true` if the set of details to record has changed.
    pub(crate) fn settle(&mut self, now: Nanos) -> bool {
        self.wishes.retain(|wish| wish.until > now);
        let (running, ended): (Vec<_>, Vec<_>) =
            self.running.iter().copied().partition(|(detail, _)| self.is_wanted(*detail));
        let mut begun = Detail::ALL.to_vec();
        begun.retain(|detail| self.is_wanted(*detail) && self.since(*detail).is_none());
        let changed = !(ended.is_empty() && begun.is_empty());
        self.past.extend(ended.into_iter().map(|(detail, since)| span(detail, since, now)));
        self.past.drain(..self.past.len().saturating_sub(SPANS_MAX));
        self.running = running;
        self.running.extend(begun.into_iter().map(|detail| (detail, now)));
        changed
    }

    fn is_wanted(&self, detail: Detail) -> bool {
        self.wishes.iter().any(|wish| wish.detail == detail)
    }

    fn since(&self, detail: Detail) -> Option<Nanos> {
        self.running.iter().find(|(running, _)| *running == detail).map(|(_, since)| *since)
    }

    /// Returns all details that are on.
    pub(crate) fn on(&self) -> Vec<Detail> {
        let mut on = Detail::ALL.to_vec();
        on.retain(|detail| self.always.contains(detail) || self.since(*detail).is_some());
        on
    }

    /// Returns the details in a window from `from` to a mark at `now`.
    pub(crate) fn times(&self, from: Nanos, now: Nanos) -> DetailTimes {
        let running = self.running.iter().map(|(detail, since)| span(*detail, *since, now));
        let asked = self.past.iter().cloned().chain(running).filter(|span| span.until_ns > from.0);
        DetailTimes { always: self.always.clone(), asked: asked.collect() }
    }

    /// Returns the details that are on, for the status; permanent ones start at `armed`.
    pub(crate) fn statuses(&self, armed: Nanos) -> Vec<RecordedDetail> {
        let statuses = self.on().into_iter().map(|detail| {
            let wishes = self.wishes.iter().filter(|wish| wish.detail == detail);
            let last = wishes.max_by_key(|wish| wish.until);
            RecordedDetail {
                name: detail.name().to_owned(),
                since_ns: last.and_then(|_| self.since(detail)).unwrap_or(armed).0,
                until_ns: last.map(|wish| wish.until.0),
                by_uid: last.map(|wish| wish.uid),
            }
        });
        statuses.collect()
    }
}

fn span(detail: Detail, from: Nanos, until: Nanos) -> DetailSpan {
    DetailSpan { name: detail.name().to_owned(), from_ns: from.0, until_ns: until.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Nanos {
        Nanos(seconds * SECOND)
    }

    fn statuses(details: &Details) -> Vec<(String, u64, Option<u64>, Option<u32>)> {
        let statuses = details.statuses(at(1)).into_iter().map(|one| {
            (one.name, one.since_ns / SECOND, one.until_ns.map(|ns| ns / SECOND), one.by_uid)
        });
        statuses.collect()
    }

    #[test]
    fn a_requested_detail_ends_by_itself() {
        let mut details = Details::new(&[Detail::Waits]);
        assert_eq!(details.wish(7, &[Detail::Locks, Detail::Locks], 10, at(5)), Ok(()));
        assert!(details.settle(at(5)) && !details.settle(at(14)));
        assert_eq!(details.on(), [Detail::Waits, Detail::Locks]);
        let waits = ("waits".to_owned(), 1, None, None);
        let locks = ("locks".to_owned(), 5, Some(15), Some(7));
        assert_eq!(statuses(&details), [waits.clone(), locks]);
        assert!(details.settle(at(15)));
        assert_eq!((details.on(), statuses(&details)), (vec![Detail::Waits], vec![waits]));
        let spans = details.times(at(14), at(20)).asked;
        assert_eq!(spans, [span(Detail::Locks, at(5), at(15))]);
        assert_eq!(details.times(at(15), at(20)).asked, []);
    }

    #[test]
    fn a_detail_stays_on_as_long_as_anybody_wants_it() {
        let mut details = Details::new(&[]);
        details.wish(7, &[Detail::Locks], 10, at(5)).unwrap();
        details.settle(at(5));
        details.wish(8, &[Detail::Locks], 60, at(6)).unwrap();
        details.wish(7, &[Detail::Locks], 0, at(7)).unwrap();
        assert!(!details.settle(at(7)));
        assert_eq!(statuses(&details), [("locks".to_owned(), 5, Some(66), Some(8))]);
        details.wish(8, &[Detail::Locks], 0, at(8)).unwrap();
        assert!(details.settle(at(8)) && details.on().is_empty());
    }

    #[test]
    fn wishes_are_bounded() {
        let mut details = Details::new(&[]);
        let error = details.wish(7, &[Detail::Locks], SECONDS_MAX + 1, at(5)).unwrap_err();
        assert_eq!(error, "3601 s are too long; more detail is recorded for 3600 s at most");
        let refused = (0..=BURST).filter_map(|_| details.wish(7, &[Detail::Locks], 1, at(5)).err());
        assert!(
            refused.last().unwrap().starts_with("user 7 asks too often for more detail; wait ")
        );
        let refused: Vec<String> =
            (10..30).filter_map(|uid| details.wish(uid, &Detail::ALL, 9, at(5)).err()).collect();
        assert!(
            refused.iter().all(|why| why.starts_with("too many users want more detail"))
                && refused.len() > 10
        );
        assert!(details.wishes.len() <= WISHES_MAX);
        assert_eq!(details.wish(0, &Detail::ALL, 9, at(5)), Ok(()));
        for turn in 0..2 * SPANS_MAX as u64 {
            details.wish(0, &[Detail::Waits], u32::from(turn % 2 == 0), at(5)).unwrap();
            details.settle(at(5 + turn));
        }
        assert!(details.past.len() <= SPANS_MAX);
    }
}
