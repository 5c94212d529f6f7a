// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spelling of keys on each desktop.

use tipme_desktop::hotkeys::Chord;

/// Named keys: our name, the keysym, and the Qt name.
const NAMES: [(&str, &str, &str); 23] = [
    ("plus", "plus", "+"),
    ("minus", "minus", "-"),
    ("equal", "equal", "="),
    ("space", "space", "Space"),
    ("return", "Return", "Return"),
    ("escape", "Escape", "Esc"),
    ("tab", "Tab", "Tab"),
    ("backspace", "BackSpace", "Backspace"),
    ("delete", "Delete", "Del"),
    ("insert", "Insert", "Ins"),
    ("home", "Home", "Home"),
    ("end", "End", "End"),
    ("page_up", "Page_Up", "PgUp"),
    ("page_down", "Page_Down", "PgDown"),
    ("left", "Left", "Left"),
    ("up", "Up", "Up"),
    ("right", "Right", "Right"),
    ("down", "Down", "Down"),
    ("pause", "Pause", "Pause"),
    ("print", "Print", "Print"),
    ("scroll_lock", "Scroll_Lock", "ScrollLock"),
    ("caps_lock", "Caps_Lock", "CapsLock"),
    ("num_lock", "Num_Lock", "NumLock"),
];

/// Formats a chord as `Ctrl+Alt+minus`, `Mod4+F12`.
pub fn sway(chord: &Chord) -> String {
    written(chord, ["Ctrl+", "Alt+", "Shift+", "Mod4+"], keysym)
}

/// Formats a chord as `<Control><Alt>minus`, `<Super>F12`.
pub fn gnome(chord: &Chord) -> String {
    written(chord, ["<Control>", "<Alt>", "<Shift>", "<Super>"], keysym)
}

/// Formats a chord as `Ctrl+Alt+-`, `Meta+F12`.
pub fn kde(chord: &Chord) -> String {
    written(chord, ["Ctrl+", "Alt+", "Shift+", "Meta+"], qt_name)
}

/// Converts the spelling of a desktop or its portal into ours, if it is readable:
/// `<Control><Alt>minus`, `Ctrl+Alt+-` and `Press CTRL+ALT+minus` become `Ctrl+Alt+Minus`.
pub fn spelled(text: &str) -> String {
    read(text).map_or_else(|| text.to_owned(), |chord| chord.to_string())
}

fn read(text: &str) -> Option<Chord> {
    let text = text.trim();
    let joined = text.strip_prefix("Press ").unwrap_or(text).replace('<', "").replace('>', "+");
    let (held, key) = match joined.strip_suffix("++") {
        Some(held) => (held, "+"),
        None => joined.rsplit_once('+').unwrap_or(("", &joined)),
    };
    let held =
        held.split('+').filter(|name| !name.is_empty()).map(|name| match &*name.to_lowercase() {
            "primary" | "control" | "ctrl" => "ctrl".to_owned(),
            "mod1" => "alt".to_owned(),
            "mod4" | "meta" | "logo" => "super".to_owned(),
            other => other.to_owned(),
        });
    let named = NAMES.iter().find(|(own, keysym, qt)| {
        [own, keysym, qt].iter().any(|name| name.eq_ignore_ascii_case(key))
    });
    let letter = key.strip_prefix('U').and_then(|number| u32::from_str_radix(number, 16).ok());
    let key = match (named, letter.filter(|_| key.len() > 4).and_then(char::from_u32)) {
        (Some((own, ..)), _) => (*own).to_owned(),
        (None, Some(letter)) => letter.to_string(),
        (None, None) => key.to_owned(),
    };
    held.chain([key]).collect::<Vec<_>>().join("+").parse().ok()
}

/// Formats a chord with a desktop's words for the modifiers and its key names.
fn written(
    chord: &Chord,
    [control, alt, shift, super_]: [&str; 4],
    name: fn(&str) -> String,
) -> String {
    let (held, key) = parts(chord);
    let held = held.iter().map(|held| match held.as_str() {
        "ctrl" | "control" => control,
        "alt" => alt,
        "shift" => shift,
        _ => super_,
    });
    held.collect::<String>() + &name(&key)
}

/// Returns the modifiers and the key in our own spelling.
fn parts(chord: &Chord) -> (Vec<String>, String) {
    let text = chord.to_string().to_lowercase();
    let (held, key) = text.rsplit_once('+').unwrap_or(("", &text));
    (held.split('+').filter(|name| !name.is_empty()).map(str::to_owned).collect(), key.to_owned())
}

/// Returns the keysym name of a key: letters and digits stand for themselves, other characters use
/// their Unicode number.
fn keysym(key: &str) -> String {
    let named =
        NAMES.iter().find(|(name, ..)| *name == key).map(|(_, keysym, _)| (*keysym).to_owned());
    named.unwrap_or_else(|| match key.chars().next() {
        Some(letter) if key.chars().count() == 1 && !letter.is_ascii_alphanumeric() => {
            format!("U{:04X}", u32::from(letter))
        }
        _ if key.len() > 1 => key.to_uppercase(),
        _ => key.to_owned(),
    })
}

/// Returns the Qt name of a key: letters and digits stand for themselves.
fn qt_name(key: &str) -> String {
    let named = NAMES.iter().find(|(name, ..)| *name == key).map(|(.., qt)| (*qt).to_owned());
    named.unwrap_or_else(|| key.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_desktops_are_read_as_one() {
        for text in [
            "<Control><Alt>minus",
            "<Primary><Alt>minus",
            "Ctrl+Alt+-",
            "Ctrl+Alt+minus",
            "Press CTRL+ALT+minus",
        ] {
            assert_eq!(spelled(text), "Ctrl+Alt+Minus");
        }
        let all = ["Ctrl+Alt++", "Mod4+F12", "Meta+PgUp", "LOGO+U002C", "<Shift>m"].map(spelled);
        assert_eq!(all, ["Ctrl+Alt+Plus", "Super+F12", "Super+Page_Up", "Super+,", "Shift+M"]);
        assert_eq!(
            ["", "+", "Strg+Alt+-", "<<>", "Ctrl+Überlänge"].map(spelled),
            ["", "+", "Strg+Alt+-", "<<>", "Ctrl+Überlänge"]
        );
        for chord in
            ["ctrl+alt+minus", "ctrl+alt+plus", "super+f12", "shift+m", "ctrl+,", "ctrl+page_down"]
        {
            let chord: Chord = chord.parse().expect("a chord");
            let own = chord.to_string();
            assert_eq!(
                [sway(&chord), gnome(&chord), kde(&chord)].map(|text| spelled(&text)),
                [&*own; 3]
            );
        }
    }

    #[test]
    fn each_desktop_has_its_own_names() {
        for (text, names) in [
            ("ctrl+alt+minus", ["Ctrl+Alt+minus", "<Control><Alt>minus", "Ctrl+Alt+-"]),
            ("ctrl+alt+plus", ["Ctrl+Alt+plus", "<Control><Alt>plus", "Ctrl+Alt++"]),
            ("super+f12", ["Mod4+F12", "<Super>F12", "Meta+F12"]),
            ("shift+m", ["Shift+m", "<Shift>m", "Shift+M"]),
            ("ctrl+,", ["Ctrl+U002C", "<Control>U002C", "Ctrl+,"]),
        ] {
            let chord = text.parse().expect("a chord");
            assert_eq!([sway(&chord), gnome(&chord), kde(&chord)], names);
        }
    }
}
