// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data for the page's script, as JSON that can be embedded in HTML.

use serde::Serialize;
use tipme_analysis::scene::{Curve, Look, Scene, Track, TrackGroup};

/// Input of the script.
#[derive(Serialize)]
struct Data<'a> {
    length_us: u64,
    /// Start and end of the interval.
    interval_us: (u64, u64),
    texts: &'a [String],
    /// Names and descriptions of looks, by number.
    looks: Vec<(&'a str, &'a str)>,
    /// Groups of tracks in order, with their titles.
    groups: Vec<(TrackGroup, &'static str)>,
    tracks: &'a [Track],
    curves: &'a [Curve],
}

/// Returns the data of a scene.
pub(super) fn json(scene: &Scene) -> String {
    let interval = scene.verdict.interval.as_ref();
    let data = Data {
        length_us: since_start_us(scene, scene.to_ns),
        interval_us: interval.map_or((0, 0), |interval| {
            (since_start_us(scene, interval.start_ns), since_start_us(scene, interval.end_ns))
        }),
        texts: &scene.texts,
        looks: Look::ALL.iter().map(|(_, name, words)| (*name, *words)).collect(),
        groups: TrackGroup::ALL.map(|group| (group, group.title())).to_vec(),
        tracks: &scene.tracks,
        curves: &scene.curves,
    };
    // Only a NaN could not be serialised, and there are none.
    escape(&serde_json::to_string(&data).unwrap_or_else(|_| "null".to_owned()))
}

/// Converts a time to microseconds since the start of the scene, limited to the scene.
fn since_start_us(scene: &Scene, ns: u64) -> u64 {
    (ns.clamp(scene.from_ns, scene.to_ns.max(scene.from_ns)) - scene.from_ns) / 1_000
}

/// Escapes characters that have a meaning in HTML or end a line of a script; the JSON stays
/// equivalent.
fn escape(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out += &format!("\\u{:04x}", letter as u32)
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_equivalent_without_markup_characters() {
        let text = "</script><!--<script>&amp;\u{2028}";
        let json = escape(&serde_json::to_string(text).expect("a text is JSON"));
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).expect("it is JSON"), text);
    }
}
