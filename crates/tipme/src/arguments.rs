// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs and their options: the single source of help, man pages and completions.

mod bounds;
mod day;
mod diagnose;
pub mod groups;
mod hot_keys;
mod incidents;
mod manage;
mod report;
mod schema;
mod selection;

use bounds::KeepArguments;
use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand};
pub use day::{DateChoice, Day};
pub use diagnose::Diagnose;
pub use hot_keys::{HotKeyArguments, KeyArguments};
pub use incidents::{Incidents, IncidentsVerb};
pub use manage::{HelperChoice, Manage, ManageHelper, ManageVerb, WhyArguments};
pub use report::Report;
pub use schema::{Schema, SchemaName};
use std::path::PathBuf;
use tipme_command::output::Colours;
use tipme_command::{choice, size};
use tipme_desktop::hotkeys::{Chord, HotKeyAction};
use tipme_recorder::{AutoMode, Detail};

/// Find out why the desktop just hung: press one key, and read the cause
#[derive(Parser)]
#[command(name = "tipme", version, subcommand_value_name = "VERB", after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub colours: Colours,
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "Examples:
  tipme setup                  enable recording and the hot key
  tipme mark -m \"editor hung\"  mark from a shell instead of with the key
  tipme diagnose               show the cause of the newest incident
  tipme report                 the same, as a web page
  sudo tipme demo              see a hitch and its cause on a private display

\"tipme VERB --help\" describes each verb, with examples.";

#[derive(Subcommand)]
pub enum Verb {
    /// Run the flight recorder in the foreground; needs root
    Record(Record),
    /// Save the last seconds as an incident
    Mark(MarkArguments),
    /// Stop recording, or only the recording of input
    Pause(PauseArguments),
    /// Resume recording, including input
    Resume(ResumeArguments),
    /// Serve this session's hot keys and show causes as notifications
    Agent(AgentArguments),
    /// Show the cause of an incident and what to try
    Diagnose(Diagnose),
    /// Write an incident as a web page: its cause, a timeline and the evidence
    Report(Report),
    /// List, show, annotate, pin and remove incidents
    Incidents(Incidents),
    /// Show how long you waited today, by application
    Day(Day),
    /// Copy an incident without personal data
    Scrub(Scrub),
    /// Enable recording at boot and the hot key; --undo reverts it
    Setup(Setup),
    /// Show whether a press of the key will find a cause
    Status(StatusArguments),
    /// Check what is missing on this machine, with remedies
    Doctor(Doctor),
    /// Give priority to the application in use
    Manage(Manage),
    /// Change settings for managers that run without root; needs root
    ManageHelper(ManageHelper),
    /// Explain what the manager did to a process
    Why(WhyArguments),
    /// Print the JSON schema of a --json document
    Schema(Schema),
    /// Write shell completions to standard output
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Write man pages into a folder
    #[command(hide = true)]
    Man { dir: PathBuf },
    /// Diagnose the incident on standard input without privileges; started by recorder and agent
    #[command(hide = true)]
    Judge(JudgeArguments),
    /// Seal the incident on standard input without privileges; started by the recorder
    #[command(hide = true)]
    Seal(Confined),
    /// Resolve the symbols requested on standard input, as a user; started by the recorder
    #[command(hide = true)]
    Name(Confined),
    /// Count the cost of kernel programs and attach some, as standard input requests; started by
    /// the recorder
    #[command(hide = true)]
    Count(CountArguments),
}

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme record
  sudo tipme record --window 60 --memory 128M
  sudo tipme record --display none --without samples,locks
  sudo tipme record --auto=dry-run
  sudo tipme record --day
  sudo tipme record --detail writers,memory
  tipme record --detail locks --for=60
  sudo tipme record --hot-keys always --mark-key super+f12

With --for, the running recorder records in more detail for a limited time; anyone who is allowed
to mark may ask for this. tipme status shows the active details, and --for=0 ends one early. No
second recorder is started.

