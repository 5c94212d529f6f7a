// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine in miniature, which writes the records of a real one for tests.
//!
//! Times are microseconds since the begin of the recording.

#![allow(dead_code)]

pub mod busy;
pub mod overdue;
pub mod wayland;
pub mod words;

use std::collections::HashMap;
use tipme_record::incident::{
    Cost, Display, Extension, FileName, Groups, Incident, Locks, Losses, Machine, Meta, Section,
    StoredBaseline,
};
use tipme_record::records::{
    Block, Exit, Fork, Input, Irq, Message, Polled, Reclaim, Sample, Signal, Switch, Task, Tty,
    Wait, Waking, WlMessage,
};
use tipme_record::wayland::WlWord;
use tipme_record::{
    CHUNK_BYTES, ChunkHead, Cpu, Device, Head, Nanos, Pid, RecordKind, RingClass, StackId, Tid,
};
use zerocopy::{FromZeros, IntoBytes};

pub const DISPLAY: u32 = 99;
pub const XTEST: u8 = 132;
pub const VDA: Device = Device(0xfe0_0000);

/// Connections of the injector and of the application.
const INJECTION: (u32, u32) = (1, INJECTOR);
pub const WINDOW: (u32, u32) = (2, APP);

pub const SERVER: u32 = 100;
pub const INJECTOR: u32 = 90;
pub const APP: u32 = 200;

pub const KEY_PRESS: [u8; 4] = [2, 0, 0, 0];
const FAKE_KEY: [u8; 4] = [XTEST, 2, 9, 2];
pub const DRAW_TEXT: [u8; 4] = [76, 1, 5, 0];

/// The terminal's shell, the worker that carries its data, and the two directions of the terminal.
pub const SHELL: u32 = 210;
pub const WORKER: u32 = 40;
pub const TO_SHELL: u64 = 71;
pub const TO_TERMINAL: u64 = 72;

/// Begin of every recording in tests.
pub const BEGIN: u64 = 1_000_000_000;

#[derive(Default)]
pub struct Machinery {
    records: Vec<(u64, u32, RingClass, Vec<u8>)>,
    tasks: Vec<u8>,
    cmdlines: Vec<u8>,
    stacks: Vec<u8>,
    symbols: Vec<u8>,
    functions: u64,
    inputs: Vec<u8>,
    /// Running thread of each CPU.
    running: [u32; 4],
    /// Kernel priorities of threads that differ from nice 0.
    pub prios: HashMap<u32, u8>,
    /// Scheduling policies of threads that differ from the default.
    pub policies: HashMap<u32, u32>,
    pub meta: Meta,
    pub displays: Vec<Display>,
    pub locks: Locks,
    pub losses: Losses,
    pub cost: Cost,
    /// Control groups that were throttled.
    pub groups: Groups,
    pub files: Vec<FileName>,
    /// Learned baselines.
    pub baselines: Vec<StoredBaseline>,
    samples: Vec<u8>,
}

fn ns(us: u64) -> Nanos {
    Nanos(BEGIN + us * 1_000)
}

fn comm(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..name.len().min(15)].copy_from_slice(&name.as_bytes()[..name.len().min(15)]);
    bytes
}

fn head(us: u64, tid: u32, size: usize, kind: RecordKind) -> Head {
    Head { ts: ns(us), tid: Tid(tid), size: size as u16, kind: kind as u8, generation: 1 }
}

/// A record of this type at a time, with all other fields zero.
macro_rules! record {
    ($type:ident { $us:expr, $tid:expr $(, $field:ident: $value:expr)* $(,)? }) => {{
        let mut record = $type::new_zeroed();
        record.head = head($us, $tid, $type::SIZE, RecordKind::$type);
        $(record.$field = $value;)*
        record
    }};
}

pub mod buttons;
pub mod groups;
pub mod locks;
pub mod scenes;
pub mod verdicts;

fn message(
    us: u64,
    tid: u32,
    (connection, client): (u32, u32),
    direction: u8,
    bytes: u32,
) -> Message {
    record!(Message {
        us,
        tid,
        pid: Pid(tid),
        connection: connection,
        client: Pid(client),
        bytes: bytes,
        direction: direction,
        display: DISPLAY
    })
}

impl Machinery {
    /// Creates a machine with an X server (pid 100) and an input injector (pid 90), both idle.
    pub fn new() -> Machinery {
        let mut machine = Machinery::default();
        let extensions = [("XTEST", XTEST), ("RENDER", 139)]
            .map(|(name, major)| Extension { name: name.to_owned(), major })
            .to_vec();
        machine.displays.push(Display { display: DISPLAY, server_pid: 100, extensions });
        machine.meta.machine =
            Machine { cpus: 2, hostname: "test".to_owned(), ..Machine::default() };
        machine.meta.id = "20260131T120000.000Z".to_owned();
        machine.meta.mark_realtime_ns = 1_769_860_800_000_000_000;
        machine.meta.held_from_ns = BEGIN;
        machine.meta.devices = vec![(VDA.0, "vda".to_owned())];
        machine.task(100, 100, 1, "Xvfb", 1).task(90, 90, 1, "xdotool", 1);
        machine
    }

