// SPDX-License-Identifier: MIT OR Apache-2.0
//! Private display with a client of its own, and the accumulated reports of an [`Attention`].

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_desktop::attention::{Attention, AttentionChange, WindowState};
use tipme_desktop::{DisplayTarget, authority_file};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _, CreateWindowAux,
    EventMask, InputFocus, PropMode, WindowClass,
};
use x11rb::rust_connection::{DefaultStream, RustConnection};
use x11rb::wrapper::ConnectionExt as _;

/// Timeout of required events: long enough for a busy machine and a first font cache.
const LONG: Duration = Duration::from_secs(60);
const COOKIE: &str = "MIT-MAGIC-COOKIE-1";

/// A program that ends with its owner.
pub struct Program(Child);

impl Program {
    fn start(mut command: Command) -> Program {
        let parent = getpid();
        // SAFETY: the closure only makes system calls; it uses no memory of the parent, no lock, no
        // allocator.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                let is_child = getppid() == Some(parent);
                is_child.then_some(()).ok_or(std::io::ErrorKind::BrokenPipe.into())
            });
        }
        Program(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An X server with a client that belongs to the test's own process.
pub struct Display {
    pub wire: RustConnection,
    pub server: Program,
    pub cookie: Vec<u8>,
    number: u32,
    folder: TempDir,
}

impl Display {
    /// Starts a server with a cookie that only the test knows.
    pub fn start() -> Display {
        Display::start_with(&["-nolisten", "tcp"])
    }

    pub fn start_with(arguments: &[&str]) -> Display {
        let folder = tempfile::Builder::new().prefix("tipme-attention-").tempdir().unwrap();
        let mut cookie = vec![0; 16];
        rustix::rand::getrandom(&mut cookie, rustix::rand::GetRandomFlags::empty()).unwrap();
        std::fs::write(folder.path().join("authority"), authority_file("", &cookie)).unwrap();
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-noreset", "-screen", "0", "1024x768x24", "-auth"]);
        command.arg(folder.path().join("authority")).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Program::start(command);
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let number = line.trim().parse().expect("the X server prints its display");
        let wire = connect(number, &cookie);
        Display { wire, server, cookie, number, folder }
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn root(&self) -> u32 {
        self.wire.setup().roots[0].root
    }

    pub fn target(&self) -> DisplayTarget {
        let authority = Some(self.folder.path().join("authority"));
        DisplayTarget {
            authority,
            timeout: Duration::from_secs(20),
            ..DisplayTarget::new(self.number)
        }
    }

    /// Opens another client of the same process.
    pub fn client(&self) -> RustConnection {
        connect(self.number, &self.cookie)
    }

    pub fn command(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Command {
        let folder: &Path = self.folder.path();
        let mut command = Command::new(program);
        command.args(arguments).env("DISPLAY", format!(":{}", self.number)).env("HOME", folder);
        command
            .env("XAUTHORITY", folder.join("authority"))
            .env("XDG_CONFIG_HOME", folder)
            .env("XDG_CACHE_HOME", folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts openbox; it is ready when the attention reports it.
    pub fn manager(&self, focus: &str) -> Program {
        let settings = self.folder.path().join("openbox");
        std::fs::create_dir_all(&settings).unwrap();
        let text = format!(
            "<openbox_config xmlns=\"http://openbox.org/3.4/rc\">\
             <focus>{focus}</focus></openbox_config>"
        );
        std::fs::write(settings.join("rc.xml"), text).unwrap();
        Program::start(self.command("openbox", ["--sm-disable"]))
    }

    pub fn terminal(&self, geometry: &str) -> Program {
        let arguments =
            ["-geometry", geometry, "-xrm", "XTerm*cursorBlink: false", "-e", "sleep", "600"];
        Program::start(self.command("xterm", arguments))
    }

    /// Makes a window of the test, not yet mapped.
    pub fn window(&self, place: (i16, i16, u16, u16), unmanaged: bool) -> u32 {
        make_window(&self.wire, place, unmanaged)
    }

    pub fn shown(&self, place: (i16, i16, u16, u16), unmanaged: bool) -> u32 {
        let window = self.window(place, unmanaged);
        self.map(window);
        window
    }

    pub fn map(&self, window: u32) {
        self.wire.map_window(window).unwrap().check().unwrap();
    }

    pub fn unmap(&self, window: u32) {
        self.wire.unmap_window(window).unwrap().check().unwrap();
    }

    /// Gives the focus to a window, to no window, or to the window under the pointer.
    pub fn focus(&self, window: u32) {
        let sent = self.wire.set_input_focus(InputFocus::POINTER_ROOT, window, x11rb::CURRENT_TIME);
        sent.unwrap().check().unwrap();
    }

    pub fn warp(&self, x: i16, y: i16) {
        self.wire
            .warp_pointer(x11rb::NONE, self.root(), 0, 0, 0, 0, x, y)
            .unwrap()
            .check()
            .unwrap();
    }

    pub fn atom(&self, name: &str) -> u32 {
        self.wire.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom
    }

    pub fn set(&self, window: u32, name: &str, kind: AtomEnum, values: &[u32]) {
        let sent =
            self.wire.change_property32(PropMode::REPLACE, window, self.atom(name), kind, values);
        sent.unwrap().check().unwrap();
    }

    /// Sends a request to the window manager.
    pub fn ask_manager(&self, window: u32, what: &str, data: [u32; 5]) {
        let message = ClientMessageEvent::new(32, window, self.atom(what), data);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.forge(self.root(), mask, message);
    }

    pub fn activate(&self, window: u32) {
        self.ask_manager(window, "_NET_ACTIVE_WINDOW", [2, 0, 0, 0, 0]);
    }

    pub fn configure(&self, window: u32, change: &ConfigureWindowAux) {
        self.wire.configure_window(window, change).unwrap().check().unwrap();
    }

    /// Sends an event in place of the server.
    pub fn forge(&self, window: u32, mask: EventMask, event: impl Into<[u8; 32]>) {
        self.wire.send_event(false, window, mask, event).unwrap().check().unwrap();
    }
}

pub fn make_window(wire: &RustConnection, place: (i16, i16, u16, u16), unmanaged: bool) -> u32 {
    let window = wire.generate_id().unwrap();
    let look = CreateWindowAux::new().override_redirect(u32::from(unmanaged)).background_pixel(0);
    let (root, (x, y, width, height)) = (wire.setup().roots[0].root, place);
    let class = WindowClass::INPUT_OUTPUT;
    let sent = wire.create_window(0, window, root, x, y, width, height, 0, class, 0, &look);
    sent.unwrap().ignore_error();
    window
}

fn connect(number: u32, cookie: &[u8]) -> RustConnection {
    let stream = UnixStream::connect(format!("/tmp/.X11-unix/X{number}")).unwrap();
    greet(DefaultStream::from_unix_stream(stream).unwrap().0, cookie)
}

pub fn greet(stream: DefaultStream, cookie: &[u8]) -> RustConnection {
    RustConnection::connect_to_stream_with_auth_info(stream, 0, COOKIE.into(), cookie.to_vec())
        .unwrap()
}

/// State after all changes so far.
pub struct Known {
    pub attention: Attention,
    pub windows: BTreeMap<u32, WindowState>,
    pub keyboard: Option<u32>,
    pub pointer: Option<u32>,
    /// Total number of reported changes.
    pub changes: usize,
}

impl Known {
    pub fn open(display: &Display) -> Known {
        let attention = Attention::open(&display.target()).unwrap();
        let mut known = Known {
            attention,
            windows: BTreeMap::new(),
            keyboard: None,
            pointer: None,
            changes: 0,
        };
        let first = known.take();
        assert!(
            first.iter().any(|change| matches!(change, AttentionChange::Keyboard(_)))
                && first.iter().any(|change| matches!(change, AttentionChange::Pointer(_))),
            "{first:?}"
        );
        known
    }

    /// Applies the changes of one call; each must be new and consistent with earlier reports.
    pub fn take(&mut self) -> Vec<AttentionChange> {
        let changes = self.attention.changes().unwrap();
        let mut states: Vec<u32> = Vec::new();
        for change in &changes {
            match change {
                AttentionChange::Window(state) => {
                    assert!(!states.contains(&state.window), "reported twice: {changes:?}");
                    states.push(state.window);
                    assert_ne!(
                        self.windows.insert(state.window, state.clone()).as_ref(),
                        Some(state)
                    );
                }
                AttentionChange::Keyboard(window) => self.keyboard = self.followed(*window),
                AttentionChange::Pointer(window) => self.pointer = self.followed(*window),
                AttentionChange::Gone(window) => {
                    assert!(self.windows.remove(window).is_some(), "{changes:?}")
                }
            }
        }
        let of_focus = changes.iter().filter(|change| {
            matches!(change, AttentionChange::Keyboard(_) | AttentionChange::Pointer(_))
        });
        assert!(of_focus.count() <= 2, "{changes:?}");
        self.changes += changes.len();
        changes
    }

    fn followed(&self, window: Option<u32>) -> Option<u32> {
        assert!(
            window.is_none_or(|window| self.windows.contains_key(&window)),
            "{window:?} was never reported"
        );
        window
    }

    /// Waits for an event of the display; returns `false` on a timeout.
    pub fn wait(&self, timeout: Duration) -> bool {
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        poll(&mut [PollFd::from_borrowed_fd(self.attention.fd(), PollFlags::IN)], Some(&timeout))
            .unwrap()
            > 0
    }

    /// Applies changes, woken by the display only, until a condition holds.
    pub fn until(&mut self, what: &str, so: impl Fn(&Known) -> bool) {
        let deadline = Instant::now() + LONG;
        while !so(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                self.wait(left),
                "not so: {what}: {:#?} {:?} {:?}",
                self.windows,
                self.keyboard,
                self.pointer
            );
            self.take();
        }
    }

    /// Returns the windows of a process.
    pub fn windows_of(&self, pid: u32) -> Vec<u32> {
        let states = self.windows.values();
        let own = states.filter(|state| state.owner.is_some_and(|owner| owner.pid == pid));
        own.map(|state| state.window).collect()
    }

    /// Waits for the first window of a process.
    pub fn window_of(&mut self, pid: u32) -> u32 {
        self.until("a window of the process", |known| !known.windows_of(pid).is_empty());
        self.windows_of(pid)[0]
    }

    /// Applies pending changes until the display is quiet.
    pub fn settle(&mut self) {
        self.settle_for(Duration::from_millis(300));
    }

    pub fn settle_for(&mut self, quiet: Duration) {
        while self.wait(quiet) {
            self.take();
        }
    }

    pub fn is(&self, window: u32, so: impl Fn(&WindowState) -> bool) -> bool {
        self.windows.get(&window).is_some_and(so)
    }
}
