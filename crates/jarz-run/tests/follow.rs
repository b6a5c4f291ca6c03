//! Reading metrics while they are written.

use jarz_run::{MetricsReader, read_metrics};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

fn row(iteration: u64) -> String {
    format!(
        "{{\"iteration\":{iteration},\"seconds\":0.5,\"log_z\":null,\"log_z_std_error\":null,\"log_z_exact\":null,\
         \"data_energy\":1.5,\"cross_entropy\":2.5,\"cross_entropy_std_error\":null,\"cross_entropy_exact\":null,\
         \"kl\":null,\"kl_exact\":null,\"ess\":0.5,\"weight_entropy\":1.0,\"acceptance\":null,\"step_size\":0.1,\
         \"gradient_norm\":1.0,\"step_scale\":1.0,\"resamplings\":0,\"distinct_ancestors\":10}}"
    )
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn iterations(reader: &MetricsReader) -> Vec<u64> {
    reader.rows().iter().map(|r| r.iteration).collect()
}

#[test]
fn rows_appear_as_they_are_completed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let mut reader = MetricsReader::new(&path);
    assert!(!reader.look().unwrap(), "a file that does not exist yet is no error");
    append(&path, &format!("{}\n", row(0)));
    assert!(reader.look().unwrap());
    assert!(!reader.look().unwrap(), "nothing new");
    // Half a row is waited for, wherever it is cut.
    let (head, tail) = (row(10)[..40].to_string(), row(10)[40..].to_string());
    append(&path, &head);
    assert!(!reader.look().unwrap());
    assert!(reader.damaged().is_empty());
    append(&path, &tail);
    assert!(!reader.look().unwrap(), "the end of the line is part of a row");
    append(&path, &format!("\n{}\n", row(20)));
    assert!(reader.look().unwrap());
    assert_eq!(iterations(&reader), [0, 10, 20]);
}

#[test]
fn replaced_and_cut_files_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    append(&path, &format!("{}\n{}\n{}\n", row(0), row(10), row(20)));
    let mut reader = MetricsReader::new(&path);
    reader.look().unwrap();
    // A resumed run drops what came after its checkpoint and goes on, by replacing the file.
    let new = folder.path().join("new");
    append(&new, &format!("{}\n{}\n{}\n{}\n", row(0), row(10), row(21), row(31)));
    fs::rename(&new, &path).unwrap();
    assert!(reader.look().unwrap());
    assert_eq!(iterations(&reader), [0, 10, 21, 31]);
    fs::write(&path, format!("{}\n", row(5))).unwrap();
    assert!(reader.look().unwrap());
    assert_eq!(iterations(&reader), [5]);
    fs::remove_file(&path).unwrap();
    assert!(reader.look().unwrap());
    assert!(reader.rows().is_empty());
}

#[test]
fn damaged_lines_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    append(&path, &format!("{}\n", row(0)));
    append(&path, "\n{\"iteration\": 10,\n");
    append(&path, &format!("{}\n", row(20)));
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\xff\xfe\n").unwrap();
    append(&path, &row(30)[..50]);
    let mut reader = MetricsReader::new(&path);
    assert!(reader.look().unwrap());
    assert_eq!(iterations(&reader), [0, 20]);
    let lines: Vec<usize> = reader.damaged().iter().map(|d| d.line).collect();
    assert_eq!(lines, [3, 5], "blank lines count but are no damage, the torn last line is not there yet");
    let error = read_metrics(&path).unwrap_err().to_string();
    assert!(error.contains("metrics.jsonl") && error.contains("line 3"), "{error}");
    fs::write(&path, format!("{}\n{}", row(0), &row(10)[..30])).unwrap();
    assert_eq!(read_metrics(&path).unwrap().len(), 1, "a torn last row is normal");
    assert!(read_metrics(&folder.path().join("none.jsonl")).is_err());
}
