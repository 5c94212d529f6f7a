// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that an input method intercepts before the terminal, on a Wayland compositor. Needs root,
//! sway, foot and perl.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use support::compositor::{Compositor, DISPLAY};
use support::{
    Recording, Running, assert_stopped, contains, interactions, records, verdict, while_stopped,
};
use tipme_desktop::clock;
use tipme_desktop::inject::Typist;
use tipme_record::incident::{Incident, Section};
use tipme_record::records::WlMessage;
use tipme_record::wayland::{HIDDEN, PRESSED, SHAPE, TEXT, WlWord};
use tipme_record::{Nanos, RecordKind};

/// Time for which the input method is stopped: longer than any likely delay of a key on a busy
/// machine.
const STOPPED: Duration = Duration::from_secs(3);

/// Text that the input method commits for each key; its message is as long as that of a key.
const WORD: &str = "xyloquartz";

/// An input method that grabs the keyboard, reports it, and commits a word for each key; it speaks
/// the protocol itself.
const METHOD: &str = r#"use strict; use IO::Socket::UNIX; $| = 1;
my $socket = IO::Socket::UNIX->new("$ENV{XDG_RUNTIME_DIR}/$ENV{WAYLAND_DISPLAY}") or die $!;
my ($next, $in, $done, $seat, $manager, $method, $grab) = (4, "", 0);
sub ask { my ($object, $opcode, $body) = @_; $socket->syswrite(pack("LSS", $object, $opcode, 8 + length $body) . $body); }
sub text { my $text = "$_[0]\0"; pack("L", length $text) . $text . "\0" x (-length($text) % 4) }
sub bind_to { my ($name, $interface) = @_; ask(2, 0, pack("L", $name) . text($interface) . pack("LL", 1, $next)); $next++ }
ask(1, 1, pack("L", 2));
ask(1, 0, pack("L", 3));
while ($socket->sysread($in, 65536, length $in)) {
    while (length $in >= 8) {
        my ($object, $opcode, $size) = unpack("LSS", $in);
        last if length $in < $size;
        my $body = substr(substr($in, 0, $size, ""), 8);
        if ($object == 2 && $opcode == 0) {
            my ($name, $length) = unpack("LL", $body);
            my $interface = substr($body, 8, $length - 1);
            $seat = bind_to($name, $interface) if $interface eq "wl_seat";
            $manager = bind_to($name, $interface) if $interface eq "zwp_input_method_manager_v2";
        } elsif ($object == 3) {
            $method = $next++;
            ask($manager, 0, pack("LL", $seat, $method));
        } elsif ($method && $object == $method && $opcode == 5) {
            $done++;
            next if $grab;
            $grab = $next++;
            ask($method, 5, pack("L", $grab));
            print "grabbed\n";
        } elsif ($grab && $object == $grab && $opcode == 1 && (unpack("LLLL", $body))[3] == 1) {
            ask($method, 0, text("xyloquartz"));
            ask($method, 3, pack("L", $done));
        }
    }
}
"#;

/// Starts the input method, and waits until it has the keyboard.
fn input_method(compositor: &Compositor) -> Running {
    let script = compositor.home().join("method");
    std::fs::write(&script, METHOD).unwrap();
    let (method, line) = Running::start_saying(compositor.command("perl").arg(script));
    assert_eq!(line, "grabbed\n");
    method
}

/// Returns the number of the terminal's keys known to be answered, with at least this latency.
fn answered(path: &Path, client: u32, least: Duration) -> usize {
    let own = interactions(path).into_iter().filter(|one| {
        one["client_pid"] == client && one["class"] == "key" && one["join"] == "exact"
    });
    let late = own.filter(|one| {
        let times = one["end_ns"].as_u64().zip(one["input_ns"].as_u64());
        times.is_some_and(|(end, input)| u128::from(end - input) >= least.as_nanos())
    });
    late.count()
}

/// Types until the terminal is known to have answered eight keys within the window: on a busy
/// machine several answers share one drawing.
fn marked_after_typing(
    recording: &Recording,
    keyboard: &mut Typist,
    client: u32,
) -> (PathBuf, Incident) {
    keyboard.text("0123456789").unwrap();
    recording.mark_until("answered keys", |path, incident| {
        if answered(&path, client, Duration::ZERO) >= 8 {
            return Some((path, incident));
        }
        keyboard.text("0123456789").unwrap();
        None
    })
}

