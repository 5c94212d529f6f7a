// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may call a daemon: root, users that are named to it, members of a group, and those of whom an authority says so.
//!
//! What is known at once is answered at once. The authority is asked by a thread; a caller of whom it has
//! not said anything within [`TIMEOUT`] may call where it said yes within [`KEPT`]: a machine that is too busy to
//! answer is what users complain of.

use crate::accounts::is_member;
use crate::authority::{Authority, Said};
use crate::rates::Rates;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The group whose members may call the recorder.
pub const GROUP: &str = "tipme";
/// How long an authority may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// How long a yes is good for that cannot be asked for again.
const KEPT: Duration = Duration::from_secs(3600);
/// How long it is kept in mind that a user is not a member of the group.
const LOOKED_UP: Duration = Duration::from_secs(1);
/// Users whose yes is kept in mind, or of whom nothing is known.
const KEPT_MAX: usize = 64;
/// Questions about one user at once, and how often one more.
const ASKED_BURST: u32 = 10;
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Why somebody may call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entitled {
    Root,
    Named,
    Member,
    Authority,
}

impl fmt::Display for Entitled {
    /// As what stands after "you may mark since".
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Entitled::Root => "you are root",
            Entitled::Named => "the recorder's --allow-user names you",
            Entitled::Member => "you are in the group tipme",
            Entitled::Authority => "polkit allows it to you (org.tipme.mark)",
        })
    }
}

/// A caller, and why it may call, or why not: words for people, empty where there is nothing to say but that.
pub type Judged<T> = (T, Result<Entitled, String>);

/// Who may call. Callers of whom nothing is known yet wait, while a question about them is asked.
#[derive(Debug)]
pub struct Gate<Q, T> {
    named: Vec<u32>,
    authority: Option<Authority<Q>>,
    waiting: Vec<WaitingCaller<T>>,
    rates: Rates,
    /// When the authority last said yes.
    yes: BTreeMap<u32, Instant>,
    /// Until when users of whom nothing is known are not looked up again: who calls in a storm costs little.
    unknown: BTreeMap<u32, Instant>,
}

#[derive(Debug)]
struct WaitingCaller<T> {
    number: u64,
    uid: u32,
    until: Instant,
    caller: T,
}

