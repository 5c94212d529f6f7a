// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON forms of the manager's messages.

use tipme_control::MAX_LINE_BYTES;
use tipme_control::manager::{
    KnobStatus, LISTED_MAX, ManagerRequest, ManagerResponse, ManagerStatus, ProcessTreatment,
    SetStatus,
};

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
