// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reader of scripts: from text to steps, or to an error with line and remedy.
//!
//! The types say which values a script may have; their errors come with the place of the value.
//! A missing value is reported at the first line of its step or file.

use super::parts::{
    Content, EVENTS_MAX, FILE_BYTES_MAX, FILES_MAX, Input, MadeFile, SCRIPT_BYTES_MAX, Script,
    ScriptAct, ScriptStep, TEXT_BYTES_MAX,
};
use super::prose;
use anyhow::{Error, Result, anyhow, bail, ensure};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;
use tipme_desktop::hotkeys::Chord;
use tipme_desktop::inject::Pace;
use tipme_measure::InputClass;
use toml::Spanned;

/// Usual pace, as a typist's.
const WORDS_PER_MINUTE: f64 = 100.0;
/// Usual interval between inputs of a step that repeats one, in milliseconds.
const EVERY_MS: u64 = 250;
/// Usual limit of a wait for a quiet screen, in milliseconds.
const IDLE_AT_MOST_MS: u64 = 10_000;
/// Maximum length of a label.
const LABEL_BYTES_MAX: usize = 80;
/// Maximum pause, in milliseconds.
const PAUSE_MS_MAX: u64 = 600_000;

/// A script as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    about: Option<String>,
    #[serde(default)]
    application: Vec<String>,
    seed: Option<u64>,
    #[serde(default, deserialize_with = "within::<1, 3_600, _>")]
    start_within_s: Option<u64>,
    #[serde(default, deserialize_with = "thousandths::<1_000, 1_000_000, _>")]
    words_per_minute: Option<f64>,
    #[serde(default, deserialize_with = "thousandths::<0, 900, _>")]
    variation: Option<f64>,
    #[serde(default)]
    threshold_ms: BTreeMap<ClassName, Threshold>,
    #[serde(default)]
    file: Vec<Spanned<RawFile>>,
    #[serde(default)]
    step: Vec<Spanned<RawStep>>,
}

/// A file to make, with one of four contents.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(deserialize_with = "path_in_home")]
    path: String,
    content: Option<String>,
    #[serde(default, deserialize_with = "within::<0, FILE_BYTES_MAX, _>")]
    prose_bytes: Option<u64>,
    #[serde(default, deserialize_with = "within::<1, 10_000, _>")]
    page_sections: Option<u64>,
    #[serde(default, deserialize_with = "within::<1, 1_000, _>")]
    slides: Option<u64>,
}

/// A step: one of the first eight, and attributes that suit it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    r#type: Option<String>,
    #[serde(default, deserialize_with = "within::<1, EVENTS_MAX, _>")]
    prose: Option<u64>,
    #[serde(default, deserialize_with = "key")]
    key: Option<(String, Chord)>,
    click: Option<StepPlace>,
    r#move: Option<StepPlace>,
    scroll: Option<ScrollWay>,
    #[serde(default, deserialize_with = "within::<1, PAUSE_MS_MAX, _>")]
    pause_ms: Option<u64>,
    #[serde(default, deserialize_with = "within::<1, PAUSE_MS_MAX, _>")]
    idle_ms: Option<u64>,
    #[serde(default, deserialize_with = "within::<1, EVENTS_MAX, _>")]
    times: Option<u64>,
    #[serde(default, deserialize_with = "within::<20, 5_000, _>")]
    every_ms: Option<u64>,
    #[serde(default, deserialize_with = "within::<1, 9, _>")]
    button: Option<u64>,
    #[serde(default, deserialize_with = "within::<1, PAUSE_MS_MAX, _>")]
    at_most_ms: Option<u64>,
    #[serde(default, deserialize_with = "thousandths::<1_000, 1_000_000, _>")]
    words_per_minute: Option<f64>,
    #[serde(default, deserialize_with = "label")]
    label: Option<Arc<str>>,
    class: Option<ClassName>,
}

/// Attributes that suit each kind of step.
const KINDS: [(&str, &[&str]); 8] = [
    ("type", &["words_per_minute", "label", "class"]),
    ("prose", &["words_per_minute", "label", "class"]),
    ("key", &["times", "every_ms", "label", "class"]),
    ("click", &["times", "every_ms", "button", "label", "class"]),
    ("move", &["every_ms", "label", "class"]),
    ("scroll", &["times", "every_ms", "label", "class"]),
    ("pause_ms", &[]),
    ("idle_ms", &["at_most_ms"]),
];

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScrollWay {
    Up,
    Down,
}

