// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversion from TOML to a script. Every error names the line and the remedy.

use super::parts::{
    Content, EVENTS_MAX, FILE_BYTES_MAX, FILES_MAX, Input, MadeFile, SCRIPT_BYTES_MAX, Script,
    ScriptAct, ScriptStep, TEXT_BYTES_MAX,
};
use super::prose;
use super::raw::{RawFile, RawScript, RawStep, StepKind};
use anyhow::{Error, Result, anyhow, bail};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;
use tipme_desktop::hotkeys::Chord;
use tipme_desktop::inject::Pace;
use tipme_measure::InputClass;
use toml::Spanned;

/// Default typing speed in words per minute: that of the paper's typist.
const WORDS_PER_MINUTE: f64 = 100.0;
/// Default interval between two presses of one key, or two clicks.
const EVERY_MS: u64 = 250;
const PACE_RANGE: RangeInclusive<f64> = 1.0..=1_000.0;
const EVERY_MS_RANGE: RangeInclusive<u64> = 20..=5_000;
const PAUSE_MS_RANGE: RangeInclusive<u64> = 1..=600_000;
const TIMES_RANGE: RangeInclusive<u64> = 1..=EVENTS_MAX as u64;
/// Default time limit of a wait for idle.
const IDLE_AT_MOST_MS: u64 = 10_000;
/// Range for the number of sections of a generated page.
const SECTIONS_RANGE: RangeInclusive<u64> = 1..=10_000;
/// Range for the number of slides of a generated presentation.
const SLIDES_RANGE: RangeInclusive<u64> = 1..=1_000;
/// Pixels from the corner of the screen.
const PLACE_RANGE: RangeInclusive<i64> = 0..=32_767;
const LABEL_BYTES_MAX: usize = 80;

/// A script's text while it is parsed.
struct ScriptReader<'a> {
    name: &'a str,
    text: &'a str,
    seed: u64,
    words_per_minute: f64,
    variation: f64,
    steps: Vec<ScriptStep>,
    inputs: usize,
    typed_bytes: usize,
}

pub(super) fn parse(name: &str, text: &str) -> Result<Script> {
    if text.len() > SCRIPT_BYTES_MAX {
        bail!(
            "script {name} has {} bytes, at most {SCRIPT_BYTES_MAX} are read; make it shorter",
            text.len()
        );
    }
    let mut reader = ScriptReader {
        name,
        text,
        seed: 1,
        words_per_minute: WORDS_PER_MINUTE,
        variation: Pace::default().variation,
        steps: Vec::new(),
        inputs: 0,
        typed_bytes: 0,
    };
    let raw: RawScript = toml::from_str(text).map_err(|error| reader.wrong(&error))?;
    reader.seed = raw.seed.unwrap_or(1);
    reader.words_per_minute = reader.number_or(
        WORDS_PER_MINUTE,
        &raw.words_per_minute,
        "words_per_minute",
        PACE_RANGE,
    )?;
    reader.variation =
        reader.number_or(reader.variation, &raw.variation, "variation", 0.0..=0.9)?;
    reader.finish(raw)
}

