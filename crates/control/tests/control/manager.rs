// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's side of the socket: JSON forms, refusals and errors.

use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_control::manager::{
    Client, KnobStatus, LISTED_MAX, ManagerRequest, ManagerResponse, ManagerStatus,
    ProcessTreatment, SOCKET_NAME, Server, SetStatus,
};
use tipme_control::{CallError, Gate, MAX_LINE_BYTES};

fn same<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(
    json: &str,
    value: T,
) {
    assert_eq!(serde_json::to_string(&value).unwrap(), json);
    assert_eq!(serde_json::from_str::<T>(json).unwrap(), value);
}

#[test]
fn requests_and_answers_have_these_forms() {
    same(r#""status""#, ManagerRequest::Status);
    same(r#"{"strength":"gentle"}"#, ManagerRequest::Strength("gentle".into()));
    same(r#"{"why":{"pid":7}}"#, ManagerRequest::Why { pid: 7 });
    same(r#""done""#, ManagerResponse::Done);
    same(r#"{"error":"no"}"#, ManagerResponse::Error("no".into()));
    let knob = KnobStatus { name: "nice value".into(), baseline: "0".into(), applied: "-8".into() };
    let why = ProcessTreatment {
        pid: 7,
        program: "sh".into(),
        role: Some("focused".into()),
        reason: "it has the keyboard focus".into(),
        membership: Some("child".into()),
        set: Some(6),
        knobs: vec![knob],
        skipped: vec![],
    };
    same(
        concat!(
            r#"{"why":{"pid":7,"program":"sh","role":"focused","#,
            r#""reason":"it has the keyboard focus","membership":"child","set":6,"#,
            r#""knobs":[{"name":"nice value","baseline":"0","applied":"-8"}],"skipped":[]}}"#
        ),
        ManagerResponse::Why(why),
    );
}

#[test]
fn a_status_fits_into_a_line_at_its_bounds() {
    let set = SetStatus {
        program: "a-name-of-15-by".into(),
        pid: 4_194_304,
        role: "focused".into(),
        reason: "it lost the keyboard focus within the last minute, or some such words".into(),
        processes: 512,
    };
    let status = ManagerStatus {
        sets: vec![set; LISTED_MAX],
        core: vec![("a-name-of-15-by".into(), 4_194_304); 64],
        missing: vec!["x".repeat(300); 16],
        ..ManagerStatus::default()
    };
    let bytes = serde_json::to_vec(&ManagerResponse::Status(Box::new(status))).unwrap();
    assert!(bytes.len() < MAX_LINE_BYTES * 3 / 4, "{} bytes", bytes.len());
}

#[test]
fn a_refusal_is_an_error_and_no_manager_has_a_remedy() {
    let dir = TempDir::new().unwrap();
    let client = Client::new(dir.path()).with_timeout(Duration::from_secs(10));
    let nobody = client.call(&ManagerRequest::Status).unwrap_err().to_string();
    assert!(nobody.starts_with("no manager listens at "), "{nobody}");
    assert!(nobody.contains("; start one with: sudo tipme manage --state-dir "), "{nobody}");
    let mut server = Server::bind(&dir.path().join(SOCKET_NAME), Gate::new(&[])).unwrap();
    let thread = std::thread::spawn(move || {
        loop {
            if let Some(call) = server.calls(Instant::now()).pop() {
                return call.answer(&ManagerResponse::Error("it is off".into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let refused = client.call(&ManagerRequest::Why { pid: 1 });
    assert!(matches!(refused, Err(CallError::Refused(why)) if why == "it is off"));
    thread.join().unwrap();
}
