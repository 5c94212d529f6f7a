// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pressure, CPU and memory figures, kept as the kernel's text: ten times a second under pressure,
//! else once a second.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tipme_record::Nanos;
use tipme_record::proc_text::stalled_us;

/// Files sampled, in the order of their numbers in the incident.
const SOURCES: [&str; 5] = [
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/stat",
    "/proc/meminfo",
];

/// Maximum bytes of one sample; the rest is cut. A CPU's line in /proc/stat has 40 to 100 bytes.
const SAMPLE_BYTES: usize = 1 << 15;

/// Start of the unused part of /proc/stat after the lines of CPUs, thousands of bytes long.
const INTERRUPTS: &[u8] = b"\nintr ";

/// Sampling period under pressure.
pub(crate) const PERIOD: Nanos = Nanos::from_millis(100);

/// Sampling period without pressure: reading the files costs more than all other work of an idle
/// recorder.
const CALM_PERIOD: Nanos = Nanos::from_secs(1);

/// Number of pressure files, the first of [`SOURCES`].
const PRESSURES: usize = 3;

/// Divisor of the elapsed time: a pressure stall longer than that share means pressure.
const RESTLESS_PART: u64 = 20;

/// Text of a file, and the time of reading it.
struct ProcSample {
    at: Nanos,
    /// Index into [`SOURCES`].
    source: u32,
    text: Vec<u8>,
}

/// Samples of one window.
pub(crate) struct Sampler {
    files: Vec<(u32, File)>,
    buffer: Box<[u8]>,
    samples: VecDeque<ProcSample>,
    /// Maximum number of samples.
    limit: usize,
    /// Time of the last read, and the pressure totals at that time.
    last: Nanos,
    felt_us: [u64; PRESSURES],
    /// Time of the next read.
    next: Nanos,
}

impl Sampler {
    /// Opens the files that exist; a missing one has no samples.
    pub(crate) fn open(window: Nanos) -> Sampler {
        let present = SOURCES
            .iter()
            .enumerate()
            .filter_map(|(source, path)| Some((source as u32, File::open(path).ok()?)));
        let files: Vec<_> = present.collect();
        let ticks = (window.0 / PERIOD.0 + 10) as usize;
        let limit = files.len() * ticks;
        let samples = VecDeque::with_capacity(limit);
        let buffer = vec![0; SAMPLE_BYTES].into_boxed_slice();
        Sampler {
            files,
            buffer,
            samples,
            limit,
            last: Nanos(0),
            felt_us: [0; PRESSURES],
            next: Nanos(0),
        }
    }

    /// Reads the files if they are due.
    pub(crate) fn sample(&mut self, now: Nanos) {
        if now >= self.next {
            self.read_files(now);
        }
    }

    /// Returns `true` under pressure: then every tick reads the files.
    pub(crate) fn is_busy(&self) -> bool {
        self.next <= self.last
    }

    /// Makes the next call of `sample` read the files.
    pub(crate) fn read_files_soon(&mut self) {
        self.next = Nanos(0);
    }

    fn read_files(&mut self, now: Nanos) {
        let mut felt_us = self.felt_us;
        for (source, file) in &self.files {
            let Ok(count) = file.read_at(&mut self.buffer, 0) else { continue };
            if let Some(felt) = felt_us.get_mut(*source as usize) {
                let text = String::from_utf8_lossy(&self.buffer[..count]);
                *felt = stalled_us(&text).unwrap_or(0);
            }
            if self.samples.len() >= self.limit {
                self.samples.pop_front();
            }
            let text = wanted(&self.buffer[..count]).to_vec();
            self.samples.push_back(ProcSample { at: now, source: *source, text });
        }
        let most_us = now.since(self.last).0 / 1_000 / RESTLESS_PART;
        let restless =
            felt_us.iter().zip(self.felt_us).any(|(new, old)| new.saturating_sub(old) > most_us);
        (self.last, self.felt_us) = (now, felt_us);
        self.next = if restless { now } else { now.after(CALM_PERIOD) };
    }

    /// Returns the samples since `from` in their form in the incident file.
    pub(crate) fn at_mark(&self, from: Nanos) -> Vec<u8> {
        bytes(self.samples.iter().filter(|sample| sample.at >= from))
    }
}

/// Cuts the text before the interrupts.
fn wanted(text: &[u8]) -> &[u8] {
    let end = text.windows(INTERRUPTS.len()).position(|part| part == INTERRUPTS);
    end.map_or(text, |end| &text[..=end])
}

fn bytes<'a>(samples: impl Iterator<Item = &'a ProcSample>) -> Vec<u8> {
    let mut out = Vec::new();
    for sample in samples {
        out.extend_from_slice(&sample.at.0.to_le_bytes());
        out.extend_from_slice(&sample.source.to_le_bytes());
        out.extend_from_slice(&(sample.text.len() as u32).to_le_bytes());
        out.extend_from_slice(&sample.text);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_samples_make_room() {
        let mut sampler = Sampler::open(Nanos::from_secs(1));
        for tick in 0..100 {
            sampler.read_files_soon();
            sampler.sample(Nanos(tick * PERIOD.0));
        }
        assert!(sampler.samples.len() <= sampler.limit);
        let newest = sampler.at_mark(Nanos(99 * PERIOD.0));
        assert!(newest.len() > 100 && newest.len().is_multiple_of(8));
        assert!(sampler.at_mark(Nanos(100 * PERIOD.0)).is_empty());
    }

    #[test]
    fn files_are_read_often_only_while_somebody_waits() {
        let mut sampler = Sampler::open(Nanos::from_secs(10));
        let files = sampler.files.len();
        let second = Nanos::from_secs(1);
        // At this time the stalls since time 0 are far below the threshold.
        let begin = Nanos::from_secs(1_000_000_000);
        for tick in 0..20 {
            sampler.last = Nanos(0);
            sampler.sample(Nanos(begin.0 + tick * PERIOD.0));
        }
        assert_eq!(sampler.samples.len(), 2 * files);
        sampler.read_files_soon();
        sampler.sample(begin.after(second));
        assert_eq!(sampler.samples.len(), 3 * files, "a mark has them read");
    }

    #[test]
    fn all_processors_are_kept_and_interrupts_are_not() {
        let stat = b"cpu  9 0 9\ncpu0 9 0 9\ncpu1 9 0 9\nintr 99 0 7\nctxt 5\n";
        assert_eq!(wanted(stat), b"cpu  9 0 9\ncpu0 9 0 9\ncpu1 9 0 9\n");
        assert_eq!(wanted(b"MemTotal: 9 kB\n"), b"MemTotal: 9 kB\n");
    }
}
