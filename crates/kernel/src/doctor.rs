// SPDX-License-Identifier: MIT OR Apache-2.0
//! Check of the kernel's features and the caller's privileges, for `tipme doctor`.

use crate::detail::Detail;
use crate::load::{Kernel, KernelOptions, Storage, possible_cpus};
use crate::memory::least_memory;
use libbpf_rs::Btf;
use tipme_record::Nanos;

/// Result of one check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelCheck {
    pub what: String,
    /// `Ok` with the finding, or `Err` with the reason and the remedy.
    pub result: Result<String, String>,
}

/// Probes BTF, privileges and every class of records by arming the programs for a moment.
pub fn check() -> Vec<KernelCheck> {
    let btf = Btf::from_vmlinux().map(|btf| format!("{} types", btf.len())).map_err(|_| {
        "not readable: kernel has no BTF; use a kernel with CONFIG_DEBUG_INFO_BTF=y".to_owned()
    });
    let mut findings = vec![KernelCheck { what: "kernel types (BTF)".to_owned(), result: btf }];
    let options = KernelOptions {
        memory: least_memory(possible_cpus().unwrap_or(1)),
        without: Vec::new(),
        window: Nanos(0),
        hertz: 99,
        display: None,
        details: Detail::ALL.to_vec(),
    };
    let mut storage = Storage::default();
    match Kernel::arm(&mut storage, &options) {
        Ok(kernel) => findings.extend(of_classes(&kernel)),
        Err(error) => findings
            .push(KernelCheck { what: "recording".to_owned(), result: Err(format!("{error:#}")) }),
    }
    findings
}

fn of_classes(kernel: &Kernel<'_>) -> Vec<KernelCheck> {
    let on = kernel.classes_on().iter().map(|class| KernelCheck {
        what: format!("records: {class}"),
        result: Ok(kernel
            .hooks(class)
            .map_or("recorded".to_owned(), |hooks| format!("recorded by {hooks}"))),
    });
    let off = kernel.missing().iter().map(|missing| KernelCheck {
        what: format!("records: {}", missing.what),
        result: Err(format!("not recorded: {}", missing.why)),
    });
    on.chain(off).collect()
}
