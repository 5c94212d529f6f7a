// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dialogs: the question after a mark ("what was slow?"), and a long text. Separate programs show
//! them, so that the caller does not block.

use crate::error::DisplayError;
use crate::plain::plain;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tipme_record::text::cut;

/// Maximum length of an answer, in bytes; the rest is dropped.
pub(crate) const ANSWER_BYTES_MAX: usize = 4096;

/// Maximum length of a shown text, in characters.
const PAGE_MAX: usize = 200_000;

/// A program that can ask a question and show a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialogProgram {
    Zenity(PathBuf),
    Kdialog(PathBuf),
    /// A terminal emulator that takes `-e` and runs a shell.
    Terminal(PathBuf),
    /// Has no text field: offers answers to choose from.
    Xmessage(PathBuf),
}

impl DialogProgram {
    /// Returns the first installed program, if any.
    pub fn find() -> Option<DialogProgram> {
        DialogProgram::find_in(&std::env::var("PATH").unwrap_or_default())
    }

    fn find_in(path: &str) -> Option<DialogProgram> {
        type Kind = fn(PathBuf) -> DialogProgram;
        const PROGRAMS: [(&str, Kind); 5] = [
            ("zenity", DialogProgram::Zenity),
            ("kdialog", DialogProgram::Kdialog),
            ("x-terminal-emulator", DialogProgram::Terminal),
            ("xterm", DialogProgram::Terminal),
            ("xmessage", DialogProgram::Xmessage),
        ];
        PROGRAMS.into_iter().find_map(|(name, kind)| find_program(path, name).map(kind))
    }

    fn program(&self) -> Command {
        match self {
            DialogProgram::Zenity(program)
            | DialogProgram::Kdialog(program)
            | DialogProgram::Terminal(program)
            | DialogProgram::Xmessage(program) => Command::new(program),
        }
    }

    fn ask(&self, question: &str) -> Command {
        /// Asks on the terminal and writes the answer to a file.
        const SHELL: &str =
            r#"printf '%s\n> ' "$1"; IFS= read -r answer && printf '%s' "$answer" > "$0""#;
        const CHOICES: &str = "It froze:2,It was slow:3,It stuttered:4,Skip:0";
        let mut command = self.program();
        match self {
            DialogProgram::Zenity(_) => {
                command.args(["--entry", "--title", "tipme", "--text", question])
            }
            DialogProgram::Kdialog(_) => command.args(["--title", "tipme", "--inputbox", question]),
            DialogProgram::Terminal(_) => command.args(["-T", "tipme", "-e", "sh", "-c", SHELL]),
            DialogProgram::Xmessage(_) => command.args(["-print", "-buttons", CHOICES, question]),
        };
        command
    }

    /// Returns the command that shows a long text from a file.
    fn page(&self, file: &Path) -> Command {
        const SHELL: &str =
            r#"if command -v less > /dev/null; then less "$0"; else cat "$0"; read -r _; fi"#;
        let mut command = self.program();
        match self {
            DialogProgram::Zenity(_) => {
                let size =
                    ["--width", "900", "--height", "700", "--font", "monospace 10", "--filename"];
                command.args(["--text-info", "--title", "tipme"]).args(size).arg(file)
            }
            DialogProgram::Kdialog(_) => {
                command.args(["--title", "tipme", "--textbox"]).arg(file).args(["900", "700"])
            }
            DialogProgram::Terminal(_) => {
                command.args(["-T", "tipme", "-e", "sh", "-c", SHELL]).arg(file)
            }
            DialogProgram::Xmessage(_) => command.args(["-buttons", "Close:0", "-file"]).arg(file),
        };
        command
    }
}

