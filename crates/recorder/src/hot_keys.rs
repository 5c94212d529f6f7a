// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys that the recorder reads itself, where no display grabs them for the session's agent,
//! and the answers on the active text console.
//!
//! The input devices are read anyway, so waiting for a hot key causes no wakeups. Only after a
//! press the recorder checks if the console shows text. Output does not block: a console that
//! accepts none loses the line.

use crate::judge::headline;
use crate::look::END_MAX;
use crate::outcome::with_incident;
use crate::rights::take_turns;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::TrySendError::{Disconnected, Full};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tipme_control::RecorderResponse;
use tipme_control::journal;
use tipme_desktop::chords::Chords;
use tipme_desktop::console::{ACTIVE_NAME, Console, owner};
use tipme_desktop::hotkeys::{Bindings, HotKeyAction};
use tipme_record::named;

/// Maximum number of incidents waiting for diagnosis; later ones are left to `tipme diagnose`.
const DIAGNOSES_MAX: usize = 8;

named! {
    /// Scope in which hot keys are read from the keyboards.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum HotKeyScope {
        /// On text consoles only; in an X session the agent serves them.
        Console = "console",
        /// In graphical sessions too, for Wayland desktops that cannot bind keys.
        Always = "always",
    }
}

/// Options of the recorder's hot keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HotKeyOptions {
    pub scope: HotKeyScope,
    pub bindings: Bindings,
    /// Device of the active console: [`tipme_desktop::console::ACTIVE`].
    pub console: PathBuf,
    /// Program that diagnoses the incident on its standard input: called as `judge --user UID
    /// --seconds S`.
    pub judge: PathBuf,
}

impl HotKeyOptions {
    /// Returns the key combinations to look for.
    pub(crate) fn chords(&self) -> Result<Chords> {
        Ok(Chords::new(&self.bindings)?)
    }

    /// Describes the active hot keys, or the reason why there are none.
    pub(crate) fn announce(&self, devices: usize) -> String {
        let mark = self.bindings.0.iter().find(|(action, _)| *action == HotKeyAction::Mark);
        let key = mark.map_or_else(|| "no key".to_owned(), |(_, chord)| chord.to_string());
        match (devices, self.scope) {
            (0, _) => "no hot keys of the console: there is no input device".to_owned(),
            (_, HotKeyScope::Console) => format!("on a text console {key} marks"),
            (_, HotKeyScope::Always) => format!("{key} marks, on any keyboard of the machine"),
        }
    }

    /// Returns the owner of the active console; its key presses are attributed to that user.
    pub(crate) fn seated(&self) -> Option<u32> {
        owner(Path::new(ACTIVE_NAME), self.console.parent()?)
    }

    /// Returns the console to answer on, if hot keys count now.
    pub(crate) fn listener(&self) -> Option<PressConsole> {
        let console = Console::open(&self.console).ok().filter(Console::is_text);
        (console.is_some() || self.scope == HotKeyScope::Always).then_some(PressConsole(console))
    }
}

/// Text console on which a hot key was pressed; `None` if no line can be shown.
pub(crate) struct PressConsole(Option<Console>);

impl PressConsole {
    /// Shows a line if the console still shows text.
    pub(crate) fn show(&self, line: &str) {
        let Some(console) = self.0.as_ref().filter(|console| console.is_text()) else { return };
        if let Err(error) = console.write_line(line) {
            journal::warning(format!("cannot write to the console: {error}")).tell();
        }
    }

    /// Reports the result of a mark, and requests its cause if the console can show it.
    pub(crate) fn marked(self, response: &RecorderResponse, causes: &QuestionSender) {
        match response {
            RecorderResponse::Marked { incident, input_stopped, .. } => {
                journal::info(format!("marked {} (hot key)", incident.display())).show();
                let without = if *input_stopped {
                    "; input is not recorded, so it contains no key presses"
                } else {
                    ""
                };
                self.show(&format!("marked {}{without}", incident.display()));
                causes.ask(self, incident);
            }
            RecorderResponse::Error(why) => {
                journal::error(why).show();
                self.show(why);
            }
            _ => {}
        }
    }
}

/// An incident to diagnose, with the console for its verdict.
type Question = (PressConsole, PathBuf);

/// Sender of questions.
#[derive(Clone)]
pub(crate) struct QuestionSender(SyncSender<Question>);

