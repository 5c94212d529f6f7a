// SPDX-License-Identifier: MIT OR Apache-2.0
//! The application under test, in a window with the keyboard focus.

use super::fault::App;
use super::patient;
use super::site::{DisplayServer, Site};
use crate::compositor::Compositor;
use crate::interrupt::InterruptFlag;
use crate::process::ProcessGroup;
use crate::screen::TerminalScreen;
use crate::seen::DrawingSource;
use crate::session::{self, PrivateSession, SessionOptions};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tipme_desktop::inject::Typist;
use tipme_desktop::window::{DamageWatch, Watcher};

/// How long an application may take to show a window that has the focus.
const TIMEOUT: Duration = Duration::from_secs(40);
/// How often a waiter looks whether the application takes keys.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A page that is one large text field with the focus; its caret does not blink, so only keys draw.
const PAGE: &str = "<!doctype html><meta charset=\"utf-8\"><title>text</title>
<style>html,body{margin:0;height:100%}textarea{width:90%;height:80%;caret-color:transparent}</style>
<textarea autofocus spellcheck=\"false\" autocomplete=\"off\"></textarea>
<script>document.querySelector('textarea').focus()</script>
";

/// Where toolkits have their settings, and what they are: nothing moves by itself.
const SETTINGS: [(&str, &str); 3] = [
    ("gtk-3.0/settings.ini", "[Settings]\ngtk-cursor-blink=0\ngtk-enable-animations=0\n"),
    ("gtk-4.0/settings.ini", "[Settings]\ngtk-cursor-blink=0\ngtk-enable-animations=0\n"),
    ("glib-2.0/settings/keyfile", "[org/gnome/desktop/interface]\ncursor-blink=false\nenable-animations=false\n"),
];

impl App {
    /// All of them.
    pub const ALL: [App; 7] =
        [App::Patient, App::Xterm, App::Foot, App::Gtk, App::Chromium, App::Gtk4, App::WaylandChromium];

    /// Those that obey orders.
    pub(super) const OURS: &[App] = &[App::Patient, App::Xterm, App::Foot];

    /// Those on X displays.
    pub(super) const OF_X11: &[App] = &[App::Patient, App::Xterm, App::Gtk, App::Chromium];

    /// Those on compositors of Wayland.
    pub(super) const OF_WAYLAND: &[App] = &[App::Foot, App::Gtk4, App::WaylandChromium];

    /// The name on the command line and in the table.
    pub fn name(self) -> &'static str {
        match self {
            App::Patient => "patient",
            App::Xterm => "xterm",
            App::Foot => "foot",
            App::Gtk => "gtk",
            App::Chromium => "chromium",
            App::Gtk4 => "gtk4",
            App::WaylandChromium => "wayland-chromium",
        }
    }

    /// For people, one line.
    pub fn about(self) -> &'static str {
        match self {
            App::Patient => "An X client of our own",
            App::Xterm => "A terminal with a program of our own on it",
            App::Foot => "The same on a terminal of Wayland (foot, on sway)",
            App::Gtk => "A GTK text editor (mousepad)",
            App::Chromium => "A browser with a text field",
            App::Gtk4 => "A GTK 4 text editor on Wayland (gnome-text-editor, on sway)",
            App::WaylandChromium => "The browser on Wayland (on sway)",
        }
    }

    /// Programs that must be installed.
    fn programs(self) -> &'static [&'static str] {
        match self {
            App::Patient | App::Foot => &[],
            App::Xterm => &["xterm"],
            App::Gtk => &["mousepad"],
            App::Chromium | App::WaylandChromium => &["chromium"],
            App::Gtk4 => &["gnome-text-editor"],
        }
    }

    /// It obeys orders.
    fn obeys(self) -> bool {
        App::OURS.contains(&self)
    }

    /// Its display is a compositor of Wayland.
    pub(crate) fn is_of_wayland(self) -> bool {
        App::OF_WAYLAND.contains(&self)
    }
}

/// A private display that is kept from trial to trial.
pub(super) enum TrialDisplay {
    X11(PrivateSession),
    Wayland(Compositor),
}

