// SPDX-License-Identifier: MIT OR Apache-2.0
//! Late wakeups of a periodic thread, explained from records.

mod support;

use proptest::prelude::*;
use support::{BEGIN, Machinery};
use tipme_analysis::{Late, Recording, lateness};
use tipme_measure::timer::LatenessCause;
use tipme_record::{Cpu, Nanos, Pid, Tid};

const OWN: u32 = 200;
const OTHER: u32 = 300;

fn at(us: u64) -> Nanos {
    Nanos(BEGIN + us * 1_000)
}

fn late(deadline: u64, wake: u64) -> Late {
    Late { tid: Tid(OWN), cpu: Cpu(0), deadline: at(deadline), wake: at(wake) }
}

/// The thread sleeps on CPU 0 from 100 µs on.
fn asleep() -> Machinery {
    let mut machine = Machinery::new();
    machine.task(OWN, OWN, 1, "periodic", 1).task(OTHER, OTHER, 1, "burner", 1);
    machine.switch(10, 0, OWN, 0).switch(100, 0, 0, 1);
    machine
}

fn read(machine: &mut Machinery) -> Recording {
    Recording::read(&machine.incident(100_000)).expect("it is an incident")
}

/// Returns causes, names and microseconds.
fn portions(recording: &Recording, late: &Late) -> Vec<(LatenessCause, String, u64)> {
    let found = lateness(recording, late).expect("it is held");
    found.portions.into_iter().map(|(cause, name, time)| (cause, name, time.0 / 1_000)).collect()
}

fn named(cause: LatenessCause, name: &str, us: u64) -> (LatenessCause, String, u64) {
    (cause, name.to_owned(), us)
}

#[test]
fn another_thread_is_named_with_its_begin() {
    let mut machine = asleep();
    machine.switch(700, 0, OTHER, 0).wake_from(1_020, OWN, OTHER, 2, 0).switch(8_000, 0, OWN, 1);
    let recording = read(&mut machine);
    let expected = [
        named(LatenessCause::Thread, "burner", 6_980),
        named(LatenessCause::Timer, "while burner ran", 20),
        named(LatenessCause::Own, "", 5),
    ];
    assert_eq!(portions(&recording, &late(1_000, 8_005)), expected);
    let begin = lateness(&recording, &late(1_000, 8_005)).expect("it is held").begin;
    assert_eq!(begin, at(700));
}

#[test]
fn threads_of_a_process_count_together_and_one_alone_is_named() {
    let mut machine = asleep();
    machine.task(301, OTHER, 1, "worker", 1).task(302, OTHER, 1, "audio", 1);
    machine.wake_from(1_000, OWN, 0, 2, 0).switch(1_000, 0, 301, 0).switch(4_000, 0, 302, 0);
    machine.switch(6_000, 0, OWN, 1);
    let recording = read(&mut machine);
    assert_eq!(
        portions(&recording, &late(1_000, 6_000)),
        [named(LatenessCause::Thread, "burner", 5_000)]
    );
    assert_eq!(
        portions(&recording, &late(4_500, 6_000)),
        [named(LatenessCause::Thread, "audio of burner", 1_500)]
    );
}

#[test]
fn timer_interrupt_and_exit_from_idle_are_distinguished() {
    let mut machine = asleep();
    machine.interrupt(1_900, 0, 400, 24, 0).interrupt(2_500, 0, 300, 3, 1);
    machine.wake_from(2_000, OWN, 0, 2, 0).switch(3_000, 0, OWN, 0);
    let expected = [
        named(LatenessCause::IdleExit, "", 700),
        named(LatenessCause::Timer, "", 600),
        named(LatenessCause::Interrupt, "interrupt 24", 400),
        named(LatenessCause::Softirq, "softirq network receive", 300),
        named(LatenessCause::Own, "", 10),
    ];
    assert_eq!(portions(&read(&mut machine), &late(1_000, 3_010)), expected);
}

