// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of incidents in a real browser: no errors, no network requests, and accessible to
//! everybody.
//!
//! Serious findings of axe-core fail a test. `TIPME_PICTURES` names a folder that keeps a picture
//! of each page in each view.

#[cfg(test)]
#[path = "browser/chromium.rs"]
mod chromium;

#[cfg(test)]
#[path = "../crates/analysis/tests/support/mod.rs"]
mod support;

#[cfg(test)]
mod browser {
    use super::chromium::{Chromium, View};
    use super::support::{APP, Machinery};
    use serde_json::{Value, json};
    use std::path::{Path, PathBuf};
    use std::time::Instant;
    use tempfile::TempDir;
    use tipme_analysis::DiagnoseOptions;
    use tipme_analysis::scene::scene;
    use tipme_measure::{Events, MeasuredMachine, Run};
    use tipme_record::incident::{Incident, Section};
    use tipme_report::ResultsPage;

    const WIDE: View =
        View { name: "wide", width: 1_280, phone: false, media: "screen", scheme: "light" };
    const DARK: View = View { name: "dark", scheme: "dark", ..WIDE };
    const PHONE: View = View { name: "phone", width: 390, phone: true, ..WIDE };
    const PRINT: View = View { name: "print", width: 794, media: "print", ..WIDE };

    /// A disk, competition for a CPU, a lock, a stopped program, a network, and no cause.
    const CAUSES: [&str; 6] = [
        "page-in-behind-writer",
        "cpu-hogs",
        "field-tmux-flock",
        "field-mousepad-menu-stopped",
        "field-bash-network",
        "field-calm-xterm",
    ];

    fn incident(name: &str) -> Incident {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name).with_extension("tipme");
        tipme_store::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes the page of a measurement with two runs.
    fn results(folder: &TempDir) -> PathBuf {
        let runs = [("before", 7), ("after <b>", 3)].map(|(name, every)| {
            let mut events = Events::of("key", None);
            for at in 0..200_u64 {
                events.push(at * 1_000_000, (at * every % 97 + 1) * 1_000_000);
            }
            Run { name: name.to_owned(), classes: vec![events], ..Run::default() }
        });
        let machine = MeasuredMachine::default();
        let (text, plots) =
            (tipme_report::single::text(&runs), tipme_report::single::plots(&machine, &runs));
        let page =
            ResultsPage { title: "bench typing", machine: &machine, text: &text, plots: &plots };
        let path = folder.path().join("results.html");
        std::fs::write(&path, tipme_report::results(&page)).expect("the page can be written");
        path
    }

    fn write(folder: &TempDir, name: &str, incident: &Incident) -> PathBuf {
        let scene = scene(incident, &DiagnoseOptions::default()).expect("the incident is whole");
        let path = folder.path().join(name).with_extension("html");
        std::fs::write(&path, tipme_report::page(&scene)).expect("the page can be written");
        path
    }

