// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorder that names functions of another user's processes and files: they cannot harm it, and
//! names go only to users that may know them. Needs root, and perl and FUSE for the processes.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{Recording, mark_as, memory_bytes, meta, open_folder, tipme};
use tempfile::TempDir;
use tipme_record::incident::{Incident, Section};

/// Users without an account.
const OTHER_UID: u32 = 4242;
const THIRD_UID: u32 = 4343;
const NOBODY: u32 = 65_534;

/// Maximum delay of an incident with missing names, on a busy machine.
const LATE_MAX: Duration = Duration::from_secs(30);

/// Memory growth of the recorder that is normal: a second capture, and its compression.
const GROWTH_MAX: u64 = 64 << 20;

/// Serializes silent processes: after one silent process of a user, the recorder soon stops
/// querying all processes of that user.
static ONE_SILENT: Mutex<()> = Mutex::new(());

/// Calls a C library function, or computes in anonymous memory with a perf map of its own, like a
/// JIT compiler.
const COMPUTE: &str = r#"
    syscall 157, 1, 9; my ($how) = @ARGV; my $map = "/tmp/perf-$$.map";
    if ($how eq "fifo") {
        system("mkfifo", $map) == 0 or die "no fifo";
    } elsif ($how ne "library") {
        my $line = join "", map { sprintf "%x 10 a_function_of_this_program_%d\n", 0x10000 + 16 * $_, $_ } 0 .. 9999;
        my $lines = $line x (60_000_000 / length $line);
        open M, ">", $map or die; syswrite M, $lines;
        if ($how eq "cut" && !fork) {
            syscall 157, 1, 9;
            while (1) { truncate M, 0; select undef, undef, undef, 0.01; sysseek M, 0, 0; syswrite M, $lines }
        }
    }
    $| = 1; print "ready\n";
    if ($how eq "library") { 1 while syscall 39 }
    require DynaLoader;
    my $page = syscall 9, 0, 4096, 7, 0x22, -1, 0;
    open my $memory, "+<", "/proc/self/mem" or die; sysseek $memory, $page, 0; syswrite $memory, "\xeb\xfe";
    DynaLoader::dl_install_xsub("main::spin", $page); spin();
"#;

/// Serves a file that the other user maps, without ever returning its contents; that user waits for
/// a lock in it.
const SILENT: &str = r#"
    syscall 157, 1, 9; my ($file) = @ARGV;
    open my $device, "+<", "/dev/fuse" or die "no fuse: $!";
    my $options = sprintf "fd=%d,rootmode=100444,user_id=4242,group_id=4242", fileno $device;
    my ($kind, $name) = ("fuse", "silent");
    syscall(165, $name, $file, $kind, 6, $options) == 0 or die "no mount: $!";
    if (!fork) {
        close $device; $( = $) = "4242 4242"; $< = $> = 4242;
        open my $own, "<", $file or die "cannot open: $!";
        my $page = syscall 9, 0, 4096, 1, 1, fileno $own, 0;
        $| = 1; print "ready\n";
        syscall 202, $page, 0, 0, 0, 0, 0;
        exit;
    }
    my $attributes = pack "QLL Q6 L10", 60, 0, 0, 1, 4096, 8, 0, 0, 0, 0, 0, 0, 0100444, 1, 4242, 4242, 0, 4096, 0;
    my $begin = pack "L4 S2 L2 S2 L8", 7, 31, 0, 0, 0, 0, 4096, 1, 1, 0, (0) x 8;
    my %answers = (3 => $attributes, 14 => pack("QLL", 0, 0, 0), 26 => $begin);
    while (sysread $device, my $request, 135168) {
        my (undef, $what, $unique) = unpack "LLQ", $request;
        next if $what == 15;
        my $answer = $answers{$what} // "";
        syswrite $device, pack("LlQ", 16 + length $answer, $answer eq "" ? -38 : 0, $unique) . $answer;
    }
