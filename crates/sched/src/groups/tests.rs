// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers and weights where the delegated group does not become empty at once.

use crate::engine::Engine;
use crate::fake::{DIR, Machine, Memory, ROOT};
use crate::groups::Subtree;
use crate::ledger::Ledger;
use tipme_policy::{Action, Assignment, Backend, Identity, Member, Reason, Role, SetId, Strength};

fn engine(machine: &Machine) -> Engine<Machine, Memory> {
    let (ledger, _) = Ledger::open(machine.clone(), Memory::default()).expect("an empty journal");
    let mut engine = Engine::new(ledger, Backend::Cgroup, Strength::Normal);
    engine.subtree = Some(Subtree::new(DIR.to_owned(), ROOT.to_owned()));
    engine
}

fn focused(who: Identity) -> Action {
    Action::Assign(Assignment {
        set: SetId(who),
        role: Role::Focused,
        faded: 0.0,
        reason: Reason::Focus,
        members: vec![Member { who, window: None }],
    })
}

