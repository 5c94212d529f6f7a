// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page's script draws, as JSON that can stand in an element of HTML.

use serde::Serialize;
use tipme_analysis::scene::{Curve, Look, Scene, Track, TrackGroup};

/// What the script reads.
#[derive(Serialize)]
struct Data<'a> {
    length_us: u64,
    /// Begin and end of the interval.
    interval_us: (u64, u64),
    texts: &'a [String],
    /// Names and words of looks, by number.
    looks: Vec<(&'a str, &'a str)>,
    /// Groups of tracks in their order, with what they show.
    groups: Vec<(TrackGroup, &'static str)>,
    tracks: &'a [Track],
    curves: &'a [Curve],
}

/// The data of a scene.
pub(super) fn json(scene: &Scene) -> String {
    let us = |ns: u64| ns.clamp(scene.from_ns, scene.to_ns.max(scene.from_ns)).saturating_sub(scene.from_ns) / 1_000;
    let interval = scene.verdict.interval.as_ref();
    let data = Data {
        length_us: us(scene.to_ns),
        interval_us: interval.map_or((0, 0), |interval| (us(interval.start_ns), us(interval.end_ns))),
        texts: &scene.texts,
        looks: Look::ALL.iter().map(|(_, name, words)| (*name, *words)).collect(),
        groups: TrackGroup::ALL.map(|group| (group, group.title())).to_vec(),
        tracks: &scene.tracks,
        curves: &scene.curves,
    };
    // Only a NaN could not be written, and there are none.
    escape(&serde_json::to_string(&data).unwrap_or_else(|_| "null".to_owned()))
}

/// The same JSON without signs that mean something to HTML or end a line of a script.
fn escape(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out += &format!("\\u{:04x}", letter as u32),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_says_the_same_without_signs_of_markup() {
        let text = "</script><!--<script>&amp;\u{2028}";
        let json = escape(&serde_json::to_string(text).expect("a text is JSON"));
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).expect("it is JSON"), text);
    }
}
