// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls of a confined process: for its memory, its threads, the time, and open files. With
//! the reach of files it may also open files for reading. With the reach of counting it may enable
//! BPF statistics, attach BPF programs that it has open, and create perf clocks on CPUs, at the
//! ticks of which one program runs.

use crate::reach::Reach;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// Calls allowed with any arguments. None of them takes a path, an address or a process id.
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

/// Flags of `openat` that create, change or truncate a file.
const CHANGES: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;

/// `BPF_ENABLE_STATS`.
const COUNT: u64 = 32;
/// `BPF_RAW_TRACEPOINT_OPEN`, which attaches a program to the hook that it was loaded for.
const ATTACH: u64 = 17;

/// Process argument -1 of a perf clock: any process on the CPU.
const EVERYBODY: u64 = 0xffff_ffff;
/// `PERF_EVENT_IOC_SET_BPF`, which runs a program at the ticks of such a clock.
const SET_PROGRAM: u64 = 0x4004_2408;

/// Restricts this thread, and those that it will start, to these calls; all others fail. Threads
/// may be started, but no processes, and no more memory becomes executable. Files within reach may
/// be inspected and opened, but only for reading.
pub(crate) fn restrict(reach: Reach) -> Result<(), Error> {
    let mut allowed: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
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
    // The flags of clone3 are in memory, which no filter sees. With ENOSYS the caller falls back to
    // clone.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply(clone3, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))?;
    allowed.insert(libc::SYS_clone3, Vec::new());
    apply(allowed, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
}

fn one(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<Vec<SeccompRule>, BackendError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    Ok(vec![SeccompRule::new(vec![condition])?])
}

fn apply(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    these: SeccompAction,
) -> Result<(), Error> {
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

    /// Filters apply to the thread that installs them.
    #[test]
    fn only_open_files_stay_accessible() {
        let open = File::open("/proc/self/status").unwrap();
        let tried = thread::spawn(move || {
            restrict(Reach::Nothing).unwrap();
            assert!(
                open.metadata().is_ok()
                    || std::io::read_to_string(&open).is_ok_and(|text| !text.is_empty())
            );
            assert_eq!(thread::spawn(|| 7).join().unwrap(), 7, "zstd has threads");
            assert_eq!(vec![1u8; 64 << 20].len(), 64 << 20);
            let size = 4096;
            let (place, flags) = (std::ptr::null_mut(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: the calls do not touch memory that is in use.
            let calls = unsafe {
                [
                    libc::mmap(place, size, libc::PROT_READ | libc::PROT_EXEC, flags, -1, 0) as i64,
                    libc::kill(libc::getpid(), 0).into(),
                    libc::prctl(libc::PR_SET_NAME, c"x".as_ptr()).into(),
                    libc::fork().into(),
                ]
            };
            assert_eq!(calls, [-1; 4]);
            let errors = [
                File::open("/dev/null").err(),
                UnixDatagram::unbound().err(),
                Command::new("true").spawn().err(),
            ];
            errors.map(|error| error.and_then(|error| error.raw_os_error()))
        });
        assert_eq!(tried.join().unwrap(), [Some(libc::EPERM); 3]);
    }

    #[test]
    fn file_reach_allows_only_reading() {
        let dir = std::env::temp_dir().join(format!("tipme-calls-{}", std::process::id()));
        std::fs::write(&dir, "text").unwrap();
        let path = dir.clone();
        let tried = thread::spawn(move || {
            restrict(Reach::Files(1)).unwrap();
            assert!(File::open(&path).unwrap().metadata().unwrap().is_file());
            let tries = [
                File::options().write(true).open(&path).err(),
                File::options().read(true).write(true).open(&path).err(),
                File::options()
                    .read(true)
                    .custom_flags(libc::O_CREAT)
                    .open(path.with_extension("new"))
                    .err(),
                File::options().read(true).custom_flags(libc::O_TRUNC).open(&path).err(),
                std::fs::remove_file(&path).err(),
                std::fs::rename(&path, path.with_extension("new")).err(),
                std::fs::read_dir("/")
                    .and_then(|mut names| names.next().unwrap_or_else(|| panic!("no names")))
                    .err(),
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
    fn count_reach_allows_only_statistics_of_bpf() {
        let tried = thread::spawn(|| {
            restrict(Reach::Count { programs: 0, cpus: 0 }).unwrap();
            [0, 5, COUNT].map(|command| {
                // SAFETY: the kernel treats missing attributes as zeros, and reads nothing else.
                let tried = unsafe { libc::syscall(libc::SYS_bpf, command, 0, 0) };
                let error = std::io::Error::last_os_error().raw_os_error();
                // SAFETY: the kernel has just created this descriptor.
                let made =
                    (tried >= 0).then(|| drop(unsafe { OwnedFd::from_raw_fd(tried as i32) }));
                made.is_none().then_some(error)
            })
        });
        let refused = Some(Some(libc::EPERM));
        assert_eq!(
            tried.join().unwrap(),
            [refused, refused, None],
            "maps, programs, the count; run as root"
        );
    }

    #[test]
    fn count_reach_allows_no_clock_for_a_process() {
        let tried = thread::spawn(|| {
            restrict(Reach::Count { programs: 0, cpus: 0 }).unwrap();
            // SAFETY: the kernel gets no attributes to read, and creates no descriptor; the
            // requests do not apply to the standard input.
            unsafe {
                [
                    error_of(libc::syscall(libc::SYS_perf_event_open, 0, 0, 0, -1, 0)),
                    error_of(libc::syscall(libc::SYS_perf_event_open, 0, -1, 0, -1, 0)),
                    error_of(libc::syscall(libc::SYS_ioctl, 0, libc::TIOCSTI, 0)),
                    error_of(libc::syscall(libc::SYS_ioctl, 0, SET_PROGRAM, 0)),
                ]
            }
        });
        let [of_process, of_cpu, typing, program] = tried.join().unwrap();
        assert_eq!([of_process, typing], [Some(libc::EPERM); 2]);
        assert_ne!(of_cpu, Some(libc::EPERM));
        assert_ne!(program, Some(libc::EPERM));
    }

    /// Returns the error number of a system call that has just failed.
    fn error_of(result: libc::c_long) -> Option<i32> {
        if result < 0 { std::io::Error::last_os_error().raw_os_error() } else { None }
    }
}
