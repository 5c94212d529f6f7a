// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pressure, CPU and memory figures, and the counters of control groups with a CPU quota, ten times a
//! second, kept as the text that the kernel gives.

mod quotas;

use quotas::Quotas;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tipme_record::Nanos;
use tipme_record::incident::Groups;

/// The files, in the order of their numbers in the incident.
const SOURCES: [&str; 5] =
    ["/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory", "/proc/stat", "/proc/meminfo"];

/// Bytes of one sample at most; what is longer is cut.
const SAMPLE_BYTES: usize = 2048;

/// Samples are taken this often.
pub(crate) const PERIOD: Nanos = Nanos::from_millis(100);

pub(crate) struct Sample {
    at: Nanos,
    /// A number in [`SOURCES`], or [`quotas::SOURCE`].
    source: u32,
    text: Vec<u8>,
}

/// Keeps the samples of one window.
pub(crate) struct Sampler {
    files: Vec<(u32, File)>,
    samples: VecDeque<Sample>,
    /// Samples kept at most.
    limit: usize,
    quotas: Quotas,
    window: Nanos,
}

impl Sampler {
    /// Opens what there is; a file that is missing has no samples.
    pub(crate) fn open(window: Nanos) -> Sampler {
        let present =
            SOURCES.iter().enumerate().filter_map(|(source, path)| Some((source as u32, File::open(path).ok()?)));
        let files: Vec<_> = present.collect();
        let ticks = (window.0 / PERIOD.0 + 10) as usize;
        let limit = files.len() * ticks;
        let samples = VecDeque::with_capacity(limit);
        Sampler { files, samples, limit, quotas: Quotas::open(ticks), window }
    }

    /// Takes one sample of each file and of each control group with a quota.
    pub(crate) fn sample(&mut self, now: Nanos) {
        self.quotas.tick(now, now.before(self.window));
        for (source, file) in &self.files {
            let mut buffer = [0u8; SAMPLE_BYTES];
            let Ok(count) = file.read_at(&mut buffer, 0) else { continue };
            if self.samples.len() >= self.limit {
                self.samples.pop_front();
            }
            self.samples.push_back(Sample { at: now, source: *source, text: buffer[..count].to_vec() });
        }
    }

    /// The control groups with a quota, and who is and was in them.
    pub(crate) fn groups(&self, now: Nanos) -> Groups {
        self.quotas.groups(now)
    }

    /// The samples from `from` on, as the incident file has them.
    pub(crate) fn bytes(&self, from: Nanos) -> Vec<u8> {
        let mut out = Vec::new();
        let recent = self.samples.iter().filter(|sample| sample.at >= from);
        for sample in recent.chain(self.quotas.samples(from)) {
            out.extend_from_slice(&sample.at.0.to_le_bytes());
            out.extend_from_slice(&sample.source.to_le_bytes());
            out.extend_from_slice(&(sample.text.len() as u32).to_le_bytes());
            out.extend_from_slice(&sample.text);
            out.resize(out.len().next_multiple_of(8), 0);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_samples_make_room() {
        let mut sampler = Sampler::open(Nanos::from_secs(1));
        for tick in 0..100 {
            sampler.sample(Nanos(tick * PERIOD.0));
        }
        assert!(sampler.samples.len() <= sampler.limit);
        let newest = sampler.bytes(Nanos(99 * PERIOD.0));
        assert!(newest.len() > 100 && newest.len().is_multiple_of(8));
        assert!(sampler.bytes(Nanos(100 * PERIOD.0)).is_empty());
    }
}
