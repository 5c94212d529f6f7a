// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the person at the screen: by a notification, and where none can be shown by a dialog.

use super::crew::Crew;
use std::time::Duration;
use tipme_desktop::dialog::{Asker, Dialog};
use tipme_desktop::notify::notify;
use tipme_report::Notice;

/// Notices that wait for a daemon, or for their dialog to be closed, at a time; a further one is told on stderr only.
const NOTICES_MAX: usize = 8;
/// How long a dialog stays open.
const READ_PATIENCE: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub struct Teller {
    /// Where nothing may be shown there is none.
    crew: Option<Crew>,
    asker: Option<Asker>,
    display: String,
}

impl Teller {
    /// Shows nothing where `shows` is false, and no dialog without a program for it.
    pub fn new(shows: bool, asker: Option<Asker>, display: &str) -> Teller {
        Teller { crew: shows.then(|| Crew::new(NOTICES_MAX)), asker, display: display.to_owned() }
    }

    /// Returns at once: nobody waits for a daemon, or for a dialog to be closed.
    pub fn tell(&self, notice: Notice) {
        let Some(crew) = &self.crew else { return };
        let teller = self.clone();
        if !crew.start(move || teller.show(&notice)) {
            eprintln!("tipme: {NOTICES_MAX} notices wait to be shown or closed; close the open dialogs");
        }
    }

    fn show(&self, notice: &Notice) {
        let Err(refused) = notify(&notice.summary, &notice.body) else { return };
        eprintln!("tipme: {refused}");
        let Some(asker) = &self.asker else { return };
        let text = format!("{}\n\n{}", notice.summary, notice.body);
        match Dialog::tell(asker, &text, &self.display) {
            Ok(dialog) => drop(dialog.answer(READ_PATIENCE)),
            Err(error) => eprintln!("tipme: {error}"),
        }
    }
}