    fn push<R: IntoBytes + zerocopy::Immutable>(
        &mut self,
        us: u64,
        cpu: u32,
        class: RingClass,
        record: &R,
        tail: &[u8],
    ) -> &mut Self {
        let mut bytes = record.as_bytes().to_vec();
        bytes.extend(tail);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let size = (bytes.len() as u16).to_le_bytes();
        bytes[12..14].copy_from_slice(&size);
        self.records.push((us, cpu, class, bytes));
        self
    }

    /// Adds a task that is alive at the mark.
    pub fn task(&mut self, tid: u32, pid: u32, parent: u32, name: &str, state: u32) -> &mut Self {
        self.task_in(tid, pid, parent, pid, name, state)
    }

    pub fn task_in(
        &mut self,
        tid: u32,
        pid: u32,
        parent: u32,
        group: u32,
        name: &str,
        state: u32,
    ) -> &mut Self {
        let mut record = record!(Task {
            0,
            tid,
            pid: Pid(pid),
            parent: Pid(parent),
            group: Pid(group),
            session: Pid(1),
            cgroup: 1,
            comm: comm(name),
            state: state,
            cpu: Cpu(1),
            affinity: 3,
            prio: u32::from(self.prio(tid))
        });
        record.policy = self.policies.get(&tid).copied().unwrap_or_default();
        record.head.generation = 0;
        self.tasks.extend(record.as_bytes());
        self
    }

    pub fn cmdline(&mut self, pid: u32, text: &[u8]) -> &mut Self {
        self.cmdlines.extend(pid.to_le_bytes());
        self.cmdlines.extend((text.len() as u32).to_le_bytes());
        self.cmdlines.extend(text);
        self.cmdlines.resize(self.cmdlines.len().next_multiple_of(8), 0);
        self
    }

    /// Adds a kernel stack of named functions, leaf first.
    pub fn stack(&mut self, names: &[&str]) -> StackId {
        let id = StackId(1 + self.stacks.len() as u32);
        self.stacks.extend(id.0.to_le_bytes());
        self.stacks.extend((names.len() as u32).to_le_bytes());
        for name in names {
            let ip = self.function(0, name);
            self.stacks.extend(ip.to_le_bytes());
        }
        id
    }

    /// Adds a function of a process (0: of the kernel), and returns its address.
    pub fn function(&mut self, pid: u32, name: &str) -> u64 {
        self.functions += 1;
        self.symbols.extend(pid.to_le_bytes());
        self.symbols.extend((name.len() as u16).to_le_bytes());
        self.symbols.extend(0_u16.to_le_bytes());
        self.symbols.extend(self.functions.to_le_bytes());
        self.symbols.extend(name.as_bytes());
        self.symbols.resize(self.symbols.len().next_multiple_of(8), 0);
        self.functions
    }

    fn prio(&self, tid: u32) -> u8 {
        self.prios.get(&tid).copied().unwrap_or(120)
    }

    /// Switches a CPU to `next`; the previous thread leaves in this state.
    pub fn switch(&mut self, us: u64, cpu: u32, next: u32, state: u16) -> &mut Self {
        let previous = std::mem::replace(&mut self.running[cpu as usize], next);
        let prios = (self.prio(previous), self.prio(next));
        let next = Tid(next);
        let record = record!(Switch {
            us,
            previous,
            next: next,
            prev_state: state,
            prev_prio: prios.0,
            next_prio: prios.1
        });
        self.push(us, cpu, RingClass::Sched, &record, &[])
    }

    /// A task wakes a thread.
    pub fn wake(&mut self, us: u64, tid: u32, waker: u32) -> &mut Self {
        self.wake_from(us, tid, waker, 0, 0)
    }

    pub fn wake_from(
        &mut self,
        us: u64,
        tid: u32,
        waker: u32,
        context: u8,
        target: u16,
    ) -> &mut Self {
        let record =
            record!(Waking { us, tid, waker: Tid(waker), context: context, target_cpu: target });
        self.push(us, 0, RingClass::Sched, &record, &[])
    }

