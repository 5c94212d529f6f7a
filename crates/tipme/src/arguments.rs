// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs and their options: the single source of help, man pages and completions.

mod day;
mod diagnose;
pub mod groups;
mod hot_keys;
mod incidents;
mod kept;
mod manage;
mod report;
mod schema;

use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand};
pub use day::{DateChoice, Day};
pub use diagnose::Diagnose;
pub use hot_keys::{HotKeyArguments, KeyArguments};
pub use incidents::{Incidents, IncidentsVerb};
use kept::KeepArguments;
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
  tipme setup                  everything that a press of the key needs
  tipme mark -m \"editor hung\"  mark from a shell, where no key does
  tipme diagnose               the verdict of the newest mark
  tipme report                 the same as a page for a browser
  sudo tipme demo              see it happen, on a private display

tipme VERB --help tells more, with examples.";

#[derive(Subcommand)]
pub enum Verb {
    /// The flight recorder, in the foreground; needs root
    Record(Record),
    /// "It was bad just now": keep the last seconds as an incident
    Mark(MarkArguments),
    /// Stop recording, all of it or input only
    Pause(PauseArguments),
    /// Record again, input too
    Resume(ResumeArguments),
    /// Hot keys of this session, and causes as notifications
    Agent(AgentArguments),
    /// Tell the cause of an incident, and what can be tried
    Diagnose(Diagnose),
    /// An incident as one page for a browser: the cause, what happened meanwhile, and what speaks for it
    Report(Report),
    /// List what was marked; show, note, pin, remove
    Incidents(Incidents),
    /// What you lived with today: waiting and thinking, latency by application
    Day(Day),
    /// Copy an incident without what tells of its owner
    Scrub(Scrub),
    /// Have it record always, and a key mark; --undo takes it back
    Setup(Setup),
    /// Whether a press of the key finds its cause, on one screen
    Status(StatusArguments),
    /// What this machine lacks for that, and the remedy
    Doctor(Doctor),
    /// Favour what you use, and put everything back in the end
    Manage(Manage),
    /// Turn knobs for managers without root; needs root
    ManageHelper(ManageHelper),
    /// What the manager does to a process, and why
    Why(WhyArguments),
    /// The JSON schema of what --json prints
    Schema(Schema),
    /// Write shell completions to standard output
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Write man pages into a folder
    #[command(hide = true)]
    Man { dir: PathBuf },
    /// Diagnose the incident at standard input with all rights given up; the recorder and the agent start it
    #[command(hide = true)]
    Judge(JudgeArguments),
    /// Seal the incident at standard input with all rights given up; the recorder starts it
    #[command(hide = true)]
    Seal(Confined),
    /// Name the functions that standard input asks for, with the rights of a user; the recorder starts it
    #[command(hide = true)]
    Name(Confined),
    /// Have the kernel count what its programs cost, and attach some, when standard input says so; the recorder starts it
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

--for asks the recorder that runs, as whoever may mark may: it records more closely for a time,
which ends by itself. tipme status says what is on, and --detail locks --for=0 takes that back.

--auto looks at keys and clicks that take longer than people accept, and three times longer than
nearly all before them in the same application; what is usual is kept in baselines.json beside
the incidents. It looks at most 20 times an hour, and marks the same cause once an hour.
Nothing pops up: tipme status, day and incidents say how many there were. What you mark
yourself, and your answers whether it was this, move the limits of that application, to a
half or twice the usual at most (tolerances.json; tipme status says where). The service
records with --auto unless its options say --auto=off.

Hot keys: in an X session tipme agent has them. On a text console the recorder sees them itself,
by their place on a US keyboard; a line there names the incident, the next one the cause. With
--hot-keys always they count in graphical sessions too, for a Wayland desktop that binds no keys
for programs: no line is shown there, and tipme incidents lists what was marked. A tipme agent
that runs besides leaves the mark to the recorder, and tells its cause: one press is one mark. The
program with the focus gets these keys as well.

Stop it with Ctrl-C. SIGUSR1 marks.")]
pub struct Record {
    /// Keep socket, lock and incidents below this folder [default: /run/tipme and /var/lib/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Seconds that an incident reaches back, if the memory holds them
    #[arg(long, value_name = "SECONDS", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub window: u64,
    /// Locked memory for records, a hard cap: bytes, or with K, M or G [default: a 128th of the machine's, but 64M to 128M and 192K for each CPU]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Record only this display, such as :0 or wayland-0; "none" records no display at all [default: all]
    #[arg(long, value_name = ":N|wayland-N|none", value_parser = display)]
    pub display: Option<DisplayChoice>,
    /// Classes of records to leave out, such as samples,locks; see tipme doctor
    #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Record the use of a resource more closely, at some cost: waits, interrupts, locks, writers, memory
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',', value_parser = detail)]
    pub detail: Vec<Detail>,
    /// Have the recorder that runs do that for so long, at most an hour, and start none [default: 600]
    #[arg(long = "for", value_name = "SECONDS", requires = "detail", num_args = 0..=1, default_missing_value = "600", value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub for_seconds: Option<u32>,
    /// Users (names or ids) that may mark, besides root and the user who called sudo
    #[arg(long, value_name = "USER")]
    pub allow_user: Vec<String>,
    /// Mark by itself where an answer takes unusually long and a cause is found; "dry-run" only tells of it, "off" takes
    /// an --auto before it back
    #[arg(
        long,
        value_name = "HOW",
        value_parser = auto(),
        num_args = 0..=1,
        default_missing_value = "mark",
        overrides_with = "auto"
    )]
    pub auto: Option<AutoChoice>,
    /// Marks that --auto makes within an hour, at most
    #[arg(long, value_name = "N", default_value_t = 6, requires = "auto", value_parser = clap::value_parser!(u8).range(1..=60))]
    pub auto_per_hour: u8,
    /// Count what each user lives with, by application and hour, for tipme day
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
    let about = |mode: AutoChoice| mode.map_or("Mark only when asked to", AutoMode::about);
    choice(all, |mode| mode.map_or("off", AutoMode::name), about)
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

