// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages as files: their location, permissions, and the programs that open them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{files, said, tipme};
use tempfile::TempDir;

/// Returns an incident in which forty processes compete for the CPU.
fn incident() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden/cpu-hogs.tipme")
        .canonicalize()
        .unwrap()
}

fn report(folder: &Path, arguments: &[&str]) -> Output {
    tipme().arg("report").arg(incident()).args(arguments).current_dir(folder).output().unwrap()
}

/// Asserts that a page is complete, and accessible by its owner only.
fn assert_is_page(path: &Path) {
    let page = fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{}", path.display());
    assert!(page.contains("<h1>Typing in patient stalled for 780 ms</h1>"));
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_page_is_named_after_its_incident_and_replaces_no_file() {
    let folder = TempDir::new().unwrap();
    let output = report(folder.path(), &[]);
    assert_eq!(said(output), (Some(0), "tipme-cpu-hogs.html\n".to_owned()));
    let page = folder.path().join("tipme-cpu-hogs.html");
    assert_is_page(&page);
    fs::write(&page, "mine").unwrap();
    let (code, why) = said(report(folder.path(), &[]));
    let remedy = "tipme-cpu-hogs.html exists already; name another file, or give --force";
    assert!(code == Some(2) && why.contains(remedy), "{why}");
    assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
    assert!(report(folder.path(), &["--force"]).status.success());
    assert_eq!(files(folder.path(), ""), [page], "nothing is left beside it");
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let folder = TempDir::new().unwrap();
    let (page, other) = (folder.path().join("page.html"), folder.path().join("other"));
    fs::write(&other, "theirs").unwrap();
    symlink(&other, &page).unwrap();
    assert_eq!(report(folder.path(), &["-o", "page.html"]).status.code(), Some(2));
    assert!(report(folder.path(), &["-o", "page.html", "--force"]).status.success());
    assert!(!fs::symlink_metadata(&page).unwrap().is_symlink());
    assert_is_page(&page);
    assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
}

#[test]
fn a_page_goes_to_standard_output_and_nowhere_else() {
    let folder = TempDir::new().unwrap();
    let output = report(folder.path(), &["-o", "-"]);
    assert!(output.status.success() && output.stdout.starts_with(b"<!DOCTYPE html>"));
    assert!(output.stdout.ends_with(b"</html>"));
    assert_eq!(files(folder.path(), ""), Vec::<PathBuf>::new());
}

#[test]
fn a_result_makes_a_page_too() {
    let folder = TempDir::new().unwrap();
    let words = ["bench", "timer", "--no-trace", "--duration", "1s", "--json", "timer.json"];
    let measured = tipme().args(words).current_dir(folder.path()).output().unwrap();
    assert!(measured.status.success(), "{measured:?}");
    // The common part of all kinds suffices for a page of any other kind.
    let timer = fs::read_to_string(folder.path().join("timer.json")).unwrap();
    fs::write(
        folder.path().join("other.json"),
        timer.replace("\"kind\":\"timer\"", "\"kind\":\"fork\""),
    )
    .unwrap();
    for (name, words) in
        [("timer", "Times between wake-ups"), ("other", "<h1>bench fork: other</h1>")]
    {
        let output = tipme()
            .args(["report", &format!("{name}.json")])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(said(output), (Some(0), format!("tipme-{name}.html\n")));
        let page = fs::read_to_string(folder.path().join(format!("tipme-{name}.html"))).unwrap();
        assert!(page.contains(words) && page.matches("<svg ").count() >= 2, "{name}");
    }
    fs::write(folder.path().join("else.json"), "{}").unwrap();
    let refused =
        tipme().args(["report", "else.json"]).current_dir(folder.path()).output().unwrap();
    let (_, why) = said(refused);
    assert!(why.contains("else.json is not a result of tipme --json"), "{why}");
}

/// Runs `tipme incidents open` in a folder of the test, with a script as the opener.
fn open(folder: &Path, opener: Option<&str>) -> Output {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).unwrap();
    if let Some(script) = opener {
        let words = ["-c", "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\""];
        let status = Command::new("/bin/sh")
            .args(words)
            .arg(programs.join("xdg-open"))
            .arg(script)
            .status()
            .unwrap();
        assert!(status.success());
    }
    let mut command = tipme();
    command
        .args(["incidents", "open"])
        .arg(incident())
        .env("XDG_CACHE_HOME", folder)
        .env("PATH", &programs);
    command.output().unwrap()
}

#[test]
fn a_page_is_opened_by_what_the_desktop_has() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("tipme/cpu-hogs.html");
    for _ in 0..2 {
        let output = open(folder.path(), Some(r#"printf %s "$1" > "${0%/*}/shown""#));
        assert_eq!(said(output), (Some(0), format!("{}\n", page.display())));
        assert_eq!(
            fs::read_to_string(folder.path().join("programs/shown")).unwrap(),
            page.display().to_string()
        );
        assert_is_page(&page);
    }
}

#[test]
fn without_an_opener_the_path_of_the_page_is_printed() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("tipme/cpu-hogs.html");
    let place = format!("the page is {}", page.display());
    for (opener, why) in [
        (None, "no browser was found to open it; "),
        (Some("exit 3"), "xdg-open found no browser to open it; "),
    ] {
        let (code, text) = said(open(folder.path(), opener));
        assert!(code == Some(2) && text.contains(&format!("{why}{place}")), "{text}");
        assert_is_page(&page);
    }
}

#[test]
fn the_pages_that_are_kept_are_few() {
    let folder = TempDir::new().unwrap();
    let kept = folder.path().join("tipme");
    fs::create_dir(&kept).unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o700)).unwrap();
    (0..30).for_each(|number| fs::write(kept.join(format!("{number}.html")), "old").unwrap());
    assert!(open(folder.path(), Some("exit 0")).status.success());
    let pages = files(&kept, ".html");
    assert_eq!(pages.len(), 20);
    assert!(pages.contains(&kept.join("cpu-hogs.html")));
}
