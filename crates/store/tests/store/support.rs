// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sample incidents.

use fastrand::Rng;
use tipme_record::incident::{Incident, Meta, Section};

/// Returns an incident with every section: small ones, a compressible one and an incompressible
/// one.
pub fn incident(id: &str) -> Incident {
    let mut incident = Incident::default();
    let meta = Meta { id: id.into(), mark_ns: 5, ..Meta::default() };
    incident.push_json(Section::Meta, &meta).expect("meta is JSON");
    incident.push(Section::Sched, vec![7; 200_000]);
    let mut noise = Rng::with_seed(1);
    incident.push(Section::Rare, (0..5000).map(|_| noise.u8(..)).collect());
    for (number, section) in Section::ALL.into_iter().enumerate().skip(3) {
        incident.push(section, vec![b' '; number]);
    }
    incident
}