Prints the incident's path as its last line.")]
pub struct MarkArguments {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// What was bad, in your words
    #[arg(short, long, value_name = "TEXT", default_value = "", conflicts_with = "words")]
    pub message: String,
    /// The same, without an option
    #[arg(value_name = "WORDS")]
    pub words: Vec<String>,
}

#[derive(Args)]
#[command(after_help = "Until who paused it, or root, has it record again, nothing is recorded of anybody, and
no mark is made. With --input keys and clicks are left out, and a mark still tells what
the machine did; that ends when everybody who wanted it has taken it back.

Examples:
  tipme pause
  tipme pause --input
  tipme resume")]
pub struct PauseArguments {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Go on recording everything but input
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
#[command(after_help = "Keys: start, mark, and stop or restart the recording of input; each says at the screen what it
did. A press that marks is told at once, and the cause takes the place of that notification, with
up to three buttons: details first, then whether it was this, a note of yours, or a copy to be
pasted. A click on it opens the page. What was answered once is not the answer to a second press.
Where no daemon shows notifications, the cause comes in a corner of the screen until you click
on it. Neither takes the focus.

A key that another program holds is told, and the others are served; where it is the key that
marks, Super+Minus does, else Ctrl+Alt+Shift+M, else Ctrl+Alt+Pause. There is one agent for a
display, which ends with its session. Under Wayland the desktop binds the keys, by its portal for
global shortcuts; where it has none, that is told with the remedy.

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
    /// Open no window: no dialog for notes and details, and no popup with the cause where no daemon shows notifications
    #[arg(long)]
    pub no_dialog: bool,
    /// Show neither causes nor failures on the desktop; a dialog asks for words after each mark
    #[arg(long)]
    pub no_notification: bool,
    /// Under Wayland: have the session's agent do what that key does, and become the agent where there is none. For key
    /// bindings of the desktop; mark, start, stop-input, restart-input
    #[arg(long, value_name = "ACTION", value_parser = action)]
    pub press: Option<HotKeyAction>,
}

fn action(name: &str) -> Result<HotKeyAction, String> {
    let names = || HotKeyAction::ALL.map(HotKeyAction::name).join(", ");
    HotKeyAction::named(name).ok_or_else(|| format!("there is no action {name}; there are {}", names()))
}

#[derive(Args)]
#[command(after_help = "Left out: host name, user, day, your words, command lines, names of files and groups, network
addresses, and the names of programs that the verdict is not about. Example:
  tipme scrub /var/lib/tipme/incidents/20260101T120000.000Z.tipme to-report.tipme")]