impl TrialDisplay {
    /// Starts the display of an application, with everything on one CPU where `cpu` names one.
    pub(super) fn start(app: App, cpu: Option<usize>) -> Result<TrialDisplay> {
        let options = SessionOptions { cpu, ..SessionOptions::default() };
        Ok(match app.is_of_wayland() {
            true => TrialDisplay::Wayland(Compositor::start(options)?),
            false => TrialDisplay::X11(PrivateSession::start(options)?),
        })
    }

    pub(super) fn screen(&self) -> &dyn TerminalScreen {
        match self {
            TrialDisplay::X11(session) => session,
            TrialDisplay::Wayland(compositor) => compositor,
        }
    }

    /// As faults are told of it.
    pub(super) fn server(&self) -> DisplayServer {
        match self {
            TrialDisplay::X11(session) => {
                DisplayServer::X11 { number: session.target().display, authority: session.folder().join("authority") }
            }
            TrialDisplay::Wayland(compositor) => DisplayServer::Wayland { compositor: compositor.pid() },
        }
    }
}

/// An application that runs. Dropping it ends it.
pub(super) struct TrialApplication {
    app: App,
    process: ProcessGroup,
    /// Of an X display.
    window: Option<u32>,
    folder: PathBuf,
}

impl TrialApplication {
    /// Starts it with its settings and other files below `home`, behind the words of `prefix`.
    ///
    /// Returns once its window has the focus and, where it is one of ours, takes keys.
    pub(super) fn start(
        app: App,
        display: &TrialDisplay,
        typist: &mut Typist,
        site: &Site,
        home: &Path,
        prefix: &[OsString],
        interrupt: &InterruptFlag,
    ) -> Result<TrialApplication> {
        let (process, window) = match display {
            TrialDisplay::X11(session) => TrialApplication::open(app, session, site, home, prefix)?,
            TrialDisplay::Wayland(compositor) if app.obeys() => {
                (compositor.open(typist, prefix, &words(app, site, home)?)?, None)
            }
            TrialDisplay::Wayland(compositor) => {
                session::require(app.programs())?;
                let mut command = behind(prefix, &words(app, site, home)?)?;
                session::own_home(&mut command, home);
                settle_in(app, &mut command, home)?;
                (compositor.open_window(typist, app.name(), command)?, None)
            }
        };
        let mut started = TrialApplication { app, process, window, folder: site.folder.clone() };
        started.wait_for_patient(interrupt)?;
        Ok(started)
    }

    /// Opens it on an X display; its process and its outermost window.
    fn open(
        app: App,
        session: &PrivateSession,
        site: &Site,
        home: &Path,
        prefix: &[OsString],
    ) -> Result<(ProcessGroup, Option<u32>)> {
        session::require(app.programs())?;
        let watcher = Watcher::open(&session.target())?;
        let log = home.join("errors");
        let mut command = behind(prefix, &words(app, site, home)?)?;
        session.prepare(&mut command);
        settle_in(app, &mut command, home)?;
        command.stderr(File::create(&log).with_context(|| format!("cannot write {}", log.display()))?);
        let mut process = ProcessGroup::start(app.name(), command, session.cpu())?;
        let window = watcher.wait_for_focus(process.pid(), TIMEOUT);
        process.expect_alive().with_context(|| last_line(&log))?;
        let window = watcher.outermost(process.pid(), window?)?;
        Ok((process, Some(window)))
    }

    /// The process with the window.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Begins to watch what it draws; under Wayland nobody else draws.
    pub(super) fn watch(&self, display: &TrialDisplay) -> Result<Box<dyn DrawingSource>> {
        match (display, self.window) {
            (TrialDisplay::X11(session), Some(window)) => Ok(Box::new(DamageWatch::open(&session.target(), window)?)),
            _ => display.screen().watch()?.context("the display does not tell what it shows"),
        }
    }

    /// Fails where it has ended, or could not do what it was told.
    pub(super) fn expect_well(&mut self) -> Result<()> {
        self.process.expect_alive()?;
        match patient::failure(&self.folder)? {
            Some(why) => bail!("{why}"),
            None => Ok(()),
        }
    }

