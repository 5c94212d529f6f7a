// SPDX-License-Identifier: MIT OR Apache-2.0
//! No bytes make the analysis panic: neither random ones nor damaged incidents.

mod support;

use proptest::prelude::*;
use support::{APP, Machinery, SERVER};
use tipme_analysis::scene::scene;
use tipme_analysis::{DiagnoseError, DiagnoseOptions, diagnose, exercise};
use tipme_record::Pid;
use tipme_record::incident::{Incident, Section};

/// An incident with every kind of record in it.
fn rich() -> Incident {
    let mut machine = Machinery::with_app("editor");
    machine.task(500, 500, APP, "helper", 1).typing(100_000, 8).press(3_000_000);
    machine.fork(3_004_000, APP, 700).exit(3_400_000, 700, APP, APP, "spell");
    machine.signal(3_000_900, 500, APP, 19);
    machine.switch(3_001_000, 1, 0, 4).wake(3_300_000, APP, 500).switch(3_300_100, 1, APP, 0);
    machine.tty(3_310_000, APP, 9, 0).tty(3_310_010, 500, 9, 1).reclaim(3_310_000, APP, 0, 0, 0);
    machine.block(3_390_000, APP, 3_350_000, 4_096, 0).switch(3_351_000, 1, 0, 0x8002);
    machine.wake_from(3_390_000, APP, 0, 2, 1).switch(3_390_100, 1, APP, 0);
    machine.wait(3_390_002, APP, 3_351_000, |wait| wait.syscall = 74).sample(3_395_000, APP, 1);
    machine.message(3_395_000, SERVER, (9, 500), 1, 40, &[]).draw(3_400_000).incident(6_000_000)
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(data in proptest::collection::vec(any::<u8>(), 0..4_096)) {
        exercise(&data);
    }

    #[test]
    fn a_damaged_incident_does_not_panic(flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..64)) {
        let mut incident = rich();
        for (section, byte, value) in flips {
            // The first sections are JSON documents; damage there is merely an error.
            let documents = incident
                .sections
                .iter()
                .take_while(|(_, bytes)| matches!(bytes.first(), Some(b'{' | b'[')))
                .count();
            let others = incident.sections.len() - documents;
            let (_, bytes) = &mut incident.sections[documents + section.index(others)];
            let used = bytes.len().min(8_192);
            if used > 0 {
                bytes[byte.index(used)] = value;
            }
        }
        let _ = scene(&incident, &DiagnoseOptions::default());
        let (pid, at_s) = (Some(Pid(APP)), Some(3.0));
        let _ = scene(&incident, &DiagnoseOptions { pid, at_s, ..DiagnoseOptions::default() });
    }
}

#[test]
fn a_whole_incident_is_explained_as_one() {
    let verdict = diagnose(&rich(), &DiagnoseOptions::default()).expect("the incident is whole");
    assert_eq!(verdict.interval.expect("there is an interaction").class, "key");
}

#[test]
fn without_meta_there_is_an_error() {
    let error =
        diagnose(&Incident::default(), &DiagnoseOptions::default()).expect_err("nothing is known");
    assert!(matches!(error, DiagnoseError::NoMeta));
}

#[test]
fn damaged_documents_are_named() {
    let mut incident = rich();
    incident.push(Section::Displays, b"[{".to_vec());
    let error =
        diagnose(&incident, &DiagnoseOptions::default()).expect_err("the section is no JSON");
    assert!(error.to_string().contains("Displays"), "{error}");
}

#[test]
fn an_unknown_process_is_an_error() {
    let options = DiagnoseOptions { app: Some("emacs".to_owned()), ..DiagnoseOptions::default() };
    let error = diagnose(&rich(), &options).expect_err("there is no emacs");
    assert!(error.to_string().contains("named emacs"), "{error}");
}
