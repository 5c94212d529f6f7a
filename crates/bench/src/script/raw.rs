// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shapes of a script in TOML, before they are checked.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScript {
    pub(super) about: Option<String>,
    #[serde(default)]
    pub(super) application: Vec<String>,
    pub(super) seed: Option<u64>,
    pub(super) start_within_s: Option<Spanned<u64>>,
    pub(super) words_per_minute: Option<Spanned<f64>>,
    pub(super) variation: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) threshold_ms: BTreeMap<Spanned<String>, Spanned<f64>>,
    #[serde(default)]
    pub(super) file: Vec<Spanned<RawFile>>,
    #[serde(default)]
    pub(super) step: Vec<Spanned<RawStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(super) path: Spanned<String>,
    pub(super) content: Option<String>,
    pub(super) prose_bytes: Option<Spanned<u64>>,
    pub(super) page_sections: Option<Spanned<u64>>,
    pub(super) slides: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    pub(super) r#type: Option<Spanned<String>>,
    pub(super) prose: Option<Spanned<u64>>,
    pub(super) key: Option<Spanned<String>>,
    pub(super) click: Option<Spanned<[i64; 2]>>,
    pub(super) r#move: Option<Spanned<[i64; 2]>>,
    pub(super) scroll: Option<Spanned<String>>,
    pub(super) pause_ms: Option<Spanned<u64>>,
    pub(super) idle_ms: Option<Spanned<u64>>,
    pub(super) times: Option<Spanned<u64>>,
    pub(super) every_ms: Option<Spanned<u64>>,
    pub(super) button: Option<Spanned<u64>>,
    pub(super) at_most_ms: Option<Spanned<u64>>,
    pub(super) words_per_minute: Option<Spanned<f64>>,
    pub(super) label: Option<Spanned<String>>,
    pub(super) class: Option<Spanned<String>>,
}

/// Kind of a step, with its parameters.
pub(super) enum StepKind<'a> {
    Type(&'a Spanned<String>),
    Prose(&'a Spanned<u64>),
    Key(&'a Spanned<String>),
    Click(&'a Spanned<[i64; 2]>),
    Move(&'a Spanned<[i64; 2]>),
    Scroll(&'a Spanned<String>),
    Pause(&'a Spanned<u64>),
    Idle(&'a Spanned<u64>),
}

impl RawStep {
    /// Returns the kinds of the step; a step must have one.
    pub(super) fn kinds(&self) -> impl Iterator<Item = StepKind<'_>> {
        let kinds = [
            self.r#type.as_ref().map(StepKind::Type),
            self.prose.as_ref().map(StepKind::Prose),
            self.key.as_ref().map(StepKind::Key),
            self.click.as_ref().map(StepKind::Click),
            self.r#move.as_ref().map(StepKind::Move),
            self.scroll.as_ref().map(StepKind::Scroll),
            self.pause_ms.as_ref().map(StepKind::Pause),
            self.idle_ms.as_ref().map(StepKind::Idle),
        ];
        kinds.into_iter().flatten()
    }

    /// Returns the other keys of a step, with their places in the text.
    pub(super) fn attributes(&self) -> [(&'static str, Option<usize>); 7] {
        [
            ("times", self.times.as_ref().map(start)),
            ("every_ms", self.every_ms.as_ref().map(start)),
            ("button", self.button.as_ref().map(start)),
            ("at_most_ms", self.at_most_ms.as_ref().map(start)),
            ("words_per_minute", self.words_per_minute.as_ref().map(start)),
            ("label", self.label.as_ref().map(start)),
            ("class", self.class.as_ref().map(start)),
        ]
    }
}

fn start<T>(value: &Spanned<T>) -> usize {
    value.span().start
}

impl StepKind<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            StepKind::Type(_) => "type",
            StepKind::Prose(_) => "prose",
            StepKind::Key(_) => "key",
            StepKind::Click(_) => "click",
            StepKind::Move(_) => "move",
            StepKind::Scroll(_) => "scroll",
            StepKind::Pause(_) => "pause_ms",
            StepKind::Idle(_) => "idle_ms",
        }
    }

    /// Returns the other keys that a step of this kind accepts.
    pub(super) fn takes(&self) -> &'static [&'static str] {
        match self {
            StepKind::Type(_) | StepKind::Prose(_) => &["words_per_minute", "label", "class"],
            StepKind::Key(_) | StepKind::Scroll(_) => &["times", "every_ms", "label", "class"],
            StepKind::Click(_) => &["times", "every_ms", "button", "label", "class"],
            StepKind::Move(_) => &["every_ms", "label", "class"],
            StepKind::Pause(_) => &[],
            StepKind::Idle(_) => &["at_most_ms"],
        }
    }

    /// Default label.
    pub(super) fn label(&self) -> &str {
        match self {
            StepKind::Key(name) => name.get_ref(),
            other => other.name(),
        }
    }
}
