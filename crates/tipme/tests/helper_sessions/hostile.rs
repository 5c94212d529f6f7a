// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hostile callers: each delays only itself, and the helper's memory stays bounded.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::helper_daemon::{ANNA, BERT, HelperDaemon, Peer, Sleeper, assignment, favour};
use support::lines::send_mutated;
use tipme_bench::until;
use tipme_policy::Strength;

/// Maximum memory of the helper, whatever callers send.
const RESIDENT_MAX: u64 = 24 << 20;

/// Bert's session, which must be served meanwhile.
struct Bystander {
    session: Peer,
    own: Sleeper,
}

impl Bystander {
    fn new(helper: &HelperDaemon) -> Bystander {
        Bystander { session: helper.session(BERT), own: Sleeper::of(BERT) }
    }

    fn is_served(&mut self) {
        for (role, nice) in [("focused", favour(Strength::Normal)), ("rest", 0)] {
            let applied = self.session.assign(role, &[self.own.who()]);
            assert_eq!(self.own.nice(), nice, "{applied}");
        }
    }
}

/// Opens Anna's session, with a favoured process.
fn favoured(helper: &HelperDaemon) -> (Peer, Sleeper) {
    let (mut anna, own) = (helper.session(ANNA), Sleeper::of(ANNA));
    anna.assign("focused", &[own.who()]);
    assert_eq!(own.nice(), favour(Strength::Normal));
    (anna, own)
}

#[test]
fn half_a_line_ends_the_session() {
    let helper = HelperDaemon::start(&[]);
    let mut bystander = Bystander::new(&helper);
    let (mut anna, own) = favoured(&helper);
    anna.send(br#"{"apply":[{"assi"#).unwrap();
    bystander.is_served();
    let why = anna.hear().unwrap();
    assert!(why["error"].as_str().unwrap().contains("no request within 2 s"), "{why}");
    assert_eq!(anna.hear(), None);
    until("the end of the favour", || own.nice() == 0);
    let (anna, own) = favoured(&helper);
    anna.send(b"\"sta").unwrap();
    anna.stream().shutdown(std::net::Shutdown::Write).unwrap();
    until("the end of the favour", || own.nice() == 0);
}

#[test]
fn a_million_processes_in_a_line_end_the_session() {
    let helper = HelperDaemon::start(&[]);
    let mut bystander = Bystander::new(&helper);
    let (anna, own) = favoured(&helper);
    let member = json!({ "who": own.who(), "because": "child" }).to_string();
    let begin = assignment("core", &[own.who()]).to_string();
    let (head, tail) = begin.split_once("\"members\":[").unwrap();
    let mut line = format!("{{\"apply\":[{head}\"members\":[");
    line.push_str(&vec![member; 1_000_000].join(","));
    line.push_str(tail);
    // The helper closes the connection long before the end.
    let _ = anna.send(line.as_bytes());
    until("the end of the favour", || own.nice() == 0);
    bystander.is_served();
    assert!(helper.resident() < RESIDENT_MAX, "{} bytes", helper.resident());
}

#[test]
fn a_million_processes_in_many_lines_fill_only_one_share() {
    let helper = HelperDaemon::start(&[]);
    let mut bystander = Bystander::new(&helper);
    let (mut anna, own) = favoured(&helper);
    let mut refused = 0;
    for set in 0..200u32 {
        let pids = (0..400).map(|number| 10_000_000 + set * 400 + number);
        let members: Vec<Value> = pids.map(|pid| json!({ "pid": pid, "start": 1 })).collect();
        refused += anna.assign("core", &members)["skipped"].as_u64().unwrap();
        if set % 50 == 0 {
            bystander.is_served();
        }
    }
    assert!(refused > 150, "{refused} refused");
    let found = anna.ask(&json!({ "explain": { "who": own.who() } }));
    assert_eq!(own.nice(), favour(Strength::Normal), "{found}");
    assert!(helper.resident() < RESIDENT_MAX, "{} bytes", helper.resident());
}

#[test]
fn a_flood_that_is_never_read_delays_only_its_sender() {
    let helper = HelperDaemon::start(&[]);
    let mut bystander = Bystander::new(&helper);
    let (anna, own) = favoured(&helper);
    anna.stream().set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let request = format!("{}\n", json!({ "explain": { "who": own.who() } })).repeat(1_000);
    let (begun, mut sent) = (Instant::now(), 0);
    // Until the socket is full, or the helper has closed it.
    while anna.send(request.as_bytes()).is_ok() && begun.elapsed() < Duration::from_secs(20) {
        sent += 1;
    }
    for _ in 0..20 {
        bystander.is_served();
    }
    assert!(
        helper.resident() < RESIDENT_MAX,
        "{} bytes after {sent} thousand requests",
        helper.resident()
    );
    drop(anna);
    until("the end of the favour", || own.nice() == 0);
}

#[test]
fn silent_callers_take_no_place_from_others() {
    let helper = HelperDaemon::start(&[]);
    let mut silent: Vec<Peer> = (0..40).map(|_| helper.connect(ANNA)).collect();
    let mut bystander = Bystander::new(&helper);
    bystander.is_served();
    let refused = silent.pop().unwrap().hear().unwrap();
    assert!(refused["error"].as_str().unwrap().contains("too many callers"), "{refused}");
    let waited = silent.remove(0).hear().unwrap();
    assert!(waited["error"].as_str().unwrap().contains("no request came in time"), "{waited}");
    until("a place for Anna", || {
        let mut anna = helper.connect(ANNA);
        anna.send(b"\"status\"\n").is_ok()
            && anna.hear().is_some_and(|answer| answer["status"].is_object())
    });
}

#[test]
fn bytes_of_every_kind_leave_the_helper_alive() {
    let helper = HelperDaemon::start(&[]);
    let mut bystander = Bystander::new(&helper);
    let deep = "[".repeat(60_000) + "\n";
    for bytes in [
        &b"\0\xff\n"[..],
        b"\n",
        b"{}\n",
        b"null\n",
        b"{\"apply\":7}\n",
        b"\"restore\"\n",
        deep.as_bytes(),
    ] {
        let answer = helper.say_once(ANNA, bytes);
        assert!(answer["error"].is_string(), "{answer}");
    }
    bystander.is_served();
}

#[test]
fn mutated_lines_leave_the_helper_as_it_was() {
    let helper = HelperDaemon::start(&[]);
    send_mutated("helper", &helper.dir.path().join("helper.sock"), helper.pid());
}
