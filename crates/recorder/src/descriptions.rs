// SPDX-License-Identifier: MIT OR Apache-2.0
//! What users say of their incidents, written by a thread of its own: a disk takes its time, and the recorder has
//! none to wait.

use crate::rights::take_turns;
use crate::told::refuse;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use tipme_control::{Call, RecorderResponse};
use tipme_record::incident::Words;
use tipme_store::IncidentFolder;

/// Descriptions that wait to be written, at most; root may have as many besides.
const WAITING_MAX: usize = 16;

/// Where descriptions are given.
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
    /// Starts the thread, which ends with the value.
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

    /// Whether some wait to be written.
    pub(crate) fn any(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Has words added to an incident, and the caller told.
    pub(crate) fn add(&self, incident: PathBuf, words: Words, call: Call) {
        let max = if call.caller.uid == 0 { 2 * WAITING_MAX } else { WAITING_MAX };
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= max {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            let why = format!("{WAITING_MAX} descriptions wait to be written already; try again in a second");
            return call.answer(&RecorderResponse::Error(why));
        }
        // Without the thread the caller sees a closed connection.
        self.sender.send(Description { incident, words, call }).ok();
    }
}
