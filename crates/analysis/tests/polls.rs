// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polls of a few files: the file from which an answer is awaited.

mod support;

use support::Machinery;
use tipme_analysis::model::{CauseKind, Culprit, Finding};
use tipme_analysis::{Recording, explain};
use tipme_record::records::Polled;
use tipme_record::{Nanos, Pid, Tid};

const ASKER: u32 = 700;
const OTHER: u32 = 701;

const POLL: i32 = 7;
const TIMER: u8 = 2;
const SOFTIRQ: u8 = 1;
const SOCKETS: u32 = 0xc000;

const NAME_SERVER: u32 = u32::from_le_bytes([127, 0, 0, 53]);
const FAR_AWAY: u32 = u32::from_le_bytes([192, 0, 2, 7]);

type File = fn(&mut Polled);

fn datagram(file: &mut Polled) {
    (file.mode, file.family, file.socket, file.state) = (SOCKETS, 2, 2, 1);
    (file.address, file.port) = (NAME_SERVER, 53);
}

fn stream(file: &mut Polled) {
    datagram(file);
    (file.socket, file.address, file.port) = (1, FAR_AWAY, 443);
}

fn local(file: &mut Polled) {
    (file.mode, file.family, file.socket, file.state, file.peer) = (SOCKETS, 1, 1, 1, Pid(OTHER));
}

fn to_itself(file: &mut Polled) {
    local(file);
    file.peer = Pid(ASKER);
}

fn listens(file: &mut Polled) {
    (file.mode, file.family, file.socket, file.state) = (SOCKETS, 2, 1, 10);
}

/// A datagram socket that others know by its port; it has answered one of them.
fn serves(file: &mut Polled) {
    datagram(file);
    file.state = 7;
}

/// A datagram socket that has sent a request to an unknown host.
fn asks(file: &mut Polled) {
    datagram(file);
    (file.address, file.port) = (0, 0);
}

fn terminal(file: &mut Polled) {
    (file.mode, file.magic) = (0x2000, 0x1cd1);
}

fn pipe(file: &mut Polled) {
    (file.mode, file.magic) = (0x1000, 0x5049_5045);
}

fn counter(file: &mut Polled) {
    file.magic = 0x0904_1934;
}

/// Returns the finding for a thread that polls these files from 1 s to 2 s, with a timeout of that
/// length.
fn finding(files: &[File], waker: u32, context: u8) -> Option<Finding> {
    let mut machine = Machinery::new();
    machine
        .task(ASKER, ASKER, 1, "asker", 1)
        .task(OTHER, OTHER, 1, "other", 1)
        .switch(500_000, 0, ASKER, 0);
    machine.switch(1_000_000, 0, OTHER, 1).wake_from(2_000_000, ASKER, waker, context, 0);
    machine.wait(2_000_000, ASKER, 1_000_000, |wait| {
        (wait.pid, wait.syscall, wait.context) = (Pid(ASKER), POLL, u16::from(context));
        wait.args = [1, files.len() as u64, 1_000];
    });
    for fill in files {
        machine.polled(2_000_000, ASKER, files.len() as u8, fill);
    }
    machine.switch(2_000_100, 0, ASKER, 1);
    let recording =
        Recording::read(&machine.incident(4_000_000)).expect("the scene is well formed");
    let at = |ms: u64| recording.mark.before(Nanos::from_secs(4)).after(Nanos::from_millis(ms));
    let explanation = explain(&recording, Tid(ASKER), at(1_000), at(2_000), Nanos(0))
        .expect("the incident holds it");
    explanation.findings.into_iter().next()
}

fn culprit(finding: &Finding) -> String {
    match &finding.culprit {
        Culprit::Process { pid, .. } => pid.to_string(),
        Culprit::Address { address } => address.clone(),
        Culprit::Device { device } => device.clone(),
    }
}

/// Returns kind and culprit.
fn told(files: &[File], waker: u32, context: u8) -> Option<(CauseKind, String)> {
    finding(files, waker, context).map(|finding| (finding.kind, culprit(&finding)))
}

#[test]
fn a_name_server_that_does_not_answer_is_named() {
    let finding = finding(&[datagram], 0, TIMER).expect("there is a cause");
    assert_eq!(
        (finding.kind, culprit(&finding).as_str()),
        (CauseKind::NetworkWait, "127.0.0.53:53")
    );
    assert_eq!(
        finding.evidence[0],
        "asker waited for the name server 127.0.0.53:53, and no answer came for 1.00 s"
    );
}

#[test]
fn who_asks_without_a_connection_waits_for_the_network_even_where_it_is_not_known_for_whom() {
    assert_eq!(
        told(&[asks], 0, TIMER),
        Some((CauseKind::NetworkWait, "an unknown host".to_owned()))
    );
}

#[test]
fn an_answer_over_loopback_leads_to_who_sent_it() {
    let near = |file: &mut Polled| {
        stream(file);
        (file.address, file.port) = (NAME_SERVER, 80);
    };
    assert_eq!(told(&[near], OTHER, SOFTIRQ), Some((CauseKind::PeerWait, OTHER.to_string())));
}

#[test]
fn a_name_server_is_named_whoever_stands_behind_it() {
    assert_eq!(
        told(&[datagram], OTHER, SOFTIRQ),
        Some((CauseKind::NetworkWait, "127.0.0.53:53".to_owned()))
    );
}

#[test]
fn an_answer_from_far_away_accuses_nobody_whose_time_it_came_on() {
    assert_eq!(
        told(&[stream], OTHER, SOFTIRQ),
        Some((CauseKind::NetworkWait, "192.0.2.7:443".to_owned()))
    );
}

#[test]
fn the_way_for_waking_a_thread_up_does_not_hide_what_it_asks() {
    for inlet in [counter as File, to_itself] {
        let expected = Some((CauseKind::NetworkWait, "192.0.2.7:443".to_owned()));
        assert_eq!(told(&[inlet, stream], 0, TIMER), expected);
    }
}

#[test]
fn the_process_at_the_other_end_is_waited_for() {
    assert_eq!(told(&[local], OTHER, 0), Some((CauseKind::PeerWait, OTHER.to_string())));
    assert_eq!(told(&[local], 0, TIMER), Some((CauseKind::PeerWait, OTHER.to_string())));
}

#[test]
fn who_wrote_to_a_pipe_was_waited_for_and_a_timer_writes_to_none() {
    assert_eq!(told(&[pipe], OTHER, 0), Some((CauseKind::PeerWait, OTHER.to_string())));
    assert_eq!(told(&[pipe], 0, TIMER), Some((CauseKind::TimerSleep, ASKER.to_string())));
}

#[test]
fn who_waits_for_anybody_asks_nobody() {
    for open in [listens as File, serves, terminal] {
        let told = told(&[open, stream, local], 0, TIMER);
        assert!(
            !told.as_ref().is_some_and(|(kind, _)| matches!(
                kind,
                CauseKind::NetworkWait | CauseKind::PeerWait
            )),
            "{told:?}"
        );
    }
}

#[test]
fn an_event_loop_that_is_connected_to_somebody_does_not_ask() {
    let told = told(&[counter, local], 0, TIMER);
    assert!(told.as_ref().is_none_or(|(kind, _)| *kind == CauseKind::TimerSleep), "{told:?}");
}
