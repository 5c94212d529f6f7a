// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the person at the screen: by a notification, and where none can be shown by a popup.
//!
//! One thread shows notifications, in the order in which they are told: what is said of one press takes the place of what
//! was said of it before. Buttons come back as [`Choice`]s.

use super::popups::Popups;
use super::press::PressNumber;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tipme_control::journal;
use tipme_desktop::notify::{Note, Notifier, PressedButton};
use tipme_recorder::StateDirs;
use tipme_report::Notice;

/// Messages that wait to be shown; a further one is told on stderr only.
const MESSAGES_MAX: usize = 16;
/// Notifications whose buttons are known: the last ones.
const SHOWN_MAX: usize = 64;
/// Buttons that wait to be answered.
const CHOICES_MAX: usize = 16;

/// Buttons of a verdict: their keys, what stands on them, and what they mean.
const BUTTONS: [(&str, &str, Choice); 5] = [
    ("details", "Details", Choice::Details),
    ("note", "Add note", Choice::Note),
    ("right", "It was this", Choice::Right),
    ("wrong", "Something else", Choice::Wrong),
    ("copy", "Copy", Choice::Copy),
];

/// What a person wants of a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    Details,
    Note,
    Right,
    Wrong,
    Copy,
}

/// What is chosen of an incident, and the press that it came from.
pub type Chosen = (Choice, PathBuf, PressNumber);

/// Something to be told.
pub struct Message {
    pub notice: Notice,
    /// What it is about: it takes the place of what was told of this before.
    pub press: Option<PressNumber>,
    /// Something follows soon: where no notification can be shown, this is not told.
    pub passing: bool,
    /// The incident that it is the verdict of.
    pub verdict: Option<PathBuf>,
}

impl From<Notice> for Message {
    fn from(notice: Notice) -> Message {
        Message { notice, press: None, passing: false, verdict: None }
    }
}

/// A notification that was shown.
struct Shown {
    id: u32,
    press: PressNumber,
    verdict: Option<PathBuf>,
}

type AllShown = Arc<Mutex<VecDeque<Shown>>>;

#[derive(Clone)]
pub struct Teller {
    /// Where nothing may be shown there is none.
    messages: Option<SyncSender<Message>>,
}

impl Teller {
    /// Shows nothing where `shows` is false. What is chosen comes over the receiver.
    pub fn new(shows: bool, popups: Option<Popups>) -> (Teller, Receiver<Chosen>) {
        let (choices, chosen) = sync_channel(CHOICES_MAX);
        if !shows {
            return (Teller { messages: None }, chosen);
        }
        let (messages, waiting) = sync_channel::<Message>(MESSAGES_MAX);
        let (pressed, buttons) = sync_channel(CHOICES_MAX);
        let shown = AllShown::default();
        let screen = Screen { notifier: Notifier::new(pressed), shown: Arc::clone(&shown), popups };
        std::thread::spawn(move || show_all(screen, &waiting));
        std::thread::spawn(move || buttons.iter().for_each(|button| choose(&button, &shown, &choices)));
        (Teller { messages: Some(messages) }, chosen)
    }

    /// Whether anything is shown at all.
    pub fn shows(&self) -> bool {
        self.messages.is_some()
    }

    /// Returns at once: nobody waits for a daemon, or for a popup to be closed.
    pub fn tell(&self, message: impl Into<Message>) {
        let Some(messages) = &self.messages else { return };
        if messages.try_send(message.into()).is_err() {
            let why = "notices wait to be shown; see whether the notification daemon is stopped";
            journal::warning(format!("{MESSAGES_MAX} {why}")).tell();
        }
    }
}

fn show_all(mut screen: Screen, messages: &Receiver<Message>) {
    messages.iter().for_each(|message| screen.show(message));
}

/// Hands on what a button means, where it is one of a verdict.
fn choose(button: &PressedButton, shown: &AllShown, choices: &SyncSender<Chosen>) {
    let Some((.., choice)) = BUTTONS.iter().find(|(key, ..)| *key == button.key) else { return };
    let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(of_it) = shown.iter().rev().find(|shown| shown.id == button.id) else { return };
    let Some(incident) = of_it.verdict.clone() else { return };
    if choices.try_send((*choice, incident, of_it.press)).is_err() {
        journal::warning(format!("{CHOICES_MAX} buttons wait for their answer; press again")).tell();
    }
}

/// Where notices appear.
struct Screen {
    notifier: Notifier,
    shown: AllShown,
    popups: Option<Popups>,
}

impl Screen {
    fn show(&mut self, message: Message) {
        let Notice { summary, body } = &message.notice;
        let replaces = message.press.and_then(|press| self.id(press)).unwrap_or(0);
        let actions = BUTTONS.map(|(key, label, _)| (key, label));
        let actions: &[(&str, &str)] = if message.verdict.is_some() { &actions } else { &[] };
        match self.notifier.show(&Note { replaces, summary, body, actions }) {
            Ok(id) => self.remember(id, message),
            Err(_) if message.passing => {}
            Err(refused) => {
                journal::warning(&refused).tell();
                self.show_popup(&message);
            }
        }
    }

    fn id(&self, press: PressNumber) -> Option<u32> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.iter().rev().find(|shown| shown.press == press).map(|shown| shown.id)
    }

    fn remember(&self, id: u32, message: Message) {
        let Some(press) = message.press else { return };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = message.verdict.or_else(|| shown.iter().find(|shown| shown.id == id)?.verdict.clone());
        shown.retain(|shown| shown.id != id);
        shown.push_back(Shown { id, press, verdict });
        while shown.len() > SHOWN_MAX {
            shown.pop_front();
        }
    }

    /// It has no buttons: a verdict says how to have what they are for.
    fn show_popup(&mut self, message: &Message) {
        let Some(popups) = &mut self.popups else { return };
        let Message { notice, press, verdict, .. } = message;
        let text = format!("{}\n\n{}", notice.summary, notice.body);
        popups.show(text, &verdict.as_deref().map(more).unwrap_or_default(), *press);
    }
}

/// How to read all of a verdict, and to add words to it.
fn more(incident: &Path) -> String {
    let usual = incident.parent() == Some(StateDirs::choose(None).incidents());
    // What is typed from the screen is to be short.
    let name = incident.file_stem().filter(|_| usual).map_or(incident, Path::new).display();
    format!("Read more: tipme diagnose {name}\nAdd words: tipme incidents note {name} WORDS\n")
}
