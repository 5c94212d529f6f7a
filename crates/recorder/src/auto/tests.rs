// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn auto(per_hour: usize) -> AutoMarker {
    let options = AutoOptions { mode: AutoMode::Mark, per_hour, judge: "tipme".into() };
    AutoMarker::new(options, Tolerances::open(folder().join("tolerances.json")))
}

fn suspicion(latency: Nanos, at: Nanos, doubtful: bool) -> Suspicion {
    let application = "xterm".to_owned();
    let (class, client, open_since) = (InputClass::Key, Pid(1), None);
    Suspicion { class, application, uid: 1000, client, slot: 3, latency, at, open_since, doubtful }
}

/// Returns a removed folder, so that nothing is stored.
fn folder() -> PathBuf {
    tempfile::TempDir::new().expect("a folder").path().to_owned()
}

#[test]
fn a_mark_without_a_suspicion_tightens_the_limits_of_the_worst() {
    let mut auto = auto(6);
    auto.remember(suspicion(ms(60), ms(1_000), false));
    auto.remember(Suspicion { application: "gedit".into(), ..suspicion(ms(80), ms(2_000), false) });
    auto.remember(Suspicion {
        application: "other".into(),
        uid: 1001,
        ..suspicion(ms(90), ms(2_000), false)
    });
    for (now, percent, why) in [
        (ms(60_000), 100, "it is too long ago"),
        (ms(3_000), 84, "the worst of this user"),
        (ms(3_100), 84, "the same is not marked twice"),
    ] {
        auto.tighten(1000, now);
        let percents = ["gedit", "xterm", "other"].map(|application| {
            auto.tolerances.get(&Subject::new(1000, InputClass::Key, application)).percent()
        });
        assert_eq!(percents, [percent, 100, 100], "{why}");
    }
}

fn cause(culprit: &str) -> JudgedCause {
    JudgedCause { kind: "stopped".into(), culprit: culprit.into(), application: "xterm".into() }
}

fn marked(line: &str) -> Outcome {
    Outcome::Marked(line.to_owned(), cause("kill"))
}

fn found(what: &str) -> Judgement {
    Judgement::Found { cause: cause(what), latency_ms: 1234.0, milestone: "response".into() }
}

fn answer(presses: u32, first: Nanos, last: Nanos) -> ToldAnswer {
    let (slept, silent, client) = (ms(0), 0, Pid(1));
    let at = ms(10_000);
    ToldAnswer { at, first, last, slept, silent, client, slot: 3, presses, class: 0, queued: false }
}

/// Runs ticks 100 ms apart with nothing open, and returns the time of the examination.
fn look_at(auto: &mut AutoMarker, from: Nanos, until: Nanos) -> Option<Nanos> {
    let ticks = (from.0..until.0).step_by(100_000_000).map(Nanos);
    ticks.into_iter().find(|now| auto.due(&[], *now).is_some())
}

#[test]
fn one_press_counts_from_the_press() {
    assert_eq!(latency(&answer(1, ms(700), ms(700)), None), (ms(700), false));
    assert_eq!(latency(&answer(3, ms(700), ms(150)), None), (ms(700), false));
    assert_eq!(
        latency(&ToldAnswer { queued: true, ..answer(3, ms(700), ms(0)) }, None),
        (ms(700), false)
    );
}

#[test]
fn presses_that_need_no_answer_do_not_count() {
    assert_eq!(latency(&answer(2, ms(3_000), ms(1)), None), (ms(1), false));
    assert_eq!(latency(&answer(2, ms(3_000), ms(45)), Some(ms(50).0)), (ms(45), false));
    assert_eq!(latency(&answer(5, ms(900), ms(1)), None), (ms(900), true));
}

#[test]
fn a_look_waits_until_the_client_is_quiet() {
    let mut auto = auto(6);
    auto.suspect(Some(suspicion(ms(700), ms(1_000), false)));
    let open = OpenPresses {
        slot: 3,
        client: Pid(1),
        since: ms(1_000),
        untaken: None,
        presses: 1,
        class: 0,
    };
    assert_eq!(auto.due(&[open], ms(1_100)), None);
    assert_eq!(look_at(&mut auto, ms(1_200), ms(9_000)), Some(ms(1_500)));
    auto.looks.clear();
    auto.suspect(Some(suspicion(ms(700), ms(1_000), false)));
    assert_eq!(auto.due(&[open], ms(3_900)), None);
    assert!(auto.due(&[open], ms(4_000)).is_some());
}