    /// Returns the problems of a page: exceptions, errors, violations of the policy, and requests
    /// for anything but the page itself.
    fn wrong(events: &[Value]) -> Vec<String> {
        let wrong = events.iter().filter(|event| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled") => true,
            Some("Network.requestWillBeSent") => event["params"]["type"] != "Document",
            _ => false,
        });
        wrong.map(ToString::to_string).collect()
    }

    /// Returns the serious findings of axe-core, and the number of its rules that the page passes.
    fn serious(browser: &mut Chromium, axe: &str) -> (Vec<String>, u64) {
        browser.eval(axe);
        let result = browser.eval(
            "axe.run().then(({ violations, passes }) => ({ violations, passes: passes.length }))",
        );
        let serious = result["violations"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| one["impact"] == "serious" || one["impact"] == "critical")
            .map(|one| format!("{}: {} ({})", one["id"], one["help"], one["nodes"][0]["html"]));
        (serious.collect(), result["passes"].as_u64().unwrap_or_default())
    }

    fn keep_picture(browser: &mut Chromium, name: &str) {
        let Some(folder) = std::env::var_os("TIPME_PICTURES") else { return };
        let height = browser.eval("Math.min(9000, document.documentElement.scrollHeight)");
        let width = browser.eval("innerWidth");
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let shot = browser.call(
            "Page.captureScreenshot",
            &json!({ "captureBeyondViewport": true, "clip": clip }),
        );
        let path = Path::new(&folder).join(name).with_extension("png.base64");
        std::fs::write(path, shot["data"].as_str().unwrap_or_default())
            .expect("the folder is there");
    }

    #[test]
    fn pages_are_whole_quiet_and_usable_in_every_view() {
        let (folder, mut browser) = (TempDir::new().expect("there is a folder"), Chromium::start());
        let (axe, mut found) = (browser.axe(), Vec::new());
        let mut pages = vec![("results", results(&folder), 0)];
        pages.extend(CAUSES.map(|name| (name, write(&folder, name, &incident(name)), 1)));
        for (name, page, timelines) in pages {
            for view in [WIDE, DARK, PHONE, PRINT] {
                browser.open(&page, view);
                let drawn = browser.eval("performance.getEntriesByName('tipme-drawn').length");
                assert_eq!(drawn, timelines, "{name} is not drawn");
                keep_picture(&mut browser, &format!("{name}-{}", view.name));
                let (serious, passes) = serious(&mut browser, &axe);
                assert!(passes > 15, "axe-core passed {passes} rules only");
                let mut problems = [serious, wrong(&browser.events)].concat();
                if browser.eval("document.documentElement.scrollWidth > innerWidth") != false {
                    problems.push("wider than its window".to_owned());
                }
                let view = view.name;
                found.extend(problems.iter().map(|problem| format!("{name}, {view}: {problem}")));
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn a_planted_fault_is_found() {
        let (folder, mut browser) = (TempDir::new().expect("there is a folder"), Chromium::start());
        let axe = browser.axe();
        browser.open(&write(&folder, "planted", &incident("cpu-hogs")), WIDE);
        browser.eval(
            "document.querySelector('h1').style.color = '#eee'; \
             document.body.append(document.createElement('button'))",
        );
        let (found, _) = serious(&mut browser, &axe);
        assert!(
            ["button-name", "color-contrast"]
                .iter()
                .all(|rule| found.iter().any(|one| one.contains(rule))),
            "{found:?}"
        );
    }

    #[test]
    fn a_command_is_copied_and_a_chosen_bar_is_described() {
        let (folder, mut browser) = (TempDir::new().expect("there is a folder"), Chromium::start());
        browser.open(&write(&folder, "hogs", &incident("cpu-hogs")), WIDE);
        let place = "getComputedStyle(document.getElementById('evidence')).position";
        assert_eq!(browser.eval(place), "static");
        browser.eval("document.querySelector('.copy').click()");
        let label = "new Promise(done => setTimeout(() => \
                     done(document.querySelector('.copy').textContent), 500))";
        let label = browser.eval(label).to_string();
        assert!(label.contains("Copied") || label.contains("Press Ctrl+C"), "{label}");
        assert_eq!(browser.eval("getSelection().toString().trim()"), "renice -n 19 -p 12987");
        browser.eval("document.getElementById('timeline').focus()");
        browser.press("ArrowDown");
        assert_eq!(browser.eval(place), "sticky", "the chosen bar is described in view");
        assert_eq!(wrong(&browser.events), Vec::<String>::new());
    }

    fn evidence(browser: &mut Chromium) -> String {
        browser.eval("document.getElementById('evidence').textContent").to_string()
    }

    /// Returns the text of the axis after the next frame is drawn.
    fn axis(browser: &mut Chromium) -> String {
        browser.eval(
            "new Promise(done => \
             requestAnimationFrame(() => requestAnimationFrame(() => done(1))))",
        );
        browser.eval("document.querySelector('.axis svg').textContent").to_string()
    }

    #[test]
    fn the_timeline_answers_to_keys_and_to_the_mouse() {
        let (folder, mut browser) = (TempDir::new().expect("there is a folder"), Chromium::start());
        browser.open(&write(&folder, "disk", &incident("page-in-behind-writer")), WIDE);
        browser.eval("document.querySelector('[data-do=wait]').focus()");
        browser.press("Tab");
        assert_eq!(browser.eval("document.activeElement.dataset.do"), "others", "the last button");
        browser.press("Tab");
        assert_eq!(
            browser.eval("document.activeElement.id"),
            "timeline",
            "the next stop of the keyboard"
        );
        let whole = axis(&mut browser);
        browser.press("ArrowDown");
        let shown = evidence(&mut browser);
        assert!(shown.contains("key to patient"), "{shown}");
        for _ in 0..20 {
            browser.press("ArrowDown");
        }
        let shown = evidence(&mut browser);
        assert!(shown.contains("Tasks waiting for memory"), "{shown}");
        browser.press("+");
        assert_ne!(axis(&mut browser), whole, "zoomed in");
        browser.press("0");
        assert_eq!(axis(&mut browser), whole, "all of it again");
        browser.press("Escape");
        let place = "(({ x, y, width, height }) => [x + width / 2, y + height / 2])(document\
                     .querySelector('svg[data-track] path.look-disk').getBoundingClientRect())";
        browser.eval("document.getElementById('timeline').scrollIntoView()");
        let at = browser.eval(place);
        let moved = json!({ "type": "mouseMoved", "x": at[0], "y": at[1] });
        browser.call("Input.dispatchMouseEvent", &moved);
        let shown = evidence(&mut browser);
        assert!(shown.contains("page-in: patient"), "{shown}");
        assert_eq!(wrong(&browser.events), Vec::<String>::new());
    }

    #[test]
    fn what_an_incident_says_stays_text() {
        const HOSTILE: &str = "</script><img src=x onerror=\"document.title='run'\">\
                               <svg onload=\"document.title='run'\">";
        let mut hostile = incident("page-in-behind-writer");
        let mut meta: Value = hostile.json(Section::Meta).expect("the document is whole");
        (meta["user_text"], meta["machine"]["hostname"], meta["id"]) =
            (json!(HOSTILE), json!(HOSTILE), json!(HOSTILE));
        meta["devices"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(|device| device[1] = json!(HOSTILE));
        hostile.push_json(Section::Meta, &meta).expect("it is JSON");
        let (folder, mut browser) = (TempDir::new().expect("there is a folder"), Chromium::start());
        let page = write(&folder, "hostile", &hostile);
        browser.open(&page, WIDE);
        assert_eq!(browser.eval("document.querySelectorAll('img, [onload], [onerror]').length"), 0);
        assert_eq!(browser.eval("document.scripts.length"), 2);
        assert_ne!(browser.eval("document.title"), "run");
        assert_eq!(browser.eval("document.querySelector('blockquote').textContent"), HOSTILE);
        let label = "[...document.querySelectorAll('.row span')]\
                     .some(one => one.textContent.includes('<img src=x onerror='))";
        assert_eq!(browser.eval(label), true, "the name of the disk");
        assert_eq!(wrong(&browser.events), Vec::<String>::new());
    }

    #[test]
    fn the_policy_lets_nothing_else_run_or_be_loaded() {
        let (folder, mut browser) = (TempDir::new().expect("there is a folder"), Chromium::start());
        let page = write(&folder, "more", &incident("cpu-hogs"));
        let text = std::fs::read_to_string(&page).expect("it was written");
        let more =
            "<script>document.title = 'run'</script><img src='https://example.org/x.png'></body>";
        std::fs::write(&page, text.replace("</body>", more)).expect("it can be written");
        browser.open(&page, WIDE);
        assert_ne!(browser.eval("document.title"), "run");
        let wrong = wrong(&browser.events).join("\n");
        assert!(
            wrong.contains("Executing inline script violates") && wrong.contains("example.org"),
            "{wrong}"
        );
    }

    /// Simulates a wait with about `records` records: two CPUs switch between threads, each woken
    /// before.
    fn storm(records: u64) -> Incident {
        let mut machine = Machinery::with_app("editor");
        for task in 300..340 {
            machine.task_in(task, task, 1, task, "storm", 1);
        }
        machine.typing(100_000, 12).press(3_000_000);
        for turn in 0..records / 2 {
            let (us, next) = (3_010_000 + turn * 10, 300 + (turn * 7 % 40) as u32);
            machine.wake(us, next, 300).switch(us + 5, (turn % 2) as u32, next, 0);
        }
        let end = 3_010_000 + records * 5;
        machine.switch(end, 1, APP, 0).draw(end + 1_000).incident(end + 1_000_000)
    }

    /// Opens `TIPME_RECORDS` records in a release build: the figures of docs/reference/page.md.
    #[test]
    fn many_records_open_as_quickly_as_few() {
        let records = std::env::var("TIPME_RECORDS")
            .ok()
            .and_then(|count| count.parse().ok())
            .unwrap_or(100_000);
        let (folder, incident) = (TempDir::new().expect("there is a folder"), storm(records));
        let begun = Instant::now();
        let page = write(&folder, "storm", &incident);
        let (written, mut browser) = (begun.elapsed(), Chromium::start());
        browser.open(&page, WIDE);
        let drawn = browser.eval("performance.getEntriesByName('tipme-drawn')[0].startTime");
        let bytes = std::fs::metadata(&page).expect("it was written").len();
        println!(
            "{records} records: {bytes} bytes, made in {written:?}, \
             drawn {drawn} ms after it was opened"
        );
        assert!(bytes < 5_000_000, "{bytes} bytes");
        assert_eq!(wrong(&browser.events), Vec::<String>::new());
        assert_ne!(browser.eval("document.querySelectorAll('svg[data-track] path').length"), 0);
    }
}