"#;

/// Serves the other user's file with the contents of another file to all users, and logs the user
/// and the processes of each open and read. Ignores opens by children of the process named in a
/// file.
const SERVE: &str = r#"
    syscall 157, 1, 9; my ($file, $content, $openers, $ignored) = @ARGV;
    open my $device, "+<", "/dev/fuse" or die "no fuse: $!";
    open my $library, "<", $content or die $!;
    open my $log, ">>", $openers or die $!; (select $log)[0]; $log->autoflush(1);
    my $options = sprintf "fd=%d,rootmode=100444,user_id=4242,group_id=4242,allow_other", fileno $device;
    my ($kind, $name) = ("fuse", "served");
    syscall(165, $name, $file, $kind, 6, $options) == 0 or die "no mount: $!";
    $( = $) = "4242 4242"; $< = $> = 4242; select STDOUT; $| = 1; print "ready\n";
    my $attributes = pack "QLL Q6 L10", 60, 0, 0, 1, -s $library, 8, 0, 0, 0, 0, 0, 0, 0100444, 1, 4242, 4242, 0, 4096, 0;
    my $begin = pack "L4 S2 L2 S2 L8", 7, 31, 131072, 0, 0, 0, 4096, 1, 1, 0, (0) x 8;
    my %answers = (3 => $attributes, 14 => pack("QLL", 0, 0, 0), 26 => $begin);
    while (sysread $device, my $request, 135168) {
        my (undef, $what, $unique, undef, $user, undef, $pid) = unpack "LLQQLLL", $request;
        my ($process, $parent) = (0, 0);
        if ($what == 14 || $what == 15) {
            open my $status, "<", "/proc/$pid/status"; my $text = join "", <$status>;
            ($process, $parent) = map { $text =~ /^$_:\s*(\d+)/m ? $1 : 0 } "Tgid", "PPid";
            print $log "$user $process $parent\n";
        }
        my $named; my $silent = $what == 14 && open($named, "<", $ignored) && <$named> == $parent;
        next if $what == 2 || $what == 36 || $silent;
        my $answer = $answers{$what} // "";
        if ($what == 15) {
            my ($offset, $count) = unpack "x48 QL", $request;
            sysseek $library, $offset, 0; sysread $library, $answer, $count;
        }
        my $known = $answer ne "" || $what == 15 || $what == 18;
        syswrite $device, pack("LlQ", 16 + length $answer, $known ? 0 : -38, $unique) . $answer;
    }
"#;

/// A file mounted over another one until drop.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

/// A process of a script, killed on drop together with its children; `syscall 157` (`prctl`) ends
/// it with the test.
struct Process(Child);

impl Process {
    /// Starts it as the other user.
    fn compute(how: &str) -> Process {
        Process::start(
            Command::new("perl").args(["-e", COMPUTE, how]).uid(OTHER_UID).gid(OTHER_UID),
        )
    }

    fn start(command: &mut Command) -> Process {
        let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines().next();
        assert!(
            said.is_some_and(|line| line.is_ok_and(|line| line == "ready")),
            "the script failed"
        );
        Process(child)
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_raw(self.id() as i32).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.0.wait().ok();
        std::fs::remove_file(format!("/tmp/perf-{}.map", self.id())).ok();
    }
}

/// Starts a recorder in which the users of these tests may mark.
fn record() -> Recording {
    let users = ["--allow-user", "4242", "--allow-user", "4343"];
    Recording::start_in(
        open_folder(),
        &[&["--display", "none", "--memory", "16M"][..], &users].concat(),
    )
}

/// Marks as this user; returns the incident.
fn mark(recording: &Recording, uid: u32) -> Incident {
    tipme_store::read(&mark_as(uid, recording.dir.path())).unwrap()
}

fn alone() -> MutexGuard<'static, ()> {
    ONE_SILENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits long enough for samples of computing processes.
