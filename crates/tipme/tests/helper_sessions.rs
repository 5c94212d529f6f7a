// SPDX-License-Identifier: MIT OR Apache-2.0
//! The helper with callers of every kind. Needs root.

#[path = "helper_sessions/hostile.rs"]
mod hostile;
#[path = "helper_sessions/seats.rs"]
mod seats;
use rustix::process::Signal;
use serde_json::{Value, json};
use support::helper_daemon::{
    ANNA, BERT, HelperDaemon, OTHER_UID, Sleeper, assignment, favour, identity,
};
use support::tipme;
use tipme_bench::until;
use tipme_policy::{Backend, Role, Strength, knobs};

#[test]
fn a_session_favours_its_users_processes_until_it_ends() {
    let (helper, own) = (HelperDaemon::start(&[]), Sleeper::of(ANNA));
    let mut anna = helper.session(ANNA);
    let applied = anna.assign("focused", &[own.who()]);
    assert!(applied["changed"].as_u64() > Some(0), "{applied}");
    assert_eq!(own.nice(), favour(Strength::Normal));
    let found = anna.ask(&json!({ "explain": { "who": own.who() } }));
    assert_eq!(found["explained"]["role"]["role"], "focused", "{found}");
    let stronger = anna.ask(&json!({ "strength": "strong" }));
    assert!(stronger["applied"]["changed"].as_u64() > Some(0), "{stronger}");
    assert_eq!(own.nice(), favour(Strength::Strong));
    let restored = anna.ask(&json!("restore"));
    assert!(restored["restored"]["restored"].as_u64() > Some(0), "{restored}");
    assert_eq!((restored["restored"]["failed"].as_u64(), own.nice()), (Some(0), 0));
    anna.assign("focused", &[own.who()]);
    assert_eq!(own.nice(), favour(Strength::Strong));
    drop(anna);
    until("the end of the favour", || own.nice() == 0);
    helper.expect_no_session();
}

#[test]
fn processes_of_others_are_left_alone() {
    let helper = HelperDaemon::start(&[]);
    let (own, berts, roots) = (Sleeper::of(ANNA), Sleeper::of(BERT), Sleeper::of(0));
    let mut anna = helper.session(ANNA);
    let applied = anna.assign("core", &[own.who(), berts.who(), roots.who(), identity(1)]);
    assert!(applied["skipped"].as_u64() >= Some(3), "{applied}");
    assert_eq!((own.nice(), berts.nice(), roots.nice()), (favour(Strength::Normal), 0, 0));
    let found = anna.ask(&json!({ "explain": { "who": berts.who() } }));
    assert!(found.to_string().contains(&format!("belongs to user {BERT}")), "{found}");
    for action in ["cold", "page_out"] {
        let applied = anna.ask(&json!({ "apply": [{ "memory": { action: berts.who() } }] }));
        assert_eq!(
            (&applied["applied"]["changed"], &applied["applied"]["skipped"]),
            (&json!(0), &json!(1)),
            "{applied}"
        );
    }
    assert_eq!((berts.policy(), roots.policy()), (0, 0));
}

#[test]
fn each_user_has_a_session_of_its_own_and_only_that() {
    let helper = HelperDaemon::start(&[]);
    let (annas, berts, favoured) = (Sleeper::of(ANNA), Sleeper::of(BERT), favour(Strength::Normal));
    let mut anna = helper.session(ANNA);
    let mut bert = helper.session(BERT);
    anna.assign("focused", &[annas.who()]);
    bert.assign("focused", &[berts.who()]);
    assert_eq!((annas.nice(), berts.nice()), (favoured, favoured));
    for owner in [BERT, 0] {
        let refused = helper.ask_once(ANNA, &json!({ "open": { "owner": owner } }));
        let expected = format!("user {ANNA} may not have the processes of user {owner} changed");
        assert_eq!(refused["error"], expected.as_str());
    }
    let second = helper.ask_once(ANNA, &json!({ "open": {} }));
    assert!(second["error"].as_str().unwrap().contains("has a helper session already"), "{second}");
    assert_eq!(
        bert.ask(&json!({ "explain": { "who": annas.who() } })),
        json!({ "explained": null })
    );
    drop(anna);
    until("the end of Anna's favour", || annas.nice() == 0);
    assert_eq!(berts.nice(), favoured);
}

#[test]
fn root_has_a_session_for_any_user_and_another_user_has_none() {
    let (helper, annas) = (HelperDaemon::start(&[]), Sleeper::of(ANNA));
    let mut root = helper.connect(0);
    let opened = root.ask(&json!({ "open": { "backend": "nice", "owner": ANNA } }));
    assert_eq!(opened["opened"]["backend"], "nice", "{opened}");
    root.assign("focused", &[annas.who()]);
    assert_eq!(annas.nice(), favour(Strength::Normal));
    let refused = helper.connect(OTHER_UID).hear().unwrap();
    assert!(
        refused["error"].as_str().unwrap().contains(&format!("--allow-user {OTHER_UID}")),
        "{refused}"
    );
}

