// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs that do not descend from their terminal, and values that jobs inherit.

use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::managed::{Desktop, Managed, Terminal, command_line, nice};
use tempfile::TempDir;
use tipme_bench::process::{ProcessGroup, family};
use tipme_bench::until;

/// tmux in a folder of its own. Its server stays below this test, as only descendants may be
/// changed.
struct Multiplexer {
    folder: TempDir,
    server: ProcessGroup,
}

impl Multiplexer {
    fn start() -> Multiplexer {
        let folder = TempDir::new().unwrap();
        let mut command = tmux(folder.path());
        command.args(["-f", "/dev/null", "-D"]);
        let server = ProcessGroup::start("tmux", command, None).unwrap();
        let this = Multiplexer { folder, server };
        until("its socket", || this.socket().exists());
        this
    }

    fn signal(&self, signal: Signal) {
        kill(self.server.pid(), signal);
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("socket")
    }

    fn run(&self, arguments: &[&str]) {
        assert!(
            tmux(self.folder.path()).args(arguments).status().unwrap().success(),
            "{arguments:?}"
        );
    }

    /// Returns the shell command that attaches to it.
    fn attach(&self) -> String {
        format!("tmux -S {} attach", self.socket().display())
    }

    fn job(&self, words: &[&str]) -> u32 {
        process_of(|| family(self.server.pid()), words)
    }
}

impl Drop for Multiplexer {
    /// Background jobs of its terminals would continue without it.
    fn drop(&mut self) {
        family(self.server.pid()).into_iter().for_each(|pid| kill(pid, Signal::KILL));
    }
}

fn kill(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let _ended = rustix::process::kill_process(pid, signal);
}

fn tmux(folder: &Path) -> Command {
    let mut command = Command::new("tmux");
    command.arg("-S").arg(folder.join("socket")).env_remove("TMUX").env("TERM", "xterm");
    command
}

fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn process_of(all: impl Fn() -> Vec<u32>, words: &[&str]) -> u32 {
    let mut found = None;
    until("a process", || {
        found = all().into_iter().find(|pid| command_line(*pid) == words);
        found.is_some()
    });
    found.unwrap()
}

fn process_in(terminal: &Terminal, words: &[&str]) -> u32 {
    process_of(|| terminal.below(), words)
}

/// The server was started earlier, and descends from no terminal. The foreground jobs of its
/// terminals share the favour of the terminal that shows them, and so does the server, which
/// handles the keys.
#[test]
fn jobs_of_a_multiplexer_share_the_favour_of_its_terminal() {
    let desktop = Desktop::start();
    let multiplexer = Multiplexer::start();
    multiplexer.run(&["new-session", "-d", "sh", "-c", "set -m; sleep 4000 & sleep 5000"]);
    let (behind, front) =
        (multiplexer.job(&["sleep", "4000"]), multiplexer.job(&["sleep", "5000"]));
    let managed = Managed::start(&desktop, &[]);
    // At first the server does not answer: the client's connection is not accepted yet.
    multiplexer.signal(Signal::STOP);
    let terminal = desktop.terminal_with("+20+20", &multiplexer.attach());
    until("the favour of the client", || {
        terminal.below().into_iter().any(|pid| name(pid) == "tmux: client" && nice(pid) < 0)
    });
    std::thread::sleep(Duration::from_millis(600));
    multiplexer.signal(Signal::CONT);
    until("the favour of the job in front", || {
        nice(front) < 0 && nice(front) == nice(terminal.pid())
    });
    until("the favour of the server", || nice(multiplexer.server.pid()) < 0);
    assert_eq!(managed.why(multiplexer.server.pid())["membership"], "server");
    assert_eq!((managed.why(front)["membership"].as_str(), nice(behind)), (Some("foreground"), 0));
    let other = desktop.terminal("+500+20");
    until("that the favour has gone with the focus", || nice(front) > nice(other.pid()));
    desktop.click(&terminal);
    until("that it comes back", || nice(front) == nice(terminal.pid()));
    multiplexer.run(&["detach-client", "-a"]);
    multiplexer.run(&["detach-client"]);
    until("that nothing shows it any more", || {
        nice(front) == 0 && nice(multiplexer.server.pid()) == 0
    });
}

/// A daemon leaves its parent and its session at once, but keeps its inherited values.
#[test]
fn a_daemon_keeps_nothing_of_the_favour_that_it_was_born_with() {
    let desktop = Desktop::start();
    let go = TempDir::new().unwrap();
    let fifo = go.path().join("go");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Its orphans must stay below this test, as only descendants may be changed.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let other_user = "setpriv --reuid 65534 --clear-groups nice -n 3 sleep 8000";
    let script = format!(
        "read go < {}; setsid -f sleep 6000; {other_user} & nice -n 8 sleep 5000 & \
         nice -n 4 sleep 4000 & nice -n 5 sleep 7000",
        fifo.display()
    );
    let terminal = desktop.terminal_with("+20+20", &script);
    let mut managed = Managed::start(&desktop, &[]);
    until("the favour", || nice(terminal.shell()) < 0);
    std::fs::write(&fifo, "go\n").unwrap();
    let daemon = process_of(|| family(std::process::id()), &["sleep", "6000"]);
    let polite = process_in(&terminal, &["sleep", "7000"]);
    until("what was asked for from what nobody had changed", || nice(polite) == 5);
    let even = process_in(&terminal, &["sleep", "5000"]);
    until("the same where it makes up for the favour", || nice(even) == 8);
    let visible = process_in(&terminal, &["sleep", "4000"]);
    until("the same where the sum is what another role gets", || nice(visible) == 4);
    let other = process_in(&terminal, &["sleep", "8000"]);
    until("that another user's process has none of it", || nice(other) == 3);
    let why = managed.said(&["why", &polite.to_string()]);
    assert!(why.contains("it is 5, set by the user or another program"), "{why}");
    let why = managed.why(daemon);
    assert_eq!(
        (&why["role"], why["knobs"][0]["baseline"].as_str()),
        (&serde_json::Value::Null, Some("0")),
        "{why}"
    );
    let said = managed.said(&["why", &daemon.to_string()]);
    assert!(said.contains("(inherited; 0 again at the latest when the manager ends)"), "{said}");
    assert_eq!(managed.stop(Signal::TERM), Some(0));
    assert_eq!(
        [daemon, polite, even, visible, other, terminal.shell()].map(nice),
        [0, 5, 8, 4, 3, 0]
    );
    kill(daemon, Signal::KILL);
}