    /// Adds the record of a thread's wait.
    pub fn wait(
        &mut self,
        us: u64,
        tid: u32,
        start: u64,
        fill: impl FnOnce(&mut Wait),
    ) -> &mut Self {
        let mut record = record!(Wait { us, tid, start: ns(start), state: 1 });
        fill(&mut record);
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    /// Adds a wait that lasts at the mark.
    pub fn still_waiting(
        &mut self,
        us: u64,
        tid: u32,
        start: u64,
        fill: impl FnOnce(&mut Wait),
    ) -> &mut Self {
        let mut record = record!(Wait { us, tid, start: ns(start), state: 1 });
        fill(&mut record);
        record.head.generation = 0;
        self.tasks.extend(record.as_bytes());
        self
    }

    /// Bytes on a connection of a client; words are four bytes each.
    pub fn message(
        &mut self,
        us: u64,
        tid: u32,
        link: (u32, u32),
        direction: u8,
        bytes: u32,
        words: &[[u8; 4]],
    ) -> &mut Self {
        let mut record = message(us, tid, link, direction, bytes);
        record.operations = words.len() as u8;
        self.push(us, 0, RingClass::Rare, &record, words.as_flattened())
    }

    /// The same on a client's connection to the compositor.
    pub fn wl_message(
        &mut self,
        us: u64,
        tid: u32,
        client: u32,
        direction: u8,
        words: &[WlWord],
    ) -> &mut Self {
        self.wl_message_between(us, tid, (SERVER, client), direction, words)
    }

    /// A message between a compositor and a client.
    pub fn wl_message_between(
        &mut self,
        us: u64,
        tid: u32,
        link: (u32, u32),
        way: u8,
        words: &[WlWord],
    ) -> &mut Self {
        let (server, client) = link;
        let mut record =
            record!(WlMessage { us, tid, pid: Pid(tid), client: Pid(client), server: Pid(server) });
        (record.connection, record.bytes, record.direction) = (client, 64, way);
        record.operations = words.len() as u8;
        let mut tail = words.as_bytes().to_vec();
        tail.resize(tail.len().next_multiple_of(8), 0);
        self.push(us, 0, RingClass::Rare, &record, &tail)
    }

    /// Bytes that the recorder saw pass, but could not read.
    pub fn unread(
        &mut self,
        us: u64,
        tid: u32,
        link: (u32, u32),
        direction: u8,
        bytes: u32,
    ) -> &mut Self {
        let mut record = message(us, tid, link, direction, bytes);
        record.flags = 2;
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    pub fn fork(&mut self, us: u64, tid: u32, child: u32) -> &mut Self {
        let record = record!(Fork {
            us,
            tid,
            parent: Pid(tid),
            child_tid: Tid(child),
            child_pid: Pid(child)
        });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    pub fn exit(&mut self, us: u64, pid: u32, parent: u32, group: u32, name: &str) -> &mut Self {
        let record = record!(Exit {
            us,
            pid,
            pid: Pid(pid),
            parent: Pid(parent),
            group: Pid(group),
            session: Pid(1),
            comm: comm(name)
        });
        self.push(us, 0, RingClass::Exits, &record, &[])
    }

    /// A block request of `tid` that was inserted at `from` and complete at `us`.
    pub fn block(&mut self, us: u64, tid: u32, from: u64, bytes: u32, op: u32) -> &mut Self {
        let inserted = ns(from);
        let record = record!(Block {
            us,
            tid,
            inserted: inserted,
            issued: inserted,
            bytes: bytes,
            device: VDA,
            op: op,
            done: 1
        });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    pub fn tty(&mut self, us: u64, tid: u32, port: u64, stage: u32) -> &mut Self {
        let record = record!(Tty { us, tid, port: port, stage: stage });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    pub fn signal(&mut self, us: u64, sender: u32, target: u32, number: u32) -> &mut Self {
        let record = record!(Signal {
            us,
            sender,
            sender: Pid(sender),
            target: Pid(target),
            number: number
        });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    /// One of `files` polled files of a wait of the same thread and time.
    pub fn polled(
        &mut self,
        us: u64,
        tid: u32,
        files: u8,
        fill: impl FnOnce(&mut Polled),
    ) -> &mut Self {
        let mut record = record!(Polled { us, tid, files: files });
        fill(&mut record);
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    pub fn sample(&mut self, us: u64, tid: u32, ip: u64) -> &mut Self {
        let record = record!(Sample { us, tid, pid: Pid(tid), ip: ip });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    /// A sample that hit the kernel.
    pub fn kernel_sample(&mut self, us: u64, tid: u32, stack: StackId) -> &mut Self {
        let record = record!(Sample { us, tid, pid: Pid(tid), kernel_stack: stack });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    pub fn reclaim(&mut self, us: u64, tid: u32, what: u32, phase: u32, amount: u64) -> &mut Self {
        let record = record!(Reclaim { us, tid, what: what, phase: phase, amount: amount });
        self.push(us, 0, RingClass::Rare, &record, &[])
    }

    /// An interrupt on a CPU that ends at `us`.
    pub fn interrupt(
        &mut self,
        us: u64,
        cpu: u32,
        length: u64,
        number: u32,
        soft: u32,
    ) -> &mut Self {
        let record =
            record!(Irq { us, 0, nanos: Nanos(length * 1_000), number: number, soft: soft });
        self.push(us, cpu, RingClass::Rare, &record, &[])
    }

    /// /proc/stat: steal time of each CPU so far, in hundredths of a second.
    pub fn stolen(&mut self, us: u64, ticks: [u64; 2]) -> &mut Self {
        let [first, second] = ticks;
        let lines = [("cpu ", first + second), ("cpu0", first), ("cpu1", second)]
            .map(|(name, ticks)| format!("{name} 9 0 9 900 0 0 1 {ticks} 0 0\n"));
        self.counter_text(us, 3, &(lines.concat() + "intr 99"))
    }

    /// /proc/pressure/cpu: time in milliseconds for which some task has waited for a CPU so far.
    pub fn pressure(&mut self, us: u64, ms: u64) -> &mut Self {
        self.counter_text(
            us,
            0,
            &format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n", ms * 1_000),
        )
    }

    fn counter_text(&mut self, us: u64, source: u32, text: &str) -> &mut Self {
        self.samples.extend(ns(us).0.to_le_bytes());
        self.samples.extend(source.to_le_bytes());
        self.samples.extend((text.len() as u32).to_le_bytes());
        self.samples.extend(text.as_bytes());
        self.samples.resize(self.samples.len().next_multiple_of(8), 0);
        self
    }

    /// A key of an input device.
    pub fn device_key(&mut self, us: u64) -> &mut Self {
        self.device_press(us, 0)
    }

    /// A button of an input device.
    pub fn device_button(&mut self, us: u64) -> &mut Self {
        self.device_press(us, 1)
    }

    fn device_press(&mut self, us: u64, class: u16) -> &mut Self {
        let mut record = record!(Input { us, 0, class: class, press: 1 });
        record.head.generation = 0;
        self.inputs.extend(record.as_bytes());
        self
    }

    /// Sets the trigger of the mark.
    pub fn triggered(&mut self, trigger: &str) -> &mut Self {
        self.meta.trigger = trigger.to_owned();
        self
    }

    /// Returns the incident with its mark at a time.
    pub fn incident(&mut self, mark: u64) -> Incident {
        self.meta.mark_ns = ns(mark).0;
        let mut incident = Incident::default();
        incident.push_json(Section::Meta, &self.meta).expect("meta is JSON");
        incident.push_json(Section::Displays, &self.displays).expect("displays are JSON");
        incident.push_json(Section::Locks, &self.locks).expect("locks are JSON");
        incident.push_json(Section::Losses, &self.losses).expect("losses are JSON");
        incident.push_json(Section::Cost, &self.cost).expect("costs are JSON");
        incident.push_json(Section::Groups, &self.groups).expect("groups are JSON");
        incident.push_json(Section::Files, &self.files).expect("files are JSON");
        incident.push_json(Section::Baselines, &self.baselines).expect("baselines are JSON");
        incident.push(Section::Samples, self.samples.clone());
        incident.push(Section::Inputs, self.inputs.clone());
        for (class, section) in [
            (RingClass::Sched, Section::Sched),
            (RingClass::Rare, Section::Rare),
            (RingClass::Exits, Section::Exits),
        ] {
            incident.push(section, self.chunks(class));
        }
        incident.push(Section::Tasks, self.tasks.clone());
        incident.push(Section::Cmdlines, self.cmdlines.clone());
        incident.push(Section::Stacks, self.stacks.clone());
        incident.push(Section::Symbols, self.symbols.clone());
        incident
    }

    fn chunks(&mut self, class: RingClass) -> Vec<u8> {
        self.records.sort_by_key(|(us, ..)| *us);
        let mut section = Vec::new();
        for cpu in 0..4 {
            let mut chunk = Vec::new();
            for (us, of, kind, bytes) in &self.records {
                if *of != cpu || *kind != class {
                    continue;
                }
                if chunk.len() + bytes.len() > CHUNK_BYTES {
                    close(&mut section, &mut chunk);
                }
                if chunk.is_empty() {
                    let head = ChunkHead {
                        taken: 1,
                        opened: ns(*us),
                        cpu,
                        class: class as u32,
                        closed: Nanos(0),
                    };
                    chunk.extend(head.as_bytes());
                }
                chunk.extend(bytes);
            }
            close(&mut section, &mut chunk);
        }
        section
    }
}

fn close(section: &mut Vec<u8>, chunk: &mut Vec<u8>) {
    if !chunk.is_empty() {
        chunk.resize(CHUNK_BYTES, 0);
        section.append(chunk);
    }
}

/// A thread id, for the fields of records.
pub fn tid(number: u32) -> Tid {
    Tid(number)
}
