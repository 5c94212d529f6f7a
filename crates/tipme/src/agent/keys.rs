// SPDX-License-Identifier: MIT OR Apache-2.0
//! Available hot keys, and messages about the others.

use anyhow::Result;
use std::fmt;
use tipme_desktop::hotkeys::{HotKeyAction, HotKeyRefusal, HotKeys, RefusalReason};
use tipme_report::Notice;

/// Alternative mark keys in order of preference, for when the requested one is taken. A window
/// manager that binds Super alone, such as Cinnamon's, receives each chord of Super, although the
/// grab of another program succeeds.
const FALLBACKS: [&str; 3] = ["ctrl+alt+shift+m", "ctrl+alt+pause", "super+minus"];

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
pub fn choose_mark_key(keys: &mut HotKeys) -> Result<AgentKeys> {
    for fallback in FALLBACKS {
        if free_mark_key(keys).is_some() {
            break;
        }
        keys.add(HotKeyAction::Mark, fallback.parse()?)?;
    }
    let mark = free_mark_key(keys)
        .or_else(|| keys.keys(HotKeyAction::Mark).first().map(ToString::to_string));
    Ok(AgentKeys { mark, refusals: keys.refusals().to_vec() })
}

/// Returns the first mark key that no other program holds.
fn free_mark_key(keys: &HotKeys) -> Option<String> {
    let mut all = keys.keys(HotKeyAction::Mark).into_iter();
    let free =
        all.find(|key| !keys.refusals().iter().any(|one| matters(one) && one.chord == **key));
    free.map(ToString::to_string)
}

impl AgentKeys {
    /// Returns a line for each unavailable key: its name, its probable owner, and the remedy.
    pub fn complaints(&self, manager: Option<&str>) -> Vec<String> {
        self.refusals.iter().map(|refusal| self.complaint(refusal, manager)).collect()
    }

    /// Returns the notice for the screen; `None` if all keys are available.
    pub fn notice(&self, manager: Option<&str>) -> Option<Notice> {
        let first =
            self.unavailable().max_by_key(|refusal| refusal.action == HotKeyAction::Mark)?;
        let summary = match &self.mark {
            _ if first.action != HotKeyAction::Mark => format!("{} is not available", first.chord),
            Some(mark) => format!("{mark} marks instead of {}", first.chord),
            None => format!("No key marks: {} is not available", first.chord),
        };
        let others: Vec<String> = self
            .unavailable()
            .filter(|refusal| *refusal != first)
            .map(|refusal| refusal.chord.to_string())
            .collect();
        let mut body = self.complaint(first, manager);
        if !others.is_empty() {
            body += &format!("\nAlso unavailable: {}.", others.join(", "));
        }
        Some(Notice::new(summary, body))
    }

    /// Returns the refusals that the user must know.
    fn unavailable(&self) -> impl Iterator<Item = &HotKeyRefusal> {
        self.refusals.iter().filter(|refusal| matters(refusal))
    }

    fn complaint(&self, refusal: &HotKeyRefusal, manager: Option<&str>) -> String {
        let HotKeyRefusal { action, chord, why } = refusal;
        let owner =
            manager.map(|name| format!(", probably the window manager {name}")).unwrap_or_default();
        let what = match why {
            RefusalReason::Missing => "is not on this keyboard".to_owned(),
            RefusalReason::Taken => format!("is held by another program{owner}"),
            RefusalReason::MainTaken => {
                format!("is held by another program{owner}; it works on the keypad")
            }
            RefusalReason::KeypadTaken => {
                format!(
                    "is held on the keypad by another program{owner}; it works on the main keys"
                )
            }
        };
        let now = match &self.mark {
            _ if *action != HotKeyAction::Mark || !matters(refusal) => String::new(),
            Some(mark) => format!(" {mark} marks."),
            None => " Until then, mark with: tipme mark.".to_owned(),
        };
        format!("hot key {chord} ({}) {what}.{now} Try: {}", action.purpose(), remedy(*action))
    }
}

impl fmt::Display for AgentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = self.mark.as_deref().unwrap_or("no key");
        write!(f, "{mark} marks")?;
        let others: Vec<String> =
            self.unavailable().map(|refusal| refusal.chord.to_string()).collect();
        if others.is_empty() { Ok(()) } else { write!(f, " (unavailable: {})", others.join(", ")) }
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
    fn a_taken_key_comes_with_its_owner_and_the_remedy() {
        let refusals = vec![refusal(HotKeyAction::StartKeys, "Ctrl+Alt+1", RefusalReason::Taken)];
        let keys = AgentKeys { mark: Some("Ctrl+Alt+Minus".to_owned()), refusals };
        let line = format!(
            "hot key Ctrl+Alt+1 (restart the recording of input) is held by another program, \
             probably the window manager Xfwm4. Try: kill {}; tipme agent --start-keys-key KEY &",
            std::process::id()
        );
        assert_eq!(
            keys.notice(Some("Xfwm4")),
            Some(Notice::new("Ctrl+Alt+1 is not available", line))
        );
        assert_eq!(keys.to_string(), "Ctrl+Alt+Minus marks (unavailable: Ctrl+Alt+1)");
    }

    #[test]
    fn the_notice_names_the_key_that_marks_instead_or_none() {
        let refusals = vec![
            refusal(HotKeyAction::Start, "f9", RefusalReason::Missing),
            refusal(HotKeyAction::Mark, "Ctrl+Alt+Minus", RefusalReason::MainTaken),
        ];
        let mut keys = AgentKeys { mark: Some("Ctrl+Alt+Shift+M".to_owned()), refusals };
        let body = "hot key Ctrl+Alt+Minus (mark) is held by another program; it works on the \
                    keypad. Ctrl+Alt+Shift+M marks. Try: tipme setup --mark-key KEY\n\
                    Also unavailable: F9.";
        let summary = "Ctrl+Alt+Shift+M marks instead of Ctrl+Alt+Minus";
        assert_eq!(keys.notice(None), Some(Notice::new(summary, body)));
        keys.mark = None;
        let first = "hot key F9 (start recording) is not on this keyboard. Try: kill ";
        assert!(keys.complaints(None)[0].starts_with(first));
        let Notice { summary, body } = keys.notice(None).expect("a notice");
        assert_eq!(summary, "No key marks: Ctrl+Alt+Minus is not available");
        let remedy = "Until then, mark with: tipme mark. Try: tipme setup --mark-key KEY";
        assert!(body.contains(remedy), "{body}");
    }

    #[test]
    fn a_key_that_is_missing_only_on_the_keypad_is_no_notice() {
        let mark = "Ctrl+Alt+Minus".to_owned();
        let refusals = vec![refusal(HotKeyAction::Mark, &mark, RefusalReason::KeypadTaken)];
        let keys = AgentKeys { mark: Some(mark), refusals };
        assert_eq!((keys.notice(None), keys.to_string().as_str()), (None, "Ctrl+Alt+Minus marks"));
        let line = "hot key Ctrl+Alt+Minus (mark) is held on the keypad by another program; \
                    it works on the main keys. Try: tipme setup --mark-key KEY";
        assert_eq!(keys.complaints(None), [line]);
    }
}
