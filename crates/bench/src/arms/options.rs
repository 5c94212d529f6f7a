// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options shared by the benchmarks that run beside a load.

use super::{Arm, ArmComparison, ManagerProgram};
use crate::choice::{ResultFiles, one_of};
use crate::driver::Programs;
use crate::load::{LEVEL_MAX, LoadKind, PageOptions, default_memory};
use crate::session::SessionOptions;
use clap::Args;
use std::path::PathBuf;
use tipme_command::size;

#[derive(Args)]
pub struct BesideOptions {
    /// Runnable processes of the load, 0 to 64; several numbers are measured in turn
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "20", value_parser = clap::value_parser!(u32).range(0..=i64::from(LEVEL_MAX)))]
    pub load: Vec<u32>,
    /// Also measure with the manager, in alternating turns
    #[arg(long)]
    pub managed: bool,
    /// Also measure this alternative to the manager, in alternating turns; may be repeated
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = one_of(&Arm::ALTERNATIVES))]
    pub against: Vec<Arm>,
    /// Turns per arm
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub blocks: u8,
    /// Type of the load; see tipme load [default: cpu, and big for warmstart]
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    pub kind: Option<LoadKind>,
    #[command(flatten)]
    pub pages: PageOptions,
    /// Memory of big and stream at the highest load: bytes, or with K, M or G [default: that of
    /// tipme load]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Spread the load over this many sessions, as if started from several terminals; 0 uses the
    /// session of the display's programs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=i64::from(LEVEL_MAX)))]
    pub sessions: u32,
    /// Start display, window manager, terminal and each session of the load in its own systemd
    /// unit, as a desktop does
    #[arg(long)]
    pub units: bool,
    #[command(flatten)]
    pub manager: ManagerOptions,
    #[command(flatten)]
    pub files: ResultFiles,
}

/// How the manager is started.
#[derive(Args)]
pub struct ManagerOptions {
    /// Strength of the manager [default: its own]
    #[arg(long, value_name = "STRENGTH", requires = "managed")]
    pub strength: Option<String>,
    /// Backend of the manager [default: its own choice]
    #[arg(long, value_name = "BACKEND", requires = "managed")]
    pub backend: Option<String>,
    /// Cgroup (v2) for the manager, as in tipme manage --cgroup
    #[arg(long, value_name = "DIR", requires = "managed")]
    pub cgroup: Option<PathBuf>,
    /// Program to run as the manager instead of this one
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub manager: Option<PathBuf>,
}

impl BesideOptions {
    /// Returns the comparison to run; the load is of the `usual` kind unless the options name one.
    pub(crate) fn comparison(&self, programs: Programs, usual: LoadKind) -> ArmComparison {
        let kind = self.kind.unwrap_or(usual);
        ArmComparison {
            levels: self.load.clone(),
            managed: self.managed,
            against: self.against.clone(),
            blocks: self.blocks.into(),
            kind,
            pages: self.pages.with_defaults_of(kind),
            memory: self.memory.unwrap_or_else(default_memory),
            sessions: self.sessions,
            units: self.units,
            manager: self.manager.program(&programs),
            launcher: programs.launcher,
        }
    }

    pub(crate) fn session(&self) -> SessionOptions {
        SessionOptions { units: self.units, ..SessionOptions::default() }
    }
}

impl ManagerOptions {
    pub(crate) fn program(&self, programs: &Programs) -> ManagerProgram {
        ManagerProgram {
            strength: self.strength.clone(),
            backend: self.backend.clone(),
            cgroup: self.cgroup.clone(),
            ..ManagerProgram::new(self.manager.clone().unwrap_or_else(|| programs.tipme.clone()))
        }
    }
}
