// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of the daemons' sockets.

use tipme_control::manager;
use tipme_control::{RecorderRequest, RecorderResponse, parse_request, parse_response, to_line};

/// Parses a line like the recorder and its clients. A parsed line can be written again.
pub fn recorder(line: &[u8]) -> bool {
    let request = parse_request::<RecorderRequest>(line);
    if let Ok(request) = &request {
        assert_eq!(parse_request::<RecorderRequest>(&to_line(request)).as_ref(), Ok(request));
    }
    request.is_ok() || parse_response::<RecorderResponse>(line).is_ok()
}

/// Parses a line like the manager and its clients.
pub fn manager(line: &[u8]) -> bool {
    let request = serde_json::from_slice::<manager::ManagerRequest>(line).is_ok();
    request || serde_json::from_slice::<manager::ManagerResponse>(line).is_ok()
}

fn lines(lines: &[&str]) -> Vec<Vec<u8>> {
    lines.iter().map(|line| line.as_bytes().to_vec()).collect()
}

/// Requests and answers.
pub fn recorder_seeds() -> Vec<Vec<u8>> {
    lines(&[
        r#"{"mark":{"text":"it \"hung\"","trigger":"hotkey"}}"#,
        r#"{"describe":{"incident":"/tmp/a.tipme","text":"late","right":true}}"#,
        r#"{"remove":{"id":"20260101T120000.000Z"}}"#,
        r#"{"pin":{"id":"20260101T120000.000Z","pinned":true}}"#,
        r#"{"keys":{"record":false}}"#,
        r#""status""#,
        r#""start""#,
        r#"{"marked":{"incident":"/tmp/a.tipme","id":"a","seconds":0.25,"input_stopped":true}}"#,
        r#"{"status":{"pid":7,"armed_ns":1,"held_s":2.5,"allowed":[1000],"displays":[":0"],"auto":{"marked":1}}}"#,
        r#"{"error":"no"}"#,
    ])
}

pub fn manager_seeds() -> Vec<Vec<u8>> {
    lines(&[
        r#""status""#,
        r#"{"strength":"strong"}"#,
        r#"{"why":{"pid":4711}}"#,
        r#"{"status":{"pid":7,"display":":0","user":1000}}"#,
        r#"{"why":{"pid":7,"program":"xterm","role":"focused","knobs":[{"name":"nice","baseline":"0","applied":"-8"}]}}"#,
    ])
}

pub fn helper_seeds() -> Vec<Vec<u8>> {
    lines(&[
        r#""status""#,
        r#""restore""#,
        r#"{"strength":"gentle"}"#,
        r#"{"explain":{"pid":4711}}"#,
        r#"{"open":{"strength":"normal","backend":"nice","owner":1000,"under":{"pid":7,"start":8}}}"#,
        r#"{"apply":[{"assign":{"set":{"pid":7,"start":1},"role":"focused","reason":"keyboard_focus","faded":0.5,"members":[{"who":{"pid":7,"start":1},"because":"client"}]}}]}"#,
        r#"{"apply":[{"forget":{"pid":7,"start":1}},{"memory":{"will_need":{"pid":7,"start":1}}}]}"#,
        r#"{"apply":[{"memory":{"reclaim":{"group":{"process":{"pid":7,"start":1}},"bytes":4096}}}]}"#,
        r#"{"apply":[{"memory":{"cold":{"pid":7,"start":1}}},{"memory":{"page_out":{"pid":7,"start":1}}}]}"#,
        r#"{"applied":{"changed":3,"skipped":1,"later":false}}"#,
    ])
}