impl QuestionSender {
    fn ask(&self, listener: PressConsole, incident: &Path) {
        if listener.0.is_none() {
            return;
        }
        match self.0.try_send((listener, incident.to_owned())) {
            Ok(()) => {}
            Err(Full((listener, _)) | Disconnected((listener, _))) => {
                listener.show(&command(incident))
            }
        }
    }
}

/// Returns the line shown in place of a verdict.
fn command(incident: &Path) -> String {
    format!("no verdict; run: tipme diagnose {}", incident.display())
}

/// Thread that has incidents diagnosed in another process, in the order of their marks.
pub(crate) struct Causes {
    asker: QuestionSender,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Causes {
    /// Starts the thread, which runs without the recorder's priority; `program` is called with
    /// `judge`.
    pub(crate) fn start(program: &Path) -> Causes {
        let (sender, questions) = sync_channel(DIAGNOSES_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let (program, stopped) = (program.to_owned(), stop.clone());
        let thread = std::thread::spawn(move || {
            take_turns();
            answer_all(&questions, &program, &stopped);
        });
        Causes { asker: QuestionSender(sender), stop, thread }
    }

    pub(crate) fn asker(&self) -> QuestionSender {
        self.asker.clone()
    }

    /// Ends a running diagnosis.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        drop(self.asker);
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn answer_all(questions: &Receiver<Question>, program: &Path, stop: &AtomicBool) {
    for (listener, incident) in questions.iter().take_while(|_| !stop.load(Ordering::Acquire)) {
        let found = headline(program, &incident, stop);
        listener.show(&found.unwrap_or_else(|error| {
            with_incident(&incident, journal::warning(format!("{error:#}"))).tell();
            command(&incident)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::program;

    fn options(scope: HotKeyScope, console: &Path) -> HotKeyOptions {
        HotKeyOptions {
            scope,
            bindings: Bindings::default(),
            console: console.to_owned(),
            judge: "tipme".into(),
        }
    }

    #[test]
    fn only_a_text_console_listens_unless_hot_keys_always_count() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(options(HotKeyScope::Console, Path::new("/nowhere/tty0")).listener().is_none());
        assert!(options(HotKeyScope::Console, file.path()).listener().is_none());
        let listener = options(HotKeyScope::Always, file.path()).listener().unwrap();
        listener.show("not shown over a graphical session");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"");
    }

    #[test]
    fn it_is_said_which_key_marks_and_where() {
        for (scope, devices, announced) in [
            (HotKeyScope::Console, 2, "on a text console Ctrl+Alt+Minus marks"),
            (HotKeyScope::Always, 2, "Ctrl+Alt+Minus marks, on any keyboard of the machine"),
            (HotKeyScope::Always, 0, "no hot keys of the console: there is no input device"),
        ] {
            assert_eq!(options(scope, Path::new("/dev/tty0")).announce(devices), announced);
        }
    }

    /// Returns the incidents that were diagnosed out of two.
    fn asked(stopped: bool) -> String {
        let dir = tempfile::TempDir::new().unwrap();
        let log = dir.path().join("log");
        let program = program(&dir, &format!("cat >> {}\necho a verdict", log.display()));
        let (sender, questions) = sync_channel(DIAGNOSES_MAX);
        for incident in ["one", "two"] {
            let console = Console::open(Path::new("/dev/null")).unwrap();
            std::fs::write(dir.path().join(incident), format!("{incident}\n")).unwrap();
            QuestionSender(sender.clone())
                .ask(PressConsole(Some(console)), &dir.path().join(incident));
        }
        // Without a console there is no reader for the verdict.
        QuestionSender(sender).ask(PressConsole(None), &dir.path().join("one"));
        answer_all(&questions, &program, &AtomicBool::new(stopped));
        std::fs::read_to_string(&log).unwrap_or_default()
    }

    #[test]
    fn incidents_are_diagnosed_in_the_order_of_marks_until_a_stop() {
        assert_eq!(asked(false), "one\ntwo\n");
        assert_eq!(asked(true), "");
    }

    #[test]
    fn questions_beyond_the_bound_are_not_waited_for() {
        let (sender, questions) = sync_channel(1);
        for _ in 0..3 {
            let console = Console::open(Path::new("/dev/null")).unwrap();
            QuestionSender(sender.clone()).ask(PressConsole(Some(console)), Path::new("one"));
        }
        assert_eq!(questions.try_iter().count(), 1);
    }
}
