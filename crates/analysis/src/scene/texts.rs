// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deduplicated texts by number.

use std::collections::HashMap;

/// Maximum number of texts, and maximum length of each in characters.
const TEXTS_MAX: usize = 8_000;
const LETTERS_MAX: usize = 300;

/// Texts, and the number of each.
#[derive(Debug)]
pub(super) struct Texts {
    list: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Texts {
    pub(super) fn new() -> Texts {
        let mut texts = Texts { list: Vec::new(), numbers: HashMap::new() };
        texts.number("");
        texts
    }

    /// Returns the number of a text, or that of the empty text if there are too many.
    pub(super) fn number(&mut self, text: &str) -> usize {
        let text: String = text.chars().take(LETTERS_MAX).collect();
        if let Some(number) = self.numbers.get(&text) {
            return *number;
        }
        if self.list.len() >= TEXTS_MAX {
            return 0;
        }
        self.list.push(text.clone());
        self.numbers.insert(text, self.list.len() - 1);
        self.list.len() - 1
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_once_and_bounded() {
        let mut texts = Texts::new();
        assert_eq!(
            (texts.number("a"), texts.number("b"), texts.number("a"), texts.number("")),
            (1, 2, 1, 0)
        );
        for number in 0..TEXTS_MAX {
            texts.number(&number.to_string());
        }
        assert_eq!(texts.number("one more"), 0);
        assert_eq!(texts.number(&"x".repeat(9_999)), 0);
        assert_eq!(texts.into_list().len(), TEXTS_MAX);
    }
}
