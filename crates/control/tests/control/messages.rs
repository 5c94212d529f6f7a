// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON forms, which clients in other languages rely on.

use proptest::collection::vec;
use proptest::prelude::*;
use tipme_control::{
    Focused, RecordedDetail, RecorderRequest, RecorderResponse, RecorderStatus, Trigger,
    parse_request, parse_response, to_line,
};

fn line(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

#[test]
fn requests_have_these_forms() {
    let forms = [
        (
            r#"{"mark":{"text":"it \"hung\"","trigger":"hotkey"}}"#,
            RecorderRequest::Mark { text: "it \"hung\"".into(), trigger: Trigger::Hotkey },
        ),
        (
            r#"{"describe":{"incident":"/tmp/a.tipme","text":"late"}}"#,
            RecorderRequest::Describe {
                incident: "/tmp/a.tipme".into(),
                text: "late".into(),
                right: None,
            },
        ),
        (
            r#"{"describe":{"incident":"/tmp/a.tipme","text":"","right":true}}"#,
            RecorderRequest::Describe {
                incident: "/tmp/a.tipme".into(),
                text: String::new(),
                right: Some(true),
            },
        ),
        (r#"{"remove":{"id":"a"}}"#, RecorderRequest::Remove { id: "a".into() }),
        (
            r#"{"pin":{"id":"a","pinned":true}}"#,
            RecorderRequest::Pin { id: "a".into(), pinned: true },
        ),
        (r#"{"keys":{"record":false}}"#, RecorderRequest::Keys { record: false }),
        (r#""status""#, RecorderRequest::Status),
        (r#""start""#, RecorderRequest::Start),
        (r#""pause""#, RecorderRequest::Pause),
        (r#""follow""#, RecorderRequest::Follow),
        (
            r#"{"detail":{"details":["locks","waits"],"seconds":600}}"#,
            RecorderRequest::Detail { details: vec!["locks".into(), "waits".into()], seconds: 600 },
        ),
        (
            r#"{"day":{"from_s":1,"to_s":9}}"#,
            RecorderRequest::Day { from_s: 1, to_s: 9, user: None },
        ),
        (
            r#"{"day":{"from_s":1,"to_s":9,"user":7}}"#,
            RecorderRequest::Day { from_s: 1, to_s: 9, user: Some(7) },
        ),
        (r#""forget_days""#, RecorderRequest::ForgetDays),
    ];
    for (json, request) in forms {
        assert_eq!(to_line(&request), line(json));
        assert_eq!(parse_request(&line(json)), Ok(request));
    }
    let short = RecorderRequest::Mark { text: String::new(), trigger: Trigger::Command };
    assert_eq!(parse_request(br#"{"mark":{}}"#), Ok(short));
}

/// Returns a status with a value in each field that the form below has.
fn status() -> RecorderStatus {
    RecorderStatus {
        pid: 7,
        armed_ns: 1,
        held_s: 2.5,
        window_s: 40.0,
        ended_s: 600.0,
        ended_bound: "time".into(),
        lost: 3,
        paused_since_ns: Some(5),
        paused_by_uid: Some(1000),
        allowed: vec![1000],
        because: "you are root".into(),
        hot_keys: Some("f9 marks".into()),
        any_keyboard: true,
        keys: true,
        input_stopped_by_uid: Some(1000),
        input_stopped_s: 1.5,
        details: vec![RecordedDetail {
            name: "locks".into(),
            since_ns: 4,
            until_ns: Some(9),
            by_uid: Some(1000),
        }],
        displays: vec![":0".into()],
        focus: vec![],
        missing: vec![],
        day: true,
        suggested: vec![],
        tolerances: vec![],
        auto: None,
    }
}

#[test]
fn responses_have_these_forms() {
    let forms = [
        (
            r#"{"marked":{"incident":"/tmp/a.tipme","id":"a","seconds":0.25}}"#,
            RecorderResponse::Marked {
                incident: "/tmp/a.tipme".into(),
                id: "a".into(),
                seconds: 0.25,
                input_stopped: false,
            },
        ),
        (
            r#"{"marked":{"incident":"/a.tipme","id":"a","seconds":0.25,"input_stopped":true}}"#,
            RecorderResponse::Marked {
                incident: "/a.tipme".into(),
                id: "a".into(),
                seconds: 0.25,
                input_stopped: true,
            },
        ),
        (r#""done""#, RecorderResponse::Done),
        (
            concat!(
                r#"{"status":{"pid":7,"armed_ns":1,"held_s":2.5,"window_s":40.0,"ended_s":600.0,"#,
                r#""ended_bound":"time","lost":3,"paused_since_ns":5,"paused_by_uid":1000,"#,
                r#""allowed":[1000],"because":"you are root","hot_keys":"f9 marks","#,
                r#""any_keyboard":true,"keys":true,"input_stopped_by_uid":1000,"#,
                r#""input_stopped_s":1.5,"#,
                r#""details":[{"name":"locks","since_ns":4,"until_ns":9,"by_uid":1000}],"#,
                r#""displays":[":0"],"missing":[],"day":true}}"#
            ),
            RecorderResponse::Status(status()),
        ),
        (
            r#"{"focus":{"server":7,"client":null,"since_ns":9}}"#,
            RecorderResponse::Focus(Focused { server: 7, client: None, since_ns: 9 }),
        ),
        (r#"{"error":"disk full"}"#, RecorderResponse::Error("disk full".into())),
    ];
    for (json, response) in forms {
        assert_eq!(to_line(&response), line(json));
        assert_eq!(parse_response(&line(json)), Ok(response));
    }
}

fn refusal(text: &[u8]) -> String {
    parse_request::<RecorderRequest>(text).expect_err("no request")
}

#[test]
fn invalid_requests_are_refused_with_a_reason() {
    assert!(refusal(b"").starts_with("the request is not understood: EOF"));
    assert!(refusal(br#""halt""#).contains("unknown variant `halt`"));
    assert!(refusal(&[b'['; 60_000]).contains("the request is not understood"));
    assert!(refusal(&[b' '; 70_000]).contains("more than 65536 bytes"));
}

proptest! {
    #[test]
    fn any_bytes_give_a_message_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
        let _ = parse_request::<RecorderRequest>(&bytes);
        let _ = parse_response::<RecorderResponse>(&bytes);
    }

    #[test]
    fn any_text_passes_unchanged(text in ".{0,200}") {
        let request = RecorderRequest::Mark { text, trigger: Trigger::Command };
        let line = to_line(&request);
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert_eq!(parse_request(&line), Ok(request));
    }
}
