// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loading and attaching of the programs, by class, as far as the kernel supports them.

use crate::detail::{Detail, DetailThresholds};
use crate::focus::{FocusChanges, FocusGained, of_holder};
use crate::memory::{Pool, Shares, least_chunks};
use crate::perf::cpu_clock;
use crate::programs::{Hook, Program, REQUIRED, classes, hooks_of, programs_of};
use crate::skeleton::types::holder;
use crate::skeleton::{OpenTipmeSkel, TipmeSkel, TipmeSkelBuilder};
use crate::standby::{SampleClock, StandbyPrograms, program_id};
use anyhow::{Context, Result, bail, ensure};
use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Typedef};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Btf, Link, OpenObject, ProgramMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use tipme_record::incident::Missing;
use tipme_record::{Nanos, RingClass};

/// Owner of the loaded object; it must outlive the [`Kernel`].
#[derive(Default)]
pub struct Storage(Option<Box<MaybeUninit<OpenObject>>>);

/// A display, by the number of its socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DisplayNumber {
    X11(u32),
    Wayland(u32),
}

/// Selection of the records, and the memory for them.
#[derive(Clone, Debug)]
pub struct KernelOptions {
    /// Locked memory for rings and tables, in bytes; a hard limit.
    pub memory: u64,
    /// Classes to leave out; see [`classes`].
    pub without: Vec<String>,
    /// The only display to record; `None` for all.
    pub display: Option<DisplayNumber>,
    /// Time that a mark reaches back.
    pub window: Nanos,
    /// Samples per second and CPU.
    pub hertz: u64,
    /// Details to record.
    pub details: Vec<Detail>,
}

/// The armed kernel side. Dropping it detaches every program and frees every ring.
pub struct Kernel<'a> {
    pub(crate) skeleton: TipmeSkel<'a>,
    pool: Pool,
    /// Iterator over all tasks.
    pub(crate) walk: Link,
    focus: FocusChanges,
    /// Links of attached programs, which are detached on drop.
    _links: Vec<Link>,
    chosen: Chosen,
    hertz: u64,
}

/// Maximum delay from a mark to its handling; the mark reaches back from its own time.
const LATE: Nanos = Nanos::from_secs(5);

/// Recorded classes, and their programs.
struct Chosen {
    on: Vec<&'static str>,
    missing: Vec<Missing>,
    /// Classes recorded on demand only: loaded, but not attached.
    standby: Vec<&'static str>,
    /// On-demand classes that are unavailable, with the reason.
    absent: Vec<Missing>,
    /// Programs of the classes in `on` and `standby`, as far as this kernel has their hooks.
    programs: Vec<&'static Program>,
}

