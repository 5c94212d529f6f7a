// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compositor without a screen, a terminal in it, and a virtual keyboard: unmodified programs of a user's.
#![allow(dead_code, reason = "each test target uses a part")]

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::collections::HashMap;
use std::fs::Permissions;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Who the compositor and its clients are; it has no account.
pub const USER: u32 = 4242;

/// An account that every Debian has: an X server lets only those in whose names it knows.
const ACCOUNT: u32 = 9;

/// The display's name: nobody else has one in this folder.
pub const DISPLAY: &str = "wayland-1";

/// Only a test that fails waits for so long.
const TIMEOUT: Duration = Duration::from_secs(60);

const CONFIGURATION: &str = "output HEADLESS-1 resolution 800x600\nxwayland disable\n";

/// The same with an X server, which begins with its first client; the display's name is left in a file.
const CONFIGURATION_WITH_X: &str =
    "output HEADLESS-1 resolution 800x600\nxwayland enable\nexec sh -c 'echo $DISPLAY > x && mv x x-display'\n";

/// What a compositor compiles a keymap from, and its clients after it.
const KEYMAP: &str = r#"xkb_keymap {
    xkb_keycodes { include "evdev+aliases(qwerty)" };
    xkb_types { include "complete" };
    xkb_compat { include "complete" };
    xkb_symbols { include "pc+us+inet(evdev)" };
};"#;

