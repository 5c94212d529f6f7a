// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of another user cannot get foreign processes favoured, and another user can neither
//! read nor change anything.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::family::for_everybody;
use support::managed::{Desktop, Managed, Terminal, forget_nice_value, nice};
use support::x11;
use support::{Running, open_folder, tipme};
use tempfile::TempDir;
use tipme_bench::process::ProcessGroup;
use tipme_bench::until;
use tipme_desktop::window::Watcher;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, CreateWindowAux, InputFocus, PropMode, Window, WindowClass,
};
use x11rb::rust_connection::{DefaultStream, RustConnection};
use x11rb::wrapper::ConnectionExt as _;

/// A user unrelated to that of the display.
pub const NOBODY: u32 = 65_534;

/// A client of the display, played by this test.
struct Forger {
    connection: RustConnection,
    root: Window,
}

impl Forger {
    /// Connects over the local socket.
    fn local(desktop: &Desktop) -> Forger {
        Forger::new(x11::connect(&desktop.session))
    }

    fn new(connection: RustConnection) -> Forger {
        let root = connection.setup().roots[0].root;
        Forger { connection, root }
    }

    /// Creates a managed window with the keyboard focus.
    fn window(&self, prepare: impl FnOnce(Window)) -> Window {
        let window = self.connection.generate_id().unwrap();
        let look = CreateWindowAux::new();
        let (depth, class) = (x11rb::COPY_DEPTH_FROM_PARENT, WindowClass::INPUT_OUTPUT);
        self.connection
            .create_window(depth, window, self.root, 300, 300, 90, 90, 0, class, 0, &look)
            .unwrap();
        prepare(window);
        self.connection.map_window(window).unwrap();
        self.connection.flush().unwrap();
        until("the forger's focus", || {
            let seen =
                self.connection.get_window_attributes(window).unwrap().reply().unwrap().map_state;
            if seen == x11rb::protocol::xproto::MapState::VIEWABLE {
                self.connection
                    .set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME)
                    .unwrap();
            }
            self.connection.get_input_focus().unwrap().reply().unwrap().focus == window
        });
        window
    }

    /// Gives a window the keyboard focus.
    fn focus(&self, window: Window) {
        self.connection
            .set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME)
            .unwrap()
            .check()
            .unwrap();
    }

    fn claim(&self, window: Window, property: &str, pids: &[u32]) {
        self.write(PropMode::REPLACE, window, (property, AtomEnum::CARDINAL), pids);
    }

    fn write(&self, mode: PropMode, window: Window, named: (&str, AtomEnum), values: &[u32]) {
        let (name, kind) = named;
        let atom =
            self.connection.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom;
        let written = self.connection.change_property32(mode, window, atom, kind, values);
        written.unwrap().check().unwrap();
    }
}

/// Opens a terminal of another user that may use the display.
pub fn other_users_terminal(desktop: &Desktop, folder: &TempDir) -> (ProcessGroup, Window) {
    let authority = folder.path().join("authority");
    std::fs::copy(desktop.session.folder().join("authority"), &authority).unwrap();
    for path in [folder.path(), &authority] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("xterm");
    command.args(["-geometry", "20x5+300+300", "-e", "sh", "-c", "read wait"]);
    desktop.session.prepare(&mut command);
    command.env("XAUTHORITY", &authority).env("HOME", "/").current_dir("/").uid(NOBODY).gid(NOBODY);
    let process = ProcessGroup::start("another user's terminal", command, None).unwrap();
    let watcher = Watcher::open(&desktop.session.target()).unwrap();
    let window = watcher.wait_for_focus(process.pid(), support::family::TIMEOUT).unwrap();
    (process, window)
}

/// Waits until the terminal has lost its favour, so that the manager has seen the focus elsewhere.
fn lost(terminal: &Terminal, favoured: i32) {
    until("the loss of the favour", || nice(terminal.pid()) > favoured);
}

