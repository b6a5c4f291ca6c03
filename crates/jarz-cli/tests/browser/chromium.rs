//! Chromium, driven through its DevTools protocol over a pair of pipes.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Long enough for any machine; only a broken page waits that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page in a browser of its own.
pub struct Page {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    next_id: u64,
    /// Errors and warnings of the page's scripts.
    pub complaints: Vec<String>,
    /// Addresses that were asked for.
    pub requests: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Page {
    /// Starts a browser with an empty page of that size.
    pub fn new(width: u32, height: u32) -> Self {
        let program = std::env::var("JARZ_CHROMIUM").unwrap_or_else(|_| "chromium".into());
        let profile = tempfile::tempdir().unwrap();
        // The protocol speaks on the descriptors 3 and 4. Without a display, a GPU, or a kernel that lets root have a sandbox.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null", &program])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--disable-background-networking", "--remote-debugging-pipe", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (sender, messages) = channel();
        let mut output = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let (mut pending, mut buffer) = (Vec::new(), [0; 1 << 16]);
            while let Ok(n) = output.read(&mut buffer)
                && n > 0
            {
                pending.extend_from_slice(&buffer[..n]);
                while let Some(end) = pending.iter().position(|b| *b == 0) {
                    let message: Vec<u8> = pending.drain(..=end).collect();
                    let _ = sender.send(serde_json::from_slice(&message[..end]).expect("JSON"));
                }
            }
        });
        let input = child.stdin.take().unwrap();
        let mut page = Page {
            child,
            input,
            messages,
            session: String::new(),
            next_id: 0,
            complaints: Vec::new(),
            requests: Vec::new(),
            _profile: profile,
        };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = page.call("Target.attachToTarget", target);
        page.session = attached["sessionId"].as_str().expect("a session").into();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        page.call("Emulation.setDeviceMetricsOverride", size);
        page
    }

    /// Sends a command and waits for its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).expect("the browser listens");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(answer) if answer["id"] == id => {
                    assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                    return answer["result"].clone();
                }
                Ok(event) => self.note(&event),
                Err(RecvTimeoutError::Timeout) => panic!("no answer to {method}"),
                Err(RecvTimeoutError::Disconnected) => panic!("the browser ended before {method}"),
            }
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") if params["type"] == "error" || params["type"] == "warning" => {
                self.complaints.push(params["args"].to_string());
            }
            Some("Log.entryAdded") => self.complaints.push(params["entry"].to_string()),
            Some("Network.requestWillBeSent") => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if !url.starts_with("data:") {
                    self.requests.push(url.to_string());
                }
            }
            _ => {}
        }
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'");
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        let thrown = result.get("exceptionDetails");
        assert!(thrown.is_none(), "{expression}: {}", thrown.unwrap_or(&Value::Null));
        result["result"]["value"].clone()
    }

    /// Waits until an expression holds.
    pub fn wait(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.eval(expression) != true {
            assert!(Instant::now() < deadline, "never came true: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A mouse event: `mousePressed`, `mouseReleased` or `mouseMoved`.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let moved = kind == "mouseMoved";
        let params = json!({
            "type": kind, "x": x, "y": y, "clickCount": i32::from(!moved),
            "button": if moved { "none" } else { "left" },
            "buttons": i32::from(kind == "mousePressed"),
        });
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Presses, moves and lets go.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from.0, from.1);
        self.mouse("mousePressed", from.0, from.1);
        for step in 1..=4 {
            let t = f64::from(step) / 4.0;
            self.mouse("mouseMoved", from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1));
            // Moves are taken in once per frame.
            self.eval("new Promise(requestAnimationFrame).then(() => true)");
        }
        self.mouse("mouseReleased", to.0, to.1);
    }

    /// Saves a picture of the page, for people, if the variable `JARZ_SCREENSHOTS` names a folder.
    pub fn picture(&mut self, name: &str) {
        let Ok(folder) = std::env::var("JARZ_SCREENSHOTS") else { return };
        let params = json!({ "format": "png" });
        let data = self.call("Page.captureScreenshot", params);
        std::fs::create_dir_all(&folder).unwrap();
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(path, base64(data["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => u32::from(c - b'A'),
        b'a'..=b'z' => u32::from(c - b'a') + 26,
        b'0'..=b'9' => u32::from(c - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').collect();
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0, |bits, c| bits << 6 | digit(*c)) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}
