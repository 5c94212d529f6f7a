// SPDX-License-Identifier: MIT OR Apache-2.0
//! Authority files: the cookies that open a display.

use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const COOKIE_NAME: &[u8] = b"MIT-MAGIC-COOKIE-1";
/// Maximum number of bytes read from one file.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Maximum number of cookies tried of one file: each takes a connection of its own.
const COOKIES_MAX: usize = 8;

/// One entry of an authority file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AuthorityEntry {
    /// Number of the display as text; empty for any.
    pub number: Vec<u8>,
    pub name: Vec<u8>,
    pub data: Vec<u8>,
}

/// Parses the entries of an authority file up to its end or its first damage.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<AuthorityEntry> {
    std::iter::from_fn(|| entry(&mut bytes)).collect()
}

fn entry(bytes: &mut &[u8]) -> Option<AuthorityEntry> {
    *bytes = bytes.get(2..)?;
    let _host = field(bytes)?;
    Some(AuthorityEntry { number: field(bytes)?, name: field(bytes)?, data: field(bytes)? })
}

fn field(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]));
    let value = bytes.get(2..2 + length)?.to_vec();
    *bytes = &bytes[2 + length..];
    Some(value)
}

/// Returns the cookies for a display: those with its number first, then those for any.
pub(crate) fn cookies(entries: &[AuthorityEntry], display: u32) -> Vec<Vec<u8>> {
    let number = display.to_string();
    let mut found = Vec::new();
    for wanted in [number.as_bytes(), b""] {
        let fitting =
            entries.iter().filter(|entry| entry.name == COOKIE_NAME && entry.number == wanted);
        found.extend(fitting.map(|entry| entry.data.clone()));
    }
    found
}

/// Maximum number of a listener's threads, and of their child processes, that are examined.
const CHILDREN_MAX: usize = 64;

/// Process that listens at a display: for a display without a server, this can be any user's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisplayListener {
    pub pid: u32,
    pub uid: u32,
}

/// Returns possible authority files for a display: the requested one, the server's own, the user's.
/// Each comes with `true` if the user named it.
pub(crate) fn files(
    asked: Option<&Path>,
    display: u32,
    listener: DisplayListener,
) -> Vec<(PathBuf, bool)> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".Xauthority"));
    let named = std::env::var_os("XAUTHORITY").map(PathBuf::from);
    let is_named = is_named(std::env::var("DISPLAY").as_deref().unwrap_or_default(), display);
    // A service may have private folders in place of the server's, such as `/tmp`.
    let of_server = server_files(display, listener).into_iter().flat_map(|(pid, file)| {
        let seen = seen_by(pid, &file);
        [Some(file), seen].into_iter().flatten().map(|file| (file, false))
    });
    let of_user = [named, home].into_iter().flatten().map(|file| (file, is_named));
    let mut files: Vec<(PathBuf, bool)> = Vec::new();
    for file in
        asked.map(|file| (PathBuf::from(file), true)).into_iter().chain(of_server).chain(of_user)
    {
        if !files.iter().any(|(known, _)| *known == file.0) {
            files.push(file);
        }
    }
    files
}

/// Returns `true` if a name such as `:7` or `:7.0` refers to the display. Root sees other users'
/// displays too.
fn is_named(name: &str, display: u32) -> bool {
    let number = name.strip_prefix(':').and_then(|name| name.split('.').next());
    !rustix::process::geteuid().is_root()
        && number.is_some_and(|number| number.parse() == Ok(display))
}

/// Returns the files that the server may have been started with, from its command line, each with
/// the process: the listener's and, if a compositor listens, those of servers of this display that
/// it started for its own user.
fn server_files(display: u32, listener: DisplayListener) -> Vec<(u32, PathBuf)> {
    let name = format!(":{display}");
    let started = children(listener.pid).filter(|pid| {
        let status = std::fs::metadata(format!("/proc/{pid}"));
        status.is_ok_and(|status| status.uid() == listener.uid)
            && command_line(*pid).split(|byte| *byte == 0).any(|word| word == name.as_bytes())
    });
    let pids = std::iter::once(listener.pid).chain(started);
    pids.filter_map(|pid| Some((pid, auth_argument(&command_line(pid))?))).collect()
}

/// Returns the words of a command line, each with a final zero byte.
fn command_line(pid: u32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// Returns child processes of all threads of a process, up to the limit.
fn children(pid: u32) -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .take(CHILDREN_MAX);
    let started =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids = started
        .flat_map(|text| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>());
    pids.filter_map(|pid| pid.parse().ok()).take(CHILDREN_MAX)
}

/// Returns the path by which this process reaches the same file as `pid`.
fn seen_by(pid: u32, file: &Path) -> Option<PathBuf> {
    let below = file.strip_prefix("/").ok()?;
    Some(Path::new(&format!("/proc/{pid}/root")).join(below))
}

fn auth_argument(line: &[u8]) -> Option<PathBuf> {
    let mut words = line.split(|byte| *byte == 0).skip_while(|word| *word != b"-auth");
    let file = words.nth(1).filter(|file| !file.is_empty())?;
    Some(PathBuf::from(String::from_utf8_lossy(file).into_owned()))
}

