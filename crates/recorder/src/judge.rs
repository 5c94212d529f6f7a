// SPDX-License-Identifier: MIT OR Apache-2.0
//! Has an incident judged by another process, which nobody has to wait for.
//!
//! The recorder knows nothing of causes: it runs the diagnosis as a user would, and reads from its
//! document what was found.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a judgement may take; then its process is ended.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the process is asked whether it has ended.
const GLANCE: Duration = Duration::from_millis(50);

/// Bytes of a document at most.
const DOCUMENT_BYTES_MAX: u64 = 8 << 20;

/// Exit code of a diagnosis that finds nothing unusual.
const NO_FINDING: i32 = 3;

/// What a diagnosis blames, without numbers of processes: the same job has others the next time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cause {
    pub(crate) kind: String,
    pub(crate) culprit: String,
    pub(crate) application: String,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.kind, self.culprit)
    }
}

/// What a diagnosis says of an incident.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Judgement {
    Found { cause: Cause, latency_ms: f64 },
    Nothing,
    Failed(String),
}

/// Of a verdict, what is needed here.
#[derive(Deserialize)]
struct Document {
    interval: Option<Interval>,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Interval {
    latency_ms: f64,
    client: Client,
}

#[derive(Deserialize)]
struct Client {
    comm: String,
}

#[derive(Deserialize)]
struct Finding {
    kind: String,
    culprit: Culprit,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Culprit {
    comm: Option<String>,
    job: Option<String>,
    device: Option<String>,
    address: Option<String>,
}

/// Judges what happened `seconds` before the mark, unless `stop` is set. `scratch` is a file for the document; it
/// is left behind.
pub(crate) fn judge(program: &Path, incident: &Path, seconds: f64, scratch: &Path, stop: &AtomicBool) -> Judgement {
    run(program, incident, seconds, scratch, stop).unwrap_or_else(|error| Judgement::Failed(format!("{error:#}")))
}

fn run(program: &Path, incident: &Path, seconds: f64, scratch: &Path, stop: &AtomicBool) -> Result<Judgement> {
    let out = File::create(scratch).with_context(|| format!("cannot write {}", scratch.display()))?;
    let mut command = Command::new(program);
    command.arg("diagnose").arg(incident).args(["--json", "--at", &format!("{seconds:.3}")]);
    command.stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    match wait(child, stop)?.code() {
        Some(0) => read(scratch),
        Some(NO_FINDING) => Ok(Judgement::Nothing),
        _ => bail!("{} diagnose {} failed", program.display(), incident.display()),
    }
}

fn wait(mut child: Child, stop: &AtomicBool) -> Result<ExitStatus> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the diagnosis")? {
            return Ok(status);
        }
        if Instant::now() >= deadline || stop.load(Ordering::Acquire) {
            child.kill().and_then(|()| child.wait()).context("cannot end the diagnosis")?;
            bail!("the diagnosis was ended; it may take {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(GLANCE);
    }
}

fn read(path: &Path) -> Result<Judgement> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = String::new();
    file.take(DOCUMENT_BYTES_MAX).read_to_string(&mut text).context("cannot read the verdict")?;
    parse(&text)
}

fn parse(text: &str) -> Result<Judgement> {
    let document: Document = serde_json::from_str(text).context("cannot read the verdict")?;
    let (Some(interval), Some(first)) = (document.interval, document.findings.into_iter().next()) else {
        return Ok(Judgement::Nothing);
    };
    let cause = Cause { kind: first.kind, culprit: first.culprit.name(), application: interval.client.comm };
    Ok(Judgement::Found { cause, latency_ms: interval.latency_ms })
}

impl Culprit {
    /// `gzip (job xargs)`, `vda`, `10.0.0.1:443`.
    fn name(self) -> String {
        let program = self.comm.or(self.device).or(self.address).unwrap_or_else(|| "nobody known".to_owned());
        match self.job.as_deref().map(without_number) {
            Some(job) if job != program => format!("{program} (job {job})"),
            _ => program,
        }
    }
}

/// `make` of `make (pid 3988)`.
fn without_number(job: &str) -> &str {
    job.split_once(" (pid ").map_or(job, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(culprit: &str) -> String {
        format!(
            r#"{{"schema":1,"interval":{{"latency_ms":1200.5,"client":{{"pid":7,"comm":"xterm","cmdline":""}}}},
            "findings":[{{"kind":"cpu-competition","culprit":{culprit},"ms":1.0}},{{"kind":"stall","culprit":{{"device":"x"}}}}]}}"#
        )
    }

    fn culprit(json: &str) -> String {
        match parse(&verdict(json)).unwrap() {
            Judgement::Found { cause, .. } => cause.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_finding_is_the_cause() {
        let gzip = r#"{"pid":9,"comm":"gzip","cmdline":"gzip -9","job":"xargs (pid 12)"}"#;
        assert_eq!(culprit(gzip), "cpu-competition by gzip (job xargs)");
        assert_eq!(culprit(r#"{"pid":9,"comm":"dd","cmdline":"dd","job":null}"#), "cpu-competition by dd");
        assert_eq!(culprit(r#"{"device":"vda"}"#), "cpu-competition by vda");
        assert_eq!(culprit(r#"{"address":"10.0.0.1:443"}"#), "cpu-competition by 10.0.0.1:443");
    }

    #[test]
    fn no_finding_is_nothing() {
        assert_eq!(parse(r#"{"interval":null,"findings":[]}"#).unwrap(), Judgement::Nothing);
        assert!(parse("not a verdict").is_err());
    }

    #[test]
    fn exit_codes_are_those_of_the_diagnosis() {
        let dir = tempfile::TempDir::new().unwrap();
        let program = |script: &str| {
            let path = dir.path().join("program");
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            path
        };
        let run = |script: &str| {
            judge(&program(script), Path::new("x"), 1.5, &dir.path().join("out"), &AtomicBool::new(false))
        };
        assert_eq!(run("exit 3"), Judgement::Nothing);
        assert!(matches!(run("exit 2"), Judgement::Failed(_)));
        let said = format!(
            "[ \"$1 $2 $3 $4 $5\" = 'diagnose x --json --at 1.500' ] || exit 2; echo '{}'",
            verdict(r#"{"device":"vda"}"#)
        );
        assert!(matches!(run(&said), Judgement::Found { latency_ms: 1200.5, .. }), "{:?}", run(&said));
        let missing =
            judge(Path::new("/no/such"), Path::new("x"), 0.0, &dir.path().join("out"), &AtomicBool::new(false));
        assert!(matches!(missing, Judgement::Failed(_)));
        let stopped =
            judge(&program("exec sleep 60"), Path::new("x"), 0.0, &dir.path().join("out"), &AtomicBool::new(true));
        assert!(matches!(stopped, Judgement::Failed(why) if why.contains("ended")));
    }
}