/// The executable `name` in a colon-separated list of folders.
pub(crate) fn find_program(path: &str, name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let folders = path.split(':').filter(|folder| !folder.is_empty());
    folders.map(|folder| Path::new(folder).join(name)).find(|file| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

/// An open question, or a displayed text.
pub struct Dialog {
    child: Child,
    /// File for the answer of a terminal's shell (other programs print it), or with a displayed
    /// text.
    file: Option<tempfile::TempPath>,
}

impl Dialog {
    /// Starts the program with a question, on a display such as `:0`; returns at once.
    pub fn open(
        asker: &DialogProgram,
        question: &str,
        display: &str,
    ) -> Result<Dialog, DisplayError> {
        const WHAT: &str = "cannot open a dialog for the description";
        let failed = |cause| DisplayError::Io { what: WHAT.to_string(), cause };
        let mut command = asker.ask(question);
        let file = match asker {
            DialogProgram::Terminal(_) => {
                Some(tempfile::NamedTempFile::new().map_err(failed)?.into_temp_path())
            }
            _ => None,
        };
        if let Some(file) = &file {
            command.arg(file.as_os_str()).arg(question);
        }
        Dialog::start(command, file, display).map_err(failed)
    }

    /// Starts the program with a long text; returns at once.
    pub fn page(asker: &DialogProgram, text: &str, display: &str) -> Result<Dialog, DisplayError> {
        let failed = |cause| DisplayError::Io {
            what: "cannot open a window with the details".to_string(),
            cause,
        };
        let file = tempfile::NamedTempFile::new().map_err(failed)?.into_temp_path();
        std::fs::write(&file, plain(text, PAGE_MAX)).map_err(failed)?;
        Dialog::start(asker.page(&file), Some(file), display).map_err(failed)
    }

    fn start(
        mut command: Command,
        file: Option<tempfile::TempPath>,
        display: &str,
    ) -> std::io::Result<Dialog> {
        command.env("DISPLAY", display).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Dialog { child: command.spawn()?, file })
    }

    /// Waits for the answer; returns `None` if it was cancelled or empty, or on a timeout.
    ///
    /// The answer is cut to `ANSWER_BYTES_MAX` bytes. The program has ended afterwards.
    pub fn answer(mut self, timeout: Duration) -> Option<String> {
        let (sender, receiver) = mpsc::channel();
        let output = self.child.stdout.take();
        std::thread::spawn(move || sender.send(output.and_then(read_bounded)));
        let printed = receiver.recv_timeout(timeout).ok().flatten();
        let left = self
            .file
            .as_deref()
            .and_then(|file| std::fs::File::open(file).ok())
            .and_then(read_bounded);
        let answer = if self.file.is_some() { left } else { printed };
        answer.map(|answer| tidy(&answer)).filter(|answer| !answer.is_empty() && answer != "Skip")
    }
}

impl Drop for Dialog {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // The program may have ended already.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// Reads to the end or to the bound, whichever comes first.
fn read_bounded(source: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn tidy(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut text: String = text
        .trim()
        .chars()
        .filter(|character| !character.is_control() || *character == '\n')
        .collect();
    text.truncate(cut(&text, ANSWER_BYTES_MAX).len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Makes a folder with one program, which is the given script.
    fn with_program(name: &str, script: &str) -> (tempfile::TempDir, DialogProgram) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a script");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))
            .expect("permissions");
        let path = format!("/nonexistent:{}", folder.path().display());
        (folder, DialogProgram::find_in(&path).expect("the program is found"))
    }

    fn answer(name: &str, script: &str, timeout: Duration) -> Option<String> {
        let (_folder, asker) = with_program(name, script);
        Dialog::open(&asker, "what was slow?", ":0").expect("the program starts").answer(timeout)
    }

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn the_printed_answer_is_kept() {
        assert_eq!(
            answer("zenity", "echo ' the editor hung '", LONG).as_deref(),
            Some("the editor hung")
        );
        assert_eq!(answer("kdialog", "printf 'a\\001b'", LONG).as_deref(), Some("ab"));
        assert_eq!(answer("xmessage", "echo Skip", LONG), None);
        assert_eq!(answer("zenity", "exit 1", LONG), None);
    }

    #[test]
    fn a_terminals_shell_leaves_the_answer_in_a_file() {
        let script = "while [ \"$1\" != -e ]; do shift; done; shift\n\
                      echo 'slow scrolling' | \"$@\" > /dev/null";
        assert_eq!(answer("xterm", script, LONG).as_deref(), Some("slow scrolling"));
    }

    #[test]
    fn a_long_answer_is_cut() {
        let long = answer("zenity", "head -c 100000 /dev/zero | tr '\\0' x", LONG);
        assert_eq!(long.map(|text| text.len()), Some(ANSWER_BYTES_MAX));
    }

    #[test]
    fn nobody_waits_longer_than_allowed() {
        let started = std::time::Instant::now();
        assert_eq!(answer("zenity", "exec sleep 30", Duration::from_millis(50)), None);
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn without_a_program_there_is_no_dialog() {
        assert_eq!(DialogProgram::find_in("/nonexistent"), None);
    }
}