/// Reads the cookies for a display from a file, up to the limit. Returns none if the file is not
/// readable, or if its owner is another user than the listener, which would get a cookie that is
/// not its own. A root listener, and a file that the user named, are exempt.
pub(crate) fn read(
    file: &Path,
    named: bool,
    display: u32,
    listener: DisplayListener,
) -> Vec<Vec<u8>> {
    let file =
        open_regular(file, |status| named || listener.uid == 0 || status.st_uid == listener.uid);
    let Some(file) = file else { return Vec::new() };
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    let mut found = if read.is_ok() { cookies(&parse(&bytes), display) } else { Vec::new() };
    found.truncate(COOKIES_MAX);
    found
}

/// Opens a regular file that passes `wanted`, and nothing else: opening a device or a pipe may have
/// side effects.
fn open_regular(file: &Path, wanted: impl Fn(&Stat) -> bool) -> Option<File> {
    let found = rustix::fs::open(file, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let status = rustix::fs::fstat(&found).ok()?;
    if !FileType::from_raw_mode(status.st_mode).is_file() || !wanted(&status) {
        return None;
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()
}

/// Returns an authority file with one cookie, valid from any host.
///
/// `display` is the number as text; empty for any display.
pub fn authority_file(display: &str, cookie: &[u8]) -> Vec<u8> {
    /// `FamilyWild`: any host.
    const ANY_HOST: u16 = 0xffff;
    let mut bytes = ANY_HOST.to_be_bytes().to_vec();
    for field in [&b""[..], display.as_bytes(), COOKIE_NAME, cookie] {
        bytes.extend((field.len() as u16).to_be_bytes());
        bytes.extend(field);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_reads_back() {
        let bytes = [
            authority_file("", b"any"),
            authority_file("7", b"seven"),
            authority_file("8", b"eight"),
        ]
        .concat();
        let entries = parse(&bytes);
        assert_eq!(entries.len(), 3);
        assert_eq!(cookies(&entries, 7), vec![b"seven".to_vec(), b"any".to_vec()]);
        assert_eq!(cookies(&entries, 9), vec![b"any".to_vec()]);
    }

    #[test]
    fn damage_ends_the_reading() {
        let mut bytes = [authority_file("1", b"one"), authority_file("2", b"two")].concat();
        bytes.truncate(bytes.len() - 1);
        assert_eq!(parse(&bytes).len(), 1);
        assert!(parse(&[1, 2, 0xff]).is_empty());
    }

    #[test]
    fn a_file_is_seen_as_by_its_server_and_no_writer_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cookies");
        std::fs::write(&file, authority_file("7", b"seven")).unwrap();
        let seen = seen_by(std::process::id(), &file).unwrap();
        assert!(seen.starts_with("/proc") && seen_by(1, Path::new("not/whole")).is_none());
        let own =
            DisplayListener { pid: std::process::id(), uid: rustix::process::geteuid().as_raw() };
        assert_eq!(read(&seen, false, 7, own), vec![b"seven".to_vec()]);
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(read(&pipe, true, 7, own), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn only_the_owner_root_and_a_named_file_get_cookies() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cookies");
        std::fs::write(&file, authority_file("7", b"seven")).unwrap();
        std::os::unix::fs::chown(&file, Some(4242), None).expect("run the tests as root");
        for (uid, named, number) in
            [(4242, false, 1), (0, false, 1), (4243, true, 1), (4243, false, 0)]
        {
            let cookies = read(&file, named, 7, DisplayListener { pid: 1, uid });
            assert_eq!(cookies.len(), number, "user {uid}, named: {named}");
        }
    }

    #[test]
    fn no_more_cookies_are_tried_than_are_useful() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cookies");
        std::fs::write(&file, authority_file("7", b"one").repeat(30)).unwrap();
        assert_eq!(read(&file, true, 7, DisplayListener { pid: 1, uid: 0 }).len(), COOKIES_MAX);
    }

    #[test]
    fn the_file_of_a_server_that_a_compositor_started_is_found() {
        let servers = [":8", ":7"].map(|display| {
            std::process::Command::new("sh")
                .args(["-c", "read line", display, "-auth", "/tmp/of server"])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .expect("a shell")
        });
        let id = servers[1].id();
        let begun = std::time::Instant::now();
        let (pid, uid) = (std::process::id(), rustix::process::geteuid().as_raw());
        let mut found = Vec::new();
        while found.is_empty() && begun.elapsed() < std::time::Duration::from_secs(10) {
            found = server_files(7, DisplayListener { pid, uid });
        }
        let of_other_user = server_files(7, DisplayListener { pid, uid: uid + 1 });
        for mut server in servers {
            drop(server.stdin.take());
            server.wait().expect("it ends");
        }
        assert_eq!(
            (found, of_other_user),
            (vec![(id, PathBuf::from("/tmp/of server"))], Vec::new())
        );
    }

    #[test]
    fn the_servers_own_file_is_found() {
        let line = b"/usr/lib/Xorg\0:0\0-auth\0/run/lightdm/root/:0\0-nolisten\0tcp\0";
        assert_eq!(auth_argument(line), Some(PathBuf::from("/run/lightdm/root/:0")));
        assert_eq!(auth_argument(b"Xorg\0:0\0"), None);
        assert_eq!(auth_argument(b"Xorg\0-auth\0"), None);
    }
}