    fn wait_for_patient(&mut self, interrupt: &InterruptFlag) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while self.app.obeys() && patient::pid(&self.folder)?.is_none() {
            self.process.expect_alive()?;
            if Instant::now() >= deadline {
                bail!("{} took no keys within {TIMEOUT:?}", self.app.name());
            }
            interrupt.sleep(POLL_INTERVAL)?;
        }
        Ok(())
    }
}

/// The application's own command; of a terminal of Wayland, which the compositor opens, what runs on it.
fn words(app: App, site: &Site, home: &Path) -> Result<Vec<OsString>> {
    let plain = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    Ok(match app {
        App::Patient => {
            let DisplayServer::X11 { number, authority } = &site.display else { bail!("it takes an X display") };
            let (number, authority) = (number.to_string().into(), authority.as_os_str().to_owned());
            ours(site, &home.join("patient"), &["patient".into(), number, authority, site.folder.clone().into()])?
        }
        App::Xterm => {
            let xterm = ["xterm", "-geometry", "100x30+20+20", "+sb", "-xrm", "XTerm*cursorBlink: false", "-e"];
            plain(&xterm).into_iter().chain(on_terminal(site, home)?).collect()
        }
        App::Foot => on_terminal(site, home)?,
        App::Gtk => plain(&["mousepad", "--disable-server"]),
        App::Gtk4 => plain(&["gnome-text-editor", "--standalone"]),
        App::Chromium | App::WaylandChromium => chromium(app, home)?,
    })
}

/// The program of ours that sits on a terminal.
fn on_terminal(site: &Site, home: &Path) -> Result<Vec<OsString>> {
    ours(site, &home.join("tty-patient"), &["tty-patient".into(), site.folder.clone().into()])
}

/// A worker program under a name of its own.
fn ours(site: &Site, alias: &Path, arguments: &[OsString]) -> Result<Vec<OsString>> {
    let command = site.launcher.command(Some(alias), arguments)?;
    let program = command.get_program().to_owned();
    Ok(std::iter::once(program).chain(command.get_args().map(ToOwned::to_owned)).collect())
}

fn chromium(app: App, home: &Path) -> Result<Vec<OsString>> {
    let page = home.join("page.html");
    std::fs::write(&page, PAGE).with_context(|| format!("cannot write {}", page.display()))?;
    let flags = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--password-store=basic",
        if app.is_of_wayland() { "--ozone-platform=wayland" } else { "--ozone-platform=x11" },
    ];
    let profile = format!("--user-data-dir={}", home.join("profile").display());
    let app = format!("--app=file://{}", page.display());
    let words = std::iter::once("chromium").chain(flags).map(OsString::from);
    Ok(words.chain([profile.into(), app.into()]).collect())
}

fn behind(prefix: &[OsString], words: &[OsString]) -> Result<Command> {
    let all: Vec<&OsString> = prefix.iter().chain(words).collect();
    let (first, rest) = all.split_first().context("no application to start")?;
    let mut command = Command::new(first);
    command.args(rest);
    Ok(command)
}

/// Gives a toolkit's application settings of its own: no blinking caret, no bus, no assistive services.
fn settle_in(app: App, command: &mut Command, home: &Path) -> Result<()> {
    if app.obeys() {
        return Ok(());
    }
    for (file, text) in SETTINGS {
        let file = home.join(file);
        let folder = file.parent().context("settings lie in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
        command.env(variable, home);
    }
    command.env("GSETTINGS_BACKEND", "keyfile").env("NO_AT_BRIDGE", "1").env("GTK_IM_MODULE", "gtk-im-context-simple");
    // Without an address a bus would be started.
    command.env("DBUS_SESSION_BUS_ADDRESS", "disabled:").current_dir(home);
    if app.is_of_wayland() {
        command.env("GDK_BACKEND", "wayland").env("GSK_RENDERER", "cairo");
    }
    Ok(())
}

/// The last thing that a program said on its error output.
fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("it said nothing").to_string()
}
