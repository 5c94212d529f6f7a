// SPDX-License-Identifier: MIT OR Apache-2.0
//! Examination of a suspicion: an incident in a side folder, diagnosed by another process, then
//! kept or removed.

use crate::auto::{AutoMarker, AutoMode, Outcome, Suspicion};
use crate::capture::Capture;
use crate::displays::Displays;
use crate::inquiry::Inquiries;
use crate::judge::{Judgement, judge};
use crate::outcome;
use crate::seal::{RawIncident, Sealer};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tipme_control::journal::{self, Field, JournalEvent};
use tipme_record::Nanos;
use tipme_store::IncidentFolder;

/// Side folder of incidents to be diagnosed, inside the incident folder, so that keeping one is a
/// rename.
const BESIDE: &str = ".auto";

/// Maximum time for a diagnosis to end once it is stopped.
pub(crate) const END_MAX: Duration = Duration::from_millis(500);

/// Removes leftovers of a killed recorder, even if this one examines nothing.
pub(crate) fn tidy(incidents: &IncidentFolder) -> Result<()> {
    let path = incidents.path().join(BESIDE);
    for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
        std::fs::remove_file(entry.path()).with_context(|| {
            format!("cannot remove {}; remove it by hand", entry.path().display())
        })?;
    }
    Ok(())
}

/// A finished examination.
pub(crate) struct EndedLook {
    pub(crate) suspicion: Suspicion,
    /// Path of the incident, and its judgement.
    pub(crate) judged: Result<(PathBuf, Judgement)>,
}

/// The folder of examinations, and the queue of finished ones.
pub(crate) struct LookQueue {
    beside: IncidentFolder,
    incidents: IncidentFolder,
    program: PathBuf,
    sealer: Sealer,
    sender: Sender<EndedLook>,
    ended: Receiver<EndedLook>,
    stop: Arc<AtomicBool>,
    running: Arc<AtomicUsize>,
}

impl LookQueue {
    /// Creates the side folder.
    pub(crate) fn open(
        incidents: &IncidentFolder,
        program: &Path,
        sealer: &Sealer,
    ) -> Result<LookQueue> {
        let beside = IncidentFolder::open(&incidents.path().join(BESIDE))?;
        let (sender, ended) = channel();
        Ok(LookQueue {
            beside,
            incidents: incidents.clone(),
            program: program.to_owned(),
            sealer: sealer.clone(),
            sender,
            ended,
            stop: Arc::default(),
            running: Arc::default(),
        })
    }

    /// Returns `true` while an examination runs; there is one at a time.
    pub(crate) fn running(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0
    }

    /// Seals and diagnoses in a thread at the lowest priority.
    pub(crate) fn begin(
        &self,
        suspicion: Suspicion,
        capture: Result<Capture>,
        displays: &Displays,
        inquiries: &Inquiries,
    ) {
        let (displays, inquiries) = (displays.clone(), inquiries.clone());
        let (beside, program, sealer) =
            (self.beside.clone(), self.program.clone(), self.sealer.clone());
        let (sender, stop, running) =
            (self.sender.clone(), self.stop.clone(), self.running.clone());
        running.fetch_add(1, Ordering::AcqRel);
        std::thread::spawn(move || {
            // Sets the priority of this thread only, inherited by the diagnosis; without permission
            // it keeps the normal one.
            rustix::process::setpriority_process(None, 19).ok();
            let judged = capture.and_then(|capture| {
                let before = Nanos(capture.meta.mark_ns).since(suspicion.at);
                let path = RawIncident::gather(capture, &displays, &inquiries, &sealer)?
                    .seal(&beside, &sealer)?;
                let judgement = judge(&program, &path, before.0 as f64 / 1e9, &stop);
                Ok((path, judgement))
            });
            // If the receiver is gone, the recorder has stopped, and its next start removes the
            // file.
            sender.send(EndedLook { suspicion, judged }).ok();
            running.fetch_sub(1, Ordering::AcqRel);
        });
    }

    /// Returns the examinations finished since the last call.
    pub(crate) fn ended(&self) -> impl Iterator<Item = EndedLook> {
        self.ended.try_iter()
    }

    /// Moves an incident to the incident folder, and prunes that.
    pub(crate) fn keep(&self, path: &Path) -> Result<PathBuf> {
        let name = path.file_name().context("an incident has a name")?;
        let kept = self.incidents.path().join(name);
        std::fs::rename(path, &kept).with_context(|| format!("cannot keep {}", path.display()))?;
        self.incidents
            .prune(&kept)
            .with_context(|| format!("cannot tidy {}", self.incidents.path().display()))?;
        Ok(kept)
    }

    /// Ends a running diagnosis.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let begun = Instant::now();
        while self.running() && begun.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Keeps or removes the examined incident, and logs one that is kept or would be.
pub(crate) fn settle(auto: &mut AutoMarker, looks: &LookQueue, looked: EndedLook, now: Nanos) {
    let (path, judgement) = match looked.judged {
        Ok((path, judgement)) => (Some(path), judgement),
        Err(error) => (None, Judgement::Failed(format!("{error:#}"))),
    };
    let outcome = auto.decide(&looked.suspicion, judgement, now);
    match (outcome, path) {
        (Outcome::Marked(what, cause), Some(path)) if auto.options.mode == AutoMode::Mark => {
            match looks.keep(&path) {
                Ok(kept) => {
                    let id = kept.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    auto.tolerances.suggest(id, looked.suspicion.subject());
                    let entry = journal::info(format!("marked {} (auto: {what})", kept.display()))
                        .event(JournalEvent::Marked);
                    outcome::with_cause(&cause, outcome::with_incident(&kept, entry))
                        .field(Field::Trigger, "auto")
                        .tell();
                }
                Err(error) => {
                    journal::error(format!("{error:#}")).event(JournalEvent::MarkFailed).tell()
                }
            }
        }
        (outcome, path) => {
            if let Outcome::Marked(what, cause) = outcome {
                outcome::with_cause(&cause, journal::info(format!("would mark: {what}"))).tell();
            }
            // A file that cannot be removed now is removed at the next start.
            path.map(std::fs::remove_file);
        }
    }
}
