// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polls of a few files: the file from which an answer is awaited.

mod support;

use support::Machinery;
use support::verdicts::explained;
use tipme_analysis::Recording;
use tipme_analysis::model::{CauseKind, Culprit, Finding};
use tipme_record::records::Polled;
use tipme_record::{Nanos, Pid};

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
    machine.task(ASKER, ASKER, 1, "asker", 1).task(OTHER, OTHER, 1, "other", 1);
    machine.switch(500_000, 0, ASKER, 0);
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
    let explanation =
        explained(&recording, ASKER, (1_000, 2_000), Nanos(0)).expect("the incident holds it");
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
fn cause(files: &[File], waker: u32, context: u8) -> Option<(CauseKind, String)> {
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
fn unconnected_udp_wait_is_a_network_wait() {
    assert_eq!(
        cause(&[asks], 0, TIMER),
        Some((CauseKind::NetworkWait, "an unknown host".to_owned()))
    );
}

fn near(file: &mut Polled) {
    stream(file);
    (file.address, file.port) = (NAME_SERVER, 80);
}

#[test]
fn an_answer_over_loopback_leads_to_its_sender() {
    assert_eq!(cause(&[near], OTHER, SOFTIRQ), Some((CauseKind::PeerWait, OTHER.to_string())));
}

#[test]
fn a_name_server_is_named_whatever_process_runs_it() {
    assert_eq!(
        cause(&[datagram], OTHER, SOFTIRQ),
        Some((CauseKind::NetworkWait, "127.0.0.53:53".to_owned()))
    );
}

#[test]
fn a_remote_answer_does_not_accuse_the_running_process() {
    assert_eq!(
        cause(&[stream], OTHER, SOFTIRQ),
        Some((CauseKind::NetworkWait, "192.0.2.7:443".to_owned()))
    );
}

#[test]
fn the_way_for_waking_a_thread_up_does_not_hide_what_it_asks() {
    for inlet in [counter as File, to_itself] {
        let expected = Some((CauseKind::NetworkWait, "192.0.2.7:443".to_owned()));
        assert_eq!(cause(&[inlet, stream], 0, TIMER), expected);
    }
}

#[test]
fn the_process_at_the_other_end_is_waited_for() {
    assert_eq!(cause(&[local], OTHER, 0), Some((CauseKind::PeerWait, OTHER.to_string())));
    assert_eq!(cause(&[local], 0, TIMER), Some((CauseKind::PeerWait, OTHER.to_string())));
}

#[test]
fn a_pipe_wait_is_for_its_writer_and_never_for_a_timer() {
    assert_eq!(cause(&[pipe], OTHER, 0), Some((CauseKind::PeerWait, OTHER.to_string())));
    assert_eq!(cause(&[pipe], 0, TIMER), Some((CauseKind::TimerSleep, ASKER.to_string())));
}

#[test]
fn a_wait_for_any_client_asks_no_peer() {
    for open in [listens as File, serves, terminal] {
        let cause = cause(&[open, stream, local], 0, TIMER);
        assert!(
            !cause.as_ref().is_some_and(|(kind, _)| matches!(
                kind,
                CauseKind::NetworkWait | CauseKind::PeerWait
            )),
            "{cause:?}"
        );
    }
}

#[test]
fn a_connected_event_loop_does_not_ask() {
    let cause = cause(&[counter, local], 0, TIMER);
    assert!(cause.as_ref().is_none_or(|(kind, _)| *kind == CauseKind::TimerSleep), "{cause:?}");
}
