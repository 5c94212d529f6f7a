// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real incidents, made by the self-test or kept by the field test, and scrubbed, with their
//! expected verdicts. `tests/golden/README.md` describes the scenario and the truth of those from
//! the field.
//!
//! A change of the analysis shows as a difference of texts. `TIPME_BLESS=1 cargo test -p
//! tipme-tests --test golden` rewrites the texts for review; `scripts/make-golden-field` makes the
//! incidents.

#[cfg(test)]
mod golden {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};
    use std::sync::{LazyLock, OnceLock};
    use tipme_analysis::model::{CauseKind, Verdict};
    use tipme_analysis::{DiagnoseOptions, diagnose};
    use tipme_report::Layout;

    /// Kinds that cannot occur on the machine that made the incidents: it has no swap, and no
    /// injected fault can take its CPUs away without a record. Each wait of a golden incident has a
    /// name.
    const NOT_MADE: [CauseKind; 3] = [CauseKind::SwapIn, CauseKind::Stall, CauseKind::KernelWait];

    fn incidents() -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
        let entries = std::fs::read_dir(&folder).expect("the folder of golden incidents is there");
        let paths = entries.map(|entry| entry.expect("the folder can be read").path());
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "tipme")).collect();
        paths.sort();
        paths
    }

    /// Returns the incidents that the field test kept; with `calm` those without a fault, else the
    /// others.
    fn of_the_field(calm: bool) -> Vec<PathBuf> {
        let mut paths = incidents();
        paths.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("field-") && name.starts_with("field-calm-") == calm
        });
        paths
    }

    /// Returns the verdict on an incident, computed once for several tests.
    fn verdict(path: &Path) -> &'static Verdict {
        type Verdicts = BTreeMap<PathBuf, OnceLock<Verdict>>;
        static VERDICTS: LazyLock<Verdicts> =
            LazyLock::new(|| incidents().into_iter().map(|path| (path, OnceLock::new())).collect());
        VERDICTS[path].get_or_init(|| diagnosed(path))
    }

    fn diagnosed(path: &Path) -> Verdict {
        let incident =
            tipme_store::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(incident.damage.is_empty(), "{} is damaged: {:?}", path.display(), incident.damage);
        diagnose(&incident, &DiagnoseOptions::default())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the verbose text.
    fn text(verdict: &Verdict) -> String {
        tipme_report::text(verdict, &Layout { verbose: true, ..Layout::default() })
    }

    /// Returns the lines that only one of two texts has; all of the second one if only the order
    /// differs.
    fn changed(before: &str, after: &str) -> String {
        let changed = lines_only_in(before, after, "-") + &lines_only_in(after, before, "+");
        if changed.is_empty() { lines_only_in(after, "", "+") } else { changed }
    }

    fn lines_only_in(text: &str, other: &str, sign: &str) -> String {
        let only = text.lines().filter(|line| !other.lines().any(|known| known == *line));
        only.map(|line| format!("{sign} {line}\n")).collect()
    }

    #[test]
    fn every_incident_gives_its_verdict() {
        let bless = std::env::var_os("TIPME_BLESS").is_some();
        let mut wrong = Vec::new();
        for path in incidents() {
            let (found, expected) = (text(verdict(&path)), path.with_extension("txt"));
            if bless {
                std::fs::write(&expected, &found).expect("the text can be written");
            }
            let expected = std::fs::read_to_string(&expected).unwrap_or_default();
            if found != expected {
                wrong.push(format!("{}\n{}", path.display(), changed(&expected, &found)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_incident_makes_a_page() {
        for path in incidents() {
            let incident = tipme_store::read(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let scene = tipme_analysis::scene::scene(&incident, &DiagnoseOptions::default())
                .expect("it was diagnosed before");
            let (page, name) = (tipme_report::page(&scene), path.display());
            assert!(page.len() < 1_000_000, "{name}: {} bytes", page.len());
            let escaped = text(verdict(&path))
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;");
            assert!(page.contains(&escaped), "{name}: the verdict is not on its page");
            let length = (scene.to_ns - scene.from_ns) / 1_000;
            let mut bars = scene.tracks.iter().flat_map(|track| &track.bars);
            assert!(bars.clone().count() > 10, "{name}");
            assert!(bars.all(|bar| bar.from_us + bar.length_us <= length), "{name}");
        }
    }

    #[test]
    fn every_kind_has_an_incident() {
        let verdicts: Vec<&Verdict> = incidents().iter().map(|path| verdict(path)).collect();
        let found: BTreeSet<CauseKind> = verdicts
            .iter()
            .filter_map(|verdict| verdict.findings.first())
            .map(|finding| finding.kind)
            .collect();
        let missing: Vec<&CauseKind> = CauseKind::CAUSES
            .iter()
            .filter(|kind| !found.contains(kind) && !NOT_MADE.contains(kind))
            .collect();
        assert!(missing.is_empty(), "no golden incident for {missing:?}");
    }

    #[test]
    fn every_kind_is_in_the_manual() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/kinds.md");
        let text = std::fs::read_to_string(page).expect("the page is there");
        let missing: Vec<&CauseKind> = CauseKind::CAUSES
            .iter()
            .filter(|kind| !text.contains(&format!("`{}`", kind.name())))
            .collect();
        assert!(missing.is_empty(), "docs/reference/kinds.md lacks {missing:?}");
    }

    #[test]
    fn nothing_is_found_in_calm_sessions() {
        let calm = of_the_field(true);
        assert!(calm.len() >= 4, "only {} calm sessions", calm.len());
        for path in calm {
            let verdict = verdict(&path);
            assert!(verdict.findings.is_empty(), "{}: {}", path.display(), text(verdict));
        }
    }

    #[test]
    fn the_field_is_described_line_by_line() {
        let table = include_str!("golden/README.md");
        for path in of_the_field(true).into_iter().chain(of_the_field(false)) {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            assert!(
                table.contains(&format!("| `{name}` |")),
                "golden/README.md has no line for {name}"
            );
        }
    }

    #[test]
    fn incidents_are_scrubbed_and_small() {
        for path in incidents() {
            let incident = tipme_store::read(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let meta: tipme_record::incident::Meta = incident
                .json(tipme_record::incident::Section::Meta)
                .expect("the document is whole");
            assert_eq!(
                (meta.machine.hostname.as_str(), meta.user_text.as_str()),
                ("desk", ""),
                "{}",
                path.display()
            );
            let bytes = std::fs::metadata(&path).expect("the file is there").len();
            assert!(bytes < 800_000, "{} has {bytes} bytes", path.display());
        }
    }
}
