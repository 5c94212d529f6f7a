// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnosis of an incident by another process, without blocking the recorder.
//!
//! The recorder does not analyse: a process without any privileges makes the diagnosis, and the
//! recorder reads its output, either the JSON document or the first lines of text.

use anyhow::{Context, Result, ensure};
use rustix::fs::OFlags;
use serde::Deserialize;
use std::fmt;
use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tipme_confine::{NOBODY, read_output};

/// Maximum time for a diagnosis; then its process is ended.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum bytes of a JSON verdict.
const DOCUMENT_BYTES_MAX: usize = 8 << 20;

/// Maximum bytes read of a text verdict: only its first lines matter.
const HEADLINE_BYTES_MAX: usize = 4096;

/// Prefixes of lines after the description and the cause.
const FURTHER: [&str; 2] = ["Try: ", "Note: "];

/// Exit code of a diagnosis without a finding.
const NO_FINDING: i32 = 3;

/// Cause found by a diagnosis, without pids: the next instance of the same job has others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JudgedCause {
    pub(crate) kind: String,
    pub(crate) culprit: String,
    pub(crate) application: String,
}

impl fmt::Display for JudgedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.kind, self.culprit)
    }
}

/// Result of a diagnosis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Judgement {
    Found { cause: JudgedCause, latency_ms: f64, milestone: String },
    Nothing,
    Failed(String),
}

/// The parts of a JSON verdict that the recorder uses.
#[derive(Deserialize)]
struct JudgedVerdict {
    interval: Option<JudgedInterval>,
    findings: Vec<JudgedFinding>,
}

#[derive(Deserialize)]
struct JudgedInterval {
    latency_ms: f64,
    /// Milestone at which the latency ends: the response or a later one.
    #[serde(default)]
    milestone: String,
    client: JudgedClient,
}

#[derive(Deserialize)]
struct JudgedClient {
    comm: String,
}

#[derive(Deserialize)]
struct JudgedFinding {
    kind: String,
    culprit: JudgedCulprit,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JudgedCulprit {
    comm: Option<String>,
    job: Option<String>,
    device: Option<String>,
    address: Option<String>,
}

/// Diagnoses the time `seconds` before the mark, unless `stop` is set.
pub(crate) fn judge(program: &Path, incident: &Path, seconds: f64, stop: &AtomicBool) -> Judgement {
    let said = run(
        program,
        incident,
        &["--json", "--at", &format!("{seconds:.3}")],
        DOCUMENT_BYTES_MAX,
        stop,
    );
    let judged =
        said.and_then(|(found, said)| if found { parse(&said) } else { Ok(Judgement::Nothing) });
    judged.unwrap_or_else(|error| Judgement::Failed(format!("{error:#}")))
}

/// Returns the verdict in one line, symptom and cause, unless `stop` is set.
pub(crate) fn headline(program: &Path, incident: &Path, stop: &AtomicBool) -> Result<String> {
    let (_, text) = run(program, incident, &[], HEADLINE_BYTES_MAX, stop)?;
    let sentences = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty() && !FURTHER.iter().any(|word| line.starts_with(word)));
    let lines: Vec<&str> = sentences.take(2).collect();
    ensure!(!lines.is_empty(), "the verdict is empty");
    Ok(lines.join(" "))
}

/// Runs the diagnosis. Returns its output, up to a limit, and `true` if it has a finding.
///
/// The process has no other file open than the incident, and switches to the owner of the incident
/// before it reads it, or to nobody for root's.
fn run(
    program: &Path,
    incident: &Path,
    more: &[&str],
    bytes: usize,
    stop: &AtomicBool,
) -> Result<(bool, String)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(incident);
    let file = file.with_context(|| format!("cannot read {}", incident.display()))?;
    let user = Some(file.metadata()?.uid()).filter(|uid| *uid != 0).unwrap_or(NOBODY);
    let mut command = Command::new(program);
    command
        .args(["judge", "--user", &user.to_string(), "--seconds", &TIMEOUT.as_secs().to_string()])
        .args(more);
    command.stdin(file).stderr(Stdio::null());
    let child = read_output(&mut command, bytes, TIMEOUT, stop).context("no diagnosis")?;
    let code = child.status.code();
    ensure!(
        code == Some(0) || code == Some(NO_FINDING),
        "the diagnosis of {} failed",
        incident.display()
    );
    Ok((code == Some(0), String::from_utf8_lossy(&child.output).into_owned()))
}

fn parse(text: &str) -> Result<Judgement> {
    let document: JudgedVerdict = serde_json::from_str(text).context("cannot read the verdict")?;
    let (Some(interval), Some(first)) = (document.interval, document.findings.into_iter().next())
    else {
        return Ok(Judgement::Nothing);
    };
    let cause = JudgedCause {
        kind: first.kind,
        culprit: first.culprit.name(),
        application: interval.client.comm,
    };
    Ok(Judgement::Found { cause, latency_ms: interval.latency_ms, milestone: interval.milestone })
}

impl JudgedCulprit {
    /// Returns a name such as `gzip (job xargs)`, `vda` or `10.0.0.1:443`.
    fn name(self) -> String {
        let program = self
            .comm
            .or(self.device)
            .or(self.address)
            .unwrap_or_else(|| "an unknown process".to_owned());
        match self.job.as_deref().map(without_number) {
            Some(job) if job != program => format!("{program} (job {job})"),
            _ => program,
        }
    }
}