impl<'a> Kernel<'a> {
    /// Loads and attaches the programs. A class that this kernel lacks is left out and listed in
    /// [`Kernel::missing`]; a missing class `tasks` is an error, since nothing can be recorded
    /// without it.
    pub fn arm(storage: &'a mut Storage, options: &KernelOptions) -> Result<Kernel<'a>> {
        libbpf_rs::set_print(None);
        ensure!(sees_all_processes(), "{ELSEWHERE}");
        let cpus = possible_cpus()?;
        let shares = Shares::of(options.memory, cpus)?;
        let mut chosen = choose(options)?;
        let mut skeleton = load(storage, &chosen.programs, shares, options)?;
        fill_queues(&mut skeleton, shares)?;
        let pool = Pool::map(skeleton.maps.pool.as_fd(), shares.total())?;
        set_thresholds(&mut skeleton, &options.details);
        let attached = attach(&skeleton, &mut chosen, options.hertz)?;
        let walk = attached.walk.context("the kernel programs lack the task walk")?;
        let focus = FocusChanges::open(&skeleton.maps.focus_changes)?;
        let hertz = options.hertz;
        Ok(Kernel { skeleton, pool, walk, focus, _links: attached.links, chosen, hertz })
    }

    /// Returns the classes being recorded.
    pub fn classes_on(&self) -> &[&'static str] {
        &self.chosen.on
    }

    /// Returns the classes not recorded, with the reason.
    pub fn missing(&self) -> &[Missing] {
        &self.chosen.missing
    }

    /// Returns the hooks that record a class, if kernels differ in them.
    pub(crate) fn hooks(&self, class: &str) -> Option<String> {
        hooks_of(class, &self.chosen.programs)
    }

    /// Returns the CPUs that went offline or came online since the last call: the kernel ends their
    /// sampling events, and new ones take privileges that a recorder has dropped.
    pub fn moved_cpus(&mut self) -> Vec<u16> {
        let mut cpus = Vec::new();
        let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() else { return cpus };
        for (cpu, moved) in (0..).zip(&mut bss.cpu_moved) {
            // SAFETY: a reference is valid for reads; the kernel writes single bytes there
            // concurrently.
            if unsafe { std::ptr::from_ref(moved).read_volatile() } != 0 {
                *moved = 0;
                cpus.push(cpu);
            }
        }
        cpus
    }

    /// Marks a CPU as no longer sampled.
    pub fn miss_samples(&mut self, cpu: u16) {
        let why = format!(
            "none of CPU {cpu} since it went or came; restart the recorder to have them again"
        );
        let missing = Missing { what: "samples".to_owned(), why };
        if !self.chosen.missing.contains(&missing) {
            self.chosen.missing.push(missing);
        }
    }

    /// Copies the chunks of a class with records since `from`, while the kernel writes. Passes them
    /// to `take` in blocks, from several threads at once.
    pub fn copy_chunks(&self, class: RingClass, from: Nanos, take: &(dyn Fn(&[u8]) + Sync)) {
        self.pool.copy_since(class, from, take);
    }

    /// Returns the time after which records of the class are complete; zero if none was overwritten
    /// yet. Read *after* a copy, it holds for the copy.
    pub fn overwritten_until(&self, class: RingClass) -> Nanos {
        Nanos(self.volatile(|bss| &raw const bss.overwritten_until[class as usize]))
    }

    /// Returns the number of records of the class that found no chunk since the start.
    pub fn dropped(&self, class: RingClass) -> u64 {
        self.volatile(|bss| &raw const bss.dropped[class as usize])
    }

    /// Returns the number of sends on display connections with messages skipped since the start,
    /// because their position in the stream was unknown.
    pub fn skipped_sends(&self) -> u64 {
        self.volatile(|bss| &raw const bss.sends_skipped)
    }

    /// Returns a descriptor that becomes readable when the focus changes on a compositor; then call
    /// [`Kernel::focus_changes`].
    pub fn focus_fd(&self) -> BorrowedFd<'_> {
        self.focus.fd()
    }

    /// Returns the focus changes since the last call, in chronological order.
    pub fn focus_changes(&self) -> Vec<FocusGained> {
        self.focus.take()
    }

    /// Returns the current focus on compositors, including changes that were over the budget of the
    /// kernel.
    pub fn focuses(&self) -> Vec<FocusGained> {
        let holders = self.skeleton.maps.bss_data.as_deref().map(|bss| &bss.holders);
        // SAFETY: a reference is valid for reads; the kernel writes plain integers there meanwhile.
        let read =
            |place: &holder| of_holder(|| unsafe { std::ptr::from_ref(place).read_volatile() });
        holders.into_iter().flatten().filter_map(read).collect()
    }

    /// Sets the minimum durations of blocks, interrupts and lock contention for these details.
    /// Programs that a detail needs besides are attached by the counter process: see
    /// [`Kernel::standby`].
    pub fn set_details(&mut self, details: &[Detail]) {
        set_thresholds(&mut self.skeleton, details);
    }

    /// Returns the reason why a detail cannot be recorded; `None` if it can.
    pub fn lacks(&self, detail: Detail) -> Option<&str> {
        let chosen = &self.chosen;
        if [&chosen.on, &chosen.standby]
            .into_iter()
            .any(|classes| classes.contains(&detail.class()))
        {
            return None;
        }
        let all = chosen.missing.iter().chain(&chosen.absent);
        Some(
            all.clone()
                .find(|missing| missing.what == detail.class())
                .map_or("", |missing| &missing.why),
        )
    }

    /// Returns the details recorded on demand only, each with the programs to attach for it.
    ///
    /// # Errors
    /// If the kernel does not return the ids of the programs.
    pub fn standby(&self) -> Result<Vec<StandbyPrograms>> {
        let mut standby = Vec::new();
        for class in &self.chosen.standby {
            let detail = Detail::of_class(class).context("a standby class has no detail")?;
            let mut ids = Vec::new();
            for program in self.chosen.programs_of(&[class]) {
                ids.push(program_id(find(&self.skeleton, program.name)?.as_fd())?);
            }
            standby.push(StandbyPrograms { detail, ids });
        }
        Ok(standby)
    }