impl ScriptReader<'_> {
    fn finish(mut self, raw: RawScript) -> Result<Script> {
        let seconds = self.number_or(60, &raw.start_within_s, "start_within_s", 1..=3_600)?;
        let thresholds = raw.threshold_ms.iter().map(|(class, value)| self.threshold(class, value));
        let thresholds = thresholds.collect::<Result<_>>()?;
        if raw.file.len() > FILES_MAX {
            bail!(
                "script {} makes {} files, at most {FILES_MAX}; leave some out",
                self.name,
                raw.file.len()
            );
        }
        let files = raw.file.iter().map(|file| self.file(file)).collect::<Result<_>>()?;
        raw.step.iter().try_for_each(|step| self.step(step))?;
        Ok(Script {
            name: self.name.to_owned(),
            about: raw.about.unwrap_or_default(),
            application: raw.application,
            start_within: Duration::from_secs(seconds),
            thresholds,
            files,
            steps: self.steps,
        })
    }

    fn fail<T>(&self, at: usize, what: impl Display) -> Result<T> {
        Err(self.error(at, what))
    }

    fn error(&self, at: usize, what: impl Display) -> Error {
        let before = self.text.as_bytes().iter().take(at);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        anyhow!("script {}, line {line}: {what}", self.name)
    }

    /// Reports text that is no TOML, or not the shape of a script.
    fn wrong(&self, error: &toml::de::Error) -> Error {
        let what = error.message().lines().collect::<Vec<_>>().join(", ");
        let remedy = "see the scripts that come with tipme: tipme measure --list";
        self.error(error.span().map_or(0, |span| span.start), format_args!("{what}; {remedy}"))
    }

    fn number<T: Copy + PartialOrd + Display>(
        &self,
        value: &Spanned<T>,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<T> {
        if range.contains(value.get_ref()) {
            return Ok(*value.get_ref());
        }
        let (from, to) = range.into_inner();
        self.fail(
            value.span().start,
            format_args!("{name} is {}; give a number from {from} to {to}", value.get_ref()),
        )
    }

    /// Returns the usual number if none is given.
    fn number_or<T: Copy + PartialOrd + Display>(
        &self,
        usual: T,
        value: &Option<Spanned<T>>,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<T> {
        value.as_ref().map_or(Ok(usual), |value| self.number(value, name, range))
    }

    fn threshold(
        &self,
        class: &Spanned<String>,
        value: &Spanned<f64>,
    ) -> Result<(InputClass, u64)> {
        let threshold_ms = self.number(value, "the threshold", 0.001..=600_000.0)?;
        Ok((self.class(class)?, (threshold_ms * 1e6) as u64))
    }

    fn class(&self, name: &Spanned<String>) -> Result<InputClass> {
        let known = InputClass::ALL.map(InputClass::name).join(", ");
        InputClass::named(name.get_ref()).ok_or_else(|| {
            self.error(
                name.span().start,
                format_args!("there is no class \"{}\"; use {known}", name.get_ref()),
            )
        })
    }

    fn file(&self, file: &Spanned<RawFile>) -> Result<MadeFile> {
        let raw = file.get_ref();
        let path = raw.path.get_ref();
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || path.is_empty() || path.len() > 1_000 || path.contains('\0') {
            return self.fail(
                raw.path.span().start,
                format_args!(
                    "\"{}\" is not a place in the home folder; give a plain path such as notes/text.txt",
                    path
                ),
            );
        }
        let content = match (&raw.content, &raw.prose_bytes, &raw.page_sections, &raw.slides) {
            (Some(text), None, None, None) => Content::Plain(text.clone()),
            (None, Some(bytes), None, None) => Content::Prose {
                bytes: self.number(bytes, "prose_bytes", 0..=FILE_BYTES_MAX)?,
                seed: self.seed,
            },
            (None, None, Some(count), None) => Content::Page {
                sections: self.number(count, "page_sections", SECTIONS_RANGE)?,
                seed: self.seed,
            },
            (None, None, None, Some(count)) => Content::Slides {
                slides: self.number(count, "slides", SLIDES_RANGE)?,
                seed: self.seed,
            },
            _ => {
                let what =
                    "say what is in the file by one of content, prose_bytes, page_sections, slides";
                return self.fail(file.span().start, what);
            }
        };
        Ok(MadeFile { path: path.clone(), content })
    }

    fn step(&mut self, step: &Spanned<RawStep>) -> Result<()> {
        let raw = step.get_ref();
        let at = step.span().start;
        let kind = self.kind(raw, at)?;
        self.check_attributes(raw, &kind)?;
        match kind {
            StepKind::Pause(time) => {
                let time = self.number(time, "pause_ms", PAUSE_MS_RANGE)?;
                self.steps.push(ScriptStep::Pause(Duration::from_millis(time)));
            }
            StepKind::Idle(quiet) => self.idle(quiet, &raw.at_most_ms)?,
            StepKind::Type(text) => self.text(raw, text.get_ref(), text.span().start)?,
            StepKind::Prose(count) => {
                let count = self.number(count, "prose", 1..=EVENTS_MAX as u64)? as usize;
                let text = prose::typed(count, self.seed.wrapping_add(self.inputs as u64));
                self.text(raw, &text, at)?;
            }
            StepKind::Key(_) | StepKind::Click(_) | StepKind::Move(_) | StepKind::Scroll(_) => {
                self.presses(raw, &kind, at)?
            }
        }
        Ok(())
    }

    /// Returns the kind of a step, which must be exactly one.
    fn kind<'r>(&self, raw: &'r RawStep, at: usize) -> Result<StepKind<'r>> {
        let mut given = raw.kinds();
        match (given.next(), given.next()) {
            (Some(kind), None) => Ok(kind),
            (None, _) => self.fail(
                at,
                "the step does nothing; give it one of type, prose, key, click, move, scroll, pause_ms, idle_ms",
            ),
            (Some(one), Some(other)) => {
                let (one, other) = (one.name(), other.name());
                self.fail(at, format_args!("the step is two things at once, {one} and {other}; make two steps of it"))
            }
        }
    }

    /// Fails if a step has a key that does not apply to its kind.
    fn check_attributes(&self, raw: &RawStep, kind: &StepKind<'_>) -> Result<()> {
        let given = raw.attributes();
        let mut strange = given.iter().filter(|(name, _)| !kind.takes().contains(name));
        match strange.find_map(|(name, at)| at.map(|at| (name, at))) {
            Some((name, at)) => {
                let kind = kind.name();
                self.fail(
                    at,
                    format_args!("{name} means nothing in a step with {kind}; leave it out"),
                )
            }
            None => Ok(()),
        }
    }

    fn idle(&mut self, quiet: &Spanned<u64>, at_most: &Option<Spanned<u64>>) -> Result<()> {
        let quiet = self.number(quiet, "idle_ms", PAUSE_MS_RANGE)?;
        let usual = IDLE_AT_MOST_MS.max(quiet);
        let at_most = self.number_or(usual, at_most, "at_most_ms", PAUSE_MS_RANGE)?;
        self.steps.push(ScriptStep::Idle {
            quiet: Duration::from_millis(quiet),
            at_most: Duration::from_millis(at_most),
        });
        Ok(())
    }

    fn text(&mut self, raw: &RawStep, text: &str, at: usize) -> Result<()> {
        self.typed_bytes += text.len();
        if self.typed_bytes > TEXT_BYTES_MAX {
            return self.fail(
                at,
                format_args!("more than {TEXT_BYTES_MAX} bytes are typed; make the script shorter"),
            );
        }
        let mut controls = text.chars().filter(|letter| letter.is_control());
        if let Some(letter) = controls.find(|letter| !"\n\t\u{8}\u{1b}".contains(*letter)) {
            let letter = letter.escape_debug();
            return self.fail(
                at,
                format_args!("\"{letter}\" cannot be typed; leave it out, or name a key by key"),
            );
        }
        let (usual, pace) = (self.words_per_minute, &raw.words_per_minute);
        let pace = self.number_or(usual, pace, "words_per_minute", PACE_RANGE)?;
        let class = raw.class.as_ref().map_or(Ok(InputClass::Key), |class| self.class(class))?;
        let (label, newline) = (self.label(raw, "type")?, Arc::from("newline"));
        self.pace(pace);
        for letter in text.chars() {
            let label = if letter == '\n' && raw.label.is_none() {
                Arc::clone(&newline)
            } else {
                Arc::clone(&label)
            };
            self.input(Input { act: ScriptAct::Character(letter), label, class }, at)?;
        }
        Ok(())
    }

    /// Adds presses of a key or button, or moves of the pointer, with their own intervals.
    fn presses(&mut self, raw: &RawStep, kind: &StepKind<'_>, at: usize) -> Result<()> {
        let (act, usual) = self.act(raw, kind)?;
        let times = self.number_or(1, &raw.times, "times", TIMES_RANGE)?;
        let every = self.number_or(EVERY_MS, &raw.every_ms, "every_ms", EVERY_MS_RANGE)?;
        let class = raw.class.as_ref().map_or(Ok(usual), |class| self.class(class))?;
        let label = self.label(raw, kind.label())?;
        self.pace(60_000.0 / (5 * every) as f64);
        for _ in 0..times {
            self.input(Input { act: act.clone(), label: Arc::clone(&label), class }, at)?;
        }
        Ok(())
    }

    fn act(&self, raw: &RawStep, kind: &StepKind<'_>) -> Result<(ScriptAct, InputClass)> {
        Ok(match kind {
            StepKind::Click(place) => {
                let (x, y) = self.place(place)?;
                let button = self.number_or(1, &raw.button, "button", 1..=9)?;
                (ScriptAct::Click { x, y, button: button as u8 }, InputClass::Click)
            }
            StepKind::Move(place) => {
                let (x, y) = self.place(place)?;
                (ScriptAct::Move { x, y }, InputClass::Motion)
            }
            StepKind::Scroll(way) => match way.get_ref().as_str() {
                "down" => (ScriptAct::Scroll { down: true }, InputClass::Scroll),
                "up" => (ScriptAct::Scroll { down: false }, InputClass::Scroll),
                other => {
                    return self.fail(
                        way.span().start,
                        format_args!("cannot scroll \"{other}\"; say \"up\" or \"down\""),
                    );
                }
            },
            StepKind::Key(name) => (ScriptAct::Key(self.chord(name)?), InputClass::Key),
            _ => bail!("script {}: a step without a press", self.name),
        })
    }

    fn place(&self, place: &Spanned<[i64; 2]>) -> Result<(i16, i16)> {
        let [x, y] = *place.get_ref();
        if PLACE_RANGE.contains(&x) && PLACE_RANGE.contains(&y) {
            return Ok((x as i16, y as i16));
        }
        let what = format!(
            "there is no place [{x}, {y}] on a screen; give pixels from the upper left corner"
        );
        self.fail(place.span().start, what)
    }

    fn chord(&self, name: &Spanned<String>) -> Result<Chord> {
        name.get_ref().parse().map_err(|_| {
            let what = "is not a key; write it like ctrl+s, Page_Down, f5 or plus";
            self.error(
                name.span().start,
                format_args!("\"{}\" {what}", name.get_ref().escape_debug()),
            )
        })
    }

    fn label(&self, raw: &RawStep, usual: &str) -> Result<Arc<str>> {
        let Some(label) = &raw.label else { return Ok(Arc::from(usual)) };
        let text = label.get_ref();
        if text.is_empty() || text.len() > LABEL_BYTES_MAX || text.chars().any(char::is_control) {
            let what =
                format!("a label has 1 to {LABEL_BYTES_MAX} bytes in one line; choose another");
            return self.fail(label.span().start, what);
        }
        Ok(Arc::from(text.as_str()))
    }

    /// Sets the rhythm of a step, which derives from the seed.
    fn pace(&mut self, words_per_minute: f64) {
        let seed =
            self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.inputs as u64 + 1);
        self.steps.push(ScriptStep::Pace(Pace {
            words_per_minute,
            variation: self.variation,
            seed,
        }));
    }

    fn input(&mut self, input: Input, at: usize) -> Result<()> {
        self.inputs += 1;
        if self.inputs > EVENTS_MAX {
            return self.fail(
                at,
                format_args!("there are more than {EVENTS_MAX} inputs; make the script shorter"),
            );
        }
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
                "4: \"no_such\" is not a key; write it like ctrl+s, Page_Down, f5 or plus",
            ),
            ("key = \"a\"\ntimes = 0", "5: times is 0; give a number from 1 to 100000"),
            ("scroll = \"left\"", "4: cannot scroll \"left\"; say \"up\" or \"down\""),
            (
                "pause_ms = 5\nlabel = \"x\"",
                "5: label means nothing in a step with pause_ms; leave it out",
            ),
        ] {
            assert_eq!(step(lines), format!("script s, line {expected}"));
        }
        for (lines, expected) in [
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
            ("prose = 100001", "prose is 100001; give a number from 1 to 100000"),
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