/// Returns `make` for `make (pid 3988)`.
fn without_number(job: &str) -> &str {
    job.split_once(" (pid ").map_or(job, |(name, _)| name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    fn verdict(culprit: &str) -> String {
        format!(
            r#"{{"schema":1,
            "interval":{{"latency_ms":1200.5,"client":{{"pid":7,"comm":"xterm","cmdline":""}}}},
            "findings":[{{"kind":"cpu-competition","culprit":{culprit},"ms":1.0}},
                {{"kind":"stall","culprit":{{"device":"x"}}}}]}}"#
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
        assert_eq!(
            culprit(r#"{"pid":9,"comm":"dd","cmdline":"dd","job":null}"#),
            "cpu-competition by dd"
        );
        assert_eq!(culprit(r#"{"device":"vda"}"#), "cpu-competition by vda");
        assert_eq!(culprit(r#"{"address":"10.0.0.1:443"}"#), "cpu-competition by 10.0.0.1:443");
    }

    #[test]
    fn the_milestone_of_the_verdict_is_read() {
        let text =
            verdict(r#"{"device":"vda"}"#).replace("1200.5,", r#"1200.5,"milestone":"handled","#);
        let Judgement::Found { milestone, .. } = parse(&text).unwrap() else { panic!("{text}") };
        assert_eq!(milestone, "handled");
    }

    #[test]
    fn no_finding_is_nothing() {
        assert_eq!(parse(r#"{"interval":null,"findings":[]}"#).unwrap(), Judgement::Nothing);
        assert!(parse("not a verdict").is_err());
    }

    /// Writes a script that stands in for the diagnosis. A child process writes it: a process
    /// forked by another test meanwhile would inherit a file open for writing, and executing it
    /// would fail with ETXTBSY.
    pub(crate) fn program(dir: &tempfile::TempDir, script: &str) -> std::path::PathBuf {
        let path = dir.path().join("program");
        let mut writer = Command::new("sh");
        let mut writer =
            writer.args(["-c", "cat > \"$0\""]).arg(&path).stdin(Stdio::piped()).spawn().unwrap();
        write!(writer.stdin.take().unwrap(), "#!/bin/sh\n{script}\n").unwrap();
        assert!(writer.wait().unwrap().success());
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .unwrap();
        path
    }

    /// Creates a file of a user without an account.
    pub(crate) fn incident(dir: &tempfile::TempDir) -> std::path::PathBuf {
        let path = dir.path().join("incident");
        std::fs::write(&path, "bytes\n").unwrap();
        std::os::unix::fs::chown(&path, Some(4242), None).expect("run the tests as root");
        path
    }

    static GO_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn exit_codes_are_those_of_the_diagnosis() {
        let dir = tempfile::TempDir::new().unwrap();
        let incident = incident(&dir);
        let nothing = judge(&program(&dir, "exit 3"), &incident, 1.5, &GO_ON);
        assert_eq!(nothing, Judgement::Nothing);
        let failed = judge(&program(&dir, "exit 2"), &incident, 1.5, &GO_ON);
        assert!(matches!(failed, Judgement::Failed(_)));
        let found = format!(
            "[ \"$*\" = 'judge --user 4242 --seconds 30 --json --at 1.500' ] && grep -q bytes \
             || exit 2; echo '{}'",
            verdict(r#"{"device":"vda"}"#)
        );
        let found = judge(&program(&dir, &found), &incident, 1.5, &GO_ON);
        assert!(matches!(found, Judgement::Found { latency_ms: 1200.5, .. }), "{found:?}");
        assert!(matches!(
            judge(Path::new("/no/such"), &incident, 0.0, &GO_ON),
            Judgement::Failed(_)
        ));
        let stopped =
            judge(&program(&dir, "exec sleep 60"), &incident, 0.0, &AtomicBool::new(true));
        assert!(matches!(stopped, Judgement::Failed(why) if why.contains("ended")));
    }

    #[test]
    fn the_headline_has_the_symptom_and_the_first_cause() {
        let dir = tempfile::TempDir::new().unwrap();
        let incident = incident(&dir);
        let say = "[ \"$*\" = 'judge --user 4242 --seconds 30' ] || exit 2; \
                   printf 'xterm stalled.\\ndd did it.\\nTry: ionice\\n\\nmore\\n'";
        let failing = format!("{say}; exit 2");
        let long = "a".repeat(HEADLINE_BYTES_MAX);
        for (script, expected) in [
            (say, Some("xterm stalled. dd did it.")),
            (
                "printf 'xterm was late.\\nNo cause.\\n\\nmore\\n'; exit 3",
                Some("xterm was late. No cause."),
            ),
            ("printf 'No finding.\\nNote: few.\\n'; exit 3", Some("No finding.")),
            ("echo xterm stalled.", Some("xterm stalled.")),
            ("head -c 1000000 /dev/zero | tr '\\0' a", Some(long.as_str())),
            ("exit 0", None),
            (failing.as_str(), None),
        ] {
            let found = headline(&program(&dir, script), &incident, &GO_ON);
            assert_eq!(found.ok().as_deref(), expected, "{script}");
        }
    }
}