    /// Returns the sampling program and its frequency; `None` if samples are not recorded.
    ///
    /// # Errors
    /// If the kernel does not return the id of the program.
    pub fn sample_clock(&self) -> Result<Option<SampleClock>> {
        let on = self.chosen.programs_of(&self.chosen.on);
        let program = on.into_iter().find(|program| matches!(program.hook, Hook::Clock));
        let clock = program.map(|program| {
            let program = program_id(find(&self.skeleton, program.name)?.as_fd())?;
            Ok(SampleClock { program, hertz: self.hertz })
        });
        clock.transpose()
    }

    /// Stops or restarts the recording of input: while hidden, key and pointer events leave no
    /// trace.
    pub fn hide_input(&mut self, hidden: bool) {
        if let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() {
            set_flag((&raw mut bss.input_hidden).cast(), hidden);
        }
    }

    /// Stops or restarts all recording: while paused, no program writes anything.
    pub fn pause(&mut self, paused: bool) {
        if let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() {
            set_flag((&raw mut bss.paused).cast(), paused);
        }
    }

    /// Returns the current value of a counter of the kernel programs.
    pub(crate) fn volatile(
        &self,
        field: impl Fn(&crate::skeleton::types::bss) -> *const u64,
    ) -> u64 {
        // SAFETY: the pointer comes from a field of the mapped section, which lives as long as
        // `self`.
        self.skeleton
            .maps
            .bss_data
            .as_deref()
            .map_or(0, |bss| unsafe { field(bss).read_volatile() })
    }
}

/// Sets a one-byte field that the programs only read.
fn set_flag(flag: *mut u8, value: bool) {
    // SAFETY: callers pass a field of the mapped section of variables.
    unsafe { flag.write_volatile(u8::from(value)) }
}

/// The initial PID namespace: the kernel records its pids.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
const ELSEWHERE: &str = "this container has its own PID namespace, so the recorded pids would \
    name the wrong processes; record on the host, or in a container with the host's PID namespace \
    (docker run --pid=host)";

/// Returns `true` if /proc shows the pids that are recorded. A kernel without namespaces has the
/// same ones for all.
fn sees_all_processes() -> bool {
    std::fs::read_link("/proc/self/ns/pid")
        .map_or(true, |namespace| namespace.as_os_str() == FIRST_NAMESPACE)
}

/// Returns the number of possible CPUs.
pub(crate) fn possible_cpus() -> Result<usize> {
    libbpf_rs::num_possible_cpus().context("cannot get the number of CPUs")
}

/// Splits the classes into those to enable and those that are missing, with the reason.
fn choose(options: &KernelOptions) -> Result<Chosen> {
    let btf = Btf::from_vmlinux().context(
        "cannot read /sys/kernel/btf/vmlinux: kernel has no BTF; enable CONFIG_DEBUG_INFO_BTF",
    )?;
    let known = classes();
    if let Some(unknown) = options.without.iter().find(|name| !known[1..].contains(&name.as_str()))
    {
        bail!(
            "there is no class {unknown:?} to switch off; the classes are {}",
            known[1..].join(", ")
        );
    }
    let standby = known.iter().copied().filter(|class| {
        Detail::of_class(class).is_some_and(|detail| !options.details.contains(&detail))
    });
    let mut chosen = Chosen {
        on: Vec::new(),
        missing: Vec::new(),
        standby: standby.collect(),
        absent: Vec::new(),
        programs: Vec::new(),
    };
    for class in known {
        match wanted_programs(class, options, &btf) {
            Ok(programs) => chosen.add(class, programs),
            Err(why) => chosen.leave_out(class, why),
        }
    }
    ensure!(chosen.on.contains(&REQUIRED), "this kernel cannot record: {}", chosen.missing[0].why);
    drop_rejected(options, &mut chosen)?;
    Ok(chosen)
}

impl Chosen {
    fn add(&mut self, class: &'static str, programs: Vec<&'static Program>) {
        if !self.standby.contains(&class) {
            self.on.push(class);
        }
        self.programs.extend(programs);
    }

    fn leave_out(&mut self, class: &str, why: String) {
        let list = if self.standby.contains(&class) { &mut self.absent } else { &mut self.missing };
        list.push(Missing { what: class.to_owned(), why });
        self.on.retain(|on| *on != class);
        self.standby.retain(|standby| *standby != class);
        self.programs.retain(|program| program.class != class);
    }

    /// Returns the programs of some classes.
    fn programs_of(&self, classes: &[&str]) -> Vec<&'static Program> {
        self.programs.iter().copied().filter(|program| classes.contains(&program.class)).collect()
    }
}