/// Pixels from the upper left corner.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "[i64; 2]")]
struct StepPlace {
    x: i16,
    y: i16,
}

impl TryFrom<[i64; 2]> for StepPlace {
    type Error = String;

    fn try_from([x, y]: [i64; 2]) -> Result<StepPlace, String> {
        let on_screen = |pixel: i64| i16::try_from(pixel).ok().filter(|pixel| *pixel >= 0);
        let place = on_screen(x).zip(on_screen(y)).map(|(x, y)| StepPlace { x, y });
        place.ok_or_else(|| format!("there is no place [{x}, {y}] on a screen"))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct ClassName(InputClass);

impl TryFrom<String> for ClassName {
    type Error = String;

    fn try_from(name: String) -> Result<ClassName, String> {
        let known = || InputClass::ALL.map(InputClass::name).join(", ");
        InputClass::named(&name)
            .map(ClassName)
            .ok_or_else(|| format!("there is no class \"{name}\"; use {}", known()))
    }
}

/// Threshold of a class, in milliseconds.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
struct Threshold(f64);

impl TryFrom<f64> for Threshold {
    type Error = String;

    fn try_from(ms: f64) -> Result<Threshold, String> {
        let fits = (0.001..=600_000.0).contains(&ms);
        fits.then_some(Threshold(ms)).ok_or_else(|| not_within(ms, 0.001, 600_000.0))
    }
}

fn not_within(value: impl Display, least: impl Display, most: impl Display) -> String {
    format!("{value} is no number from {least} to {most}")
}

fn within<'de, const LEAST: u64, const MOST: u64, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<u64>, D::Error> {
    let value = u64::deserialize(from)?;
    let fits = (LEAST..=MOST).contains(&value);
    fits.then_some(Some(value)).ok_or_else(|| D::Error::custom(not_within(value, LEAST, MOST)))
}

/// Reads a number between two thousandths.
fn thousandths<'de, const LEAST: u64, const MOST: u64, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<f64>, D::Error> {
    let value = f64::deserialize(from)?;
    let [least, most] = [LEAST, MOST].map(|bound| bound as f64 / 1e3);
    let fits = (least..=most).contains(&value);
    fits.then_some(Some(value)).ok_or_else(|| D::Error::custom(not_within(value, least, most)))
}

fn key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<(String, Chord)>, D::Error> {
    let name = String::deserialize(from)?;
    let chord = name.parse().map_err(|_| {
        D::Error::custom(format_args!(
            "\"{}\" is not a key; write it like ctrl+s, Page_Down, f5 or plus",
            name.escape_debug()
        ))
    })?;
    Ok(Some((name, chord)))
}

fn label<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<str>>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() || text.len() > LABEL_BYTES_MAX || text.chars().any(char::is_control) {
        let what = format!("a label has 1 to {LABEL_BYTES_MAX} bytes in one line; choose another");
        return Err(D::Error::custom(what));
    }
    Ok(Some(text.into()))
}

fn path_in_home<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let path = String::deserialize(from)?;
    let plain = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
    if plain && (1..=1_000).contains(&path.len()) && !path.contains('\0') {
        return Ok(path);
    }
    Err(D::Error::custom(format_args!(
        "\"{path}\" is not a place in the home folder; give a plain path such as notes/text.txt"
    )))
}