#[test]
fn looks_are_apart_and_the_worst_waits() {
    let mut auto = auto(6);
    auto.suspect(Some(suspicion(ms(700), ms(1_000), false)));
    assert_eq!(look_at(&mut auto, ms(1_000), ms(9_000)), Some(ms(1_300)));
    auto.suspect(Some(suspicion(ms(800), ms(2_000), false)));
    auto.suspect(Some(suspicion(ms(9_000), ms(2_500), true)));
    auto.suspect(Some(suspicion(ms(600), ms(2_500), false)));
    assert_eq!(auto.suspicion.as_ref().map(|one| one.latency), Some(ms(800)));
    assert_eq!(look_at(&mut auto, ms(2_000), ms(60_000)), Some(ms(21_300)));
}

#[test]
fn looks_within_an_hour_are_bounded() {
    let mut auto = auto(100);
    let mut looks = 0;
    for second in (0..3_500).step_by(25) {
        let at = Nanos::from_secs(second + 1);
        auto.suspect(Some(suspicion(ms(700), at, false)));
        looks += usize::from(look_at(&mut auto, at, at.after(Nanos::from_secs(24))).is_some());
    }
    assert_eq!(looks, LOOKS_MAX);
    assert_eq!((auto.counts.looked_at, auto.counts.passed_over), (20, 120));
    let later = Nanos::from_secs(3_700);
    auto.suspect(Some(suspicion(ms(700), later, false)));
    assert!(look_at(&mut auto, later, later.after(ms(1_000))).is_some());
}

#[test]
fn doubtful_looks_are_fewer() {
    let mut auto = auto(100);
    (0..DOUBTS_MAX).for_each(|_| auto.looks.push_back((ms(1), true)));
    assert!(!auto.may_look(true, ms(2)) && auto.may_look(false, ms(2)));
}

#[test]
fn marks_within_an_hour_are_bounded() {
    let mut auto = auto(1);
    let suspicion = suspicion(ms(1_200), ms(1), false);
    let line = auto.decide(&suspicion, found("kill"), ms(2));
    assert_eq!(line, marked("1.2 s key in xterm, stopped by kill"));
    assert!(!auto.may_look(false, ms(3)));
    assert!(auto.may_look(false, HOUR.after(ms(3))));
}

#[test]
fn a_later_milestone_is_marked_and_named() {
    for (milestone, headline) in [
        ("handled", "1.2 s key until handled in xterm, stopped by kill"),
        ("completed", "1.2 s key until completed in xterm, stopped by kill"),
        ("hanging", "1.2 s key and still hanging in xterm, stopped by kill"),
    ] {
        let found = Judgement::Found {
            cause: cause("kill"),
            latency_ms: 1234.0,
            milestone: milestone.into(),
        };
        let outcome = auto(1).decide(&suspicion(ms(700), ms(1), false), found, ms(2));
        assert_eq!(outcome, marked(headline));
    }
}

#[test]
fn the_same_cause_is_marked_once_an_hour() {
    let mut auto = auto(6);
    let suspicion = suspicion(ms(1_200), ms(1), false);
    for (judgement, now, is_marked) in [
        (found("kill"), ms(2), true),
        (found("kill"), ms(3), false),
        (found("gdb"), ms(4), true),
        (Judgement::Nothing, ms(5), false),
        (found("kill"), HOUR.after(ms(10)), true),
    ] {
        auto.may_look(false, now);
        let outcome = auto.decide(&suspicion, judgement, now);
        assert_eq!(matches!(outcome, Outcome::Marked(..)), is_marked, "{outcome:?} at {now:?}");
    }
    assert_eq!(
        (auto.counts.marked, auto.counts.known_causes, auto.counts.without_finding),
        (3, 1, 1)
    );
}