pub struct Scrub {
    /// The incident file
    pub file: PathBuf,
    /// The copy, a new file
    #[arg(required_unless_present = "preview")]
    pub out: Option<PathBuf>,
    /// Say what goes and what stays, and write nothing
    #[arg(long)]
    pub preview: bool,
    /// Keep the name of this program too
    #[arg(long, value_name = "NAME")]
    pub keep: Vec<String>,
    /// Leave out what was recorded earlier than so many seconds before the mark
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub last: Option<f64>,
}

#[derive(Args)]
#[command(
    after_help = "Run it as yourself, in the session; it asks for root by sudo where it has to. What is so already
is left alone. Without systemd it says how. Examples:
  tipme setup --dry-run
  tipme setup --yes --mark-key Ctrl+Alt+M
  tipme setup --day
  tipme setup --undo"
)]
pub struct Setup {
    /// Take back what was set up; incidents stay
    #[arg(long)]
    pub undo: bool,
    /// Ask nothing
    #[arg(long)]
    pub yes: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Have the service count what each user lives with, for tipme day; --no-day ends that
    #[arg(long, conflicts_with_all = ["undo", "state_dir"])]
    pub day: bool,
    /// Have the service no longer count it; what was counted stays until tipme day --forget
    #[arg(long, conflicts_with_all = ["day", "undo", "state_dir"])]
    pub no_day: bool,
    /// Key that marks [default: Ctrl+Alt+Minus]
    #[arg(long, value_name = "KEY")]
    pub mark_key: Option<Chord>,
    /// A recorder in this folder, which is started and stopped by hand [default: the service]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Exit codes: 0 a press of the key will find its cause, 1 it will not, with the reason.

Examples:
  tipme status
  tipme status --json")]
pub struct StatusArguments {
    /// The recorder's folder [default: /run/tipme and /var/lib/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// One JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(
    after_help = "The first line says whether a press of the key will find its cause. Exit code 1 where it will not.

Examples:
  tipme doctor
  tipme doctor --verbose"
)]
pub struct Doctor {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Everything that was looked at, and not only what is missing
    #[arg(long)]
    pub verbose: bool,
    /// One JSON document instead of text
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
    /// Look at what was so many seconds before the mark
    #[arg(long, value_name = "SECONDS")]
    pub at: Option<f64>,
}

#[derive(Args)]
pub struct CountArguments {
    #[command(flatten)]
    pub confined: Confined,
    /// The kernel's numbers of programs that are attached together; once for each lot
    #[arg(long, value_name = "IDS", value_parser = numbers)]
    pub standby: Vec<Numbers>,
    /// The kernel's number of the program that takes samples
    #[arg(long, value_name = "ID", requires = "hertz")]
    pub sample: Option<u32>,
    /// How often it does, a second
    #[arg(long, value_name = "HERTZ")]
    pub hertz: Option<u64>,
}

/// A comma-separated list of numbers.
#[derive(Clone, Debug)]
pub struct Numbers(pub Vec<u32>);

/// What a confined process may use.
#[derive(Args)]
pub struct Confined {
    /// Become this user, where it is root
    #[arg(long, value_name = "UID")]
    pub user: u32,
    /// Be in this group only; by default the one with the user's number
    #[arg(long, value_name = "GID")]
    pub group: Option<u32>,
    /// End after this time
    #[arg(long, value_name = "SECONDS")]
    pub seconds: u32,
}

/// Parses a positive number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let span = text.parse().ok().filter(|span: &f64| *span > 0.0 && span.is_finite());
    span.ok_or_else(|| format!("{text:?} is not a number of seconds above 0"))
}

fn numbers(text: &str) -> Result<Numbers, String> {
    let number = |word: &str| word.parse().map_err(|_| format!("invalid number {word:?}"));
    text.split(',').map(number).collect::<Result<_, _>>().map(Numbers)
}

fn detail(text: &str) -> Result<Detail, String> {
    text.parse().map_err(|error: anyhow::Error| error.to_string())
}

fn display(text: &str) -> Result<DisplayChoice, String> {
    if text == "none" {
        return Ok(DisplayChoice::Off);
    }
    if let Some(number) = text.strip_prefix("wayland-") {
        let number: u32 = number.parse().map_err(|_| format!("{text:?} is no display such as wayland-0"))?;
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
