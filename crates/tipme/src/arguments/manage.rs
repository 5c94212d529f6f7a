// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme manage` and `tipme why`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tipme_command::choice;
use tipme_manager::{Backend, Strength};

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme manage
  sudo tipme manage --strength strong --display :0
  tipme manage                 without root, through tipme manage-helper
  tipme manage status
  tipme manage off

Gives priority to the program with the keyboard focus, the foreground job of its terminal, the
display server and the window manager. Prints a line that begins with \"managing\" when it is
ready. Stop it with Ctrl-C; it then puts everything back. It needs root or the helper.

Exit codes: 0 stopped, 1 the display is gone, 2 it could not start.")]
pub struct Manage {
    #[command(subcommand)]
    pub verb: Option<ManageVerb>,
    /// How strongly to favour the application in use
    #[arg(long, value_name = "STRENGTH", default_value_t, value_parser = strength())]
    pub strength: Strength,
    /// Backend for control groups
    #[arg(long, value_name = "BACKEND", value_parser = backend(), default_value = "auto")]
    pub backend: BackendChoice,
    /// X server or compositor [default: $WAYLAND_DISPLAY, $DISPLAY, or the only one]
    #[arg(long, value_name = ":N|wayland-N|SOCKET")]
    pub display: Option<String>,
    /// The recorder's folder; under Wayland the recorder reports the focus [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub recorder: Option<PathBuf>,
    /// Change only this process and its descendants; an orphaned descendant keeps what it inherited
    /// when everything is put back
    #[arg(long, value_name = "PID")]
    pub under: Option<u32>,
    /// A cgroup (v2) delegated to tipme
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
    /// Do not read ahead: neither the memory of the two programs used last nor, at login, the
    /// files of your usual programs; these are then not remembered either
    #[arg(long)]
    pub no_predict: bool,
    /// Folder of the helper that changes settings, or "none" [default: /run/tipme if it answers
    /// there; none for root]
    #[arg(long, value_name = "DIR|none", value_parser = helper)]
    pub helper: Option<HelperChoice>,
    /// Folder for socket, journal and remembered files [default: /run/tipme, and /var/lib/tipme for
    /// remembered files; without root $XDG_RUNTIME_DIR/tipme and $XDG_STATE_HOME/tipme]
    #[arg(long, value_name = "DIR", global = true)]
    pub state_dir: Option<PathBuf>,
}

fn strength() -> impl TypedValueParser<Value = Strength> {
    PossibleValuesParser::new(Strength::ALL.map(Strength::name))
        .try_map(|word| Strength::named(&word).ok_or("not known"))
}

/// The selected backend; `None` for the best usable one.
type BackendChoice = Option<Backend>;

fn backend() -> impl TypedValueParser<Value = BackendChoice> {
    let all = [None].into_iter().chain(Backend::ALL.map(Some));
    choice(
        all,
        |backend| backend.map_or("auto", Backend::name),
        |backend| backend.map_or("The best one that works here", Backend::about),
    )
}

/// Selection of the helper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HelperChoice {
    Never,
    In(PathBuf),
}

fn helper(text: &str) -> Result<HelperChoice, String> {
    match text {
        "" => Err("name a folder, or none".to_owned()),
        "none" => Ok(HelperChoice::Never),
        folder => Ok(HelperChoice::In(folder.into())),
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  sudo systemctl enable --now tipme-manage-helper
  sudo tipme manage-helper --allow-user anna

Lets \"tipme manage\" run without root: the manager watches the display and decides as the user,
and the helper changes the settings. The helper has no policy: it changes only processes of the
requesting user, takes every value from the manager's table, and puts everything back however the
manager ends. It serves root, users at a local seat (according to the login manager), and the
users given here.")]
pub struct ManageHelper {
    /// Users (names or ids) to serve, even without a local seat
    #[arg(long, value_name = "USER")]
    pub allow_user: Vec<String>,
    /// Folder for socket and journals [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// Request to a running manager.
#[derive(Subcommand)]
pub enum ManageVerb {
    /// Show roles, settings, memory and the manager's cost
    Status {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Favour nothing and put everything back
    Off,
    /// Favour a little
    Gentle,
    /// Favour by the default amount
    Normal,
    /// Favour as strongly as is safe
    Strong,
}

#[derive(Args)]
#[command(after_help = "Example:
  tipme why $(pidof firefox)")]
pub struct WhyArguments {
    /// The process
    pub pid: u32,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// The manager's folder [default: /run/tipme; without root $XDG_RUNTIME_DIR/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}