const UNDECIDED: &str = "the firmware or the hardware, one CPU";

/// The burner's CPU takes the timer interrupt three milliseconds late, with the given `found` in
/// its record.
fn overdue(found: u32, more: impl FnOnce(&mut Machinery)) -> Vec<(LatenessCause, String, u64)> {
    let mut machine = asleep();
    machine.switch(700, 0, OTHER, 0).overdue(4_020, 0, 3_000, OTHER, found);
    more(&mut machine);
    machine.wake_from(4_030, OWN, OTHER, 2, 0).switch(4_050, 0, OWN, 0);
    portions(&read(&mut machine), &late(1_000, 4_055))
}

fn with_rest(first: (LatenessCause, String, u64)) -> Vec<(LatenessCause, String, u64)> {
    let timer = named(LatenessCause::Timer, "while burner ran", 30);
    vec![first, timer, named(LatenessCause::Thread, "burner", 20), named(LatenessCause::Own, "", 5)]
}

#[test]
fn interrupts_off_are_distinguished_from_an_absent_cpu() {
    let [kernel, allowed, program] = [0, 1, 2].map(|found| overdue(found, |_| {}));
    assert_eq!(allowed, with_rest(named(LatenessCause::HeldOff, "burner", 3_000)));
    assert_eq!(kernel, with_rest(named(LatenessCause::Outside, UNDECIDED, 3_000)));
    assert_eq!(program, kernel);
    let both = overdue(2, |machine| {
        machine.overdue(4_100, 1, 3_100, 0, 0);
    });
    assert_eq!(both, with_rest(named(LatenessCause::Firmware, "all CPUs at once", 3_000)));
    let guest = overdue(2, guest);
    assert_eq!(guest, with_rest(named(LatenessCause::Hypervisor, "one CPU", 3_000)));
}

#[test]
fn interrupts_off_beside_idle_cpus_are_no_machine_stall() {
    let mut machine = asleep();
    machine.switch(700, 0, OTHER, 0).overdue(41_020, 0, 40_000, OTHER, 1);
    machine.wake_from(41_020, OWN, OTHER, 2, 0).switch(41_020, 0, OWN, 0);
    let expected = [
        named(LatenessCause::HeldOff, "burner", 40_000),
        named(LatenessCause::Timer, "while burner ran", 20),
    ];
    assert_eq!(portions(&read(&mut machine), &late(1_000, 41_020)), expected);
}

/// The interrupt of the local timer takes 400 ms before it wakes the thread, beside `others` of
/// that length.
fn long_handler(others: u64, more: impl FnOnce(&mut Machinery)) -> (LatenessCause, String, u64) {
    let mut machine = asleep();
    for other in 0..others {
        machine.interrupt(20_000_000 + other * 500_000, 0, 400_000, TIMER, 0);
    }
    for short in 0..4 {
        machine.interrupt(10_000_000 + short * 4_000, 0, 100, TIMER, 0);
    }
    machine.interrupt(401_000, 0, 400_000, TIMER, 0).wake_from(401_000, OWN, 0, 2, 0);
    machine.switch(401_010, 0, OWN, 0);
    more(&mut machine);
    let recording = Recording::read(&machine.incident(30_000_000)).expect("it is an incident");
    portions(&recording, &late(1_000, 401_015)).remove(0)
}

/// Pseudo number of the local timer interrupt.
const TIMER: u32 = 0xffff_fff0;

fn guest(machine: &mut Machinery) {
    machine.meta.machine.virtualized = true;
}