/// Reads a script; `name` is used in errors.
pub(super) fn parse(name: &str, text: &str) -> Result<Script> {
    let bytes = text.len();
    ensure!(
        bytes <= SCRIPT_BYTES_MAX,
        "script {name} has {bytes} bytes, at most {SCRIPT_BYTES_MAX} are read; make it shorter"
    );
    let fail = |at: usize, what: &dyn Display| -> Error {
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        anyhow!("script {name}, line {line}: {what}")
    };
    let raw: RawScript = toml::from_str(text).map_err(|error| {
        let what = error.message().lines().collect::<Vec<_>>().join(", ");
        let remedy = "see the scripts that come with tipme: tipme measure --list";
        fail(error.span().map_or(0, |span| span.start), &format_args!("{what}; {remedy}"))
    })?;
    let made = raw.file.len();
    ensure!(made <= FILES_MAX, "script {name} makes {made} files, at most {FILES_MAX}");
    let seed = raw.seed.unwrap_or(1);
    let files = raw
        .file
        .iter()
        .map(|file| file.get_ref().made(seed).map_err(|error| fail(file.span().start, &error)));
    let files = files.collect::<Result<_>>()?;
    let mut reader = StepReader {
        seed,
        words_per_minute: raw.words_per_minute.unwrap_or(WORDS_PER_MINUTE),
        variation: raw.variation.unwrap_or(Pace::default().variation),
        steps: Vec::new(),
        inputs: 0,
        typed_bytes: 0,
    };
    for step in &raw.step {
        reader.step(step.get_ref()).map_err(|error| fail(step.span().start, &error))?;
    }
    let thresholds = raw.threshold_ms.iter().map(|(class, ms)| (class.0, (ms.0 * 1e6) as u64));
    Ok(Script {
        name: name.to_owned(),
        about: raw.about.unwrap_or_default(),
        application: raw.application,
        start_within: Duration::from_secs(raw.start_within_s.unwrap_or(60)),
        thresholds: thresholds.collect(),
        files,
        steps: reader.steps,
    })
}

impl RawFile {
    fn made(&self, seed: u64) -> Result<MadeFile> {
        let content = match (&self.content, self.prose_bytes, self.page_sections, self.slides) {
            (Some(text), None, None, None) => Content::Plain(text.clone()),
            (None, Some(bytes), None, None) => Content::Prose { bytes, seed },
            (None, None, Some(sections), None) => Content::Page { sections, seed },
            (None, None, None, Some(slides)) => Content::Slides { slides, seed },
            _ => bail!(
                "say what is in the file by one of content, prose_bytes, page_sections, slides"
            ),
        };
        Ok(MadeFile { path: self.path.clone(), content })
    }
}

impl RawStep {
    /// Returns the name of the kind, if the step is of one and its attributes suit it.
    fn kind(&self) -> Result<&'static str> {
        let given = [
            self.r#type.is_some(),
            self.prose.is_some(),
            self.key.is_some(),
            self.click.is_some(),
            self.r#move.is_some(),
            self.scroll.is_some(),
            self.pause_ms.is_some(),
            self.idle_ms.is_some(),
        ];
        let mut kinds = KINDS.iter().zip(given).filter(|(_, given)| *given).map(|(kind, _)| kind);
        let Some((kind, takes)) = kinds.next() else {
            let names = KINDS.map(|(name, _)| name).join(", ");
            bail!("the step does nothing; give it one of {names}");
        };
        if let Some((other, _)) = kinds.next() {
            bail!("the step is two things at once, {kind} and {other}; make two steps of it");
        }
        let attributes = [
            ("times", self.times.is_some()),
            ("every_ms", self.every_ms.is_some()),
            ("button", self.button.is_some()),
            ("at_most_ms", self.at_most_ms.is_some()),
            ("words_per_minute", self.words_per_minute.is_some()),
            ("label", self.label.is_some()),
            ("class", self.class.is_some()),
        ];
        let strange = attributes.iter().find(|(name, given)| *given && !takes.contains(name));
        strange.map_or(Ok(*kind), |(name, _)| {
            bail!("{name} means nothing in a step with {kind}; leave it out")
        })
    }

    fn class(&self, usual: InputClass) -> InputClass {
        self.class.map_or(usual, |class| class.0)
    }
}

/// The steps read so far.
struct StepReader {
    seed: u64,
    words_per_minute: f64,
    variation: f64,
    steps: Vec<ScriptStep>,
    inputs: usize,
    typed_bytes: usize,
}

