//! The page of a server, while the run grows.

use crate::chromium::Page;
use crate::common::{Jarz, SMALL};
use crate::report::{check_quiet, click, panel, scale};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

struct Server(Child, String);

impl Server {
    fn new(j: &Jarz, folder: &str) -> Self {
        let mut command = j.command(&["serve", folder, "--port", "0", "--quiet"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Server(child, url.trim().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs Chromium"]
fn new_rows_appear_and_the_readers_choices_stay() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    j.ok(&["train", "small.toml", "--out", "run", "--quiet"]);
    // The same run as it was after ten rows.
    let all = std::fs::read_to_string(j.path("run/metrics.jsonl")).unwrap();
    let rows: Vec<&str> = all.lines().collect();
    j.write("run/metrics.jsonl", format!("{}\n", rows[..10].join("\n")));
    std::fs::remove_file(j.path("run/summary.json")).unwrap();
    let mut server = Server::new(&j, "run");
    let mut page = Page::new(1280, 900);
    page.open(&server.1);
    page.wait("jarz.figures.size === 1");
    let (masses, loss) = (panel("Masses"), panel("KL divergence"));
    assert_eq!(page.eval(&format!("{masses}.plot.data[1].length")), 10);
    assert_eq!(scale(&mut page, &masses, "x"), (0.0, 90.0));
    assert_eq!(page.eval("document.querySelector('aside').textContent.includes('first 90 of 300')"), true);

    // The reader hides a series and unfolds the configuration.
    click(&mut page, &format!("{masses}.box.querySelector('.legend button')"));
    page.eval("document.querySelector('details').open = true");

    // Half a row is waited for; with its other half it appears, and the axis follows.
    let append = |text: &str| {
        let file = std::fs::OpenOptions::new().append(true).open(j.path("run/metrics.jsonl"));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    };
    append(&rows[10][..100]);
    append(&format!("{}\n", &rows[10][100..]));
    page.wait(&format!("{masses}.plot.data[1].length === 11"));
    assert_eq!(scale(&mut page, &masses, "x"), (0.0, 100.0));
    page.eval(&format!(
        "(f => {{ f.zoomX({loss}, [20, 40]); f.refresh(); }})([...jarz.figures.values()][0])"
    ));
    append(&format!("{}\n", rows[11..].join("\n")));
    page.wait(&format!("{masses}.plot.data[1].length === 31"));
    page.picture("live");
    assert_eq!(scale(&mut page, &loss, "x"), (20.0, 40.0), "the zoom stays");
    assert_eq!(page.eval(&format!("{masses}.plot.series[1].show")), false, "what is hidden stays hidden");
    assert_eq!(page.eval("document.querySelector('details').open"), true, "what is unfolded stays so");
    let last: serde_json::Value = serde_json::from_str(rows[30]).unwrap();
    let drawn = page.eval(&format!("{masses}.plot.data[1][30]")).as_f64().unwrap();
    assert!((drawn - last["masses"][0].as_f64().unwrap()).abs() < 1e-9);
    let origin = server.1.clone();
    check_quiet(&mut page, |url| url.starts_with(&origin));

    // A damaged row is named, the others stay.
    append("{\"iteration\": 310, oops}\n");
    page.wait("document.querySelector('aside').textContent.includes('line 32')");
    assert_eq!(page.eval(&format!("{masses}.plot.data[1].length")), 31);

    // Without its server the page says so and keeps what it has.
    assert_eq!(page.eval("document.querySelector('.state').dataset.state"), "live");
    server.0.kill().unwrap();
    page.wait("document.querySelector('.state').dataset.state === 'lost'");
    assert_eq!(page.eval(&format!("{masses}.plot.data[1].length")), 31);
}

/// Repeated runs that begin one after the other: the page takes new runs in.
#[test]
#[ignore = "needs Chromium"]
fn runs_that_begin_later_are_taken_in() {
    let j = Jarz::new();
    j.write("small.toml", SMALL);
    j.ok(&["train", "small.toml", "--out", "many", "--runs", "2", "--set", "run.iterations=40", "--quiet"]);
    std::fs::rename(j.path("many/runs/run-02"), j.path("later")).unwrap();
    let server = Server::new(&j, "many");
    let mut page = Page::new(1280, 900);
    page.open(&server.1);
    page.wait("jarz.figures.size === 1");
    assert_eq!(page.eval("document.querySelectorAll('tbody tr').length"), 1);
    std::fs::rename(j.path("later"), j.path("many/runs/run-02")).unwrap();
    page.wait("document.querySelectorAll('tbody tr').length === 2");
    page.wait("!document.querySelector('aside')");
    let band = page.eval(&format!("{}.data.series[0].band.low.length", panel("Masses")));
    assert_eq!(band, json!(5), "two runs have a band");
    let origin = server.1.clone();
    check_quiet(&mut page, |url| url.starts_with(&origin));
}
