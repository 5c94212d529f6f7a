// SPDX-License-Identifier: MIT OR Apache-2.0
//! Available hot keys, and messages about the others.

use anyhow::Result;
use std::fmt;
use tipme_desktop::hotkeys::{HotKeyAction, HotKeyRefusal, HotKeys, RefusalReason};
use tipme_report::Notice;

/// Alternative mark keys in order of preference, for when the requested one is taken.
const FALLBACKS: [&str; 3] = ["super+minus", "ctrl+alt+shift+m", "ctrl+alt+pause"];

/// The grabbed keys.
pub struct AgentKeys {
    /// Name of the mark key; `None` if there is none.
    mark: Option<String>,
    refusals: Vec<HotKeyRefusal>,
}

/// Adds an alternative mark key if the requested one is taken.
///
/// # Errors
/// Fails if the display is unusable.
pub fn settle(keys: &mut HotKeys) -> Result<AgentKeys> {
    let whole = |keys: &HotKeys| {
        let refused = keys
            .refusals()
            .iter()
            .filter(|one| matters(one))
            .map(|one| &one.chord)
            .collect::<Vec<_>>();
        keys.keys(HotKeyAction::Mark)
            .into_iter()
            .find(|chord| !refused.contains(chord))
            .map(ToString::to_string)
    };
    for fallback in FALLBACKS {
        if whole(keys).is_some() {
            break;
        }
        keys.add(HotKeyAction::Mark, fallback.parse()?)?;
    }
    let mark =
        whole(keys).or_else(|| keys.keys(HotKeyAction::Mark).first().map(ToString::to_string));
    Ok(AgentKeys { mark, refusals: keys.refusals().to_vec() })
}

impl AgentKeys {
    /// Returns a line for each unavailable key: its name, its probable owner, and the remedy.
    pub fn complaints(&self, manager: Option<&str>) -> Vec<String> {
        self.refusals.iter().map(|refusal| self.complaint(refusal, manager)).collect()
    }

    /// Returns the notice for the screen; `None` if all keys are available.
    pub fn notice(&self, manager: Option<&str>) -> Option<Notice> {
        let refusals = || self.refusals.iter().filter(|refusal| matters(refusal));
        let first = refusals().max_by_key(|refusal| refusal.action == HotKeyAction::Mark)?;
        let summary = match &self.mark {
            _ if first.action != HotKeyAction::Mark => format!("{} is not available", first.chord),
            Some(mark) => format!("{mark} marks instead of {}", first.chord),
            None => format!("No key marks: {} is not available", first.chord),
        };
        let others: Vec<String> = refusals()
            .filter(|refusal| *refusal != first)
            .map(|refusal| refusal.chord.to_string())
            .collect();
        let mut body = self.complaint(first, manager);
        if !others.is_empty() {
            body += &format!("\nNot available either: {}.", others.join(", "));
        }
        Some(Notice::new(summary, body))
    }

    fn complaint(&self, refusal: &HotKeyRefusal, manager: Option<&str>) -> String {
        let HotKeyRefusal { action, chord, why } = refusal;
        let who =
            manager.map(|name| format!(", probably the window manager {name}")).unwrap_or_default();
        let what = match why {
            RefusalReason::Missing => "is on no key of this keyboard".to_owned(),
            RefusalReason::Taken => format!("is held by another program{who}"),
            RefusalReason::MainTaken => {
                format!("is held by another program{who}; it works on the keypad")
            }
            RefusalReason::KeypadTaken => {
                format!("is held on the keypad by another program{who}; it works elsewhere")
            }
        };
        let now = match &self.mark {
            _ if *action != HotKeyAction::Mark || !matters(refusal) => String::new(),
            Some(mark) => format!(" {mark} marks."),
            None => " Until then mark with: tipme mark.".to_owned(),
        };
        format!("hot key {chord} ({}) {what}.{now} Try: {}", action.purpose(), remedy(*action))
    }
}

impl fmt::Display for AgentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = self.mark.as_deref().unwrap_or("no key");
        write!(f, "{mark} marks")?;
        let others = self.refusals.iter().filter(|refusal| matters(refusal));
        let others: Vec<String> = others.map(|refusal| refusal.chord.to_string()).collect();
        if others.is_empty() { Ok(()) } else { write!(f, ", without {}", others.join(", ")) }
    }
}

