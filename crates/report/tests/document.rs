// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict as a document: its field names are a stable interface.

#[path = "../../analysis/tests/support/mod.rs"]
mod support;

use support::{APP, Machinery};
use tipme_analysis::{DiagnoseOptions, diagnose};
use tipme_record::incident::Section;

/// All field names of the document, which other programs rely on.
const DOCUMENT: &str = r#"{
  "schema": 2,
  "incident": {
    "id": "20260131T120000.000Z",
    "time": "2026-01-31T12:00:00Z",
    "machine": {
      "hostname": "test",
      "kernel": "",
      "cpus": 2,
      "virtualized": false
    },
    "user_text": "editor froze",
    "window_s": 6.0,
    "inputs": 13,
    "programs": [
      "editor"
    ],
    "mark_ns": 7000000000,
    "losses": []
  },
  "interval": {
    "start_ns": 4000012000,
    "end_ns": 4600200000,
    "latency_ms": 600.188,
    "class": "key",
    "milestone": "response",
    "join": "exact",
    "client": {
      "pid": 200,
      "comm": "editor",
      "cmdline": "/usr/bin/editor"
    },
    "censored": false,
    "settled_ms": null,
    "queue_ms": 0.238,
    "threshold_ms": 100.0,
    "exceeded": true
  },
  "baseline": {
    "n": 12,
    "p50_ms": 0.788,
    "p98_ms": null,
    "max_ms": 0.788
  },
  "partition": [
    {
      "state": "blocked",
      "kind": "timer-sleep",
      "ms": 585.0,
      "pid": 200,
      "comm": "editor",
      "detail": "slept in clock_nanosleep"
    },
    {
      "state": "running",
      "kind": "own-computation",
      "ms": 14.752,
      "pid": 200,
      "comm": "editor",
      "detail": "ran"
    },
    {
      "state": "running",
      "kind": "own-computation",
      "ms": 0.232,
      "pid": 100,
      "comm": "Xvfb",
      "detail": "served requests of editor (pid 200)"
    },
    {
      "state": "runnable",
      "kind": "own-computation",
      "ms": 0.148,
      "pid": 200,
      "comm": "editor",
      "detail": "was runnable while its CPU was idle"
    },
    {
      "state": "runnable",
      "kind": "own-computation",
      "ms": 0.048,
      "pid": 100,
      "comm": "Xvfb",
      "detail": "was runnable while its CPU was idle"
    },
    {
      "state": "runnable",
      "kind": "cpu-competition",
      "ms": 0.008,
      "pid": 100,
      "comm": "Xvfb",
      "detail": "was runnable while xdotool (pid 90) ran"
    }
  ],
  "unattributed_ms": 0.0,
  "findings": [
    {
      "kind": "timer-sleep",
      "culprit": {
        "pid": 200,
        "comm": "editor",
        "cmdline": "/usr/bin/editor",
        "job": null
      },
      "unusual": true,
      "ms": 585.0,
      "share": 0.975975975975976,
      "confidence": 0.95,
      "evidence": [
        "editor (pid 200) slept on a timer",
        "editor (pid 200) slept in clock_nanosleep, at most 585 ms"
      ],
      "remedy": "report it to the developers of editor: it sleeps where it should wait for an event",
      "period_s": null
    }
  ],
  "candidates": [
    {
      "subject": "typing in editor",
      "start_ns": 4000012000,
      "end_ns": 4600200000,
      "latency_ms": 600.188,
      "kind": "timer-sleep",
      "culprit": {
        "pid": 200,
        "comm": "editor",
        "cmdline": "/usr/bin/editor",
        "job": null
      },
      "confidence": 0.95,
      "unusual": true
    }
  ],
  "chain": [
    {
      "start_ns": 4000012000,
      "end_ns": 4000020000,
      "pid": 100,
      "comm": "Xvfb",
      "state": "runnable",
      "detail": "was runnable while xdotool (pid 90) ran",
      "woken_by": null
    },
    {
      "start_ns": 4000020000,
      "end_ns": 4000102000,
      "pid": 100,
      "comm": "Xvfb",
      "state": "running",
      "detail": "served requests of xdotool (pid 90)",
      "woken_by": null
    },
    {
      "start_ns": 4000102000,
      "end_ns": 4000200000,
      "pid": 200,
      "comm": "editor",
      "state": "runnable",
      "detail": "was runnable while its CPU was idle",
      "woken_by": null
    },
    {
      "start_ns": 4000200000,
      "end_ns": 4005000000,
      "pid": 200,
      "comm": "editor",
      "state": "running",
      "detail": "ran",
      "woken_by": null
    },
    {
      "start_ns": 4005000000,
      "end_ns": 4590000000,
      "pid": 200,
      "comm": "editor",
      "state": "blocked",
      "detail": "slept in clock_nanosleep",
      "woken_by": null
    },
    {
      "start_ns": 4590000000,
      "end_ns": 4590050000,
      "pid": 200,
      "comm": "editor",
      "state": "runnable",
      "detail": "was runnable while its CPU was idle",
      "woken_by": null
    },
    {
      "start_ns": 4590050000,
      "end_ns": 4600002000,
      "pid": 200,
      "comm": "editor",
      "state": "running",
      "detail": "ran",
      "woken_by": null
    },
    {
      "start_ns": 4600002000,
      "end_ns": 4600050000,
      "pid": 100,
      "comm": "Xvfb",
      "state": "runnable",
      "detail": "was runnable while its CPU was idle",
      "woken_by": null
    },
    {
      "start_ns": 4600050000,
      "end_ns": 4600200000,
      "pid": 100,
      "comm": "Xvfb",
      "state": "running",
      "detail": "served requests of editor (pid 200)",
      "woken_by": null
    }
  ],
  "overhead_ms": 0.0,
  "notes": []
}
"#;

#[test]
fn the_document_keeps_its_names() {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000).switch(3_005_000, 1, 0, 1);
    machine
        .wake_from(3_590_000, APP, 0, 2, 1)
        .wait(3_590_000, APP, 3_005_000, |wait| (wait.syscall, wait.context) = (230, 2));
    let mut incident = machine.switch(3_590_050, 1, APP, 0).draw(3_600_000).incident(6_000_000);
    incident.push(Section::Words, br#"{"text":"editor froze","at_ns":1}"#.to_vec());
    let verdict =
        diagnose(&incident, &DiagnoseOptions::default()).expect("the scene is well formed");
    assert_eq!(tipme_report::json(&verdict), DOCUMENT);
}