/// Starts a process of the display's user without any window.
fn victim() -> ProcessGroup {
    forget_nice_value();
    let mut command = Command::new("sleep");
    command.arg("1000");
    ProcessGroup::start("a process of the user", command, None).unwrap()
}

#[test]
fn another_users_window_names_other_processes_in_vain() {
    let (desktop, folder, victim) = (Desktop::start(), TempDir::new().unwrap(), victim());
    let terminal = desktop.terminal("+20+20");
    let managed = Managed::start(&desktop, &[]);
    until("the favour", || nice(terminal.pid()) < 0);
    let favoured = nice(terminal.pid());
    let (other, window) = other_users_terminal(&desktop, &folder);
    let forger = Forger::local(&desktop);
    forger.claim(window, "_NET_WM_PID", &[victim.pid()]);
    forger.claim(window, "_TIPME_PROCESS_SET", &[victim.pid(), terminal.shell()]);
    lost(&terminal, favoured);
    until("that the claim was judged", || {
        managed.status()["counts"]["disbelieved"].as_u64() > Some(0)
    });
    assert_eq!((nice(other.pid()), nice(victim.pid())), (0, 0));
    assert!(nice(terminal.shell()) > favoured);
    let why = managed.why(other.pid());
    let reason = why["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("it belongs to user {NOBODY}")), "{why:#}");
    assert_eq!(managed.why(victim.pid())["role"], serde_json::Value::Null);
}

#[test]
fn helpers_of_another_user_are_not_believed_and_ones_own_are() {
    let desktop = Desktop::start();
    let mut command = Command::new("sleep");
    command.arg("1000").uid(NOBODY).gid(NOBODY);
    let (other, own) =
        (ProcessGroup::start("a process of another user", command, None).unwrap(), victim());
    let terminal = desktop.terminal("+20+20");
    let managed = Managed::start(&desktop, &[]);
    Forger::local(&desktop).claim(
        terminal.window,
        "_TIPME_PROCESS_SET",
        &[other.pid(), 1, own.pid(), 999_999_999],
    );
    until("the favour of the helper", || nice(own.pid()) < 0);
    assert_eq!(nice(other.pid()), 0);
    assert_eq!(managed.why(own.pid())["membership"], "property");
    let why = managed.why(other.pid());
    assert!(
        why["reason"].as_str().unwrap().contains(&format!("it belongs to user {NOBODY}")),
        "{why:#}"
    );
}

#[test]
fn a_property_with_a_million_processes_is_cut() {
    let (desktop, victim) = (Desktop::start(), victim());
    let terminal = desktop.terminal("+20+20");
    let managed = Managed::start(&desktop, &[]);
    let mut pids: Vec<u32> = (500_000_000..501_000_000).collect();
    pids.push(victim.pid());
    let forger = Forger::local(&desktop);
    // The length of a request is limited, so it is written in pieces.
    for piece in pids.chunks(50_000) {
        let property = ("_TIPME_PROCESS_SET", AtomEnum::CARDINAL);
        forger.write(PropMode::APPEND, terminal.window, property, piece);
    }
    until("the count of what was cut", || {
        managed.status()["counts"]["dropped"].as_u64() > Some(900_000)
    });
    until("the favour of the terminal", || nice(terminal.pid()) < 0);
    assert_eq!(nice(victim.pid()), 0);
    assert!(managed.memory_bytes() < 20 << 20);
}

#[test]
fn a_program_gets_nothing_by_the_name_of_a_sound_server() {
    let (desktop, folder) = (Desktop::start(), TempDir::new().unwrap());
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let copy = folder.path().join("pipewire");
    std::fs::copy("/usr/bin/sleep", &copy).unwrap();
    let mut command = Command::new(&copy);
    command.arg("1000");
    let named = ProcessGroup::start("a program of that name", command, None).unwrap();
    until("its name", || {
        std::fs::read_to_string(format!("/proc/{}/comm", named.pid())).unwrap() == "pipewire\n"
    });
    let managed = Managed::start(&desktop, &[]);
    let core = managed.status()["core"].to_string();
    assert!(core.contains("openbox") && !core.contains("pipewire"), "{core}");
    assert_eq!(nice(named.pid()), 0);
}

#[test]
fn a_false_window_manager_is_ignored_and_replaces_none() {
    let desktop = Desktop::start();
    let managed = Managed::start(&desktop, &[]);
    let (forger, own) = (Forger::local(&desktop), std::process::id());
    let before = nice(own);
    let window = forger.connection.generate_id().unwrap();
    let (depth, class, look) =
        (x11rb::COPY_DEPTH_FROM_PARENT, WindowClass::INPUT_OUTPUT, CreateWindowAux::new());
    forger
        .connection
        .create_window(depth, window, forger.root, 0, 0, 9, 9, 0, class, 0, &look)
        .unwrap();
    for at in [window, forger.root] {
        let property = ("_NET_SUPPORTING_WM_CHECK", AtomEnum::WINDOW);
        forger.write(PropMode::REPLACE, at, property, &[window]);
    }
    let claim = format!("process {own} says that it is the window manager");
    until("that the claim was judged", || managed.status()["missing"].to_string().contains(&claim));
    let core = managed.status()["core"].clone();
    assert!(core.to_string().contains("openbox"), "{core}");
    assert!(core.as_array().unwrap().iter().all(|process| process[1] != own), "{core}");
    assert_eq!(nice(own), before);
}

/// The display server runs as root, as it must with some graphics drivers, in the session of a
/// user.
#[test]
fn status_reports_that_roots_display_server_is_left_alone() {
    let desktop = Desktop::start();
    let mut command = tipme();
    desktop.session.show(&mut command);
    command.env("SUDO_UID", NOBODY.to_string());
    let managed = Managed::start_by(command, open_folder(), &desktop.session.display_name(), &[]);
    let status = managed.status();
    let server = tipme_desktop::server::describe(&desktop.session.target()).unwrap().server_pid;
    assert_eq!((&status["user"], nice(server)), (&serde_json::Value::from(NOBODY), 0));
    let reason = format!("({server}) belongs to user 0, not {NOBODY}, and is not favoured");
    assert!(status["missing"].to_string().contains(&reason), "{status:#}");
}

/// A client that the server considers remote claims a local process.
#[test]
fn a_client_from_afar_names_a_process_in_vain() {
    let (victim, folder) = (victim(), TempDir::new().unwrap());
    let (_server, display) = server_with_tcp(folder.path());
    let mut command = tipme();
    command.env("XAUTHORITY", folder.path().join("authority"));
    let managed = Managed::start_by(command, TempDir::new().unwrap(), &format!(":{display}"), &[]);
    let stream = std::net::TcpStream::connect(("127.0.0.1", 6000 + display)).unwrap();
    let stream = DefaultStream::from_tcp_stream(stream).unwrap().0;
    let far = Forger::new(x11::connect_over(stream, &folder.path().join("authority")));
    far.window(|window| far.claim(window, "_NET_WM_PID", &[victim.pid()]));
    until("that the claim was judged", || {
        managed.why(victim.pid())["reason"].to_string().contains("claims to belong to it")
    });
    assert_eq!(nice(victim.pid()), 0);
    assert!(managed.status()["counts"]["disbelieved"].as_u64() > Some(0));
}

/// Starts an X server that also listens for remote clients.
fn server_with_tcp(folder: &Path) -> (ProcessGroup, u16) {
    let authority = folder.join("authority");
    std::fs::write(&authority, tipme_desktop::authority_file("", b"sixteen letters!")).unwrap();
    let mut command = Command::new("Xvfb");
    command.args(["-displayfd", "1", "-listen", "tcp", "-noreset", "-auth"]).arg(&authority);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = ProcessGroup::start("an X server", command, None).unwrap();
    let mut line = String::new();
    BufReader::new(server.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
    (server, line.trim().parse().unwrap())
}

/// Environment variable with the display for which this program plays a client that leaves its
/// connection to a child.
const LEAVING: &str = "TIPME_LEAVING_CLIENT";

/// A client leaves its connection to a child and ends, and its PID is reused. Neither a manager
/// that saw the client nor a later one mistakes the new process for the client.
#[test]
fn a_number_that_is_used_again_is_not_the_client() {
    if let Ok(authority) = std::env::var(LEAVING) {
        return leave_connection_to_child(Path::new(&authority));
    }
    let desktop = Desktop::start();
    let terminal = desktop.terminal("+20+20");
    let first = Managed::start(&desktop, &[]);
    let (mut client, heir) = leaving_client(&desktop);
    let number = client.id();
    until("the favour of the client", || nice(number) < 0);
    drop(client.stdin.take());
    client.wait().unwrap();
    let _victim = process_with_number(number);
    desktop.click(&terminal);
    until("the favour of the terminal", || nice(terminal.pid()) < 0);
    let forger = Forger::local(&desktop);
    forger.focus(heir.1);
    until("the loss of the favour", || first.why(terminal.pid())["role"] != "focused");
    assert_eq!(nice(number), 0);
    assert_eq!(first.why(number)["role"], serde_json::Value::Null);
    drop(first);
    let second = Managed::start(&desktop, &[]);
    forger.focus(heir.1);
    until("that the claim was judged", || {
        second.why(number)["reason"].to_string().contains("no connection")
    });
    assert_eq!(nice(number), 0);
}

/// A process that is killed on drop.
struct Heir(u32);

impl Drop for Heir {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0 as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    }
}

/// Starts such a client, which ends with its input; also returns its child and its window.
fn leaving_client(desktop: &Desktop) -> (Child, (Heir, Window)) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "other_users::a_number_that_is_used_again_is_not_the_client",
        "--nocapture",
    ]);
    command
        .env(LEAVING, desktop.session.folder().join("authority"))
        .env("DISPLAY", desktop.session.display_name());
    let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines
        .filter_map(|line| line.split_once("left: ").map(|(_, rest)| rest.to_owned()))
        .next()
        .unwrap();
    let (child, window) = line.split_once(' ').unwrap();
    (client, (Heir(child.parse().unwrap()), window.parse().unwrap()))
}