/// Kernel class numbers.
const WHEEL: usize = 2;
const POINTER: usize = 3;

/// Returns an empty learning state with its folder, and a process that always runs.
fn learning() -> (tempfile::TempDir, Learning, Pid) {
    let dir = tempfile::TempDir::new().expect("a folder");
    let learning = Learning::open(dir.path().join("baselines.json"), ms(0));
    (dir, learning, Pid(1))
}

/// Returns pointer moves answered or read after `latency`.
fn moves(class: usize, client: Pid, latency: Nanos) -> ToldAnswer {
    ToldAnswer { class, client, queued: true, ..answer(1, latency, latency) }
}

#[test]
fn late_pointer_moves_are_suspected_by_limits_of_their_own() {
    let (_dir, mut learning, client) = learning();
    let mut auto = auto(6);
    for (number, class) in [(WHEEL, InputClass::Scroll), (POINTER, InputClass::Motion)] {
        for (latency, is_exceeded) in [(ms(200), false), (ms(201), true)] {
            let (suspicion, exceeds) =
                weigh(&moves(number, client, latency), &mut learning, &auto.tolerances).unwrap();
            assert_eq!((suspicion.class, exceeds), (class, is_exceeded));
        }
    }
    let (subject, _) =
        weigh(&moves(POINTER, client, ms(201)), &mut learning, &auto.tolerances).unwrap();
    auto.tolerances.adjust(&subject.subject(), PersonSaid::Wrong);
    let exceeds = [POINTER, WHEEL].map(|class| {
        weigh(&moves(class, client, ms(201)), &mut learning, &auto.tolerances).unwrap().1
    });
    assert_eq!(exceeds, [false, true], "the wheel has a tolerance of its own");
}

#[test]
fn baselines_never_tighten_the_pointers_limits() {
    let tolerances = Tolerances::open(folder().join("tolerances.json"));
    for (class, latency, is_exceeded) in [
        (InputClass::Motion, ms(200), false),
        (InputClass::Motion, ms(201), true),
        (InputClass::Key, ms(101), true),
    ] {
        let tolerance = tolerances.get(&Subject::new(1000, class, "xterm"));
        assert_eq!(tolerance.is_exceeded(latency.0, limits(class), 50, Some(ms(2).0)), is_exceeded);
    }
}

#[test]
fn untaken_moves_are_suspected_of_a_program_that_has_settled() {
    let (_dir, mut learning, client) = learning();
    let suspicion = weigh_untaken(&mut learning, client, ms(4_700)).unwrap();
    assert_eq!(
        (suspicion.class, suspicion.latency, suspicion.doubtful),
        (InputClass::Motion, ms(300), false)
    );
    assert_eq!(weigh_untaken(&mut learning, client, ms(4_801)), None);
    let mut new = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = Pid(new.id());
    assert_eq!(weigh_untaken(&mut learning, pid, ms(4_700)), None, "it starts");
    new.kill().unwrap();
    new.wait().unwrap();
    assert_eq!(weigh_untaken(&mut learning, pid, ms(4_700)), None, "it is gone");
}

/// Weighs pointer moves that a client has not read since then, at five seconds.
fn weigh_untaken(learning: &mut Learning, client: Pid, since: Nanos) -> Option<Suspicion> {
    let tolerances = Tolerances::open(folder().join("tolerances.json"));
    let (slot, presses, class) = (300, 9, POINTER);
    let open = OpenPresses { slot, client, since, untaken: Some(since), presses, class };
    weigh_open(&open, learning, &tolerances, ms(5_000))
}

#[test]
fn beside_the_pointer_nothing_short_is_marked() {
    for (class, latency, outcome) in [
        (InputClass::Motion, ms(2_500), Outcome::Dropped),
        (InputClass::Key, ms(2_500), marked("1.2 s key in xterm, stopped by kill")),
        (InputClass::Motion, ms(2_400), marked("1.2 s motion in xterm, stopped by kill")),
    ] {
        let suspicion = Suspicion { class, ..suspicion(latency, ms(1), false) };
        assert_eq!(auto(6).decide(&suspicion, found("kill"), ms(2)), outcome);
    }
}
