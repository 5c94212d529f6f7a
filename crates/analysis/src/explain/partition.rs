// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval as a budget: shares that sum to the whole, and the groups of pieces that become
//! causes.

use crate::explain::blame::{Blame, BlameFinder, Waiter, Who};
use crate::explain::chain::{Chain, ChainPiece};
use crate::explain::describe::{doing_text, state_name};
use crate::explain::jobs::{Job, Jobs, Members};
use crate::explain::stolen::unless_stolen;
use crate::model::{self, CauseKind};
use crate::timeline::interrupts::Source;
use crate::timeline::recording::Recording;
use std::collections::BTreeMap;
use std::net::IpAddr;
use tipme_record::{Device, Nanos, Pid};

/// Owner of the pieces of a group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum BlameOwner {
    Job(Job),
    Device(Option<Device>),
    Address(Option<IpAddr>, u16),
    Interrupt(Source),
    Nobody,
}

/// Pieces of one kind with the same owner.
#[derive(Clone, Debug)]
pub(crate) struct BlameGroup {
    pub kind: CauseKind,
    pub owner: BlameOwner,
    pub nanos: u64,
    pub members: Members,
    /// Indices into the chain's pieces.
    pub pieces: Vec<usize>,
}

/// Pieces of an interval with their blames.
pub(crate) struct Budget<'a> {
    pub recording: &'a Recording,
    pub chain: &'a Chain,
    pub judge: BlameFinder<'a>,
    pub jobs: Jobs<'a>,
    pub blames: Vec<Blame>,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        chain: &'a Chain,
        waiter: Waiter,
        at: Nanos,
    ) -> Budget<'a> {
        let judge = BlameFinder::new(recording, waiter, at);
        let servers = recording.displays.iter().map(|display| Pid(display.server_pid));
        let apart: Vec<Pid> = servers.chain([waiter.client]).collect();
        let blames = chain
            .pieces
            .iter()
            .map(|piece| unless_stolen(recording, piece, judge.blame(chain, piece)))
            .collect();
        Budget { recording, chain, judge, jobs: Jobs::new(&recording.tasks, at, &apart), blames }
    }

    fn owner(&self, who: Who, at: Nanos) -> BlameOwner {
        match who {
            Who::Thread(tid) => BlameOwner::Job(self.jobs.of(tid, at)),
            Who::Device(device, _) => BlameOwner::Device(device),
            Who::Address(address, port) => BlameOwner::Address(address, port),
            Who::Interrupt(source) => BlameOwner::Interrupt(source),
            Who::Nobody => BlameOwner::Nobody,
        }
    }

    /// Returns the pieces grouped by kind and owner, the largest group first.
    pub(crate) fn groups(&self) -> Vec<BlameGroup> {
        let mut groups: BTreeMap<(CauseKind, BlameOwner), BlameGroup> = BTreeMap::new();
        for (index, (piece, blame)) in self.chain.pieces.iter().zip(&self.blames).enumerate() {
            let owner = self.owner(blame.who, piece.lo);
            let empty = BlameGroup {
                kind: blame.kind,
                owner: owner.clone(),
                nanos: 0,
                members: Members::default(),
                pieces: vec![],
            };
            let group = groups.entry((blame.kind, owner)).or_insert(empty);
            group.nanos = group.nanos.saturating_add(length(piece));
            group.pieces.push(index);
            if let Who::Thread(tid) = blame.who {
                group.members.add(self.recording.tasks.pid(tid, piece.lo), length(piece));
            }
        }
        let mut groups: Vec<BlameGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.nanos));
        groups
    }

    /// Returns the shares of the interval, the largest first.
    pub(crate) fn shares(&self) -> Vec<model::Piece> {
        let mut shares: BTreeMap<(&'static str, CauseKind, Pid, BlameOwner), (u64, usize)> =
            BTreeMap::new();
        for (index, (piece, blame)) in self.chain.pieces.iter().zip(&self.blames).enumerate() {
            let pid = self.recording.tasks.pid(piece.tid, piece.lo);
            let key = (state_name(&piece.doing), blame.kind, pid, self.owner(blame.who, piece.lo));
            let share = shares.entry(key).or_insert((0, index));
            let longest = length(&self.chain.pieces[share.1]) >= length(piece);
            *share = (share.0.saturating_add(length(piece)), if longest { share.1 } else { index });
        }
        let mut shares: Vec<_> = shares.into_iter().collect();
        shares.sort_by_key(|(_, (nanos, _))| std::cmp::Reverse(*nanos));
        shares
            .into_iter()
            .map(|((state, kind, pid, _), (nanos, longest))| {
                self.share(state, kind, pid, nanos, longest)
            })
            .collect()
    }

    fn share(
        &self,
        state: &str,
        kind: CauseKind,
        pid: Pid,
        nanos: u64,
        longest: usize,
    ) -> model::Piece {
        let piece = &self.chain.pieces[longest];
        model::Piece {
            state: state.to_owned(),
            kind,
            ms: Nanos(nanos).millis(),
            pid: pid.0,
            comm: self.recording.tasks.comm(pid, piece.lo),
            detail: doing_text(self.recording, piece),
        }
    }

    pub(crate) fn end(&self) -> Nanos {
        self.chain.pieces.last().map_or(Nanos(0), |piece| piece.hi)
    }

    /// Returns a piece and its blame.
    pub(crate) fn blamed(&self, index: usize) -> Option<(&'a ChainPiece, Blame)> {
        self.chain.pieces.get(index).zip(self.blames.get(index).copied())
    }

    pub(crate) fn pieces(&self, group: &BlameGroup) -> impl Iterator<Item = &'a ChainPiece> {
        let chain = self.chain;
        group.pieces.clone().into_iter().filter_map(move |index| chain.pieces.get(index))
    }
}

/// Returns the length of a piece in nanoseconds.
pub(crate) fn length(piece: &ChainPiece) -> u64 {
    piece.hi.since(piece.lo).0
}