/// Plays the client.
fn leave_connection_to_child(authority: &Path) {
    let display = std::env::var("DISPLAY").unwrap();
    let stream = UnixStream::connect(format!("/tmp/.X11-unix/X{}", &display[1..])).unwrap();
    rustix::io::fcntl_setfd(&stream, rustix::io::FdFlags::empty()).unwrap();
    let (stream, _) = DefaultStream::from_unix_stream(stream).unwrap();
    let forger = Forger::new(x11::connect_over(stream, authority));
    let window = forger.window(|_| ());
    let child = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    println!("left: {} {window}", child.id());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    std::process::exit(0);
}

/// Starts a process with this free PID.
fn process_with_number(number: u32) -> Running {
    let mut found = None;
    until("a process with that number", || {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
        let sleeper = Running::start(Command::new("sleep").arg("1000"));
        found = Some(sleeper).filter(|sleeper| sleeper.id() == number);
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn another_user_learns_and_changes_nothing() {
    let desktop = Desktop::start();
    let terminal = desktop.terminal("+20+20");
    let managed = Managed::start(&desktop, &[]);
    until("the favour", || nice(terminal.pid()) < 0);
    let (_folder, program) = for_everybody(&["tipme"]);
    for arguments in [&["manage", "status"][..], &["manage", "off"], &["why", "1"]] {
        let mut command = Command::new(&program);
        command.args(arguments).arg("--state-dir").arg(managed.path()).uid(NOBODY).gid(NOBODY);
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        assert!(error.contains(&format!("nobody ({NOBODY}) may not use this manager")), "{error}");
    }
    assert_eq!(managed.status()["strength"], "normal");
    assert!(nice(terminal.pid()) < 0);
}
