// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output paths of repeats: folders, so that `tipme compare` can take a folder as one result.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// All repeats with their output paths.
pub struct BenchRepeats<'a> {
    count: usize,
    json: Option<&'a Path>,
    svg: Option<&'a Path>,
}

/// One repeat.
pub struct BenchRepeat {
    /// Heading above its figures; empty for a single repeat.
    pub heading: String,
    pub json: Option<PathBuf>,
    pub svg: Option<PathBuf>,
}

impl<'a> BenchRepeats<'a> {
    /// Creates the folder for several results. It must contain no others, which would count as
    /// repeats.
    pub fn new(
        count: usize,
        json: Option<&'a Path>,
        svg: Option<&'a Path>,
    ) -> Result<BenchRepeats<'a>> {
        if let Some(folder) = json.filter(|_| count > 1) {
            make(folder)?;
        }
        Ok(BenchRepeats { count, json, svg })
    }

    /// Iterates over the repeats in order.
    pub fn all(&self) -> impl Iterator<Item = BenchRepeat> + '_ {
        (1..=self.count).map(|number| self.one(number))
    }

    fn one(&self, number: usize) -> BenchRepeat {
        let (json, svg) = (self.json.map(Path::to_owned), self.svg.map(Path::to_owned));
        if self.count == 1 {
            return BenchRepeat { heading: String::new(), json, svg };
        }
        let blank = if number > 1 { "\n" } else { "" };
        BenchRepeat {
            heading: format!("{blank}Repeat {number} of {}\n\n", self.count),
            json: json.map(|folder| folder.join(format!("{number:03}.json"))),
            svg: svg.map(|folder| folder.join(format!("{number:03}"))),
        }
    }
}

fn make(folder: &Path) -> Result<()> {
    if folder.is_file() {
        bail!("{} is a file; with --repeat, --json takes a folder", folder.display());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut results =
        entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "json"));
    if let Some(other) = results.next() {
        bail!(
            "{} is there already and would count as a repeat; name a new folder",
            other.path().display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repeat_keeps_the_given_paths() {
        let (json, svg) = (Path::new("a.json"), Path::new("plots"));
        let all: Vec<BenchRepeat> =
            BenchRepeats::new(1, Some(json), Some(svg)).unwrap().all().collect();
        assert_eq!((all.len(), all[0].heading.as_str()), (1, ""));
        assert_eq!((all[0].json.as_deref(), all[0].svg.as_deref()), (Some(json), Some(svg)));
    }

    #[test]
    fn several_go_into_a_folder_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("before");
        let all: Vec<BenchRepeat> =
            BenchRepeats::new(12, Some(&json), Some(Path::new("plots"))).unwrap().all().collect();
        assert_eq!(all[9].json, Some(json.join("010.json")));
        assert_eq!(
            (all[11].heading.as_str(), all[11].svg.as_deref()),
            ("\nRepeat 12 of 12\n\n", Some(Path::new("plots/012")))
        );
        assert!(json.is_dir());
    }

    #[test]
    fn repeats_of_another_measurement_are_not_mixed_in() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old.json");
        fs::write(&old, "{}").unwrap();
        for (path, reason) in
            [(folder.path(), "old.json is there already"), (&old, "takes a folder")]
        {
            let error = BenchRepeats::new(2, Some(path), None).err().unwrap().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(BenchRepeats::new(1, Some(&old), None).is_ok());
    }
}
