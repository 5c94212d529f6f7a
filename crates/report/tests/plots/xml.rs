// SPDX-License-Identifier: MIT OR Apache-2.0
//! Check for well-formed XML, as far as the SVGs of these plots need it.

/// Returns an error with its position unless there are one root, balanced tags, quoted attributes
/// and nothing unescaped.
pub fn check(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut roots = 0;
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at], open.is_empty())?;
        let (tag, after) = rest[at + 1..].split_once('>').ok_or("a tag without end")?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            let expected = open.pop();
            (expected == Some(name))
                .then_some(())
                .ok_or(format!("</{name}> closes {expected:?}"))?;
            continue;
        }
        roots += usize::from(open.is_empty());
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = element(tag)?;
        if !closed {
            open.push(name);
        }
    }
    check_text(rest, true)?;
    (open.is_empty() && roots == 1)
        .then_some(())
        .ok_or(format!("{roots} roots, left open: {open:?}"))
}

fn is_forbidden(letter: char) -> bool {
    letter.is_control() && letter != '\n' || matches!(letter, '\u{fffe}' | '\u{ffff}')
}

/// Checks text between tags; outside the root only white space is allowed.
fn check_text(text: &str, outside: bool) -> Result<(), String> {
    if outside && !text.trim().is_empty() {
        return Err(format!("text outside the root: {text:?}"));
    }
    if text.contains(['<', '>']) || text.contains(is_forbidden) {
        return Err(format!("not escaped: {text:?}"));
    }
    text.split('&').skip(1).try_for_each(|after| {
        let known =
            ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|entity| after.starts_with(entity));
        known.then_some(()).ok_or(format!("a bare & before {after:?}"))
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}

/// Returns the name of a tag after checking that its attributes are well-formed and distinct.
fn element(tag: &str) -> Result<&str, String> {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    is_name(name).then_some(()).ok_or(format!("no name: {name:?}"))?;
    let mut known: Vec<&str> = Vec::new();
    while !rest.trim().is_empty() {
        let (key, after) = rest.split_once("=\"").ok_or(format!("no attribute: {rest:?}"))?;
        let (value, after) = after.split_once('"').ok_or(format!("no end of {key:?}"))?;
        let key = key.trim();
        (is_name(key) && !known.contains(&key))
            .then_some(())
            .ok_or(format!("no key, or twice: {key:?}"))?;
        check_text(value, false)?;
        known.push(key);
        rest = after;
    }
    Ok(name)
}

#[test]
fn faults_are_found() {
    assert_eq!(check("<a b=\"1\">x &lt; y<c/></a>\n"), Ok(()));
    let faults = [
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a>&</a>",
        "<a>&nbsp;</a>",
        "<a b=1/>",
        "<a b=\"<\"/>",
        "<a b=\"1\" b=\"2\"/>",
        "<a>\u{0}</a>",
        "<a>></a>",
        "x",
        "",
        "<a/>x",
    ];
    for fault in faults {
        assert!(check(fault).is_err(), "{fault:?} passes");
    }
}