/// A program that is killed with the value.
pub struct Program(pub Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub struct Compositor {
    dir: TempDir,
    user: u32,
    pub sway: Program,
}

impl Compositor {
    pub fn start() -> Compositor {
        Compositor::start_as(USER, &[])
    }

    /// One of this user, with more in its environment.
    pub fn start_as(user: u32, more: &[(&str, &str)]) -> Compositor {
        Compositor::configured(user, CONFIGURATION, more)
    }

    /// A compositor with an X server for programs of X11.
    pub fn start_with_x() -> Compositor {
        // Who is no user of root's can make a display only where the folder of their sockets is root's.
        std::fs::create_dir_all("/tmp/.X11-unix").unwrap();
        std::fs::set_permissions("/tmp/.X11-unix", Permissions::from_mode(0o1777)).unwrap();
        Compositor::configured(ACCOUNT, CONFIGURATION_WITH_X, &[])
    }

    fn configured(user: u32, configuration: &str, more: &[(&str, &str)]) -> Compositor {
        let dir = TempDir::new().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        std::fs::write(dir.path().join("configuration"), configuration).unwrap();
        chown(dir.path(), Some(user), Some(user)).unwrap();
        chown(dir.path().join("configuration"), Some(user), Some(user)).unwrap();
        let mut command = user_program(dir.path(), user, "sway");
        command.envs([("WLR_BACKENDS", "headless"), ("WLR_LIBINPUT_NO_DEVICES", "1"), ("WLR_RENDERER", "pixman")]);
        command.envs(more.iter().copied()).arg("-c").arg(dir.path().join("configuration"));
        let sway = Program(command.spawn().expect("sway is installed: make test-deps"));
        let compositor = Compositor { dir, user, sway };
        wait_for("the compositor's sockets", || compositor.socket().exists() && compositor.control().is_some());
        compositor
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join(DISPLAY)
    }

    /// The socket of sway's own protocol.
    pub fn control(&self) -> Option<PathBuf> {
        let files = std::fs::read_dir(self.dir.path()).unwrap().flatten().map(|file| file.path());
        files.into_iter().find(|path| path.to_string_lossy().contains("sway-ipc."))
    }

    /// A program of the user's, with the compositor as its display.
    pub fn command(&self, name: &str) -> Command {
        let mut command = user_program(self.dir.path(), self.user, name);
        command.env("WAYLAND_DISPLAY", DISPLAY);
        command
    }

    /// A terminal with this title that shows what is typed, and has the focus.
    pub fn terminal(&self, title: &str) -> Program {
        let file = self.dir.path().join("terminal");
        std::fs::write(&file, format!("title={title}\nlocked-title=yes\n")).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let terminal = self.command("foot").arg("-c").arg(&file).arg("cat").spawn();
        let terminal = Program(terminal.expect("foot is installed: make test-deps"));
        let listed = format!("\"pid\": {},", terminal.0.id());
        wait_for("the terminal's window", || self.tree().contains(&listed));
        terminal
    }

    /// A terminal of X11, which shows what is typed and has the focus, and the X server's process.
    pub fn x_terminal(&self) -> (Program, u32) {
        let name = self.dir.path().join("x-display");
        wait_for("the X display's name", || name.exists());
        let display = std::fs::read_to_string(name).unwrap();
        let terminal = self.command("xterm").env("DISPLAY", display.trim()).args(["-e", "cat"]).spawn();
        let terminal = Program(terminal.expect("xterm is installed: make test-deps"));
        wait_for("a window", || self.tree().contains("\"class\": \"XTerm\""));
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let own = processes.filter(|process| process.metadata().is_ok_and(|process| process.uid() == self.user));
        let named = |path: &Path| std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name == "Xwayland\n");
        let server = own.map(|process| process.path()).find(|path| named(path)).expect("an X server of the user's");
        let server = server.file_name().unwrap().to_string_lossy().into_owned();
        (terminal, server.parse().unwrap())
    }

    /// The folder of the user, who has nothing else.
    pub fn home(&self) -> &Path {
        self.dir.path()
    }

    /// What the compositor says of its windows.
    pub fn tree(&self) -> String {
        let socket = self.control().unwrap();
        let output = self.command("swaymsg").arg("-s").arg(socket).args(["-t", "get_tree", "-r"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn user_program(dir: &Path, user: u32, name: &str) -> Command {
    let mut command = Command::new(name);
    command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8")]);
    command.env("HOME", dir).env("XDG_RUNTIME_DIR", dir).current_dir(dir).uid(user).gid(user);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < TIMEOUT, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A keyboard that exists only to its compositor. It speaks the protocol itself: no library is between the test and the wire.
pub struct Keyboard {
    socket: UnixStream,
    objects: u32,
    /// Names of interfaces with the numbers that the registry gives them.
    globals: HashMap<String, u32>,
    received: Vec<u8>,
    keyboard: u32,
}

const DISPLAY_OBJECT: u32 = 1;
const REGISTRY: u32 = 2;

impl Keyboard {
    pub fn plug_in(compositor: &Compositor) -> Keyboard {
        let socket = UnixStream::connect(compositor.socket()).unwrap();
        let (globals, received) = (HashMap::new(), Vec::new());
        let mut new = Keyboard { socket, objects: REGISTRY, globals, received, keyboard: 0 };
        new.request(DISPLAY_OBJECT, 1, &[REGISTRY]);
        new.sync();
        let (seat, manager) = (new.bind("wl_seat"), new.bind("zwp_virtual_keyboard_manager_v1"));
        new.keyboard = new.next_object();
        new.request(manager, 0, &[seat, new.keyboard]);
        new.send_keymap();
        new.sync();
        new
    }

    /// Presses and releases a key, by its code of input devices.
    pub fn key(&mut self, code: u32) {
        self.press(code);
        self.release(code);
        self.sync();
    }

    fn press(&mut self, code: u32) {
        self.request(self.keyboard, 1, &[now_ms(), code, 1]);
    }

    fn release(&mut self, code: u32) {
        self.request(self.keyboard, 1, &[now_ms(), code, 0]);
    }

    /// Presses and releases a key with Ctrl and Alt held.
    pub fn control_alt(&mut self, code: u32) {
        let (modifiers, control_and_alt) = (2, 4 | 8);
        self.request(self.keyboard, modifiers, &[control_and_alt, 0, 0, 0]);
        self.press(code);
        self.release(code);
        self.request(self.keyboard, modifiers, &[0; 4]);
        self.sync();
    }

    /// A key without waiting until the compositor has it.
    pub fn key_unanswered(&mut self, code: u32) {
        self.press(code);
        self.release(code);
    }

    fn next_object(&mut self) -> u32 {
        self.objects += 1;
        self.objects
    }

    fn request(&mut self, object: u32, opcode: u32, arguments: &[u32]) {
        self.socket.write_all(&message(object, opcode, &bytes(arguments))).unwrap();
    }

    fn bind(&mut self, interface: &str) -> u32 {
        let (name, new) = (self.globals[interface], self.next_object());
        let mut text = interface.as_bytes().to_vec();
        text.resize((text.len() + 1).next_multiple_of(4), 0);
        let head = bytes(&[name, interface.len() as u32 + 1]);
        let content = [head, text, bytes(&[1, new])].concat();
        self.socket.write_all(&message(REGISTRY, 0, &content)).unwrap();
        new
    }

    fn send_keymap(&mut self) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(KEYMAP.as_bytes()).unwrap();
        file.write_all(&[0]).unwrap();
        let bytes = message(self.keyboard, 0, &bytes(&[1, KEYMAP.len() as u32 + 1]));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    /// Waits until the compositor has handled what it was sent.
    pub fn sync(&mut self) {
        let callback = self.next_object();
        self.request(DISPLAY_OBJECT, 0, &[callback]);
        while !self.read_events(callback) {
            let mut part = [0; 4_096];
            let count = self.socket.read(&mut part).unwrap();
            assert!(count > 0, "the compositor closed the connection");
            self.received.extend_from_slice(&part[..count]);
        }
    }

    /// Reads the events that are there; whether that of an object is among them.
    fn read_events(&mut self, callback: u32) -> bool {
        let mut found = false;
        while let Some(size) = self.received.get(4..8).map(|bytes| (number(bytes) >> 16) as usize) {
            if self.received.len() < size {
                break;
            }
            let event: Vec<u8> = self.received.drain(..size).collect();
            match (number(&event[..4]), number(&event[4..8]) & 0xffff) {
                (DISPLAY_OBJECT, 0) => {
                    panic!("the compositor does not understand: {}", String::from_utf8_lossy(&event))
                }
                (REGISTRY, 0) => {
                    let end = 16 + number(&event[12..16]) as usize - 1;
                    let name = String::from_utf8(event[16..end].to_vec()).unwrap();
                    self.globals.insert(name, number(&event[8..12]));
                }
                (object, _) => found |= object == callback,
            }
        }
        found
    }
}

fn message(object: u32, opcode: u32, content: &[u8]) -> Vec<u8> {
    let size = 8 + content.len() as u32;
    [bytes(&[object, size << 16 | opcode]), content.to_vec()].concat()
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

/// The clock of input devices.
fn now_ms() -> u32 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec * 1_000 + now.tv_nsec / 1_000_000) as u32
}