#[test]
fn a_handler_is_named_unless_the_cpu_may_have_been_taken() {
    let handler = named(LatenessCause::Interrupt, "interrupt (timer of the CPU)", 400_000);
    let open = named(
        LatenessCause::Outside,
        "the hypervisor or interrupt (timer of the CPU), one CPU",
        400_000,
    );
    assert_eq!(
        long_handler(0, |_| {}),
        handler,
        "nobody takes the CPU of a machine without a hypervisor"
    );
    assert_eq!(long_handler(0, guest), open, "it takes a tenth of a millisecond else");
    assert_eq!(long_handler(6, guest), handler, "it takes as long again and again");
    for (taken, cause) in [(0, handler), (10, named(LatenessCause::Hypervisor, "one CPU", 400_000))]
    {
        let counted = long_handler(0, |machine| {
            guest(machine);
            for tenth in 0..=10 {
                machine.stolen(tenth * 100_000, [7 + taken * tenth.min(4), 0]);
            }
        });
        assert_eq!(counted, cause, "the hypervisor counts what it takes");
    }
}

#[test]
fn disabled_interrupts_have_an_owner_unless_the_cpu_was_away() {
    let open = "the hypervisor or burner with interrupts held off, one CPU";
    for (virtualized, length, others, cause, name) in [
        (false, 8_000, 0, LatenessCause::HeldOff, "burner"),
        (true, 8_000, 0, LatenessCause::Outside, open),
        // It holds them off for as long again and again.
        (true, 8_000, 3, LatenessCause::HeldOff, "burner"),
        // Kernels do so.
        (true, 4_000, 0, LatenessCause::HeldOff, "burner"),
    ] {
        let mut machine = asleep();
        machine.meta.machine.virtualized = virtualized;
        for other in 0..others {
            machine.overdue(60_000 + other * 10_000, 1, length, OTHER, 1);
        }
        machine.switch(700, 0, OTHER, 0).overdue(1_020 + length, 0, length, OTHER, 1);
        machine.wake_from(1_030 + length, OWN, OTHER, 2, 0).switch(1_050 + length, 0, OWN, 0);
        let found = portions(&read(&mut machine), &late(1_020, 1_055 + length)).remove(0);
        assert_eq!(found, named(cause, name, length));
    }
}

#[test]
fn a_thread_is_not_slow_itself_if_its_cpu_was_away() {
    let [real, virtual_one] = [false, true].map(|virtualized| {
        let mut machine = asleep();
        machine.meta.machine.virtualized = virtualized;
        machine.wake_from(1_000, OWN, 0, 2, 0).switch(1_000, 0, OWN, 0);
        machine.overdue(90_000, 0, 88_000, OWN, 1);
        portions(&read(&mut machine), &late(1_000, 90_000)).remove(0)
    });
    assert_eq!(real, named(LatenessCause::Own, "", 89_000));
    let open = "the hypervisor or periodic with interrupts held off, one CPU";
    assert_eq!(virtual_one, named(LatenessCause::Outside, open, 88_000));
}

#[test]
fn a_device_is_named_with_the_function_that_waited_for_it() {
    let open = format!("{UNDECIDED}, in clear_page_erms");
    for (function, cause, name) in [
        ("ioread8", LatenessCause::Device, "one CPU, in ioread8"),
        ("clear_page_erms", LatenessCause::Outside, open.as_str()),
    ] {
        let mut machine = asleep();
        machine.switch(700, 0, OTHER, 0).overdue_at(4_020, 0, 3_000, OTHER, function);
        machine.switch(2_500, 1, 310, 0).switch(2_600, 1, 0, 1);
        machine.wake_from(4_030, OWN, OTHER, 2, 0).switch(4_050, 0, OWN, 0);
        let found = portions(&read(&mut machine), &late(1_000, 4_055));
        assert_eq!(found, with_rest(named(cause, name, 3_000)));
    }
}