/// Returns the programs of a class, or the reason why it is not recorded.
fn wanted_programs(
    class: &str,
    options: &KernelOptions,
    btf: &Btf<'_>,
) -> Result<Vec<&'static Program>, String> {
    if options.without.iter().any(|name| name == class) {
        return Err("switched off with --without".to_owned());
    }
    programs_of(class, |hook| has(btf, hook)).map_err(|hook| format!("kernel has no {hook}"))
}

/// Returns `true` if the kernel has this hook.
fn has(btf: &Btf<'_>, hook: Hook) -> bool {
    match hook {
        Hook::Tracepoint(name) => has_tracepoint(btf, name),
        Hook::Return(name) => btf.type_by_name::<Func<'_>>(name).is_some(),
        Hook::Clock | Hook::Walk => true,
    }
}

/// Returns `true` if the kernel has a BTF tracepoint of this name.
fn has_tracepoint(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}")).is_some()
}

/// If all classes together do not load, tries each one and leaves out those that the verifier
/// rejects.
fn drop_rejected(options: &KernelOptions, chosen: &mut Chosen) -> Result<()> {
    let least = Shares([4, 4, 4]);
    let try_load =
        |programs: &[&Program]| load(&mut Storage::default(), programs, least, options).map(drop);
    let Err(whole) = try_load(&chosen.programs) else { return Ok(()) };
    try_load(&chosen.programs_of(&[REQUIRED])).map_err(|_| whole)?;
    for class in [chosen.on.clone(), chosen.standby.clone()].concat() {
        if let Err(error) = try_load(&chosen.programs_of(&[REQUIRED, class])) {
            chosen.leave_out(class, format!("kernel refuses the programs: {error:#}"));
        }
    }
    Ok(())
}

fn load<'a>(
    storage: &'a mut Storage,
    programs: &[&Program],
    shares: Shares,
    options: &KernelOptions,
) -> Result<TipmeSkel<'a>> {
    let place = storage.0.insert(Box::new(MaybeUninit::uninit()));
    let mut open =
        TipmeSkelBuilder::default().open(place).context("cannot open the kernel programs")?;
    for mut program in open.open_object_mut().progs_mut() {
        let wanted = programs.iter().any(|wanted| program.name() == wanted.name);
        program.set_autoload(wanted);
    }
    configure(&mut open, shares, options)?;
    open.load().context(
        "cannot load the kernel programs; \
         needs root or the capabilities BPF, PERFMON and SYS_RESOURCE: sudo tipme record",
    )
}

fn configure(open: &mut OpenTipmeSkel<'_>, shares: Shares, options: &KernelOptions) -> Result<()> {
    open.maps.pool.set_max_entries(shares.total())?;
    let rodata = open.maps.rodata_data.as_deref_mut().context("the programs have no constants")?;
    (rodata.shares, rodata.least_share) = (shares.0, least_chunks(possible_cpus()?) as u32);
    rodata.kept_ns = options.window.after(LATE).0;
    rodata.scramble = random()?;
    (rodata.only_display, rodata.only_wayland) = match options.display {
        None => (-1, -1),
        Some(DisplayNumber::X11(number)) => (number as i32, -1),
        Some(DisplayNumber::Wayland(number)) => (-1, number as i32),
    };
    rodata.tty_work = kernel_symbol("flush_to_ldisc").unwrap_or(0);
    rodata.timer_interrupt = kernel_symbol("asm_sysvec_apic_timer_interrupt").unwrap_or(0);
    rodata.switch_has_state = u8::from(kernel_at_least(5, 18));
    rodata.dirty_in_structure =
        u8::from(arguments_of("balance_dirty_pages") == Some(DIRTY_ARGUMENTS));
    rodata.tick_ns = tick().0;
    Ok(())
}

fn random() -> Result<u64> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .context("cannot get a random number")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Number of arguments of balance_dirty_pages if the thresholds come in one structure; otherwise it
/// is 12.
const DIRTY_ARGUMENTS: usize = 8;

/// Returns the number of arguments that a tracepoint passes to programs; `None` if it does not
/// exist.
fn arguments_of(tracepoint: &str) -> Option<usize> {
    let btf = Btf::from_vmlinux().ok()?;
    let named: Typedef<'_> = btf.type_by_name(&format!("btf_trace_{tracepoint}"))?;
    let pointer: Ptr<'_> = named.next_type()?.try_into().ok()?;
    let function: FuncProto<'_> = pointer.next_type()?.try_into().ok()?;
    // The first argument is the tracepoint's own.
    function.len().checked_sub(1)
}

