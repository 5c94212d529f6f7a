// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs and their options: the one place from which help, man pages and completions come.

mod beside;
mod compare;
mod cpu_list;
mod diagnose;
mod duration;
mod fork;
mod groups;
mod hot_keys;
mod idle;
mod incidents;
mod kept;
mod load;
mod manage;
mod measure;
mod memory;
mod pagein;
mod report;
mod schema;
mod scroll;
mod system;
mod timer;
mod typing;
mod warmstart;

pub use beside::{Against, Beside, ManagerOptions};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use compare::Compare;
pub use diagnose::Diagnose;
pub use fork::{Fork, LoadChoice};
pub use groups::command;
pub use hot_keys::{HotKeys, HotKeysChoice, Keys};
pub use idle::Idle;
pub use incidents::{Incidents, IncidentsVerb};
use kept::Kept;
pub use load::Load;
pub use manage::{BackendChoice, HelperChoice, Manage, ManageHelper, ManageVerb, StrengthChoice, Why};
pub use measure::{Measure, ProfileChoice};
pub use memory::{BackingChoice, Memory};
pub use pagein::Pagein;
pub use report::Report;
pub use schema::{Document, Schema};
pub use scroll::Scroll;
use std::path::PathBuf;
pub use system::{BesideChoice, System};
pub use timer::{Choice as TimerChoice, Cpus as TimerCpus, Timer};
use tipme_desktop::hotkeys::Chord;
pub use typing::Typing;
pub use warmstart::Warmstart;

/// Find out why the desktop just hung: press one key, and read the cause
#[derive(Parser)]
#[command(name = "tipme", version, subcommand_value_name = "VERB", after_help = EXAMPLES)]
pub struct Arguments {
    /// Colours: auto, always or never; NO_COLOR is obeyed
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub color: clap::ColorChoice,
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
    Mark(Mark),
    /// Hot keys of this session, and causes as notifications
    Agent(Agent),
    /// Tell the cause of an incident, and what can be tried
    Diagnose(Diagnose),
    /// An incident as one page for a browser: the cause, what happened meanwhile, and what speaks for it
    Report(Report),
    /// List what was marked; show, note, pin, remove
    Incidents(Incidents),
    /// Copy an incident without what tells of its owner
    Scrub(Scrub),
    /// Have it record always, and a key mark; --undo takes it back
    Setup(Setup),
    /// Whether a press of the key finds its cause, on one screen
    Status(Status),
    /// What this machine lacks for that, and the remedy
    Doctor(Doctor),
    /// See it happen on a private display; needs root
    Demo(Demo),
    /// Known faults, each diagnosed and checked; needs root
    Selftest(Selftest),
    /// What takes the CPUs' time; needs no root and no tracing
    Idle(Idle),
    /// Timers, memory, forks of processes, typing, scrolling ...
    #[command(
        subcommand,
        after_help = "Examples:
  tipme bench timer
  sudo tipme bench memory -d 40s
  sudo tipme bench typing --managed --svg plots"
    )]
    Bench(Bench),
    /// A background load: so many processes, so much memory
    Load(Load),
    /// The latency of every event in an X application, by a script
    Measure(Measure),
    /// Favour what you use, and put everything back in the end
    Manage(Manage),
    /// Turn knobs for managers without root; needs root
    ManageHelper(ManageHelper),
    /// What the manager does to a process, and why
    Why(Why),
    /// Hold results against each other, with honest statistics
    Compare(Compare),
    /// The JSON schema of what --json prints
    Schema(Schema),
    /// Write shell completions to standard output
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Write man pages into a folder
    #[command(hide = true)]
    Man { dir: PathBuf },
    /// Programs that the demo and the tests start
    #[command(hide = true)]
    Helper(Helper),
    /// Diagnose the incident at standard input with all rights given up; the recorder and the agent start it
    #[command(hide = true)]
    Judge(Judge),
    /// Seal the incident at standard input with all rights given up; the recorder starts it
    #[command(hide = true)]
    Seal(Confined),
    /// Name the functions that standard input asks for, with the rights of a user; the recorder starts it
    #[command(hide = true)]
    Name(Confined),
    /// Have the kernel count what its programs cost when standard input says so; the recorder starts it
    #[command(hide = true)]
    Count(Confined),
}

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme record
  sudo tipme record --window 60 --memory 128M
  sudo tipme record --display none --without samples,locks
  sudo tipme record --auto=dry-run
  sudo tipme record --detail writers,memory
  sudo tipme record --hot-keys always --mark-key super+f12

