// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users' descriptions of their incidents. A thread of its own writes them, since the recorder's
//! loop must not wait for the disk.

use crate::outcome::refuse;
use crate::rights::take_turns;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use tipme_control::{Call, RecorderResponse};
use tipme_record::incident::Words;
use tipme_store::IncidentFolder;

/// Maximum number of descriptions waiting to be written; root may queue twice as many.
const WAITING_MAX: usize = 16;

/// Queue of descriptions.
pub(crate) struct Descriptions {
    sender: Sender<Description>,
    waiting: Arc<AtomicUsize>,
}

struct Description {
    incident: PathBuf,
    words: Words,
    call: Call,
}

impl Descriptions {
    /// Starts the thread, which ends when the value is dropped.
    pub(crate) fn start(folder: &IncidentFolder) -> Descriptions {
        let (sender, descriptions) = channel::<Description>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (folder, left) = (folder.clone(), waiting.clone());
        std::thread::spawn(move || {
            take_turns();
            for one in descriptions {
                let written = folder.append_words(&one.incident, &one.words, one.call.caller.uid);
                one.call.answer(&written.map_or_else(refuse, |()| RecorderResponse::Done));
                left.fetch_sub(1, Ordering::AcqRel);
            }
        });
        Descriptions { sender, waiting }
    }

    /// Returns `true` if descriptions wait to be written.
    pub(crate) fn any(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Queues words for an incident; the thread answers the caller.
    pub(crate) fn add(&self, incident: PathBuf, words: Words, call: Call) {
        let max = if call.caller.uid == 0 { 2 * WAITING_MAX } else { WAITING_MAX };
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= max {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            let why = format!(
                "{WAITING_MAX} descriptions wait to be written already; try again in a second"
            );
            return call.answer(&RecorderResponse::Error(why));
        }
        // If the thread is gone, the caller sees a closed connection.
        self.sender.send(Description { incident, words, call }).ok();
    }
}
