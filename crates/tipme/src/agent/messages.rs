// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages on screen: a notification, or a popup if notifications are unavailable.
//!
//! One thread shows notifications in order; a message about a press replaces the previous one about
//! the same press. Another thread forwards actions, and shows a verdict again with the remaining
//! actions if the server has closed it on the first one.

use super::choices::{Choice, actions};
use super::popups::Popups;
use super::press::PressNumber;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tipme_control::journal;
use tipme_desktop::notify::{DEFAULT_ACTION, Note, NotificationEvent, Notifier};
use tipme_recorder::StateDirs;
use tipme_report::Notice;

/// Maximum number of queued messages; further ones go to standard error only.
const MESSAGES_MAX: usize = 16;
/// Maximum number of recent notifications with known actions.
const SHOWN_MAX: usize = 64;
/// Maximum number of queued actions.
const CHOICES_MAX: usize = 16;
/// Time after an action within which a server that ignores the hint `resident` has closed the
/// notification.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// An action, its incident, and the press that marked it.
pub type Chosen = (Choice, PathBuf, PressNumber);

/// A message to show.
#[derive(Clone)]
pub struct Message {
    pub notice: Notice,
    /// The press behind it: replaces earlier messages about the same press.
    pub press: Option<PressNumber>,
    /// Another message follows soon: not shown if notifications are unavailable.
    pub passing: bool,
    /// The incident, for a verdict.
    pub verdict: Option<PathBuf>,
    /// Actions of the verdict.
    pub choices: Vec<Choice>,
}

impl From<Notice> for Message {
    fn from(notice: Notice) -> Message {
        Message { notice, press: None, passing: false, verdict: None, choices: Vec::new() }
    }
}

/// A shown notification.
struct Shown {
    id: u32,
    press: PressNumber,
    message: Message,
    is_closed: bool,
    /// The last action, and its time.
    pressed: Option<(Choice, Instant)>,
}

type AllShown = Arc<Mutex<VecDeque<Shown>>>;

fn lock(shown: &AllShown) -> MutexGuard<'_, VecDeque<Shown>> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Messages for the screen; `None` if nothing may be shown.
#[derive(Clone)]
pub struct MessageQueue(Option<SyncSender<Message>>);

impl MessageQueue {
    /// Creates a queue, silent if `shows` is false, and the receiver of chosen actions.
    pub fn new(shows: bool, popups: Option<Popups>) -> (MessageQueue, Receiver<Chosen>) {
        let (choices, chosen) = sync_channel(CHOICES_MAX);
        if !shows {
            return (MessageQueue(None), chosen);
        }
        let (queue, waiting) = sync_channel::<Message>(MESSAGES_MAX);
        let (sender, events) = sync_channel(CHOICES_MAX);
        let shown = AllShown::default();
        let mut screen =
            Screen { notifier: Notifier::new(sender), shown: Arc::clone(&shown), popups };
        let messages = MessageQueue(Some(queue));
        let listener = EventListener { shown, choices, messages: messages.clone() };
        std::thread::spawn(move || waiting.iter().for_each(|message| screen.show(message)));
        std::thread::spawn(move || events.iter().for_each(|event| listener.take(&event)));
        (messages, chosen)
    }

    /// Returns `true` if anything is shown at all.
    pub fn shows(&self) -> bool {
        self.0.is_some()
    }

    /// Queues a message and returns at once: the caller never waits for a daemon or a popup.
    pub fn send(&self, message: impl Into<Message>) {
        let Some(queue) = &self.0 else { return };
        if queue.try_send(message.into()).is_err() {
            let why = "messages wait to be shown; check whether the notification daemon is stopped";
            journal::warning(format!("{MESSAGES_MAX} {why}")).tell();
        }
    }
}

/// Handles events of the notification server.
struct EventListener {
    shown: AllShown,
    choices: SyncSender<Chosen>,
    messages: MessageQueue,
}

impl EventListener {
    fn take(&self, event: &NotificationEvent) {
        match event {
            NotificationEvent::Pressed { id, key } => self.choose(*id, key),
            NotificationEvent::Closed { id } => self.close(*id),
            // A new server reuses the same ids for other notifications.
            NotificationEvent::ServerChanged => lock(&self.shown).clear(),
        }
    }

    /// Forwards an action of a verdict.
    fn choose(&self, id: u32, key: &str) {
        let Some(choice) = Choice::from_key(key) else { return };
        let mut all = lock(&self.shown);
        let Some(shown) = all.iter_mut().rev().find(|shown| shown.id == id) else { return };
        let Some(incident) = shown.message.verdict.clone() else { return };
        // A click on the notification itself may dismiss it.
        shown.pressed = (key != DEFAULT_ACTION).then(|| (choice, Instant::now()));
        if self.choices.try_send((choice, incident, shown.press)).is_err() {
            let why = "actions are still pending; press the button again";
            journal::warning(format!("{CHOICES_MAX} {why}")).tell();
        }
    }

