// SPDX-License-Identifier: MIT OR Apache-2.0
//! Man pages, generated from the arguments.

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use std::path::Path;

/// Writes the man page of a program into a directory, and one for each of its own verbs.
///
/// Verbs belong to `tipme`, whichever program implements them, since users call them that way.
pub fn man(program: Command, has: impl Fn(&str) -> bool, folder: &Path) -> Result<()> {
    let cannot_write = format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let program = program.disable_help_subcommand(true);
    std::fs::write(folder.join(format!("{}.1", program.get_name())), page(&program)?)
        .context(cannot_write.clone())?;
    let mut tipme = program.name("tipme");
    tipme.build();
    let verbs = tipme.get_subcommands().filter(|verb| !verb.is_hide_set() && has(verb.get_name()));
    verbs.cloned().try_for_each(|verb| clap_mangen::generate_to(verb, folder)).context(cannot_write)
}

/// Returns the man page of the program itself.
fn page(program: &Command) -> Result<String> {
    let mut page = Vec::new();
    Man::new(program.clone()).render(&mut page).context("cannot generate the page")?;
    let verbs = format!("{}\\-", program.get_name().replace('-', "\\-"));
    Ok(String::from_utf8_lossy(&page).replace(&verbs, "tipme\\-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_as_verbs_are_called() {
        let folder = tempfile::tempdir().expect("there is room");
        let verbs = ["bench", "load", "elsewhere"]
            .map(|name| Command::new(name).about(format!("what {name} does")));
        let program = Command::new("tipme-lab").version("1").about("a program").subcommands(verbs);
        man(program, |name| name != "elsewhere", folder.path()).expect("the folder is there");
        let written = |name: &str| std::fs::read_to_string(folder.path().join(name));
        let page = written("tipme-lab.1").expect("it was written");
        assert!(
            page.contains("tipme\\-lab \\- a program") && page.contains("tipme\\-elsewhere(1)"),
            "{page}"
        );
        let page = written("tipme-bench.1").expect("it was written");
        assert!(page.contains("\\fBtipme bench\\fR"), "{page}");
        assert!(written("tipme-elsewhere.1").is_err() && written("tipme-load.1").is_ok());
    }
}
