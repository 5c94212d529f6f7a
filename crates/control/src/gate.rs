// SPDX-License-Identifier: MIT OR Apache-2.0
//! Authorization to call a daemon: root, users named by an option, members of a group, and users
//! approved by an authority.
//!
//! Known users are decided at once. A thread asks the authority. If it does not answer within
//! [`TIMEOUT`], users approved within [`KEPT`] may still call: a machine too busy to answer is just
//! what users want to mark.

use crate::accounts::is_member;
use crate::authority::{Authority, Said};
use crate::rates::Rates;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Group of users that may call the recorder.
pub const GROUP: &str = "tipme";
/// Maximum time for an answer of the authority.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which an approval is valid while the authority does not answer.
const KEPT: Duration = Duration::from_secs(3600);
/// Time for which a negative group lookup is cached.
const LOOKED_UP: Duration = Duration::from_secs(1);
/// Maximum number of users with a cached approval, and of those with a cached lookup.
const KEPT_MAX: usize = 64;
/// Maximum burst of questions about one user, and the time after which one more is allowed.
const ASKED_BURST: u32 = 10;
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Reason for which a user may call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entitled {
    Root,
    Named,
    Member,
    Authority,
}

impl fmt::Display for Entitled {
    /// Continues the phrase "you may mark since".
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Entitled::Root => "you are root",
            Entitled::Named => "the recorder's --allow-user names you",
            Entitled::Member => "you are in the group tipme",
            Entitled::Authority => "polkit allows it to you (org.tipme.mark)",
        })
    }
}

/// A caller with its right to call, or the reason of a refusal for the user, which may be empty.
pub type Judged<T> = (T, Result<Entitled, String>);

/// Gatekeeper of a daemon. Unknown callers wait while the authority is asked about them.
#[derive(Debug)]
pub struct Gate<Q, T> {
    named: Vec<u32>,
    authority: Option<Authority<Q>>,
    waiting: Vec<WaitingCaller<T>>,
    rates: Rates,
    /// Time of the authority's last approval, by uid.
    yes: BTreeMap<u32, Instant>,
    /// End of the cached lookup of unknown users: a storm of calls costs little.
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
    /// Returns a gate for root and these users.
    pub fn new(named: &[u32]) -> Gate<Q, T> {
        let rates = Rates::new(ASKED_BURST, ASK_EVERY);
        let (yes, unknown) = (BTreeMap::new(), BTreeMap::new());
        Gate { named: named.to_vec(), authority: None, waiting: Vec::new(), rates, yes, unknown }
    }

    /// Also admits members of the group [`GROUP`], and users approved by `ask`.
    ///
    /// # Errors
    /// If there are no file descriptors for the asking thread.
    pub fn with_authority(
        self,
        ask: impl Fn(Q) -> Said + Send + 'static,
    ) -> io::Result<Gate<Q, T>> {
        Ok(Gate { authority: Some(Authority::new(ask)?), ..self })
    }

    /// Returns the reason for which this user may call, as far as it is known without asking.
    pub fn known(&self, uid: u32) -> Option<Entitled> {
        match uid {
            0 => Some(Entitled::Root),
            _ if self.named.contains(&uid) => Some(Entitled::Named),
            _ if self.authority.is_some() && is_member(GROUP, uid) => Some(Entitled::Member),
            _ => None,
        }
    }

    /// Decides on a caller; returns `None` if it has to wait, for a later result of
    /// [`Gate::settled`].
    pub fn judge(&mut self, uid: u32, question: Q, caller: T, now: Instant) -> Option<Judged<T>> {
        if let Some(why) = self.looked_up(uid, now) {
            return Some((caller, Ok(why)));
        }
        let Some(authority) = &mut self.authority else {
            return Some((caller, Err(String::new())));
        };
        if let Some(wait) = self.rates.take(uid, now) {
            let why = format!("polkit was asked too often; try again in {} s", wait.as_secs() + 1);
            return Some((caller, Err(why)));
        }
        let Some(number) = authority.ask(question) else {
            return Some((
                caller,
                self.decide(uid, Said::Nothing("polkit has too much to do".to_owned()), now),
            ));
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

    /// Returns the waiting callers that are decided, by an answer or by the timeout.
    pub fn settled(&mut self, now: Instant) -> Vec<Judged<T>> {
        let answers: BTreeMap<u64, Said> =
            self.authority.iter().flat_map(Authority::answers).collect();
        let mut settled = Vec::new();
        for one in std::mem::take(&mut self.waiting) {
            let said = match answers.get(&one.number) {
                Some(said) => said.clone(),
                None if one.until <= now => {
                    Said::Nothing(format!("polkit is silent for {TIMEOUT:?}"))
                }
                None => {
                    self.waiting.push(one);
                    continue;
                }
            };
            settled.push((one.caller, self.decide(one.uid, said, now)));
        }
        settled
    }

    /// Returns the waiting callers.
    pub fn waiting(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|one| &one.caller)
    }

    /// Returns the time of the next timeout, at which [`Gate::settled`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|one| one.until).min()
    }

    /// Returns a descriptor that becomes readable when the authority has answered.
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
        Gate::new(&[7])
    }

    fn silence() -> Said {
        Said::Nothing("silent".to_owned())
    }

    #[test]
    fn an_approval_lasts_an_hour_of_silence_and_a_denial_ends_it() {
        let (mut gate, now) = (gate(), Instant::now());
        assert!(gate.decide(9, silence(), now).is_err());
        assert!(gate.decide(9, Said::Yes, now).is_ok());
        assert!(gate.decide(9, silence(), now + KEPT / 2).is_ok());
        assert!(gate.decide(9, silence(), now + KEPT).is_err());
        assert!(
            gate.decide(9, Said::Yes, now).is_ok()
                && gate.decide(9, Said::No(String::new()), now).is_err()
        );
        assert!(gate.decide(9, silence(), now).is_err());
        assert!(
            (0..100).all(|uid| gate.decide(uid, Said::Yes, now).is_ok())
                && gate.yes.len() <= KEPT_MAX
        );
    }

    #[test]
    fn root_and_named_users_need_no_authority() {
        assert_eq!(
            [0, 7, 8].map(|uid| gate().known(uid)),
            [Some(Entitled::Root), Some(Entitled::Named), None]
        );
    }

    #[test]
    fn nobody_waits_for_an_authority_that_hangs() {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let gate = gate().with_authority(move |_| held.recv().map_or(Said::Yes, |()| Said::Yes));
        let (mut gate, now) = (gate.expect("a thread"), Instant::now());
        assert_eq!(gate.judge(9, 9, 9, now), None);
        assert_eq!(
            (gate.settled(now), gate.waiting().count(), gate.deadline()),
            (vec![], 1, Some(now + TIMEOUT))
        );
        let settled = gate.settled(now + TIMEOUT);
        assert!(matches!(&settled[..], [(9, Err(why))] if why.contains("silent")), "{settled:?}");
        let judged: Vec<_> =
            (0..20).map(|caller| gate.judge(100 + caller, caller, caller, now)).collect();
        assert!(judged.last().is_some_and(Option::is_some), "the questions that wait are bounded");
        drop(hold);
    }
}