    fn close(&self, id: u32) {
        let again =
            lock(&self.shown).iter_mut().rev().find(|shown| shown.id == id).and_then(Shown::close);
        if let Some(message) = again {
            self.messages.send(message);
        }
    }
}

impl Shown {
    /// Records that the notification is gone; returns the message to show again if an action has
    /// closed it.
    fn close(&mut self) -> Option<Message> {
        self.is_closed = true;
        let (choice, at) = self.pressed.take()?;
        let is_by_action = at.elapsed() < CLOSED_WITHIN && choice.leaves_open();
        let left: Vec<Choice> =
            self.message.choices.iter().copied().filter(|one| *one != choice).collect();
        (is_by_action && !left.is_empty())
            .then(|| Message { choices: left, ..self.message.clone() })
    }
}

/// Notification server, with popups as a fallback.
struct Screen {
    notifier: Notifier,
    shown: AllShown,
    popups: Option<Popups>,
}

impl Screen {
    fn show(&mut self, message: Message) {
        let Notice { summary, body } = &message.notice;
        let replaces = message.press.and_then(|press| self.id(press)).unwrap_or(0);
        if message.verdict.is_some() {
            self.close_equal(&message);
        }
        let actions = actions(&message.choices);
        let more = message.verdict.as_deref().map(|incident| format!("\n{}", read_more(incident)));
        let without_actions = more.as_deref().unwrap_or_default();
        let transient = message.passing;
        match self.notifier.show(&Note {
            replaces,
            summary,
            body,
            actions: &actions,
            without_actions,
            transient,
        }) {
            Ok(id) => self.remember(id, message),
            Err(_) if message.passing => {}
            Err(refused) => {
                journal::warning(&refused).tell();
                self.show_popup(&message);
            }
        }
    }

    /// Closes an equal verdict of an earlier press: a duplicate notification is useless.
    fn close_equal(&mut self, message: &Message) {
        let mut all = lock(&self.shown);
        let equal = all.iter_mut().find(|shown| {
            !shown.is_closed
                && shown.message.notice == message.notice
                && Some(shown.press) != message.press
        });
        let Some(equal) = equal else { return };
        equal.is_closed = true;
        let id = equal.id;
        drop(all);
        // A notification that cannot be closed stays beside the new one.
        drop(self.notifier.close(id));
    }

    /// Returns the open notification of a press.
    fn id(&self, press: PressNumber) -> Option<u32> {
        lock(&self.shown)
            .iter()
            .rev()
            .find(|shown| shown.press == press && !shown.is_closed)
            .map(|shown| shown.id)
    }

    fn remember(&self, id: u32, message: Message) {
        let Some(press) = message.press else { return };
        let mut shown = lock(&self.shown);
        shown.retain(|shown| shown.id != id);
        shown.push_back(Shown { id, press, message, is_closed: false, pressed: None });
        while shown.len() > SHOWN_MAX {
            shown.pop_front();
        }
    }

    /// Shows a popup. It has no buttons, so a verdict names the equivalent commands.
    fn show_popup(&mut self, message: &Message) {
        let Some(popups) = &mut self.popups else { return };
        let Message { notice, press, verdict, .. } = message;
        let text = format!("{}\n\n{}", notice.summary, notice.body);
        popups.show(text, &verdict.as_deref().map(more).unwrap_or_default(), *press);
    }
}

/// Returns the commands that show the whole verdict and add a note.
fn more(incident: &Path) -> String {
    format!("{}\nAdd a note: tipme incidents note {} WORDS\n", read_more(incident), name(incident))
}

fn read_more(incident: &Path) -> String {
    format!("Read more: tipme diagnose {}", name(incident))
}

/// Returns the shortest name of an incident for a command line, since it is typed from the screen.
fn name(incident: &Path) -> String {
    let usual = incident.parent() == Some(StateDirs::choose(None).incidents());
    incident.file_stem().filter(|_| usual).map_or(incident, Path::new).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pressed: Option<Choice>) -> Shown {
        let choices = vec![Choice::Details, Choice::Wrong, Choice::Copy];
        let message =
            Message { choices, ..Notice::new("Typing in xterm stalled for 938 ms", "").into() };
        let pressed = pressed.map(|choice| (choice, Instant::now()));
        Shown { id: 7, press: PressNumber(1), message, is_closed: false, pressed }
    }

    #[test]
    fn a_verdict_closed_by_an_action_returns_with_the_others() {
        let again = shown(Some(Choice::Details)).close().map(|message| message.choices);
        assert_eq!(again, Some(vec![Choice::Wrong, Choice::Copy]));
        let mut answered = shown(Some(Choice::Wrong));
        assert!(
            answered.close().is_none() && answered.is_closed,
            "the answer is confirmed by a message of its own"
        );
        assert!(shown(None).close().is_none(), "the user has closed it");
    }
}