--auto looks at keys and clicks that take longer than people accept, and three times longer than
nearly all before them in the same application; what is usual is kept in baselines.json beside
the incidents. It looks at most 20 times an hour, and marks the same cause once an hour.

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
    /// Locked memory for records, a hard cap: bytes, or with K, M or G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub memory: u64,
    /// Record only this display, such as :0; "none" records no display at all [default: all]
    #[arg(long, value_name = ":N|none", value_parser = display)]
    pub display: Option<DisplayChoice>,
    /// Classes of records to leave out, such as samples,locks; see tipme doctor
    #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Record the use of a resource more closely, at some cost: waits, interrupts, locks, writers, memory
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',', value_parser = detail)]
    pub detail: Vec<tipme_recorder::Detail>,
    /// Users (names or ids) that may mark, besides root and the user who called sudo
    #[arg(long, value_name = "USER")]
    pub allow_user: Vec<String>,
    /// Mark by itself where an answer takes unusually long and a cause is found; "dry-run" only tells of it
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "mark")]
    pub auto: Option<Auto>,
    /// Marks that --auto makes within an hour, at most
    #[arg(long, value_name = "N", default_value_t = 6, requires = "auto", value_parser = clap::value_parser!(u8).range(1..=60))]
    pub auto_per_hour: u8,
    #[command(flatten)]
    pub kept: Kept,
    #[command(flatten)]
    pub hot_keys: HotKeys,
}

/// What `--auto` does with what it finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Auto {
    /// Keep an incident
    Mark,
    /// Say what would be marked, and keep no file
    DryRun,
}

/// A display to record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DisplayChoice {
    Only(u32),
    Off,
}

#[derive(Args)]
#[command(after_help = "Example:
  tipme mark -m \"scrolling in the browser hung\"

Prints the incident's path as its last line.")]
pub struct Mark {
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
#[command(after_help = "Keys: start, mark, and stop or restart the recording of input; each says at the screen what it
did. A press that marks is told at once, and the cause takes the place of that notification, with
buttons: details, a note of yours, whether it was this, and one that copies it to be pasted.
Where no daemon shows notifications, the cause comes in a corner of the screen until you click
on it. Neither takes the focus.

A key that another program holds is told, and the others are served; where it is the key that
marks, super+minus does, else ctrl+alt+shift+m, else ctrl+alt+pause. There is one agent for a
display. Under Wayland the desktop binds the keys, by its portal for global shortcuts; where it
has none, that is told with the remedy.

Example:
  tipme agent --mark-key ctrl+alt+m")]
pub struct Agent {
    /// The recorder's folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The display [default: $DISPLAY]
    #[arg(long, value_name = ":N")]
    pub display: Option<String>,
    #[command(flatten)]
    pub keys: Keys,
    /// Open no window: no dialog for notes and details, and no popup with the cause where no daemon shows notifications
    #[arg(long)]
    pub no_dialog: bool,
    /// Show neither causes nor failures on the desktop; a dialog asks for words after each mark
    #[arg(long)]
    pub no_notification: bool,
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
  tipme setup --yes --mark-key ctrl+alt+m
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
    /// Key that marks [default: ctrl+alt+minus]
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
pub struct Status {
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

/// What goes wrong in the demo.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Fault {
    /// A build-like storm of short-lived processes on the terminal's CPU
    Cpu,
    /// A disk that other processes keep busy
    Io,
    /// A file lock whose owner sleeps
    Lock,
}

#[derive(Args)]
#[command(after_help = "Example:
  sudo tipme demo --fault io")]
pub struct Demo {
    /// What goes wrong
    #[arg(long, value_enum, default_value_t = Fault::Cpu)]
    pub fault: Fault,
    /// One JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Keep socket, lock and incident below this folder [default: a folder of its own under /var/lib/tipme or /tmp]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// An application to which faults are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum App {
    /// An X client of our own
    Patient,
    /// A terminal with a program of our own on it
    Xterm,
    /// A GTK text editor (mousepad)
    Gtk,
    /// A browser with a text field
    Chromium,
}

#[derive(Args)]
#[command(after_help = "Exit codes: 0 at least 95 % of the causes are named and clean runs have no finding, 1 not so,
2 nothing could be measured. Examples:
  sudo tipme selftest
  sudo tipme selftest mutex-asleep clean --app xterm
  sudo tipme selftest --repeat 5 --json --keep incidents > results.json
  tipme selftest --list")]
pub struct Selftest {
    /// Faults to run; clean stands for runs without a fault [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// One JSON document instead of a table
    #[arg(long)]
    pub json: bool,
    /// How often each fault is done to each application
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = repeats)]
    pub repeat: usize,
    /// Do them to this application; may be given several times [default: patient and xterm]
    #[arg(long, value_enum, value_name = "APP")]
    pub app: Vec<App>,
    /// List the faults, and run none
    #[arg(long)]
    pub list: bool,
    /// The table as Markdown, one line for all repeats of a fault
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Keep every incident in this folder [default: only those of misses, in a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// A micro-benchmark.
#[derive(Subcommand)]
pub enum Bench {
    /// How late a periodic wake-up comes, by mechanism and policy
    Timer(Timer),
    /// Page-access latency of a process while others fill the memory
    Memory(Memory),
    /// The run-queue delay of a process while others fork
    Fork(Fork),
    /// Keystroke-to-echo latency in a terminal beside a load, with and without the manager
    Typing(Typing),
    /// How long a terminal takes to scroll through a long file beside a load
    Scroll(Scroll),
    /// How long a script takes that goes round several applications, beside a build and a heavy load
    System(System),
    /// How long the first key takes after a pause beside a load
    Warmstart(Warmstart),
    /// How long the program with the focus waits for its own pages beside a hog that takes the memory
    Pagein(Pagein),
}

#[derive(Args)]
pub struct Judge {
    #[command(flatten)]
    pub confined: Confined,
    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,
    /// Look at what was so many seconds before the mark
    #[arg(long, value_name = "SECONDS")]
    pub at: Option<f64>,
}

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

#[derive(Args)]
pub struct Helper {
    /// The helper's name and arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// A span that is more than none.
fn seconds(text: &str) -> Result<f64, String> {
    let span = text.parse().ok().filter(|span: &f64| *span > 0.0 && span.is_finite());
    span.ok_or_else(|| format!("{text:?} is not a number of seconds above 0"))
}

/// `64M`, `64MiB`, `1G`, or bytes.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        unit => return Err(format!("invalid unit of memory {unit:?}; use K, M or G")),
    };
    let count: u64 = digits.parse().map_err(|_| format!("invalid number {digits:?}"))?;
    count.checked_mul(1 << shift).filter(|bytes| *bytes <= 4 << 30).ok_or_else(|| "at most 4G".to_owned())
}

/// One to a hundred.
fn repeats(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (1..=100).contains(count)).ok_or_else(|| "a number from 1 to 100".to_owned())
}

