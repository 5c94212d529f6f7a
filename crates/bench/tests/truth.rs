// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ground truth by itself: complete, in order, and quick on an idle display.

use tipme_bench::PrivateSession;
use tipme_bench::session::SessionOptions;
use tipme_bench::truth::TruthClient;
use tipme_bench::worker::WorkerLauncher;
use tipme_desktop::inject::Pace;
use tipme_record::Nanos;

#[test]
fn every_key_has_its_four_times_in_order() {
    let session = PrivateSession::start(SessionOptions::default()).expect("a session");
    let launcher = WorkerLauncher(vec![env!("CARGO_BIN_EXE_tipme-worker").into()]);
    let client = TruthClient::start(&session, &launcher, 300).expect("a client");
    assert_ne!(client.pid(), 0);
    let truths = client
        .drive(&session, Pace { words_per_minute: 600.0, variation: 0.5, seed: 7 })
        .expect("all keys");
    assert_eq!(truths.len(), 300);
    for truth in &truths {
        assert!(truth.injected < truth.received, "{truth:?}");
        assert!(truth.received < truth.drawn && truth.drawn < truth.finished, "{truth:?}");
    }
    let mut spans: Vec<Nanos> =
        truths.iter().map(|truth| truth.finished.since(truth.injected)).collect();
    spans.sort();
    println!(
        "injected to finished: p50 {} ms, p99 {} ms",
        spans[149].millis(),
        spans[296].millis()
    );
    assert!(spans[149] < Nanos::from_millis(5), "{}", spans[149]);
}