impl StepReader {
    fn step(&mut self, raw: &RawStep) -> Result<()> {
        let kind = raw.kind()?;
        if let Some(time) = raw.pause_ms {
            self.steps.push(ScriptStep::Pause(Duration::from_millis(time)));
        } else if let Some(quiet) = raw.idle_ms {
            let at_most = raw.at_most_ms.unwrap_or(IDLE_AT_MOST_MS.max(quiet));
            let [quiet, at_most] = [quiet, at_most].map(Duration::from_millis);
            self.steps.push(ScriptStep::Idle { quiet, at_most });
        } else if let Some(text) = &raw.r#type {
            self.text(raw, text)?;
        } else if let Some(count) = raw.prose {
            let text = prose::typed(count as usize, self.seed.wrapping_add(self.inputs as u64));
            self.text(raw, &text)?;
        } else {
            self.presses(raw, kind)?;
        }
        Ok(())
    }

    fn text(&mut self, raw: &RawStep, text: &str) -> Result<()> {
        self.typed_bytes += text.len();
        ensure!(
            self.typed_bytes <= TEXT_BYTES_MAX,
            "more than {TEXT_BYTES_MAX} bytes are typed; make the script shorter"
        );
        let mut controls = text.chars().filter(|letter| letter.is_control());
        if let Some(letter) = controls.find(|letter| !"\n\t\u{8}\u{1b}".contains(*letter)) {
            let letter = letter.escape_debug();
            bail!("\"{letter}\" cannot be typed; leave it out, or name a key by key");
        }
        let label = raw.label.clone().unwrap_or_else(|| "type".into());
        let newline = raw.label.clone().unwrap_or_else(|| "newline".into());
        self.pace(raw.words_per_minute.unwrap_or(self.words_per_minute));
        for letter in text.chars() {
            let label = Arc::clone(if letter == '\n' { &newline } else { &label });
            let class = raw.class(InputClass::Key);
            self.input(Input { act: ScriptAct::Character(letter), label, class })?;
        }
        Ok(())
    }

    /// Adds the presses, or the movement, of one step.
    fn presses(&mut self, raw: &RawStep, kind: &'static str) -> Result<()> {
        let (act, usual) = match raw {
            RawStep { click: Some(StepPlace { x, y }), button, .. } => {
                let button = button.unwrap_or(1) as u8;
                (ScriptAct::Click { x: *x, y: *y, button }, InputClass::Click)
            }
            RawStep { r#move: Some(StepPlace { x, y }), .. } => {
                (ScriptAct::Move { x: *x, y: *y }, InputClass::Motion)
            }
            RawStep { scroll: Some(way), .. } => {
                (ScriptAct::Scroll { down: matches!(way, ScrollWay::Down) }, InputClass::Scroll)
            }
            RawStep { key: Some((_, chord)), .. } => {
                (ScriptAct::Key(chord.clone()), InputClass::Key)
            }
            _ => bail!("a step without a press"),
        };
        let name = raw.key.as_ref().map_or(kind, |(name, _)| name);
        let label = raw.label.clone().unwrap_or_else(|| name.into());
        self.pace(60_000.0 / (5 * raw.every_ms.unwrap_or(EVERY_MS)) as f64);
        for _ in 0..raw.times.unwrap_or(1) {
            let label = Arc::clone(&label);
            self.input(Input { act: act.clone(), label, class: raw.class(usual) })?;
        }
        Ok(())
    }

    /// Sets the pace of the next inputs. Each step has a seed of its own, so that steps can be
    /// exchanged without a change of the others.
    fn pace(&mut self, words_per_minute: f64) {
        let seed =
            self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.inputs as u64 + 1);
        let variation = self.variation;
        self.steps.push(ScriptStep::Pace(Pace { words_per_minute, variation, seed }));
    }

    fn input(&mut self, input: Input) -> Result<()> {
        self.inputs += 1;
        ensure!(
            self.inputs as u64 <= EVENTS_MAX,
            "there are more than {EVENTS_MAX} inputs; make the script shorter"
        );
        self.steps.push(ScriptStep::Input(input));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn error(text: &str) -> String {
        parse("s", text).expect_err("it is wrong").to_string()
    }

    fn step(line: &str) -> String {
        error(&format!("about = \"x\"\n\n[[step]]\n{line}\n"))
    }

    #[test]
    fn steps_become_inputs() {
        let text = "[[step]]\ntype = \"a\\nb\"\n[[step]]\nkey = \"Left\"\ntimes = 5\n[[step]]\npause_ms = 5\n\
            [[step]]\nkey = \"ctrl+s\"\nlabel = \"save\"\nclass = \"command\"\n[[step]]\nidle_ms = 300\n\
            [[step]]\nmove = [40, 50]\n";
        let script = parse("s", text).expect("it is well formed");
        let inputs = script.steps.iter().filter_map(|step| {
            if let ScriptStep::Input(input) = step { Some(input) } else { None }
        });
        let seen: Vec<(&str, InputClass)> =
            inputs.map(|input| (&*input.label, input.class)).collect();
        let left = [("Left", InputClass::Key); 5];
        assert_eq!(
            seen[..3],
            [("type", InputClass::Key), ("newline", InputClass::Key), ("type", InputClass::Key)]
        );
        assert_eq!((&seen[3..8], seen[8]), (&left[..], ("save", InputClass::Command)));
        assert_eq!(seen[9], ("move", InputClass::Motion));
        assert!(matches!(
            script.steps.last(),
            Some(ScriptStep::Input(Input { act: ScriptAct::Move { x: 40, y: 50 }, .. }))
        ));
        assert_eq!(script.inputs(), 10);
    }

    #[test]
    fn errors_name_line_and_remedy() {
        for (lines, expected) in [
            (
                "key = \"no_such\"",
                "script s, line 4: \"no_such\" is not a key; write it like ctrl+s, Page_Down, f5",
            ),
            ("key = \"a\"\ntimes = 0", "line 5: 0 is no number from 1 to 100000"),
            ("scroll = \"left\"", "line 4: unknown variant `left`, expected `up` or `down`"),
            ("pause_ms = 5\nlabel = \"x\"", "line 3: label means nothing in a step with pause_ms"),
            ("keey = \"a\"", "script s, line 4: unknown field `keey`"),
            ("keey = \"a\"", "; see the scripts that come with tipme: tipme measure --list"),
            (
                "key = \"a\"\nclass = \"keys\"",
                "line 5: there is no class \"keys\"; use motion, scroll",
            ),
            ("times = 3", "the step does nothing; give it one of type"),
            ("key = \"a\"\ntype = \"b\"", "two things at once, type and key; make two steps"),
            ("click = [-1, 5]", "there is no place [-1, 5] on a screen"),
            ("move = [5, 40000]", "there is no place [5, 40000] on a screen"),
            ("move = [5, 5]\ntimes = 2", "times means nothing in a step with move; leave it out"),
            ("type = \"\\u0001\"", "cannot be typed; leave it out"),
            ("pause_ms = -5", "line 4: "),
            ("prose = 100001", "line 4: 100001 is no number from 1 to 100000"),
        ] {
            assert!(step(lines).contains(expected), "{}", step(lines));
        }
        assert!(error("about = ").starts_with("script s, line 1: "));
        let unknown = error("[threshold_ms]\nkeys = 5.0\n");
        assert!(unknown.contains("line 2: there is no class \"keys\""), "{unknown}");
    }

    #[test]
    fn files_stay_in_the_home() {
        for path in ["/etc/x", "../x", "", "a/../b"] {
            let text = format!("[[file]]\npath = \"{path}\"\ncontent = \"\"\n");
            assert!(
                error(&text).contains("line 2: \"")
                    && error(&text).contains("is not a place in the home folder")
            );
        }
        let text = "[[file]]\npath = \"a\"\ncontent = \"\"\nprose_bytes = 3\n";
        assert!(error(text).contains("say what is in the file by one of"));
    }

    #[test]
    fn bounds_are_kept() {
        let many = "[[step]]\nprose = 60000\n[[step]]\nprose = 60000\n";
        assert_eq!(
            error(many),
            "script s, line 3: there are more than 100000 inputs; make the script shorter"
        );
        assert!(error(&"#".repeat(SCRIPT_BYTES_MAX + 1)).contains("make it shorter"));
        let text = format!("[[step]]\ntype = \"{}\"\n", "é".repeat(TEXT_BYTES_MAX / 2 + 1));
        assert!(error(&text).contains("more than 1048576 bytes are typed"), "{}", error(&text));
    }

    #[test]
    fn thresholds_can_be_set() {
        let script = parse("s", "[threshold_ms]\nkey = 12.5\n").expect("it is well formed");
        assert_eq!(script.thresholds, vec![(InputClass::Key, 12_500_000)]);
    }

    #[test]
    fn no_text_makes_the_reader_panic() {
        let good = include_str!("../../scripts/editor.toml");
        let mut random = Rng::with_seed(7);
        for _ in 0..400 {
            let mut bytes = good.as_bytes()[..200 + random.usize(..good.len() - 200)].to_vec();
            for _ in 0..1 + random.usize(..8) {
                let at = random.usize(..bytes.len());
                bytes[at] = b"\"'[]{}=\n#.x0-\\\xc3\x00"[random.usize(..16)];
            }
            let text = String::from_utf8_lossy(&bytes);
            if let Err(error) = parse("s", &text) {
                assert!(error.to_string().starts_with("script s, line "), "{error}");
            }
        }
    }
}