--auto examines keys and clicks that take longer than people accept, and three times longer than
nearly all earlier ones in the same application; baselines are kept in baselines.json beside the
incidents. It examines at most 20 an hour, and marks the same cause at most once an hour. Nothing
pops up: tipme status, day and incidents show the number. Your own marks, and your answers to
\"was it this?\", shift an application's thresholds, to between half and twice the usual
(tolerances.json; tipme status shows its folder). The service uses --auto unless its options
contain --auto=off.

Hot keys: in an X session tipme agent serves them. On a text console the recorder reads them, by
their position on a US keyboard, and prints incident and cause there. With --hot-keys always it
reads them in graphical sessions too, for Wayland desktops that cannot bind keys for programs.
Nothing is printed there; tipme incidents lists the incidents. If an agent runs as well, the
recorder marks and the agent shows the cause: one press is one mark. The focused program also
receives these keys.

Stop it with Ctrl-C. SIGUSR1 triggers a mark.")]
pub struct Record {
    /// Folder for socket, lock and incidents [default: /run/tipme and /var/lib/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Seconds before the mark that an incident covers, as far as the memory allows
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 40,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub window: u64,
    /// Locked memory for records, a hard limit: bytes, or with K, M or G [default: 1/128 of the
    /// machine's memory, within 64M to 128M, and at least 192K per CPU]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Record only this display, such as :0 or wayland-0, or "none" [default: all]
    #[arg(long, value_name = ":N|wayland-N|none", value_parser = display)]
    pub display: Option<DisplayChoice>,
    /// Classes of records to omit, such as samples,locks; see tipme doctor
    #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Record these resources in more detail, at some cost: waits, interrupts, locks, writers,
    /// memory
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',', value_parser = detail)]
    pub detail: Vec<Detail>,
    /// Apply --detail to the running recorder for this long, at most an hour [default: 600]
    #[arg(
        long = "for",
        value_name = "SECONDS",
        requires = "detail",
        num_args = 0..=1,
        default_missing_value = "600",
        value_parser = clap::value_parser!(u32).range(0..=3600)
    )]
    pub for_seconds: Option<u32>,
    /// Users (names or ids) allowed to mark, besides root and the user who ran sudo
    #[arg(long, value_name = "USER")]
    pub allow_user: Vec<String>,
    /// Mark automatically if an answer takes unusually long and a cause is found; "dry-run" only
    /// logs it, "off" overrides an earlier --auto
    #[arg(
        long,
        value_name = "HOW",
        value_parser = auto(),
        num_args = 0..=1,
        default_missing_value = "mark",
        overrides_with = "auto"
    )]
    pub auto: Option<AutoChoice>,
    /// Maximum number of automatic marks per hour
    #[arg(
        long,
        value_name = "N",
        default_value_t = 6,
        requires = "auto",
        value_parser = clap::value_parser!(u8).range(1..=60)
    )]
    pub auto_per_hour: u8,
    /// Count each user's delays by application and hour, for tipme day
    #[arg(long)]
    pub day: bool,
    #[command(flatten)]
    pub kept: KeepArguments,
    #[command(flatten)]
    pub hot_keys: HotKeyArguments,
}

/// Action of `--auto` on a finding; `None` if auto marks are off.
type AutoChoice = Option<AutoMode>;

fn auto() -> impl TypedValueParser<Value = AutoChoice> {
    let all = AutoMode::ALL.map(Some).into_iter().chain([None]);
    choice(
        all,
        |mode| mode.map_or("off", AutoMode::name),
        |mode| mode.map_or("Mark only on request", AutoMode::about),
    )
}

/// Selection of the display to record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DisplayChoice {
    Only(u32),
    OnlyWayland(u32),
    Off,
}

#[derive(Args)]
#[command(after_help = "Example:
  tipme mark -m \"scrolling in the browser hung\"

The last line of output is the path of the incident.")]
pub struct MarkArguments {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Your description of the problem
    #[arg(short, long, value_name = "TEXT", default_value = "", conflicts_with = "words")]
    pub message: String,
    /// The description, as plain arguments instead of -m
    #[arg(value_name = "WORDS")]
    pub words: Vec<String>,
}

