// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incidents for the tests.

use tipme_record::incident::{Incident, Meta, Section};

/// A small random sequence: the same seed gives the same bytes everywhere.
pub struct Sequence(pub u64);

impl Sequence {
    /// The next number, by xorshift.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// An incident with every section: small ones, one that compresses and one that does not.
pub fn incident(id: &str) -> Incident {
    let mut incident = Incident::default();
    let meta = Meta { id: id.into(), mark_ns: 5, ..Meta::default() };
    incident.push_json(Section::Meta, &meta).expect("meta is JSON");
    incident.push(Section::Sched, vec![7; 200_000]);
    let mut noise = Sequence(1);
    incident.push(Section::Rare, (0..5000).map(|_| noise.next() as u8).collect());
    for (number, section) in Section::ALL.into_iter().enumerate().skip(3) {
        incident.push(section, vec![b' '; number]);
    }
    incident
}