fn let_pass() {
    std::thread::sleep(Duration::from_secs(2));
}

fn peak(recording: &Recording) -> u64 {
    memory_bytes(recording.child.id(), "VmHWM")
}

/// Returns names and modules of a process's functions in the incident.
fn functions(incident: &Incident, pid: u32) -> Vec<(String, String)> {
    let (mut bytes, mut found) = (incident.bytes(Section::Symbols), Vec::new());
    while let Some((head, rest)) = bytes.split_first_chunk::<16>() {
        let [name_length, module_length] =
            [4, 6].map(|at| usize::from(u16::from_le_bytes([head[at], head[at + 1]])));
        let (name, module) = rest[..name_length + module_length].split_at(name_length);
        if head[..4] == pid.to_le_bytes() {
            found.push([name, module].map(|text| String::from_utf8(text.to_vec()).unwrap()).into());
        }
        bytes = &rest[(name_length + module_length).next_multiple_of(8)..];
    }
    found
}

fn names_of_library(incident: &Incident, pid: u32) -> usize {
    functions(incident, pid)
        .iter()
        .filter(|(name, module)| !name.is_empty() && module.starts_with("libc.so"))
        .count()
}

/// Returns the incident's reason for missing names.
fn why_nameless(incident: &Incident) -> String {
    let found = meta(incident).missing.into_iter().find(|missing| missing.what == "names");
    found.map(|missing| missing.why).unwrap_or_default()
}

/// Returns real, effective and saved user of a process.
fn users_of(pid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().take(3).map(|user| user.parse().unwrap()).collect()
}