#[test]
fn a_display_server_named_by_a_caller_is_left_alone() {
    let (helper, roots) = (HelperDaemon::start(&[]), Sleeper::of(0));
    let mut anna = helper.connect(ANNA);
    let opened = anna.ask(&json!({ "open": { "backend": "nice", "server": roots.who() } }));
    assert!(
        opened["opened"]["missing"].to_string().contains("the display server is not favoured"),
        "{opened}"
    );
    anna.assign("core", &[roots.who()]);
    assert_eq!(roots.nice(), 0);
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let (helper, first) = (HelperDaemon::start(&[]), Sleeper::of(ANNA));
    let (number, who) = (first.pid(), first.who());
    let mut anna = helper.session(ANNA);
    anna.assign("focused", std::slice::from_ref(&who));
    assert_eq!(first.nice(), favour(Strength::Normal));
    drop(first);
    let second = process_with_number(number, &who);
    anna.assign("focused", std::slice::from_ref(&who));
    assert_eq!(second.nice(), 0);
    let found = anna.ask(&json!({ "explain": { "who": who } }));
    assert_eq!(found["explained"]["knobs"], json!([]), "{found}");
}

/// Starts a process of Anna with this free PID that differs from `other`: a start within the same
/// clock tick would make them equal.
fn process_with_number(number: u32, other: &Value) -> Sleeper {
    let mut found = None;
    until("a process with that number", || {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
        found = Some(Sleeper::of(ANNA))
            .filter(|sleeper| sleeper.pid() == number && sleeper.who() != *other);
        found.is_some()
    });
    found.unwrap()
}

/// All values come from the table, whatever the request.
#[test]
fn no_value_outside_of_the_table_is_ever_set() {
    let (helper, own) = (HelperDaemon::start(&[]), Sleeper::of(ANNA));
    let mut anna = helper.session(ANNA);
    for strength in Strength::ALL {
        anna.ask(&json!({ "strength": strength }));
        for (role, faded) in Role::ALL
            .into_iter()
            .flat_map(|role| [0.0, 0.3, -1e30, 1e30].map(|faded| (role, faded)))
        {
            let mut action = assignment(role.name(), &[own.who()]);
            for (key, value) in
                [("faded", json!(faded)), ("nice", json!(-20)), ("knobs", json!({ "nice": -20 }))]
            {
                action["assign"][key] = value;
            }
            anna.ask(&json!({ "apply": [action] }));
            let expected = knobs(Backend::Nice, strength, role, faded as f32);
            assert_eq!(
                own.nice(),
                i32::from(expected.nice.unwrap_or(0)),
                "{strength} {role} {faded}"
            );
            assert_eq!(own.policy(), if expected.is_idle { 5 } else { 0 }, "{strength} {role}");
        }
    }
    for unknown in
        [json!({ "strength": "mighty" }), json!({ "apply": [assignment("king", &[own.who()])] })]
    {
        let mut bert = helper.session(BERT);
        assert!(bert.ask(&unknown)["error"].as_str().unwrap().contains("not understood"));
        assert_eq!(bert.hear(), None, "a caller that sends nonsense is disconnected");
        helper_forgets(&helper);
    }
}

/// Waits until only one session is open.
fn helper_forgets(helper: &HelperDaemon) {
    until("the end of the session", || {
        helper.connect(0).ask(&json!("status"))["status"]["sessions"] == 1
    });
}

#[test]
fn a_helper_that_is_stopped_puts_everything_back() {
    let (mut helper, own) = (HelperDaemon::start(&[]), Sleeper::of(ANNA));
    let mut anna = helper.session(ANNA);
    anna.assign("focused", &[own.who()]);
    assert_eq!(own.nice(), favour(Strength::Normal));
    assert_eq!(helper.stop(Signal::TERM), Some(0));
    assert_eq!(own.nice(), 0);
    assert_eq!(anna.hear(), None);
}

#[test]
fn after_a_kill_the_next_helper_puts_everything_back() {
    let mut helper = HelperDaemon::start(&[]);
    let (annas, berts) = (Sleeper::of(ANNA), Sleeper::of(BERT));
    let (mut anna, mut bert) = (helper.session(ANNA), helper.session(BERT));
    anna.assign("focused", &[annas.who()]);
    bert.assign("hog", &[berts.who()]);
    assert_eq!((annas.nice(), berts.policy()), (favour(Strength::Normal), 5));
    helper.stop(Signal::KILL);
    assert_eq!((annas.nice(), berts.policy()), (favour(Strength::Normal), 5));
    helper.start_again(&[]);
    assert_eq!((annas.nice(), berts.policy()), (0, 0));
    let journals = std::fs::read_dir(helper.dir.path().join("sessions")).unwrap().flatten();
    let left: Vec<String> =
        journals.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(
        !left.iter().any(|name| name.starts_with("64") && name.ends_with(".journal")),
        "{left:?}"
    );
}

#[test]
fn doctor_and_a_second_helper_report_the_first() {
    let helper = HelperDaemon::start(&[]);
    let second = tipme().args(["manage-helper", "--state-dir"]).arg(helper.dir.path()).output();
    let second = second.unwrap();
    let error = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(error.contains("a helper listens at") && error.contains("already"), "{error}");
    let doctor = tipme().args(["doctor", "--verbose"]).output().unwrap();
    let text = String::from_utf8(doctor.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("manage: helper")).unwrap();
    assert!(line.contains("pid ") || line.contains("sudo tipme manage-helper"), "{line}");
}

#[test]
fn pages_and_completions_carry_the_verb() {
    let dir = tempfile::tempdir().unwrap();
    assert!(tipme().arg("man").arg(dir.path()).status().unwrap().success());
    let page = std::fs::read_to_string(dir.path().join("tipme-manage-helper.1")).unwrap();
    assert!(page.contains("puts everything back"), "{page}");
    let bash = tipme().args(["completions", "bash"]).output().unwrap();
    assert!(String::from_utf8(bash.stdout).unwrap().contains("manage-helper"));
}
