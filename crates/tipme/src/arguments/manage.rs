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
  tipme manage                 without root, by the helper (see tipme manage-helper)
  tipme manage status
  tipme manage off

Favours what you look at and type into: the program with the keyboard focus, the job in the
foreground of its terminal, the display server and the window manager. Prints a line that begins
with \"managing\" once it is ready; stop it with Ctrl-C, and everything is as it was. Without root
and without the helper nobody can be favoured.

Exit codes: 0 stopped, 1 the display is gone, 2 it could not begin.")]
pub struct Manage {
    #[command(subcommand)]
    pub verb: Option<ManageVerb>,
    /// How much the favourites are favoured
    #[arg(long, value_name = "STRENGTH", default_value_t, value_parser = strength())]
    pub strength: Strength,
    /// By which means
    #[arg(long, value_name = "BACKEND", value_parser = backend(), default_value = "auto")]
    pub backend: BackendChoice,
    /// The display: an X server, or a compositor [default: $WAYLAND_DISPLAY, $DISPLAY, or the only one]
    #[arg(long, value_name = ":N|wayland-N|SOCKET")]
    pub display: Option<String>,
    /// The recorder's folder; under Wayland it tells who has the focus [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub recorder: Option<PathBuf>,
    /// Change only this process and those below it; what is below it no longer when all is put back, since its
    /// parent has ended, keeps what it has inherited
    #[arg(long, value_name = "PID")]
    pub under: Option<u32>,
    /// A control group, version 2, that was delegated to tipme
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
    /// Do not read ahead: neither the memory of the two programs that you used last, nor, at login, the files of your
    /// usual programs, which are not remembered then
    #[arg(long)]
    pub no_predict: bool,
    /// The folder of the helper that turns the knobs, or "none" [default: /run/tipme if it answers
    /// there; none for root]
    #[arg(long, value_name = "DIR|none", value_parser = helper)]
    pub helper: Option<HelperChoice>,
    /// Keep socket, journal and remembered files in this folder [default: /run/tipme, the last in
    /// /var/lib/tipme; without root $XDG_RUNTIME_DIR/tipme and $XDG_STATE_HOME/tipme]
    #[arg(long, value_name = "DIR", global = true)]
    pub state_dir: Option<PathBuf>,
}

fn strength() -> impl TypedValueParser<Value = Strength> {
    PossibleValuesParser::new(Strength::ALL.map(Strength::name)).try_map(|word| word.parse::<Strength>())
}

/// The selected backend; `None` for the best usable one.
type BackendChoice = Option<Backend>;

fn backend() -> impl TypedValueParser<Value = BackendChoice> {
    let all = [None].into_iter().chain(Backend::ALL.map(Some));
    let about = |backend: BackendChoice| backend.map_or("The best that can be used here", Backend::about);
    choice(all, |backend| backend.map_or("auto", Backend::name), about)
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

Lets \"tipme manage\" run without root: the manager looks at the display and decides as the user,
and the helper turns the knobs. It has no policy. It changes only processes of the user who asks,
takes every value from the manager's table, and puts everything back when the manager ends,
however it does. It serves root, who sits at this machine (as the login manager says), and the
users named here.")]
pub struct ManageHelper {
    /// Users (names or ids) who may ask, wherever they are
    #[arg(long, value_name = "USER")]
    pub allow_user: Vec<String>,
    /// Keep socket and journals in this folder [default: /run/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// What a running manager is asked.
#[derive(Subcommand)]
pub enum ManageVerb {
    /// Roles, knobs, memory and what it costs
    Status {
        /// One JSON document instead of text
        #[arg(long)]
        json: bool,
    },
    /// Favour nothing, and put everything back
    Off,
    /// Favour a little
    Gentle,
    /// Favour as usual
    Normal,
    /// Favour as much as is safe
    Strong,
}

#[derive(Args)]
#[command(after_help = "Example:
  tipme why $(pidof firefox)")]
pub struct WhyArguments {
    /// The process
    pub pid: u32,
    /// One JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// The manager's folder [default: /run/tipme; without root $XDG_RUNTIME_DIR/tipme]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}
