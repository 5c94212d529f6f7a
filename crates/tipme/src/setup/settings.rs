// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the service in its settings file: users that may mark, and daily counting.

const NAME: &str = "TIPME_OPTIONS=";
const DAY: &str = "--day";

/// Returns the file with another user that may mark; `None` if the user already may.
pub fn allow(text: &str, uid: u32) -> Option<String> {
    let options = options(text);
    if users(&options).any(|user| user == uid.to_string()) {
        return None;
    }
    let more = format!("--allow-user {uid}");
    Some(with(text, &if options.is_empty() { more } else { format!("{options} {more}") }))
}

/// Returns the file without that user; `None` if it does not list the user.
pub fn disallow(text: &str, uid: u32) -> Option<String> {
    let options = options(text);
    let mut words: Vec<&str> = options.split_whitespace().collect();
    let (uid, before) = (uid.to_string(), words.len());
    while let Some(at) = words.windows(2).position(|pair| pair == ["--allow-user", uid.as_str()]) {
        words.drain(at..at + 2);
    }
    words.retain(|word| *word != format!("--allow-user={uid}"));
    (words.len() < before).then(|| with(text, &words.join(" ")))
}

/// Returns the file with or without the option for daily counting; `None` if nothing changes.
pub fn day(text: &str, on: bool) -> Option<String> {
    let options = options(text);
    let mut words: Vec<&str> = options.split_whitespace().collect();
    if words.contains(&DAY) == on {
        return None;
    }
    words.retain(|word| *word != DAY);
    words.extend(on.then_some(DAY));
    Some(with(text, &words.join(" ")))
}

/// Returns the options without their quotes.
fn options(text: &str) -> String {
    let line =
        text.lines().rev().find_map(|line| line.trim().strip_prefix(NAME)).unwrap_or_default();
    line.trim().trim_matches(['"', '\'']).to_owned()
}

fn users(options: &str) -> impl Iterator<Item = &str> {
    let words: Vec<&str> = options.split_whitespace().collect();
    let pairs: Vec<&str> =
        words.windows(2).filter(|pair| pair[0] == "--allow-user").map(|pair| pair[1]).collect();
    let joined: Vec<&str> =
        words.iter().filter_map(|word| word.strip_prefix("--allow-user=")).collect();
    pairs.into_iter().chain(joined)
}

/// Returns the file with these options, in place of the last ones or on a new line.
fn with(text: &str, options: &str) -> String {
    let line = if options.is_empty() { format!("#{NAME}") } else { format!("{NAME}\"{options}\"") };
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().rposition(|line| line.trim().starts_with(NAME)) {
        Some(at) => lines[at] = &line,
        None => lines.push(&line),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_allowed_once_and_taken_back() {
        let before = "# Options\nTIPME_OPTIONS=--window 60 --allow-user 7\nOTHER=1\n";
        let after = allow(before, 1000).expect("it is new");
        assert_eq!(
            after,
            "# Options\nTIPME_OPTIONS=\"--window 60 --allow-user 7 --allow-user 1000\"\nOTHER=1\n"
        );
        assert_eq!((allow(&after, 1000), allow(&after, 7)), (None, None));
        let back = disallow(&after, 1000).expect("it is there");
        assert_eq!(back, "# Options\nTIPME_OPTIONS=\"--window 60 --allow-user 7\"\nOTHER=1\n");
        assert_eq!(disallow(&back, 1000), None);
    }

    #[test]
    fn a_file_without_options_gets_a_line() {
        let after = allow("#TIPME_OPTIONS=--allow-user UID\n", 7).expect("it is new");
        assert_eq!(after, "#TIPME_OPTIONS=--allow-user UID\nTIPME_OPTIONS=\"--allow-user 7\"\n");
        assert_eq!(
            disallow(&after, 7).as_deref(),
            Some("#TIPME_OPTIONS=--allow-user UID\n#TIPME_OPTIONS=\n")
        );
        assert_eq!(allow("", 7).as_deref(), Some("TIPME_OPTIONS=\"--allow-user 7\"\n"));
        assert_eq!(allow("TIPME_OPTIONS=--allow-user=7", 7), None);
    }

    #[test]
    fn days_are_counted_and_counted_no_more() {
        let on = day("TIPME_OPTIONS=--window 60\n", true).expect("it is new");
        assert_eq!(on, "TIPME_OPTIONS=\"--window 60 --day\"\n");
        assert_eq!(day(&on, true), None);
        assert_eq!(day(&on, false).as_deref(), Some("TIPME_OPTIONS=\"--window 60\"\n"));
        assert_eq!(day("", false), None);
    }
}
