//! A real browser without a window, spoken to over its debugging pipe.
//!
//! [`Browser`] starts Chromium and opens one page; messages are JSON that ends with a
//! NUL byte, so that no further library is needed. Everything the page complains about
//! or asks for is kept in its events.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// No answer takes longer, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    next_id: u64,
    events: Vec<Value>,
    // The profile goes with the browser.
    _profile: TempDir,
}

/// The program: `PAGEINIT_BROWSER`, or Debian's.
fn program() -> String {
    std::env::var("PAGEINIT_BROWSER").unwrap_or_else(|_| "chromium".into())
}

impl Browser {
    /// Starts the browser and waits for its page.
    pub(crate) fn start() -> Self {
        let profile = TempDir::new().expect("a temporary folder");
        let mut child = Command::new("sh")
            // The browser reads commands from descriptor 3 and answers on 4.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 1>&2", &program()])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args(["--remote-debugging-pipe", "--no-first-run", "--disable-extensions"])
            .args(["--window-size=1280,900"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let to = child.stdin.take().expect("piped");
        let mut answers = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|count| count > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).unwrap_or_default();
                message.clear();
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            session: None,
            next_id: 1,
            events: Vec::new(),
            _profile: profile,
        };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let targets = self.call("Target.getTargets", json!({}));
        let targets = targets["targetInfos"].as_array().cloned().unwrap_or_default();
        let page = targets.iter().find(|t| t["type"] == "page").expect("a page is open");
        let target = json!({"targetId": page["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", target);
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    fn receive(&mut self, what: &str) -> Value {
        self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the browser is silent: {what}"))
    }

    /// Calls a method and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.clone().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        loop {
            let answer = self.receive(method);
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&mut self, path: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        while !self.events.iter().any(|e| e["method"] == "Page.loadEventFired") {
            let event = self.receive("load");
            self.events.push(event);
        }
    }

    /// Runs JavaScript in the page and returns its value.
    #[track_caller]
    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{script}: {result}");
        result["result"]["value"].clone()
    }

    /// Moves the mouse there, in pixels of the window.
    pub(crate) fn hover(&mut self, x: f64, y: f64) {
        let params = json!({"type": "mouseMoved", "x": x, "y": y});
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Clicks there.
    pub(crate) fn click(&mut self, x: f64, y: f64) {
        self.hover(x, y);
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// Presses a key: `Tab`, `Enter`, `ArrowRight`, `Escape`.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowRight" => 39,
            _ => panic!("no code for {key}"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({"type": kind, "key": key, "code": key,
                "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                params["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// The window's size; `phone` in pixels of a phone.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// `screen` or `print`, `light` or `dark`.
    pub(crate) fn medium(&mut self, medium: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": medium, "features": features}));
    }

    /// The page as PNG or PDF, in base64.
    pub(crate) fn screenshot(&mut self) -> String {
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        shot["data"].as_str().unwrap_or_default().to_owned()
    }

    /// The page as it is printed, in base64.
    pub(crate) fn print(&mut self) -> String {
        let pdf = self.call("Page.printToPDF", json!({}));
        pdf["data"].as_str().unwrap_or_default().to_owned()
    }

    /// What the page complained about, and what it asked for beside itself.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let wrong = |event: &&Value| match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Log.entryAdded" => event["params"]["entry"]["level"] == "error",
            "Runtime.consoleAPICalled" => event["params"]["type"] == "error",
            "Network.requestWillBeSent" => event["params"]["type"] != "Document",
            _ => false,
        };
        self.events.iter().filter(wrong).map(Value::to_string).collect()
    }

    /// How many requests were seen at all: at least the page's own.
    pub(crate) fn requests(&self) -> usize {
        let requests = self.events.iter().filter(|e| e["method"] == "Network.requestWillBeSent");
        requests.count()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
