// SPDX-License-Identifier: MIT OR Apache-2.0
//! Headless Chromium, driven over two pipes by the DevTools protocol.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Timeout of everything on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Connects commands to descriptor 3 and answers to 4, each terminated by a null byte.
const START: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;
const FLAGS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--remote-debugging-pipe",
    "about:blank",
];

/// Viewport of a page.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub name: &'static str,
    pub width: u32,
    pub phone: bool,
    pub media: &'static str,
    pub scheme: &'static str,
}

/// A browser with one tab; killed with the value.
pub struct Chromium {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    last: u64,
    session: Option<String>,
    /// Events of the tab since its page was opened.
    pub events: Vec<Value>,
    _profile: TempDir,
}

impl Chromium {
    pub fn start() -> Chromium {
        let profile = TempDir::new().expect("there is a temporary folder");
        let mut command = Command::new("sh");
        command.args(["-c", START, "chromium"]).args(FLAGS).env("HOME", profile.path());
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let (commands, answers) =
            (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let parts = BufReader::new(answers).split(0).map_while(Result::ok);
            parts
                .filter_map(|part| serde_json::from_slice(&part).ok())
                .all(|message| sender.send(message).is_ok())
        });
        let (last, session, events) = (0, None, Vec::new());
        let mut browser =
            Chromium { child, commands, messages, last, session, events, _profile: profile };
        browser.attach("about:blank");
        browser
    }

    /// Opens a new tab.
    fn attach(&mut self, url: &str) {
        self.session = None;
        let target = self.call("Target.createTarget", &json!({ "url": url }))["targetId"].clone();
        let attached =
            self.call("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// Sends a command; returns its answer.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let sent = self
            .commands
            .write_all(format!("{message}\0").as_bytes())
            .and_then(|()| self.commands.flush());
        sent.expect("chromium is installed and runs; see: make test-deps");
        loop {
            let message = self.next(method);
            if message["id"] == self.last {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn next(&self, what: &str) -> Value {
        self.messages
            .recv_timeout(LONG)
            .unwrap_or_else(|_| panic!("chromium does not answer {what}; is it installed?"))
    }

    /// Opens a file, and waits until it is loaded.
    pub fn open(&mut self, page: &Path, view: View) {
        let size = json!({ "width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": view.phone });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!({ "name": "prefers-color-scheme", "value": view.scheme });
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({ "media": view.media, "features": [scheme] }),
        );
        self.go(&format!("file://{}", page.display()));
    }

    fn go(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": url }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next("a page that is to be loaded");
            self.events.push(event);
        }
    }

    /// Evaluates an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &parameters);
        let short: String = expression.chars().take(200).collect();
        assert!(answer.get("exceptionDetails").is_none(), "{short}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses a key as a user would.
    pub fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        for (kind, text) in [("keyDown", text), ("keyUp", "")] {
            self.call(
                "Input.dispatchKeyEvent",
                &json!({ "type": kind, "key": key, "code": key, "text": text }),
            );
        }
    }

    /// Returns the source of axe-core: Chromium's DevTools contain it, as a string in the
    /// Lighthouse bundle.
    pub fn axe(&mut self) -> String {
        const BUNDLE: &str =
            "devtools://devtools/bundled/third_party/lighthouse/lighthouse-dt-bundle.js";
        self.attach(BUNDLE);
        // The string begins with the licence, and ends at the first unescaped backtick.
        let find = r"(async () => {
            while (document.readyState !== 'complete') await new Promise(done => setTimeout(done, 20));
            const text = document.documentElement.innerText, end = /`(?:[^`\\]|\\[^])*`/y;
            end.lastIndex = text.indexOf('`/*! axe v');
            return (end.exec(text) || [''])[0];
        })()";
        let quoted = self.eval(find).as_str().unwrap_or_default().to_owned();
        assert!(quoted.len() > 100_000, "this Chromium carries no axe-core in {BUNDLE}");
        self.attach("about:blank");
        self.eval(&quoted).as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
