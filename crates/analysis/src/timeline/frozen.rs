// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for a frozen file system: all writers sleep until it is thawed.

use crate::timeline::recording::Recording;
use tipme_record::records::Wait;

/// The kernel function in which writers sleep, by the start of its name.
const SLEEPS: [&str; 2] = ["percpu_rwsem_wait", "__percpu_down_read"];

/// Functions that wait for another lock of that kind: for control groups, CPUs, memory maps and probes.
const OTHERS: [&str; 8] =
    ["cgroup_", "cpus_read_lock", "copy_process", "kernel_clone", "begin_new_exec", "do_exit", "dup_mmap", "uprobe_"];

/// Functions at the end of a stack that are looked at.
const FRAMES: usize = 8;

impl Recording {
    /// Whether a wait is for a file system to be thawed; whatever ends it did not cause it.
    pub(crate) fn awaits_thaw(&self, wait: &Wait) -> bool {
        let mut functions = self.names.kernel_functions(wait.stack).take(FRAMES).skip_while(|name| !sleeps(name));
        functions.next().is_some() && !functions.any(|name| OTHERS.iter().any(|other| name.starts_with(other)))
    }
}

fn sleeps(name: &str) -> bool {
    SLEEPS.iter().any(|prefix| name.starts_with(prefix))
}
