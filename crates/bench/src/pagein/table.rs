// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of the page-in benchmark: its conditions, and the effect of the manager.

use super::figures::{Walked, WalkedTurn};
use crate::arms::{Arm, ArmDetails, ArmRow, ArmScale, ArmTerms, Compared, KeyFigure, load_words};
use crate::choice::number;

pub(super) const TITLE: &str =
    "Page-ins beside a hog: what the program with the focus waits for its own pages after a key";

impl ArmDetails for Walked {
    const TERMS: ArmTerms = ArmTerms {
        heading: "page-in wait",
        quantity: "the wait",
        scale: ArmScale::Latency,
        paper: &[
            "Evans et al. (1993), section 4.4.2: \"It doesn't matter how high a process' priority is if there is no free memory",
            "available\"; it has no figures of page-ins",
        ],
        line_ms: None,
    };

    fn bounds(figures: &Compared<Walked>) -> Vec<String> {
        let (more, room) = (&figures.more, &figures.more.room);
        let keys = format!(
            "{} keys in each turn behind a lap that does not count, {} s apart; a working set of {} MiB, once in {} keys",
            more.keys_per_block,
            more.every_s,
            more.working_set_bytes >> 20,
            more.keys_per_lap
        );
        let memory = format!(
            "{} MiB of memory, of which {} were available, and {} of free swap{}",
            room.total >> 20,
            room.available >> 20,
            room.swap_free >> 20,
            if more.shortage { "" } else { "; memory did not run out: nothing is compared" }
        );
        let turns = more.turns.iter().map(turn_words);
        [keys, load_words(figures), memory]
            .into_iter()
            .chain(turns)
            .chain(against_unmanaged(&figures.arms))
            .collect()
    }
}

fn turn_words(turn: &WalkedTurn) -> String {
    let (page_ins, seen) = (turn.page_ins, &turn.key_to_drawing);
    format!(
        "{}: {page_ins} page faults waited for a disk; from the key to the drawing p50 {}, p95 {}, max {} ms",
        turn.turn,
        number(seen.p50_ms, 2),
        number(seen.p95_ms, 2),
        number(seen.max_ms, 2)
    )
}

/// Returns a line for each arm beside the hog: its wait as a share of that of the unmanaged arm.
fn against_unmanaged(rows: &[ArmRow]) -> Vec<String> {
    let key_figure = KeyFigure::choose(rows, ArmScale::Latency);
    let (unmanaged, others): (Vec<&ArmRow>, Vec<&ArmRow>) =
        rows.iter().filter(|row| row.level > 0).partition(|row| row.arm == Arm::Unmanaged);
    let before = unmanaged.first().and_then(|row| (key_figure.value)(&row.figures));
    let lines = others.into_iter().filter_map(|row| {
        let share = (key_figure.value)(&row.figures)? / before.filter(|ms| *ms > 0.0)?;
        let (turn, name) = (&row.turn, key_figure.name);
        Some(format!("{turn}: {name} of the wait {share:.3} times that of unmanaged"))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::{ArmFigures, ArmTurn};

    fn row(arm: Arm, level: u32, ms: u64) -> ArmRow {
        ArmRow::new(ArmTurn { level, arm }, ArmFigures::new(vec![ms * 1_000_000; 100], 0), None)
    }

    #[test]
    fn managed_is_held_against_unmanaged() {
        let all =
            [row(Arm::Unmanaged, 0, 0), row(Arm::Unmanaged, 1, 400), row(Arm::Managed, 1, 10)];
        assert_eq!(
            against_unmanaged(&all),
            ["load 1, managed: p95 of the wait 0.025 times that of unmanaged"]
        );
        assert!(
            against_unmanaged(&[row(Arm::Unmanaged, 1, 0), row(Arm::Managed, 1, 10)]).is_empty()
        );
    }
}
