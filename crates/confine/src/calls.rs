// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls that a confined process has: for its memory, its threads, the time, and what is open. One that is to
//! look into files may open them too, for reading; one that counts what kernel programs cost may switch that on,
//! attach programs that it has open, and make clocks for CPUs, which one of those runs at.

use crate::reach::Reach;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// Whatever their arguments are. None of them takes a path, an address or the number of a process.
const ALLOWED: [libc::c_long; 37] = [
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_get_robust_list,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Bits of an `openat` by which a file is made, changed or cut.
const CHANGES: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;

/// `BPF_ENABLE_STATS`.
const COUNT: u64 = 32;
/// `BPF_RAW_TRACEPOINT_OPEN`, which attaches a program to the hook that it was loaded for.
const ATTACH: u64 = 17;

/// Of a clock for a CPU, whoever has it.
const EVERYBODY: u64 = 0xffff_ffff;
/// `PERF_EVENT_IOC_SET_BPF`, which has a program run at the ticks of such a clock.
const SET_PROGRAM: u64 = 0x4004_2408;

/// Allows this thread, and those that it will start, these calls only; all others fail. Threads may be started, no
/// processes, and no memory can be executed that cannot now. Files within reach may be looked at and opened, but for
/// reading only.
pub(crate) fn restrict(reach: Reach) -> Result<(), Error> {
    let mut allowed: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let thread = libc::CLONE_THREAD as u64;
    allowed.insert(libc::SYS_clone, one(0, SeccompCmpOp::MaskedEq(thread), thread)?);
    let executable = libc::PROT_EXEC as u64;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        allowed.insert(call, one(2, SeccompCmpOp::MaskedEq(executable), 0)?);
    }
    match reach {
        Reach::Nothing => {}
        Reach::Files(_) => {
            allowed.insert(libc::SYS_statx, Vec::new());
            allowed.insert(libc::SYS_openat, one(2, SeccompCmpOp::MaskedEq(CHANGES), 0)?);
        }
        Reach::Count { .. } => {
            let either = [one(0, SeccompCmpOp::Eq, COUNT)?, one(0, SeccompCmpOp::Eq, ATTACH)?];
            allowed.insert(libc::SYS_bpf, either.concat());
            allowed.insert(libc::SYS_perf_event_open, one(1, SeccompCmpOp::Eq, EVERYBODY)?);
            allowed.insert(libc::SYS_ioctl, one(1, SeccompCmpOp::Eq, SET_PROGRAM)?);
        }
    }
    // What clone3 is to do stands in memory, which no filter sees. Who is told that there is none takes clone.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply(clone3, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))?;
    allowed.insert(libc::SYS_clone3, Vec::new());
    apply(allowed, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
}

fn one(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<Vec<SeccompRule>, BackendError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    Ok(vec![SeccompRule::new(vec![condition])?])
}

fn apply(rules: BTreeMap<i64, Vec<SeccompRule>>, others: SeccompAction, these: SeccompAction) -> Result<(), Error> {
    let arch = std::env::consts::ARCH.try_into()?;
    let filter: BpfProgram = SeccompFilter::new(rules, others, these, arch)?.try_into()?;
    apply_filter(&filter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::os::unix::fs::OpenOptionsExt;
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;
    use std::thread;

    /// Filters hold for the thread that they are made in.
    #[test]
    fn nothing_is_left_but_what_is_open() {
        let open = File::open("/proc/self/status").unwrap();
        let tried = thread::spawn(move || {
            restrict(Reach::Nothing).unwrap();
            assert!(open.metadata().is_ok() || std::io::read_to_string(&open).is_ok_and(|text| !text.is_empty()));
            assert_eq!(thread::spawn(|| 7).join().unwrap(), 7, "zstd has threads");
            assert_eq!(vec![1u8; 64 << 20].len(), 64 << 20);
            let size = 4096;
            let (place, flags) = (std::ptr::null_mut(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: the calls have nothing to do with memory that anybody uses.
            let calls = unsafe {
                [
                    libc::mmap(place, size, libc::PROT_READ | libc::PROT_EXEC, flags, -1, 0) as i64,
                    libc::kill(libc::getpid(), 0).into(),
                    libc::prctl(libc::PR_SET_NAME, c"x".as_ptr()).into(),
                    libc::fork().into(),
                ]
            };
            assert_eq!(calls, [-1; 4]);
            let errors =
                [File::open("/dev/null").err(), UnixDatagram::unbound().err(), Command::new("true").spawn().err()];
            errors.map(|error| error.and_then(|error| error.raw_os_error()))
        });
        assert_eq!(tried.join().unwrap(), [Some(libc::EPERM); 3]);
    }
    #[test]
    fn who_reads_files_changes_none() {
        let dir = std::env::temp_dir().join(format!("tipme-calls-{}", std::process::id()));
        std::fs::write(&dir, "text").unwrap();
        let path = dir.clone();
        let tried = thread::spawn(move || {
            restrict(Reach::Files(1)).unwrap();
            assert!(File::open(&path).unwrap().metadata().unwrap().is_file());
            let tries = [
                File::options().write(true).open(&path).err(),
                File::options().read(true).write(true).open(&path).err(),
                File::options().read(true).custom_flags(libc::O_CREAT).open(path.with_extension("new")).err(),
                File::options().read(true).custom_flags(libc::O_TRUNC).open(&path).err(),
                std::fs::remove_file(&path).err(),
                std::fs::rename(&path, path.with_extension("new")).err(),
                std::fs::read_dir("/").and_then(|mut names| names.next().unwrap_or_else(|| panic!("no names"))).err(),
                UnixDatagram::unbound().err(),
                Command::new("true").spawn().err(),
            ];
            tries.map(|error| error.and_then(|error| error.raw_os_error()))
        });
        let tried = tried.join().unwrap();
        let text = std::fs::read_to_string(&dir).unwrap();
        std::fs::remove_file(&dir).unwrap();
        assert_eq!((tried, text.as_str()), ([Some(libc::EPERM); 9], "text"));
    }

    #[test]
    fn who_counts_does_nothing_else_with_kernel_programs() {
        let tried = thread::spawn(|| {
            restrict(Reach::Count { programs: 0, cpus: 0 }).unwrap();
            [0, 5, COUNT].map(|command| {
                // SAFETY: the kernel takes what is not there for zeroes, and there is nothing else to read.
                let tried = unsafe { libc::syscall(libc::SYS_bpf, command, 0, 0) };
                let error = std::io::Error::last_os_error().raw_os_error();
                // SAFETY: the kernel has just made this descriptor.
                let made = (tried >= 0).then(|| drop(unsafe { OwnedFd::from_raw_fd(tried as i32) }));
                made.is_none().then_some(error)
            })
        });
        let refused = Some(Some(libc::EPERM));
        assert_eq!(tried.join().unwrap(), [refused, refused, None], "maps, programs, the count; run as root");
    }

    #[test]
    fn who_counts_makes_no_clock_for_a_process_and_does_nothing_else_with_one() {
        let tried = thread::spawn(|| {
            restrict(Reach::Count { programs: 0, cpus: 0 }).unwrap();
            let refusal = |failed: bool| failed.then(|| std::io::Error::last_os_error().raw_os_error());
            // SAFETY: nothing is there to be read, and no descriptor is made.
            let clock = |pid: i32| refusal(unsafe { libc::syscall(libc::SYS_perf_event_open, 0, pid, 0, -1, 0) } < 0);
            // SAFETY: the standard input is nothing of which these calls know.
            let call = |request: u64| refusal(unsafe { libc::syscall(libc::SYS_ioctl, 0, request, 0) } < 0);
            [clock(0), clock(-1), call(libc::TIOCSTI), call(SET_PROGRAM)]
        });
        let [of_process, of_cpu, typing, program] = tried.join().unwrap();
        assert_eq!([of_process, typing], [Some(Some(libc::EPERM)); 2]);
        assert_ne!(of_cpu, Some(Some(libc::EPERM)));
        assert_ne!(program, Some(Some(libc::EPERM)));
    }
}