impl<Q: Send + 'static, T> Gate<Q, T> {
    /// Root and these users.
    pub fn of(named: &[u32]) -> Gate<Q, T> {
        let rates = Rates::new(ASKED_BURST, ASK_EVERY);
        let (yes, unknown) = (BTreeMap::new(), BTreeMap::new());
        Gate { named: named.to_vec(), authority: None, waiting: Vec::new(), rates, yes, unknown }
    }

    /// Members of the group [`GROUP`] besides, and those of whom `ask` says yes.
    ///
    /// # Errors
    /// Where no thread can be had that asks.
    pub fn with_authority(self, ask: impl Fn(Q) -> Said + Send + 'static) -> io::Result<Gate<Q, T>> {
        Ok(Gate { authority: Some(Authority::new(ask)?), ..self })
    }

    /// Why this user may call, as far as that is known without asking.
    pub fn known(&self, uid: u32) -> Option<Entitled> {
        match uid {
            0 => Some(Entitled::Root),
            _ if self.named.contains(&uid) => Some(Entitled::Named),
            _ if self.authority.is_some() && is_member(GROUP, uid) => Some(Entitled::Member),
            _ => None,
        }
    }

    /// Says of a caller what is known; `None` where it waits, and [`Gate::settled`] will tell of it.
    pub fn judge(&mut self, uid: u32, question: Q, caller: T, now: Instant) -> Option<Judged<T>> {
        if let Some(why) = self.looked_up(uid, now) {
            return Some((caller, Ok(why)));
        }
        let Some(authority) = &mut self.authority else { return Some((caller, Err(String::new()))) };
        if let Some(wait) = self.rates.take(uid, now) {
            let why = format!("polkit was asked too often; try again in {} s", wait.as_secs() + 1);
            return Some((caller, Err(why)));
        }
        let Some(number) = authority.ask(question) else {
            return Some((caller, self.decide(uid, Said::Nothing("polkit has too much to do".to_owned()), now)));
        };
        self.waiting.push(WaitingCaller { number, uid, until: now + TIMEOUT, caller });
        None
    }

    fn looked_up(&mut self, uid: u32, now: Instant) -> Option<Entitled> {
        self.unknown.retain(|_, until| now < *until);
        if self.unknown.contains_key(&uid) {
            return None;
        }
        let known = self.known(uid);
        if known.is_none() && self.unknown.len() < KEPT_MAX {
            self.unknown.insert(uid, now + LOOKED_UP);
        }
        known
    }

    /// Those who have waited, as far as there is an answer or it is too late for one.
    pub fn settled(&mut self, now: Instant) -> Vec<Judged<T>> {
        let answers: BTreeMap<u64, Said> = self.authority.iter().flat_map(Authority::answers).collect();
        let mut settled = Vec::new();
        for one in std::mem::take(&mut self.waiting) {
            let late = || (one.until <= now).then(|| Said::Nothing(format!("polkit is silent for {TIMEOUT:?}")));
            match answers.get(&one.number).cloned().or_else(late) {
                Some(said) => settled.push((one.caller, self.decide(one.uid, said, now))),
                None => self.waiting.push(one),
            }
        }
        settled
    }

    /// Those who wait.
    pub fn waiting(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|one| &one.caller)
    }

    /// When [`Gate::settled`] is due though there is no answer.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|one| one.until).min()
    }

    /// Readable when the authority has answered.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.authority.as_ref().map(Authority::fd)
    }

    fn decide(&mut self, uid: u32, said: Said, now: Instant) -> Result<Entitled, String> {
        self.yes.retain(|_, at| now.saturating_duration_since(*at) < KEPT);
        let known = self.yes.contains_key(&uid);
        match said {
            Said::Yes if known || self.yes.len() < KEPT_MAX => drop(self.yes.insert(uid, now)),
            Said::Yes => {}
            Said::Nothing(_) if known => {}
            Said::Nothing(why) => return Err(why),
            Said::No(why) => {
                self.yes.remove(&uid);
                return Err(why);
            }
        }
        Ok(Entitled::Authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate<u32, u32> {
        Gate::of(&[7])
    }

    #[test]
    fn a_yes_is_good_for_an_hour_of_silence_and_a_no_ends_it() {
        let (mut gate, now) = (gate(), Instant::now());
        let silence = || Said::Nothing("silent".to_owned());
        assert!(gate.decide(9, silence(), now).is_err());
        assert!(gate.decide(9, Said::Yes, now).is_ok());
        assert!(gate.decide(9, silence(), now + KEPT / 2).is_ok());
        assert!(gate.decide(9, silence(), now + KEPT).is_err());
        assert!(gate.decide(9, Said::Yes, now).is_ok() && gate.decide(9, Said::No(String::new()), now).is_err());
        assert!(gate.decide(9, silence(), now).is_err());
        assert!((0..100).all(|uid| gate.decide(uid, Said::Yes, now).is_ok()) && gate.yes.len() <= KEPT_MAX);
    }

    #[test]
    fn root_and_who_is_named_are_not_asked_about() {
        assert_eq!([0, 7, 8].map(|uid| gate().known(uid)), [Some(Entitled::Root), Some(Entitled::Named), None]);
    }

    #[test]
    fn nobody_waits_for_an_authority_that_hangs() {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let hang = move |_| held.recv().map_or(Said::Yes, |()| Said::Yes);
        let (mut gate, now) = (gate().with_authority(hang).expect("a thread"), Instant::now());
        assert_eq!(gate.judge(9, 9, 9, now), None);
        assert_eq!((gate.settled(now), gate.waiting().count(), gate.deadline()), (vec![], 1, Some(now + TIMEOUT)));
        let settled = gate.settled(now + TIMEOUT);
        assert!(matches!(&settled[..], [(9, Err(why))] if why.contains("silent")), "{settled:?}");
        let judged: Vec<_> = (0..20).map(|caller| gate.judge(100 + caller, caller, caller, now)).collect();
        assert!(judged.last().is_some_and(Option::is_some), "the questions that wait are bounded");
        drop(hold);
    }
}
