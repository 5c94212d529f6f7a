// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading of incidents.

use anyhow::{Context, Result};
use std::path::Path;
use tipme_record::incident::Incident;

/// Reads an incident and reports its damaged parts on standard error.
pub fn read(path: &Path) -> Result<Incident> {
    let incident =
        tipme_store::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    for damage in &incident.damage {
        eprintln!(
            "tipme: {} is damaged: {}: {}; going on with the rest",
            path.display(),
            damage.place,
            damage.why
        );
    }
    Ok(incident)
}
