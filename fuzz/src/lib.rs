// SPDX-License-Identifier: MIT OR Apache-2.0
//! All decoders of external bytes, with seeds to test them.
//!
//! A [`Target`] is a decoder and the code behind it: it must return for any bytes, with any answer.
//! Its seeds are valid inputs; [`run()`] mutates them by a fixed sequence, so that the same count
//! finds the same problems. A coverage-guided fuzzer can run the same targets (`fuzz/guided`).

mod messages;
mod mutation;
mod records;
mod run;
mod seeds;
mod states;
mod wayland;

pub use mutation::mutate;
pub use run::{Outcome, run};

/// A decoder.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    /// Decoded input, for output.
    pub what: &'static str,
    /// Decodes bytes and uses the result; returns `true` if at least a part was valid.
    pub check: fn(&[u8]) -> bool,
    pub seeds: fn() -> Vec<Vec<u8>>,
}

const fn target(
    name: &'static str,
    what: &'static str,
    check: fn(&[u8]) -> bool,
    seeds: fn() -> Vec<Vec<u8>>,
) -> Target {
    Target { name, what, check, seeds }
}

/// All decoders.
pub const TARGETS: [Target; 18] = [
    target(
        "incident",
        "the incident file, and sealing, scrubbing and cutting it",
        seeds::check_file,
        seeds::files,
    ),
    target(
        "diagnosis",
        "sections of an incident, to the verdict in every form",
        seeds::check,
        seeds::sections,
    ),
    target(
        "records",
        "well-formed records with any content, to the verdict",
        records::check,
        records::seeds,
    ),
    target(
        "wayland",
        "messages of a Wayland connection, to the verdict",
        wayland::check,
        wayland::seeds,
    ),
    target(
        "recorder",
        "requests to the recorder, and its answers",
        messages::recorder,
        messages::recorder_seeds,
    ),
    target(
        "manager",
        "requests to the manager, and its answers",
        messages::manager,
        messages::manager_seeds,
    ),
    target(
        "helper",
        "requests to the helper, and its answers",
        tipme_manager::exercise_lines,
        messages::helper_seeds,
    ),
    target("journal", "the journal of changes", tipme_sched::exercise_journal, states::journals),
    target(
        "processes",
        "files of processes in /proc",
        tipme_sched::exercise_processes,
        states::processes,
    ),
    target("files", "the files that programs use", tipme_manager::exercise_files, states::files),
    target("baselines", "stored baselines", tipme_recorder::exercise_baselines, states::baselines),
    target("days", "stored days of a user", tipme_recorder::exercise_days, states::days),
    target(
        "tolerances",
        "stored tolerances",
        tipme_recorder::exercise_tolerances,
        states::tolerances,
    ),
    target("symbols", "functions of an ELF image", tipme_recorder::exercise_image, states::images),
    target(
        "answers",
        "names that are answered to the recorder",
        tipme_recorder::exercise_answers,
        states::answers,
    ),
    target(
        "attention",
        "properties and packets of a display",
        tipme_desktop::exercise,
        states::properties,
    ),
    target("scripts", "scripts that are played at applications", states::script, states::scripts),
    target("reports", "results of measurements that are compared", states::result, states::results),
];