/// Returns the length of a kernel tick: the resolution of the coarse clocks.
fn tick() -> Nanos {
    let length = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Nanos(length.tv_sec as u64 * 1_000_000_000 + length.tv_nsec as u64)
}

/// Returns the address of a kernel function; `None` if it is hidden.
fn kernel_symbol(name: &str) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/kallsyms").ok()?;
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(name))?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

fn kernel_at_least(major: u32, minor: u32) -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse().unwrap_or(0u32));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

/// Width of a chunk number in a slot of a queue, as in `ring.h`.
const NUMBER_BITS: u32 = 24;

/// Puts every chunk into its queue, before the first program runs.
fn fill_queues(skeleton: &mut TipmeSkel<'_>, shares: Shares) -> Result<()> {
    let bss = skeleton.maps.bss_data.as_deref_mut().context("the programs have no variables")?;
    let mut number = 0;
    for (queue, share) in bss.queues.iter_mut().zip(shares.0) {
        for (turn, slot) in (0_u64..).zip(&mut queue.slots) {
            // Turn of the slot, and the number + 1 of a chunk, or 0.
            let has_chunk = turn < u64::from(share);
            number += u64::from(has_chunk);
            *slot = turn << NUMBER_BITS | if has_chunk { number } else { 0 };
        }
        queue.tail = u64::from(share);
    }
    bss.owned = shares.0;
    Ok(())
}

/// Sets the minimum durations, before the first program runs and whenever the details change.
fn set_thresholds(skeleton: &mut TipmeSkel<'_>, details: &[Detail]) {
    let Some(bss) = skeleton.maps.bss_data.as_deref_mut() else { return };
    let limits = DetailThresholds::of(details);
    let places = [
        (&raw mut bss.min_block_ns, limits.block),
        (&raw mut bss.long_interrupt_ns, limits.interrupt),
        (&raw mut bss.long_lock_ns, limits.lock),
    ];
    for (place, limit) in places {
        // SAFETY: the fields are whole words of mapped memory that programs only read.
        unsafe { place.write_volatile(limit.0) }
    }
}

fn find<'s>(skeleton: &'s TipmeSkel<'_>, name: &str) -> Result<ProgramMut<'s>> {
    let mut programs = skeleton.object().progs_mut();
    programs
        .find(|program| program.name() == name)
        .with_context(|| format!("the kernel programs lack {name}"))
}

/// Links of attached programs, which are detached on drop.
#[derive(Default)]
struct Attached {
    walk: Option<Link>,
    links: Vec<Link>,
}

/// Attaches class by class. If the kernel refuses one, that class is left out, unless it is
/// required.
fn attach(skeleton: &TipmeSkel<'_>, chosen: &mut Chosen, hertz: u64) -> Result<Attached> {
    let mut all = Attached::default();
    for class in chosen.on.clone() {
        match attach_programs(skeleton, &chosen.programs_of(&[class]), hertz) {
            Ok(attached) => {
                all.walk = all.walk.or(attached.walk);
                all.links.extend(attached.links);
            }
            Err(error) if class == REQUIRED => return Err(error),
            Err(error) => {
                chosen.leave_out(class, format!("kernel refuses the programs: {error:#}"))
            }
        }
    }
    Ok(all)
}

fn attach_programs(
    skeleton: &TipmeSkel<'_>,
    programs: &[&Program],
    hertz: u64,
) -> Result<Attached> {
    let mut attached = Attached::default();
    for program in programs {
        let loaded = find(skeleton, program.name)?;
        attached
            .attach(&loaded, program.hook, hertz)
            .with_context(|| format!("cannot attach {} ({})", program.name, program.hook))?;
    }
    Ok(attached)
}

impl Attached {
    fn attach(&mut self, program: &ProgramMut<'_>, hook: Hook, hertz: u64) -> Result<()> {
        match hook {
            Hook::Tracepoint(_) | Hook::Return(_) => self.links.push(program.attach_trace()?),
            Hook::Walk => self.walk = Some(program.attach()?),
            Hook::Clock => self.links.extend(attach_clocks(program, hertz)?),
        }
        Ok(())
    }
}

fn attach_clocks(program: &ProgramMut<'_>, hertz: u64) -> Result<Vec<Link>> {
    let cpus = possible_cpus()? as u32;
    let clocks = (0..cpus).filter_map(|cpu| cpu_clock(cpu, hertz).transpose());
    // The link takes ownership of the descriptor.
    clocks.map(|clock| Ok(program.attach_perf_event(clock?.into_raw_fd())?)).collect()
}