fn detail(text: &str) -> Result<tipme_recorder::Detail, String> {
    text.parse().map_err(|error: anyhow::Error| error.to_string())
}

fn display(text: &str) -> Result<DisplayChoice, String> {
    if text == "none" {
        return Ok(DisplayChoice::Off);
    }
    let target = tipme_desktop::Target::parse(text).map_err(|error| error.to_string())?;
    Ok(DisplayChoice::Only(target.display))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    /// Columns of help where the width of the terminal is not known.
    const COLUMNS: usize = 100;
    /// Lines with ends of their own are shorter, so that none is broken once more.
    const PROSE: usize = 98;

    /// A command and all below it, with their names.
    fn all(command: clap::Command) -> Vec<clap::Command> {
        let below: Vec<clap::Command> = command.get_subcommands().cloned().flat_map(all).collect();
        std::iter::once(command).chain(below).collect()
    }

    #[test]
    fn no_line_of_help_is_broken_twice() {
        use clap::CommandFactory;
        let mut root = Arguments::command();
        root.build();
        let commands = all(root);
        assert!(commands.len() > 20, "{} commands", commands.len());
        for mut command in commands.into_iter().map(|command| command.term_width(COLUMNS)) {
            let texts = [command.get_before_help(), command.get_after_help(), command.get_after_long_help()];
            let texts: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
            let help = command.render_long_help().to_string();
            let name = command.get_name();
            for line in texts.iter().flat_map(|text| text.lines()) {
                assert!(line.chars().count() <= PROSE, "{name}: too long: {line}");
                assert!(help.lines().any(|shown| shown.trim_end() == line.trim_end()), "{name}: broken: {line}");
            }
            let wide = help.lines().find(|line| line.chars().count() > COLUMNS);
            assert_eq!(wide, None, "{name}");
        }
    }

    #[test]
    fn seconds_are_more_than_none() {
        assert_eq!(seconds("2.5"), Ok(2.5));
        assert!(["0", "-1", "NaN", "inf", "x", ""].into_iter().all(|text| seconds(text).is_err()));
    }

    #[test]
    fn sizes() {
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("4096"), Ok(4096));
        assert!(size("64X").is_err() && size("M").is_err() && size("99999999G").is_err());
    }

    #[test]
    fn displays() {
        assert_eq!(display(":99"), Ok(DisplayChoice::Only(99)));
        assert_eq!(display("none"), Ok(DisplayChoice::Off));
        assert!(display("host:0").is_err());
    }
}