/// Returns `true` if the user must know: these keys are rarely pressed on the keypad.
fn matters(refusal: &HotKeyRefusal) -> bool {
    refusal.why != RefusalReason::KeypadTaken
}

/// Returns the command that selects another key. A second agent would be refused, so this one ends
/// first; setup starts it again by itself.
fn remedy(action: HotKeyAction) -> String {
    let option = match action {
        HotKeyAction::Mark => return "tipme setup --mark-key KEY".to_owned(),
        HotKeyAction::Start => "--start-key",
        HotKeyAction::StopKeys => "--stop-keys-key",
        HotKeyAction::StartKeys => "--start-keys-key",
    };
    format!("kill {}; tipme agent {option} KEY &", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(action: HotKeyAction, chord: &str, why: RefusalReason) -> HotKeyRefusal {
        HotKeyRefusal { action, chord: chord.parse().expect("a chord"), why }
    }

    #[test]
    fn a_key_that_is_taken_is_told_with_who_has_it_and_the_remedy() {
        let refusals = vec![refusal(HotKeyAction::StartKeys, "Ctrl+Alt+1", RefusalReason::Taken)];
        let held = AgentKeys { mark: Some("Ctrl+Alt+Minus".to_owned()), refusals };
        let line = "hot key Ctrl+Alt+1 (restart the recording of input) is held by another program, probably the \
                    window manager Xfwm4. Try: kill ";
        let line = format!("{line}{}; tipme agent --start-keys-key KEY &", std::process::id());
        assert_eq!(
            held.notice(Some("Xfwm4")),
            Some(Notice::new("Ctrl+Alt+1 is not available", line))
        );
        assert_eq!(held.to_string(), "Ctrl+Alt+Minus marks, without Ctrl+Alt+1");
    }

    #[test]
    fn what_marks_instead_is_told_or_that_nothing_does() {
        let refusals = vec![
            refusal(HotKeyAction::Start, "f9", RefusalReason::Missing),
            refusal(HotKeyAction::Mark, "Ctrl+Alt+Minus", RefusalReason::MainTaken),
        ];
        let held = |mark: Option<&str>| AgentKeys {
            mark: mark.map(str::to_owned),
            refusals: refusals.clone(),
        };
        let told = |mark| {
            held(mark).notice(None).map(|notice| (notice.summary, notice.body)).expect("a notice")
        };
        let (summary, body) = told(Some("Super+Minus"));
        assert_eq!(summary, "Super+Minus marks instead of Ctrl+Alt+Minus");
        let first = "hot key Ctrl+Alt+Minus (mark) is held by another program; it works on the keypad. Super+Minus \
                     marks. Try: tipme setup --mark-key KEY";
        assert_eq!(body, format!("{first}\nNot available either: F9."));
        let second = "hot key F9 (start recording) is on no key of this keyboard. Try: kill ";
        assert!(held(None).complaints(None)[0].starts_with(second));
        let (summary, body) = told(None);
        assert_eq!(summary, "No key marks: Ctrl+Alt+Minus is not available");
        assert!(
            body.contains("Until then mark with: tipme mark. Try: tipme setup --mark-key KEY"),
            "{body}"
        );
    }

    #[test]
    fn nothing_is_told_at_the_screen_where_all_keys_are_held_but_on_the_keypad() {
        let mark = Some("Ctrl+Alt+Minus".to_owned());
        let held = AgentKeys {
            mark,
            refusals: vec![refusal(
                HotKeyAction::Mark,
                "Ctrl+Alt+Minus",
                RefusalReason::KeypadTaken,
            )],
        };
        assert_eq!((held.notice(None), held.to_string().as_str()), (None, "Ctrl+Alt+Minus marks"));
        let line = "hot key Ctrl+Alt+Minus (mark) is held on the keypad by another program; it works elsewhere. Try: \
                    tipme setup --mark-key KEY";
        assert_eq!(held.complaints(None), [line]);
    }
}