#[derive(Args)]
#[command(after_help = "\
Nothing is recorded for any user, and marks fail, until the user who paused recording, or root,
resumes it. With --input only keys and clicks are omitted, and a mark still shows the activity of
the machine; input is recorded again once every user that paused it has resumed it.

Examples:
  tipme pause
  tipme pause --input
  tipme resume")]
pub struct PauseArguments {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Stop only the recording of input
    #[arg(long)]
    pub input: bool,
}

#[derive(Args)]
#[command(after_help = "Example:
  tipme resume")]
pub struct ResumeArguments {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "\
Hot keys start recording, mark, and stop or restart the recording of input; each shows its effect
on the screen. A mark is confirmed at once; the cause then replaces that notification, with up to
three buttons: details, and two of: was it this?, add a note, copy the text. A click on the
notification opens the page. A second press does not repeat an earlier verdict. Without a
notification server the cause appears in a corner of the screen until you click on it. Neither
takes the focus.

A key that another program holds is reported, and the others are served; the mark key falls back
to Ctrl+Alt+Shift+M, Ctrl+Alt+Pause, then Super+Minus. There is one agent per display; it ends
with the session. Under Wayland the desktop binds the keys through its portal for global
shortcuts; if there is no such portal, the agent reports it with a remedy.

Example:
  tipme agent --mark-key Ctrl+Alt+M")]
pub struct AgentArguments {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The display [default: $DISPLAY]
    #[arg(long, value_name = ":N")]
    pub display: Option<String>,
    #[command(flatten)]
    pub keys: KeyArguments,
    /// Open no windows: no dialog for notes and details, and no popup in place of notifications
    #[arg(long)]
    pub no_dialog: bool,
    /// Show neither causes nor failures; a dialog asks for a note after each mark
    #[arg(long)]
    pub no_notification: bool,
    /// Under Wayland, for key bindings of the desktop: have the session's agent perform this action
    /// (and become the agent if there is none): mark, start, stop-input, restart-input
    #[arg(long, value_name = "ACTION", value_parser = action)]
    pub press: Option<HotKeyAction>,
}

fn action(name: &str) -> Result<HotKeyAction, String> {
    HotKeyAction::named(name).ok_or_else(|| {
        let names = HotKeyAction::ALL.map(HotKeyAction::name).join(", ");
        format!("unknown action {name}; use one of {names}")
    })
}

#[derive(Args)]
#[command(after_help = "\
It removes host name, user, day, your notes, command lines, names of files and groups, network
addresses, and names of programs that the verdict does not mention.

Example:
  tipme scrub /var/lib/tipme/incidents/20260101T120000.000Z.tipme to-report.tipme")]
pub struct Scrub {
    /// The incident file
    pub file: PathBuf,
    /// The copy to write; must not exist
    #[arg(required_unless_present = "preview")]
    pub out: Option<PathBuf>,
    /// Show what would be removed and kept, and write nothing
    #[arg(long)]
    pub preview: bool,
    /// Keep the name of this program too
    #[arg(long, value_name = "NAME")]
    pub keep: Vec<String>,
    /// Keep only this many seconds before the mark
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub last: Option<f64>,
}

#[derive(Args)]
#[command(after_help = "\
Run it as yourself, in your session; it uses sudo where it needs root. Finished steps are skipped.
Without systemd it prints what to do by hand.

Examples:
  tipme setup --dry-run
  tipme setup --yes --mark-key Ctrl+Alt+M
  tipme setup --day
  tipme setup --undo")]
pub struct Setup {
    /// Revert the setup; incidents are kept
    #[arg(long)]
    pub undo: bool,
    /// Assume yes to all questions
    #[arg(long)]
    pub yes: bool,
    /// Show the steps without performing them
    #[arg(long)]
    pub dry_run: bool,
    /// Make the service count each user's delays, for tipme day; --no-day reverts it
    #[arg(long, conflicts_with_all = ["undo", "state_dir"])]
    pub day: bool,
    /// Stop counting delays; existing counts are kept until tipme day --forget
    #[arg(long, conflicts_with_all = ["day", "undo", "state_dir"])]
    pub no_day: bool,
    /// Key to mark [default: the one chosen before, else Ctrl+Alt+Minus]
    #[arg(long, value_name = "KEY")]
    pub mark_key: Option<Chord>,
    /// Folder of a recorder that you start and stop by hand [default: the service]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 a press of the key will find a cause, 1 it will not; the reason is shown.

Examples:
  tipme status
  tipme status --json")]
pub struct StatusArguments {
    /// The recorder's folder [default: /run/tipme and /var/lib/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "\
The first line states whether a press of the key will find a cause.

Exit codes: 0 a press of the key will find its cause, 1 it will not.

Examples:
  tipme doctor
  tipme doctor --verbose")]
pub struct Doctor {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Show all checks, not only the failed ones
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct JudgeArguments {
    #[command(flatten)]
    pub confined: Confined,
    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,
    /// Explain the delay this many seconds before the mark
    #[arg(long, value_name = "SECONDS")]
    pub at: Option<f64>,
}

#[derive(Args)]
pub struct CountArguments {
    #[command(flatten)]
    pub confined: Confined,
    /// Kernel ids of programs to attach together; repeat for each group
    #[arg(long, value_name = "IDS", value_parser = numbers)]
    pub standby: Vec<Numbers>,
    /// Kernel id of the sampling program
    #[arg(long, value_name = "ID", requires = "hertz")]
    pub sample: Option<u32>,
    /// Samples per second
    #[arg(long, value_name = "HERTZ")]
    pub hertz: Option<u64>,
}

/// A comma-separated list of numbers.
#[derive(Clone, Debug)]
pub struct Numbers(pub Vec<u32>);

/// Limits of a confined process.
#[derive(Args)]
pub struct Confined {
    /// User to become, if started as root
    #[arg(long, value_name = "UID")]
    pub user: u32,
    /// Only group to keep [default: the one with the number of the user]
    #[arg(long, value_name = "GID")]
    pub group: Option<u32>,
    /// Maximum run time
    #[arg(long, value_name = "SECONDS")]
    pub seconds: u32,
}

/// Parses a positive number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let span = text.parse().ok().filter(|span: &f64| *span > 0.0 && span.is_finite());
    span.ok_or_else(|| format!("{text:?} is not a number of seconds above 0"))
}

fn numbers(text: &str) -> Result<Numbers, String> {
    let numbers =
        text.split(',').map(|word| word.parse().map_err(|_| format!("invalid number {word:?}")));
    numbers.collect::<Result<_, _>>().map(Numbers)
}

fn detail(text: &str) -> Result<Detail, String> {
    text.parse().map_err(|error: anyhow::Error| error.to_string())
}

fn display(text: &str) -> Result<DisplayChoice, String> {
    if text == "none" {
        return Ok(DisplayChoice::Off);
    }
    if let Some(number) = text.strip_prefix("wayland-") {
        let number: u32 =
            number.parse().map_err(|_| format!("{text:?} is not a display such as wayland-0"))?;
        return Ok(DisplayChoice::OnlyWayland(number));
    }
    let target = tipme_desktop::DisplayTarget::parse(text).map_err(|error| error.to_string())?;
    Ok(DisplayChoice::Only(target.display))
}

#[cfg(test)]
mod tests {
    use super::groups::whole;
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        whole().debug_assert();
    }

    #[test]
    fn no_line_of_help_is_broken_twice() {
        assert!(tipme_command::checks::lines(whole()) > 20);
    }

    #[test]
    fn seconds_are_more_than_none() {
        assert_eq!(seconds("2.5"), Ok(2.5));
        assert!(["0", "-1", "NaN", "inf", "x", ""].into_iter().all(|text| seconds(text).is_err()));
    }

    #[test]
    fn displays() {
        assert_eq!(display(":99"), Ok(DisplayChoice::Only(99)));
        assert_eq!(display("wayland-1"), Ok(DisplayChoice::OnlyWayland(1)));
        assert_eq!(display("none"), Ok(DisplayChoice::Off));
        assert!(display("wayland-").is_err() && display("wayland--1").is_err());
        assert!(display("host:0").is_err());
    }
}
