// SPDX-License-Identifier: MIT OR Apache-2.0
//! Actions of a verdict's notification: few, most useful first. Desktop shells show at most three.

use crate::diagnose::Conclusion;
use tipme_desktop::notify::DEFAULT_ACTION;

/// An action of a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Opens the page of the incident.
    Details,
    /// Asks for a note and adds it to the incident.
    Note,
    /// Records that the cause was right.
    Right,
    /// Records that the cause was wrong.
    Wrong,
    /// Copies the verdict as text.
    Copy,
    /// Opens the page of the last incident with a noticeable delay.
    Earlier,
}

impl Choice {
    const ALL: [Choice; 6] = [
        Choice::Details,
        Choice::Note,
        Choice::Right,
        Choice::Wrong,
        Choice::Copy,
        Choice::Earlier,
    ];

    fn key(self) -> &'static str {
        match self {
            Choice::Details => "details",
            Choice::Note => "note",
            Choice::Right => "right",
            Choice::Wrong => "wrong",
            Choice::Copy => "copy",
            Choice::Earlier => "earlier",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Choice::Details => "Details",
            Choice::Note => "Add note",
            Choice::Right => "It was this",
            Choice::Wrong => "Not this",
            Choice::Copy => "Copy",
            Choice::Earlier => "Earlier answer",
        }
    }

    /// Returns the action with this key; a click on the notification itself opens the page.
    pub fn from_key(key: &str) -> Option<Choice> {
        if key == DEFAULT_ACTION {
            return Some(Choice::Details);
        }
        Choice::ALL.into_iter().find(|choice| choice.key() == key)
    }

    /// Returns `true` if the verdict stays unanswered, so that the other actions remain useful.
    pub fn leaves_open(self) -> bool {
        matches!(self, Choice::Details | Choice::Copy | Choice::Earlier)
    }
}

/// Returns keys and labels for the server, including the default action if there is a page.
pub fn actions(choices: &[Choice]) -> Vec<(&'static str, &'static str)> {
    let click = choices.contains(&Choice::Details).then_some((DEFAULT_ACTION, "Open the page"));
    choices.iter().map(|choice| (choice.key(), choice.label())).chain(click).collect()
}

/// Returns the actions of a new verdict. Only a cause can be confirmed, and only a doubtful one
/// needs to be.
pub fn for_conclusion(conclusion: Conclusion) -> &'static [Choice] {
    match conclusion {
        Conclusion::Cause => &[Choice::Details, Choice::Wrong, Choice::Copy],
        Conclusion::DoubtfulCause => &[Choice::Details, Choice::Right, Choice::Wrong],
        Conclusion::NoCause => &[Choice::Details, Choice::Note, Choice::Copy],
        Conclusion::NothingNew => &[Choice::Details, Choice::Earlier, Choice::Note],
        Conclusion::Failed => &[Choice::Note],
    }
}

/// Returns the actions after the user's answer about the cause.
pub fn after_answer(right: bool) -> &'static [Choice] {
    if right {
        &[Choice::Details, Choice::Copy]
    } else {
        &[Choice::Details, Choice::Note, Choice::Copy]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_three_actions_beside_the_click_and_details_first() {
        let all = [
            Conclusion::Cause,
            Conclusion::DoubtfulCause,
            Conclusion::NoCause,
            Conclusion::NothingNew,
        ]
        .map(for_conclusion);
        for choices in all.into_iter().chain([true, false].map(after_answer)) {
            let actions = actions(choices);
            assert!(choices.len() <= 3 && actions.len() == choices.len() + 1, "{choices:?}");
            assert_eq!(actions[0], ("details", "Details"));
            assert!(actions.iter().all(|(key, _)| Choice::from_key(key).is_some()), "{actions:?}");
        }
        assert_eq!(
            actions(for_conclusion(Conclusion::Failed)),
            [("note", "Add note")],
            "there is no page"
        );
    }

    #[test]
    fn without_a_cause_nothing_can_be_confirmed() {
        assert!(!for_conclusion(Conclusion::NoCause).contains(&Choice::Right));
        assert!(!for_conclusion(Conclusion::NoCause).contains(&Choice::Wrong));
    }
}
