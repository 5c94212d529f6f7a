// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs of the lab and their options: the single source of help, man pages and completions.

mod compare;
mod measure;
mod schema;

use clap::{Args, Command, CommandFactory, Parser, Subcommand, ValueEnum};
pub use compare::Compare;
pub use measure::Measure;
pub use schema::{DocumentChoice, LabSchemaArguments};
use std::path::PathBuf;
use tipme_bench::choice::repeats;
use tipme_bench::faults::Fault;
use tipme_bench::fork::Fork;
use tipme_bench::idle::Idle;
use tipme_bench::load::LoadArguments;
use tipme_bench::memory::Memory;
use tipme_bench::pagein::Pagein;
use tipme_bench::place::place;
use tipme_bench::screen::Place;
use tipme_bench::scroll::Scroll;
use tipme_bench::system::System;
use tipme_bench::timer::Timer;
use tipme_bench::typing::Typing;
use tipme_bench::warmstart::Warmstart;
use tipme_command::output::Colours;
use tipme_command::{choice, grouped, verbs};
use tipme_report::Layout;

/// Loads, known faults and measurements, which stress the machine
#[derive(Parser)]
#[command(name = "tipme-lab", version, subcommand_value_name = "VERB", after_help = EXAMPLES)]
pub struct LabArguments {
    #[command(flatten)]
    pub colours: Colours,
    #[command(subcommand)]
    pub verb: LabVerb,
}

const EXAMPLES: &str = "Examples:
  sudo tipme demo     see a hitch and its cause on a private display
  tipme idle          show what takes CPU time
  tipme bench timer   measure how late timers are

tipme starts this program for these verbs. \"tipme VERB --help\" describes each, with examples.";

// The descriptions of the verbs are in tipme_command::verbs, for both programs.
#[derive(Subcommand)]
pub enum LabVerb {
    Demo(Demo),
    Selftest(Selftest),
    Measure(Measure),
    Idle(Idle),
    Compare(Compare),
    #[command(
        subcommand,
        after_help = "Examples:
  tipme bench timer
  sudo tipme bench memory -d 40s
  sudo tipme bench typing --managed --svg plots"
    )]
    Bench(Bench),
    Load(LoadArguments),
    /// Print the JSON schema of a --json document
    #[command(hide = true)]
    Schema(LabSchemaArguments),
    /// Write shell completions to standard output
    #[command(hide = true)]
    Completions {
        shell: clap_complete::Shell,
    },
    /// Write man pages into a folder
    #[command(hide = true)]
    Man {
        dir: PathBuf,
    },
    /// Run a worker program of a load, benchmark, fault or test
    #[command(hide = true)]
    Worker(Worker),
}

/// Returns the command for man pages and completions.
pub fn whole() -> Command {
    verbs::described(LabArguments::command())
}

/// Returns the same command with its verbs in the order of `tipme --help`.
pub fn command(layout: &Layout) -> Command {
    grouped(whole(), &[("Verbs", &verbs::NAMES)], layout)
}

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme demo --fault io
  sudo tipme demo --display wayland
  sudo tipme demo --display wayland-0 --fault lock

On a running Wayland compositor a terminal (foot) opens and receives keys for 15 seconds: do not
take its focus.")]
pub struct Demo {
    /// Fault to inject
    #[arg(long, value_parser = choice(Fault::demonstrated(), |fault| fault.name, |fault| fault.about),
        default_value = "cpu")]
    pub fault: &'static Fault,
    /// Display: a private X server, a private Wayland compositor, or a running one by the name or
    /// path of its socket
    #[arg(long, value_name = "x11|wayland|wayland-N|PATH", default_value = "x11", value_parser = place)]
    pub display: Place,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Folder for socket, lock and incident [default: a new one in /var/lib/tipme or /tmp]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 at least 95% of the causes were named, and none was found in the run without a
fault; 1 otherwise; 2 nothing could be measured.

Examples:
  sudo tipme selftest
  sudo tipme selftest lock fsync calm
  sudo tipme selftest --display wayland
  sudo tipme selftest --repeat 5 --json --keep incidents > results.json
  tipme selftest --list"
)]
pub struct Selftest {
    /// Faults to run; calm is the run without one [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Number of runs of each fault
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = repeats)]
    pub repeat: usize,
    /// Kind of private display for the terminal
    #[arg(long, value_enum, default_value_t = PrivateDisplayChoice::X11)]
    pub display: PrivateDisplayChoice,
    /// List the faults without running them
    #[arg(long)]
    pub list: bool,
    /// Print the table as Markdown, one line for all repeats of a fault
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Keep every incident in this folder [default: only those of misses, in a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// The kind of a private display.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PrivateDisplayChoice {
    /// Xvfb, a window manager and xterm
    X11,
    /// Headless sway and foot; the fault that needs an X server is skipped
    Wayland,
}

/// A micro-benchmark.
#[derive(Subcommand)]
pub enum Bench {
    /// Measure the lateness of periodic wake-ups, by mechanism and policy
    Timer(Timer),
    /// Measure page-access latency while other processes fill the memory
    Memory(Memory),
    /// Measure the run-queue delay of a process while others fork
    Fork(Fork),
    /// Measure keystroke-to-echo latency in a terminal under load, with and without the manager
    Typing(Typing),
    /// Measure how long a terminal takes to scroll through a long file under load
    Scroll(Scroll),
    /// Measure a script that cycles through several applications, beside a build and a heavy load
    System(System),
    /// Measure the latency of the first key after a pause under load
    Warmstart(Warmstart),
    /// Measure how long the focused program waits for its pages while a memory hog runs
    Pagein(Pagein),
}

#[derive(Args)]
pub struct Worker {
    /// The worker program's name and arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

#[cfg(test)]
mod tests {
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
    fn every_verb_has_examples_and_each_can_be_given() {
        assert!(tipme_command::checks::examples(&command(&Layout::default()), |_| true) > 10);
    }

    #[test]
    fn tipme_names_every_verb() {
        let whole = whole();
        let verbs =
            whole.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        assert_eq!(verbs.collect::<Vec<_>>(), verbs::NAMES);
    }
}