#[test]
fn the_naming_process_cannot_be_stopped_by_its_user() {
    let user = OTHER_UID.to_string();
    let mut command = tipme();
    command.args(["name", "--user", &user, "--group", &user, "--seconds", "60"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    while users_of(child.id())[1] != OTHER_UID {
        assert!(child.try_wait().unwrap().is_none(), "it ends before it is asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(users_of(child.id()), [NOBODY, OTHER_UID, NOBODY]);
    let mut stop = Command::new("kill");
    stop.args(["-STOP", &child.id().to_string()])
        .uid(OTHER_UID)
        .gid(OTHER_UID)
        .stderr(Stdio::null());
    assert!(!stop.status().unwrap().success(), "its user stopped it");
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_fifo_for_a_perf_map_holds_nothing_up() {
    let recording = record();
    let _others = ["fifo"; 3].map(Process::compute);
    let computing = Process::compute("library");
    let_pass();
    for _ in 0..4 {
        let (_, incident) = recording.mark();
        assert!(names_of_library(&incident, computing.id()) > 0);
        assert_eq!(why_nameless(&incident), "");
    }
}

#[test]
fn a_large_perf_map_takes_no_memory() {
    let recording = record();
    let_pass();
    recording.mark();
    let before = peak(&recording);
    let _other = Process::compute("large");
    let_pass();
    recording.mark();
    recording.mark();
    let growth = peak(&recording) - before;
    assert!(growth < GROWTH_MAX, "{growth} bytes more");
}

#[test]
fn a_truncated_perf_map_ends_no_process() {
    let recording = record();
    let _others = ["cut"; 2].map(Process::compute);
    for _ in 0..4 {
        let_pass();
        recording.mark();
    }
}

/// Returns the path of the C library.
fn library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .find_map(|line| line.split_whitespace().nth(5).filter(|path| path.contains("/libc.so")));
    library.unwrap().into()
}

/// Copies the C library for the other user.
fn own_library(dir: &Path) -> PathBuf {
    let copy = dir.join("libc.so.6");
    std::fs::copy(library(), &copy).unwrap();
    chown(&copy, Some(OTHER_UID), Some(OTHER_UID)).unwrap();
    copy
}

/// Starts a process of the other user that computes in the C library of this folder.
fn computing_in(dir: &Path) -> Process {
    let mut command = Command::new("perl");
    command.args(["-e", COMPUTE, "library"]).env("LD_LIBRARY_PATH", dir);
    Process::start(command.uid(OTHER_UID).gid(OTHER_UID))
}

/// Truncates the last pages of a file and restores them, repeatedly.
const CUT: &str = r#"
    syscall 157, 1, 9; my ($path) = @ARGV; my $size = -s $path; my $begin = ($size - 1) & ~4095;
    open F, "+<", $path or die $!; sysseek F, $begin, 0; sysread F, my $end, 4096;
    $| = 1; print "ready\n";
    while (1) { truncate F, $begin; select undef, undef, undef, 0.001; sysseek F, $begin, 0; syswrite F, $end }
"#;

#[test]
fn a_truncated_library_ends_no_process() {
    let dir = open_folder();
    let library = own_library(dir.path());
    let others = [(); 4].map(|()| computing_in(dir.path()));
    let recording = record();
    let_pass();
    let (_, incident) = recording.mark();
    assert!(
        names_of_library(&incident, others[0].id()) > 0,
        "an own library is named while it is whole"
    );
    let mut cutting = Command::new("perl");
    let _cutting =
        Process::start(cutting.args(["-e", CUT]).arg(&library).uid(OTHER_UID).gid(OTHER_UID));
    for _ in 0..10 {
        recording.mark();
    }
}

#[test]
fn a_process_that_does_not_answer_costs_names_and_no_incident() {
    let _alone = alone();
    let recording = record();
    let file = Mount(recording.dir.path().join("silent"));
    std::fs::write(&file.0, "").unwrap();
    std::fs::set_permissions(recording.dir.path(), Permissions::from_mode(0o755)).unwrap();
    // Dropped before the recorder, which could not end while it waits for it.
    let silent = Process::start(Command::new("perl").args(["-e", SILENT]).arg(&file.0));
    let computing = Process::start(Command::new("perl").args(["-e", COMPUTE, "library"]));
    let_pass();
    for why in
        ["did not answer within", "have not answered", "have not answered", "have not answered"]
    {
        let (_, incident) = recording.mark();
        let missing = meta(&incident).missing;
        let is_known =
            missing.iter().any(|one| one.why.contains(why) && one.why.contains("user 4242"));
        assert!(is_known, "{why}: {missing:?}");
        assert!(names_of_library(&incident, computing.id()) > 0, "processes of others are named");
    }
    drop(silent);
    std::thread::sleep(Duration::from_millis(500));
    let (_, incident) = recording.mark();
    assert_eq!(why_nameless(&incident), "", "the thread came back");
}

/// The C library as a file served by the other user, with its mount.
struct Served {
    // The server goes first: unmounting may wait for a mount that is still served.
    _server: Process,
    _mount: Mount,
    dir: TempDir,
}

impl Served {
    fn start() -> Served {
        let dir = open_folder();
        let file = dir.path().join("libc.so.6");
        std::fs::write(&file, "").unwrap();
        let mut command = Command::new("perl");
        command.args(["-MIO::Handle", "-e", SERVE]).arg(&file).arg(library());
        command.args(["openers", "ignored"].map(|name| dir.path().join(name)));
        Served { _server: Process::start(&mut command), _mount: Mount(file), dir }
    }

    /// Makes the server ignore all processes started by this recorder.
    fn ignore(&self, recording: &Recording) {
        std::fs::write(self.dir.path().join("ignored"), recording.child.id().to_string()).unwrap();
    }

    /// Returns the users as which a recorder, or a process that it started, has opened or read the
    /// file. Other processes on this machine do so, too.
    fn openers(&self, recording: &Recording) -> BTreeSet<u32> {
        let log = std::fs::read_to_string(self.dir.path().join("openers")).unwrap();
        let lines =
            log.lines().map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect());
        let own = lines.filter(|line: &Vec<u32>| line[1..].contains(&recording.child.id()));
        own.map(|line| line[0]).collect()
    }
}

#[test]
fn programs_are_opened_as_the_marking_user_never_as_root() {
    let served = Served::start();
    let computing = computing_in(served.dir.path());
    let recording = record();
    let_pass();
    let mut expected = BTreeSet::new();
    for (marker, opener) in [(0, NOBODY), (THIRD_UID, THIRD_UID), (OTHER_UID, OTHER_UID)] {
        let incident = mark(&recording, marker);
        let (missing, openers) = (why_nameless(&incident), served.openers(&recording));
        assert!(
            names_of_library(&incident, computing.id()) > 0,
            "user {marker}: {openers:?} {missing}"
        );
        expected.insert(opener);
        assert_eq!(openers, expected, "user {marker}");
    }
}

#[test]
fn unreadable_files_are_not_named_to_a_user() {
    let dir = open_folder();
    let library = own_library(dir.path());
    std::fs::set_permissions(&library, Permissions::from_mode(0o700)).unwrap();
    let computing = computing_in(dir.path());
    let recording = record();
    let_pass();
    for (marker, named) in [(OTHER_UID, true), (THIRD_UID, false), (0, false)] {
        let incident = mark(&recording, marker);
        let found = functions(&incident, computing.id());
        assert!(
            found.iter().any(|(_, module)| module.starts_with("libc.so")),
            "user {marker}: {found:?}"
        );
        assert_eq!(
            names_of_library(&incident, computing.id()) > 0,
            named,
            "user {marker}: {found:?}"
        );
        assert_eq!(why_nameless(&incident), "");
    }
}

/// The same path leads to another file outside, so names are found only from inside.
#[test]
fn functions_in_a_mount_namespace_are_named_to_their_user() {
    let dir = open_folder();
    let (inside, outside) = (own_library(dir.path()), dir.path().join("outside"));
    std::fs::rename(&inside, &outside).unwrap();
    std::fs::write(&inside, "no library").unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]).arg(
        r#"mount --bind "$1" "$2" && exec setpriv --reuid 4242 --regid 65534 --clear-groups \
           env LD_LIBRARY_PATH="${2%/*}" perl -e "$3" library"#,
    );
    let computing = Process::start(command.arg("sh").args([&outside, &inside]).arg(COMPUTE));
    let recording = record();
    let_pass();
    for (marker, named) in [(OTHER_UID, true), (THIRD_UID, false)] {
        let incident = mark(&recording, marker);
        let found = functions(&incident, computing.id());
        assert_eq!(
            names_of_library(&incident, computing.id()) > 0,
            named,
            "user {marker}: {found:?}"
        );
    }
}

#[test]
fn a_program_that_cannot_be_opened_costs_its_own_names_only() {
    let _alone = alone();
    let served = Served::start();
    let silent = computing_in(served.dir.path());
    let computing = Process::compute("library");
    let own = Process::start(Command::new("perl").args(["-e", COMPUTE, "library"]));
    let recording = record();
    served.ignore(&recording);
    let_pass();
    for why in ["did not answer within 5 s", "have not answered", "have not answered"] {
        let begun = Instant::now();
        let (_, incident) = recording.mark();
        assert!(begun.elapsed() < LATE_MAX, "{:?}", begun.elapsed());
        let missing = why_nameless(&incident);
        assert!(missing.contains(why) && missing.contains("user 4242"), "{why}: {missing}");
        assert!(names_of_library(&incident, own.id()) > 0, "processes of others are named");
        assert_eq!(names_of_library(&incident, silent.id()), 0);
    }
    drop(served);
    std::thread::sleep(Duration::from_millis(500));
    let (_, incident) = recording.mark();
    assert_eq!(why_nameless(&incident), "", "the thread came back");
    assert!(
        names_of_library(&incident, computing.id()) > 0,
        "what the user has besides is named again"
    );
}