#[test]
fn an_unrecorded_wakeup_was_timely_unless_overdue() {
    for (is_overdue, cause, name) in
        [(false, LatenessCause::Thread, "burner"), (true, LatenessCause::Outside, UNDECIDED)]
    {
        let mut machine = asleep();
        machine.switch(700, 0, OTHER, 0).switch(4_000, 0, OWN, 0);
        if is_overdue {
            machine.overdue(4_000, 0, 3_000, OTHER, 2);
        }
        assert_eq!(
            portions(&read(&mut machine), &late(1_000, 4_005)),
            [named(cause, name, 3_000), named(LatenessCause::Own, "", 5)]
        );
    }
}

#[test]
fn a_thread_hidden_from_the_recorder_may_be_named_later() {
    let mut machine = asleep();
    machine.wake_from(1_000, OWN, 0, 2, 0).switch(1_000, 0, 900, 0).switch(4_000, 0, OWN, 0);
    let mut recording = read(&mut machine);
    assert_eq!(recording.nameless(), [Tid(900)]);
    recording.tasks.add_living(Tid(900), Pid(899), "worker".to_owned());
    recording.tasks.add_living(Tid(899), Pid(899), "hidden".to_owned());
    assert_eq!(recording.nameless(), []);
    assert_eq!(
        portions(&recording, &late(1_000, 4_000)),
        [named(LatenessCause::Thread, "worker of hidden", 3_000)]
    );
}

#[test]
fn a_timer_is_looked_for_where_it_was() {
    let mut machine = asleep();
    machine.switch(700, 1, OTHER, 0).overdue(4_000, 1, 3_000, OTHER, 1);
    machine.wake_from(4_000, OWN, OTHER, 2, 0).switch(4_050, 0, OWN, 0);
    let expected =
        [named(LatenessCause::HeldOff, "burner", 3_000), named(LatenessCause::IdleExit, "", 50)];
    assert_eq!(portions(&read(&mut machine), &late(1_000, 4_050)), expected);
}

#[test]
fn one_that_was_awake_at_its_deadline_has_no_timer_to_blame() {
    let mut machine = asleep();
    machine.wake_from(900, OWN, 0, 2, 0).switch(905, 0, OWN, 0).switch(950, 0, OTHER, 0);
    machine.switch(3_000, 0, OWN, 1);
    let expected =
        [named(LatenessCause::Thread, "burner", 2_000), named(LatenessCause::Own, "", 100)];
    assert_eq!(portions(&read(&mut machine), &late(1_000, 3_100)), expected);
}

#[test]
fn what_is_not_held_is_not_explained() {
    let mut machine = asleep();
    machine.meta.held_from_ns = at(1_500).0;
    machine.wake_from(2_000, OWN, 0, 2, 0).switch(3_000, 0, OWN, 0);
    let recording = read(&mut machine);
    assert_eq!(lateness(&recording, &late(1_000, 3_010)), None);
    assert!(lateness(&recording, &late(1_600, 3_010)).is_some());
    assert_eq!(lateness(&recording, &late(1_600, 1_600)), None);
}

proptest! {
    #[test]
    fn a_budget_sums_to_the_whole(
        mut times in proptest::collection::vec(200..20_000_u64, 4..5),
        irqs in proptest::collection::vec((200..20_000_u64, 1..500_u64, 0..2_u32), 0..5),
        (deadline, length) in (150..10_000_u64, 1..20_000_u64),
    ) {
        times.sort_unstable();
        let mut machine = asleep();
        machine.switch(times[0], 0, OTHER, 0).wake_from(times[1], OWN, 0, 2, 0).switch(times[2], 0, 0, 1);
        machine.switch(times[3], 0, OWN, 0);
        irqs.iter().for_each(|(end, length, soft)| { machine.interrupt(*end, 0, *length, 1, *soft); });
        let late = late(deadline, deadline + length);
        let found = lateness(&read(&mut machine), &late).expect("it is held");
        let sum: u64 = found.portions.iter().map(|(_, _, time)| time.0).sum();
        prop_assert_eq!(sum, length * 1_000);
        prop_assert!(found.portions.windows(2).all(|pair| pair[0].2 >= pair[1].2));
    }
}
