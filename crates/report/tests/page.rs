// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages from recorded bytes: their statements, escaping and size.

#[path = "../../analysis/tests/support/mod.rs"]
mod support;

use serde_json::{Value, json};
use support::{APP, Machinery};
use tipme_analysis::DiagnoseOptions;
use tipme_analysis::scene::{Bar, Look, Scene, TrackGroup, scene};
use tipme_record::incident::{Incident, Section};

fn scene_of(incident: &Incident) -> Scene {
    scene(incident, &DiagnoseOptions::default()).expect("the scene is well formed")
}

/// Twelve quick keys, then a key at 3 s that the scene handles, drawn at 3 s + `ms`.
fn stall(name: &str, ms: u64, fill: impl FnOnce(&mut Machinery)) -> Incident {
    let mut machine = Machinery::with_app(name);
    machine.typing(100_000, 12).press(3_000_000);
    fill(&mut machine);
    machine.draw(3_000_000 + ms * 1_000).incident(6_000_000)
}

/// Returns the data that the page's script reads.
fn data(page: &str) -> Value {
    let (_, from) = page
        .split_once(r#"<script type="application/json" id="data">"#)
        .expect("the page has data");
    let (json, _) = from.split_once("</script>").expect("the element ends");
    serde_json::from_str(json).expect("it is JSON")
}

fn bars(scene: &Scene, group: TrackGroup) -> impl Iterator<Item = &Bar> {
    scene.tracks.iter().filter(move |track| track.group == group).flat_map(|track| &track.bars)
}

#[test]
fn a_page_contains_the_whole_verdict() {
    let incident = stall("editor", 700, |machine| {
        machine.task_in(300, 300, 1, 300, "make", 1);
        for turn in 0..30 {
            let us = 3_010_000 + turn * 20_000;
            machine.switch(us, 1, 300, 0).switch(us + 19_000, 1, APP, 0);
        }
    });
    let scene = scene_of(&incident);
    let page = tipme_report::page(&scene);
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    for words in [
        "<title>Typing in editor stalled for 700 ms</title>",
        "make took the CPU time that editor needed (81% of the time).",
        "renice -n 19 -p 300",
        "sudo tipme selftest cpu",
        "No record was lost.",
        "this one, 700 ms",
        "0.79 ms or less in half of 12 other times",
        "This wait ended 2.30 s before the mark.",
        "<pre><code>renice -n 19 -p 300</code></pre><button class=\"copy\" type=\"button\" \
         hidden>Copy</button>",
        "ps -o pid,stat,etime,pcpu,comm -p 300",
        "<p id=\"evidence\" role=\"status\"></p>",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(
        bars(&scene, TrackGroup::Input).filter(|bar| bar.look == Look::ThisInput).count(),
        1
    );
    let took: u64 = bars(&scene, TrackGroup::Cpus)
        .filter(|bar| bar.look == Look::Culprit)
        .map(|bar| bar.length_us)
        .sum();
    assert_eq!(took, 570_000);
    let chain: u64 = bars(&scene, TrackGroup::Chain).map(|bar| bar.length_us).sum();
    let wait =
        scene.verdict.interval.as_ref().map_or(0.0, |interval| interval.latency_ms * 1_000.0);
    assert!(
        (chain as f64 - wait).abs() < bars(&scene, TrackGroup::Chain).count() as f64,
        "{chain} of {wait}"
    );
    assert_eq!(
        scene.jobs.iter().find(|job| job.look == Look::Culprit).map(|job| job.cpu_ms),
        Some(570.0)
    );
    assert_eq!(data(&page)["tracks"].as_array().map(Vec::len), Some(scene.tracks.len()));
}

#[test]
fn names_and_words_stay_text() {
    const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&<!--";
    let mut machine = Machinery::with_app("</script><b a=>");
    machine.cmdline(APP, HOSTILE.as_bytes());
    machine.typing(100_000, 12).press(3_000_000).draw(3_700_000);
    let mut incident = machine.incident(6_000_000);
    let mut meta: Value = incident.json(Section::Meta).expect("meta is JSON");
    (meta["user_text"], meta["id"], meta["machine"]["hostname"]) =
        (HOSTILE.into(), HOSTILE.into(), HOSTILE.into());
    incident.push_json(Section::Meta, &meta).expect("it is JSON");
    let page = tipme_report::page(&scene_of(&incident));
    assert_eq!(page.matches("</script").count(), 2, "the data's and the script's own");
    assert!(!page.contains("<img") && !page.contains("<b a") && !page.contains("<!--"));
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
    let texts = data(&page)["texts"].to_string();
    assert!(texts.contains("</script><b a=>"), "{texts}");
}

/// An editor beside a low-priority job that starts a process, with names that contain XML markup.
fn beside_others() -> Incident {
    stall("<ed&itor>", 700, |machine| {
        machine.task_in(300, 300, 1, 300, "make", 1).prios.insert(300, 139);
        machine.fork(3_010_000, 300, 301).switch(3_020_000, 1, 300, 0).switch(3_220_000, 1, 0, 1);
        machine.exit(3_200_000, 301, 300, 300, "<cc1>").switch(3_300_000, 1, APP, 0);
    })
}

#[test]
fn all_programs_have_their_states_and_started_processes() {
    let scene = scene_of(&beside_others());
    let others = scene.tracks.iter().filter(|track| track.group == TrackGroup::Others);
    let names: Vec<&str> = others.clone().map(|track| track.name.as_str()).collect();
    let other = others.clone().find(|track| track.name.starts_with("make (pid 300), at nice 19"));
    let ran = other.map(|track| {
        track.bars.iter().filter(|bar| bar.look == Look::Running).map(|bar| bar.length_us).sum()
    });
    assert_eq!(ran, Some(200_000_u64), "{names:?}");
    let started: Vec<(u64, &str)> = bars(&scene, TrackGroup::Started)
        .map(|bar| (bar.length_us, scene.texts[bar.text].as_str()))
        .collect();
    assert_eq!(
        started,
        [(190_000, "<cc1> (pid 301), started by make (pid 300), ended after 190 ms")]
    );
}

#[test]
fn the_picture_is_well_formed_and_has_every_track() {
    let scene = scene_of(&beside_others());
    let picture = tipme_report::picture(&scene);
    assert!(picture.starts_with("<svg xmlns=") && picture.ends_with("</svg>"), "{picture}");
    assert!(!picture.contains("<ed") && picture.contains("&lt;ed&amp;itor&gt;"), "{picture}");
    assert_eq!(picture.matches("<g ").count(), picture.matches("</g>").count());
    for track in &scene.tracks {
        let begin: String = track.name.chars().take(20).collect();
        let escaped = begin.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        assert!(picture.contains(&escaped), "{}", track.name);
    }
}

#[test]
fn nothing_recorded_gives_a_page_too() {
    let page = tipme_report::page(&scene_of(&Machinery::with_app("editor").incident(6_000_000)));
    assert!(page.contains("<h1>Nothing to explain was recorded</h1>"), "{page}");
    assert!(!page.contains("id=\"timeline\""));
}

/// Two CPUs that switch threads every ten microseconds during a wait for an answer.
fn storm(switches: u64) -> Incident {
    stall("editor", 100 + switches / 100, |machine| {
        for task in 300..340 {
            machine.task_in(task, task, 1, task, "storm", 1);
        }
        for turn in 0..switches {
            let (us, next) = (3_010_000 + turn * 10, 300 + (turn * 7 % 40) as u32);
            machine.switch(us, (turn % 2) as u32, next, 0);
        }
        machine.switch(3_010_000 + switches * 10, 1, APP, 0);
    })
}

#[test]
fn a_page_of_many_records_is_bounded_and_says_what_is_left_out() {
    let [few, many] =
        [5_000, 100_000].map(|switches| tipme_report::page(&scene_of(&storm(switches))));
    assert!(
        many.len() < 1_000_000 && many.len() < few.len() * 4,
        "{} and {} bytes",
        few.len(),
        many.len()
    );
    assert!(many.contains("stretches are too short for bars of their own"));
}

#[test]
fn a_page_of_hostile_documents_is_bounded() {
    let mut incident = stall("editor", 700, |_| ());
    let mut meta: Value = incident.json(Section::Meta).expect("meta is JSON");
    let long = "\u{1b}[2J".repeat(1 << 16);
    (meta["user_text"], meta["id"], meta["machine"]["hostname"]) =
        (long.as_str().into(), long.as_str().into(), long.as_str().into());
    let losses: Vec<Value> = (0..20_000)
        .map(|at| json!({ "until_ns": at, "class": format!("{at}{}", &long[..99]), "count": 1 }))
        .collect();
    let programs: Vec<Value> =
        (0..20_000).map(|at| json!({ "name": format!("{at}{}", &long[..99]) })).collect();
    incident.push_json(Section::Meta, &meta).expect("it is JSON");
    incident.push_json(Section::Losses, &json!({ "per_second": losses })).expect("it is JSON");
    incident.push_json(Section::Cost, &json!({ "programs": programs })).expect("it is JSON");
    let scene = scene_of(&incident);
    let page = tipme_report::page(&scene);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(!page.contains('\u{1b}') && !tipme_report::json(&scene.verdict).contains("\\u001b"));
}
