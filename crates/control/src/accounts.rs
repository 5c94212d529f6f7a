// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users and groups from the local files: no name service is queried, which could block.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";
/// Maximum bytes read of such a file.
const BYTES_MAX: u64 = 4 << 20;

/// Returns the name of a user; `None` without a local account.
pub fn user_name(uid: u32) -> Option<String> {
    account(uid)?.split(':').next().map(str::to_owned)
}

/// Returns the primary group of a user; `None` without a local account.
pub fn first_group(uid: u32) -> Option<u32> {
    account(uid)?.split(':').nth(3)?.parse().ok()
}

/// Returns a user's line, such as `anna:x:1000:1000:…`.
fn account(uid: u32) -> Option<String> {
    lines(PASSWD)
        .find(|line| line.split(':').nth(2).is_some_and(|number| number.parse() == Ok(uid)))
}

/// Describes a user for a message: `anna (1000)`, or `user 1000` without an account.
pub fn in_words(uid: u32) -> String {
    user_name(uid).map_or_else(|| format!("user {uid}"), |name| format!("{name} ({uid})"))
}

/// Returns `true` if a group lists a user as a member. Primary groups do not count.
pub fn is_member(group: &str, uid: u32) -> bool {
    let Some(line) = lines(GROUP).find(|line| line.split(':').next() == Some(group)) else {
        return false;
    };
    let Some(name) = user_name(uid) else { return false };
    line.split(':').nth(3).is_some_and(|members| members.split(',').any(|member| member == name))
}

fn lines(path: &str) -> impl Iterator<Item = String> {
    let file = File::open(path).ok().map(|file| BufReader::new(file.take(BYTES_MAX)));
    file.into_iter().flat_map(|file| file.lines().map_while(Result::ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_unknown_users_are_members_of_nothing() {
        assert_eq!(user_name(0).as_deref(), Some("root"));
        assert_eq!((user_name(4_294_967_000), first_group(4_294_967_000)), (None, None));
        assert_eq!(first_group(0), Some(0));
        assert!(!is_member("root", 4_294_967_000) && !is_member("no such group", 0));
    }
}