/// Returns the words of messages from a time on.
fn words(incident: &Incident, since: Nanos) -> Vec<WlWord> {
    let messages =
        records(incident, Section::Rare).filter(|entry| entry.kind == RecordKind::WlMessage);
    let read = messages.filter_map(|entry| Some((WlMessage::read(entry.bytes)?, entry.bytes)));
    let read = read.filter(|(message, _)| message.head.ts >= since);
    read.flat_map(|(message, bytes)| WlWord::list(&bytes[WlMessage::SIZE..], message.operations))
        .collect()
}

/// Returns the key events of a grab from a time on. They have the length of `keyboard.enter` with
/// one held key.
fn grabbed(incident: &Incident, since: Nanos) -> Vec<WlWord> {
    let is_key = |word: &WlWord| (word.opcode, word.units) == (1, 6) && word.hint != 0;
    words(incident, since).into_iter().filter(is_key).collect()
}

#[test]
fn text_of_an_input_method_answers_a_key_and_is_not_recorded() {
    let compositor = Compositor::start();
    let mut keyboard = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    let terminal = compositor.terminal("text");
    let _method = input_method(&compositor);
    let (path, incident) = marked_after_typing(&recording, &mut keyboard, terminal.0.id());
    let file = std::fs::read(path).unwrap();
    let sections = incident.sections.iter().map(|(_, bytes)| bytes);
    assert!(sections.chain([&file]).all(|bytes| !contains(bytes, WORD.as_bytes())));
    let grabbed = grabbed(&incident, Nanos(0));
    assert!(grabbed.len() >= 16);
    assert!(grabbed.iter().all(|word| (1..=2).contains(&(word.hint & SHAPE))));
}

#[test]
fn a_grabbed_key_without_a_time_stamp_is_recognized() {
    let compositor = Compositor::start();
    let _keyboard = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    let _terminal = compositor.terminal("text");
    let _method = input_method(&compositor);
    let since = clock::now();
    let typed = compositor.command("wtype").arg("abcd").stderr(Stdio::piped()).output();
    let typed = typed.expect("wtype is installed: make test-deps");
    assert!(typed.status.success(), "{typed:?}");
    let grabbed = grabbed(&recording.mark().1, since);
    let pressed = grabbed.iter().filter(|word| word.hint & SHAPE == PRESSED).count();
    assert!(pressed >= 4, "{grabbed:?}");
}

#[test]
fn keys_and_texts_of_an_input_method_are_hidden_on_request() {
    let compositor = Compositor::start();
    let mut keyboard = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    let _terminal = compositor.terminal("text");
    let _method = input_method(&compositor);
    let client = tipme_control::Client::new(recording.dir.path());
    client.call(&tipme_control::RecorderRequest::Keys { record: false }).unwrap();
    let since = clock::now();
    keyboard.text("0123456789").unwrap();
    keyboard.settle().unwrap();
    let words = words(&recording.mark().1, since);
    assert!(words.iter().any(|word| word.hint == HIDDEN), "{words:?}");
    assert!(
        words.iter().all(|word| word.hint != TEXT && word.hint & SHAPE != PRESSED),
        "{words:?}"
    );
}

#[test]
fn an_input_method_that_was_stopped_is_named() {
    let _alone = support::alone();
    let compositor = Compositor::start();
    let mut keyboard = compositor.keyboard();
    let recording = Recording::start(&["--display", DISPLAY]);
    let terminal = compositor.terminal("text");
    let (method, client) = (input_method(&compositor), terminal.0.id());
    marked_after_typing(&recording, &mut keyboard, client);
    while_stopped(method.0.id(), || {
        keyboard.key('x').unwrap();
        std::thread::sleep(STOPPED);
    });
    let path = recording.mark_until("a late answer", |path, _| {
        (answered(&path, client, STOPPED.mul_f64(0.9)) > 0).then_some(path)
    });
    let verdict = verdict(&path, &["--pid", &client.to_string()]);
    assert_stopped(&verdict, "key", client, STOPPED);
    assert_eq!(verdict["interval"]["inferred"], true, "{verdict:#}");
    let named = format!("perl (pid {})", method.0.id());
    assert!(
        serde_json::to_string(&verdict["findings"][0]).unwrap().contains(&named),
        "{verdict:#}"
    );
}
