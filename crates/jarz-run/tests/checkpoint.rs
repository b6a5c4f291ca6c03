//! Checkpoints: fall-back on damage, hostile files, and survival of kills and full disks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jarz_run::checkpoint::{CheckpointError, CheckpointStore, Snapshot, decode, encode};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

/// Counts what the current thread holds, to see what hostile bytes make `decode` ask for.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    HELD.set(HELD.get() + change);
    PEAK.set(PEAK.get().max(HELD.get()));
}

// SAFETY: every call goes to the system allocator unchanged; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the block comes from `alloc` above, with the same layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Decodes; also gives the most memory held on the way.
fn decode_counted(bytes: &[u8]) -> (Result<Snapshot, CheckpointError>, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = decode(bytes);
    (result, (PEAK.get() - before) as usize)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn arbitrary_bytes_are_refused(bytes in vec(any::<u8>(), 0..200), json in "[\\[\\]{}\",:0-9a-z_ ]{0,99}") {
        prop_assert!(decode(&bytes).is_err());
        prop_assert!(decode(&framed(&json, &bytes)).is_err());
    }
}

/// A file with that header.
fn framed(json: &str, data: &[u8]) -> Vec<u8> {
    [&(json.len() as u64).to_le_bytes(), json.as_bytes(), data].concat()
}

/// A file with the metadata of a checkpoint, some version and no valid checksum.
fn forged(version: &str, arrays: &str, data: &[u8]) -> Vec<u8> {
    let metadata = r#""format":"jarz-checkpoint","sha256":"00","version":"#;
    framed(&format!(r#"{{"__metadata__":{{{metadata}"{version}"}}{arrays}}}"#), data)
}

#[test]
fn hostile_headers_cost_no_memory() {
    let info = |start: u64, end: u64| {
        let len = (end - start) / 8;
        format!(r#","{start}":{{"dtype":"U64","shape":[{len}],"data_offsets":[{start},{end}]}}"#)
    };
    let huge = info(0, 1 << 60);
    // Nine arrays that end at the largest address: adding the header to that overflows.
    let step = (1_u64 << 61) - 8;
    let chain: String = (0..8).map(|i| info(i * step, (i + 1) * step)).collect();
    let wrap = chain
        + &format!(r#","z":{{"dtype":"U8","shape":[63],"data_offsets":[{},{}]}}"#, 8 * step, 8 * step + 63);
    let product = r#","a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}"#;
    let zeros = format!(r#","a":{{"dtype":"F64","shape":[0{}],"data_offsets":[0,0]}}"#, ",0".repeat(200_000));
    let cases = [
        u64::MAX.to_le_bytes().to_vec(),
        [&99_999_999_u64.to_le_bytes()[..], &[b' '; 100]].concat(),
        forged("1", &huge, &[0; 64]),
        forged("1", &wrap, &[0; 64]),
        forged("1", product, &[]),
        forged("1", &zeros, &[]),
        forged("1", r#","a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}"#, &[0; 8]),
        forged("1", r#","a":{"dtype":"U8","shape":[-1],"data_offsets":[0,8]}"#, &[0; 8]),
        forged("1", &format!(r#","a":{}"#, "[".repeat(100_000)), &[]),
    ];
    let honest = encode(&stamped(1, 100_000)).unwrap();
    let (result, held) = decode_counted(&honest);
    assert!(result.is_ok() && held < 2 * honest.len(), "{held} bytes for {}", honest.len());
    for (case, bytes) in cases.iter().enumerate() {
        let (result, held) = decode_counted(bytes);
        assert!(result.is_err(), "case {case}");
        assert!(held < 64 * bytes.len() + 20_000, "case {case}: {held} bytes for {}", bytes.len());
    }
}

fn opened() -> (TempDir, CheckpointStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = CheckpointStore::open(folder.path().join("run").join("checkpoints")).unwrap();
    (folder, store)
}

/// A snapshot in which every number tells the iteration it belongs to.
fn stamped(iteration: u64, len: usize) -> Snapshot {
    let mut snapshot = Snapshot::new();
    snapshot.put_text("iteration", iteration.to_string());
    snapshot.put("stamp", &[len], vec![iteration; len]);
    snapshot
}

fn assert_loads(store: &CheckpointStore, iteration: u64, rejected: usize) {
    let loaded = store.load_latest().unwrap().unwrap();
    assert_eq!((loaded.iteration, loaded.path), (iteration, store.path(iteration)));
    let len = loaded.snapshot.u64s("stamp").unwrap().len();
    assert!(loaded.snapshot.same_bits(&stamped(iteration, len)));
    assert_eq!(loaded.rejected.len(), rejected);
    for (path, error) in loaded.rejected {
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
}

fn temporary_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap();
    entries.filter(|e| e.as_ref().unwrap().file_name().to_str().unwrap().contains("tmp")).count()
}

#[test]
fn the_last_two_are_kept_and_the_rest_left_alone() {
    let (_guard, store) = opened();
    assert!(store.load_latest().unwrap().is_none());
    let foreign = ["8000.safetensors", "notes.txt", ".x.1-2.jarz-tmp", "000000000001.safetensors.bak"];
    for name in foreign {
        fs::write(store.folder().join(name), "mine").unwrap();
    }
    fs::create_dir(store.path(999_999)).unwrap();
    let stale = store.folder().join(".000000000001.safetensors.1-2.jarz-tmp");
    fs::write(&stale, "half").unwrap();
    let store = CheckpointStore::open(store.folder()).unwrap();
    assert!(!stale.exists());
    assert!(store.load_latest().unwrap().is_none());
    for iteration in [0, 8000, 9000, 10_000, u64::MAX] {
        let path = store.save(iteration, &stamped(iteration, 10)).unwrap();
        assert_eq!(path, store.path(iteration));
        assert_loads(&store, iteration, 0);
        assert!(store.list().unwrap().len() <= 2);
    }
    assert!(store.path(8000).ends_with("checkpoints/000000008000.safetensors"));
    // A save before existing ones removes neither itself nor them.
    store.save(5, &stamped(5, 10)).unwrap();
    assert_eq!(store.list().unwrap(), [5, 10_000, u64::MAX]);
    for name in foreign {
        assert_eq!(fs::read(store.folder().join(name)).unwrap(), b"mine");
    }
    assert!(store.path(999_999).is_dir());
}

#[test]
fn damage_falls_back_on_the_checkpoint_before() {
    let (_guard, store) = opened();
    store.save(1, &stamped(1, 100)).unwrap();
    store.save(2, &stamped(2, 100)).unwrap();
    let good = fs::read(store.path(2)).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 4;
    for bad in [&flipped[..], &good[..good.len() - 1], &good[..20], &[]] {
        fs::write(store.path(2), bad).unwrap();
        assert_loads(&store, 1, 1);
    }
    fs::write(store.path(1), "nonsense").unwrap();
    let message = store.load_latest().unwrap_err().to_string();
    assert!(message.contains("000000000001") && message.contains("000000000002"), "{message}");
    // The run gets back to where the damage is, and replaces it.
    store.save(2, &stamped(2, 100)).unwrap();
    assert_loads(&store, 2, 0);
    // A checkpoint from the future is not passed over, even when it cannot be understood.
    for arrays in ["", r#","a":{"dtype":"F128","shape":"?"}"#] {
        fs::write(store.path(3), forged("2", arrays, &[])).unwrap();
        let error = store.load_latest().unwrap_err();
        let message = error.to_string();
        assert!(error.is_newer() && message.contains("update the program"), "{message}");
        assert!(message.contains("000000000003"), "{message}");
    }
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let (guard, store) = opened();
    fs::remove_dir(store.folder()).unwrap();
    let message = store.save(1, &stamped(1, 1)).unwrap_err().to_string();
    assert!(message.contains("000000000001") && message.contains("folder"), "{message}");
    let file = guard.path().join("file");
    fs::write(&file, "").unwrap();
    let message = CheckpointStore::open(file.join("x")).unwrap_err().to_string();
    assert!(message.contains("create the folder") && message.contains("file"), "{message}");
}

/// Runs one test of this file again in another process, which finds `folder` in `variable`.
fn again(mut launcher: Command, test: &str, variable: &str, folder: &Path) -> Command {
    launcher.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    launcher.env(variable, folder).stdin(Stdio::null());
    launcher
}

#[test]
fn a_killed_process_leaves_usable_checkpoints() {
    const LEN: usize = 100_000;
    if let Some(folder) = std::env::var_os("JARZ_TEST_SAVE_LOOP") {
        let store = CheckpointStore::open(folder).unwrap();
        let first = store.list().unwrap().pop().unwrap_or(0) + 1;
        for iteration in first.. {
            store.save(iteration, &stamped(iteration, LEN)).unwrap();
        }
    }
    let (_guard, store) = opened();
    let mut left_over = 0;
    for round in 0..20_u64 {
        let before = store.list().unwrap().pop();
        let exe = Command::new(std::env::current_exe().unwrap());
        let test = "a_killed_process_leaves_usable_checkpoints";
        let mut child =
            again(exe, test, "JARZ_TEST_SAVE_LOOP", store.folder()).stdout(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while store.list().unwrap().pop() <= before && start.elapsed().as_secs() < 60 {
            std::thread::sleep(Duration::from_micros(300));
        }
        // Uneven waits, so that the kills fall on all phases of a save.
        std::thread::sleep(Duration::from_micros(round * 7_919 % 15_000));
        child.kill().unwrap();
        child.wait().unwrap();
        left_over += temporary_files(store.folder());
        let latest = store.list().unwrap().pop();
        assert!(latest > before, "the child saved nothing");
        let store = CheckpointStore::open(store.folder()).unwrap();
        assert_eq!(temporary_files(store.folder()), 0);
        assert_loads(&store, latest.unwrap(), 0);
    }
    println!("{left_over} of 20 kills left a temporary file behind");
}

#[test]
fn a_full_or_read_only_disk_spares_what_is_there() {
    if let Some(folder) = std::env::var_os("JARZ_TEST_SMALL_DISK") {
        let store = CheckpointStore::open(folder).unwrap();
        store.save(1, &stamped(1, 15_000)).unwrap();
        store.save(2, &stamped(2, 15_000)).unwrap();
        let message = store.save(3, &stamped(3, 60_000)).unwrap_err().to_string();
        assert!(message.contains("000000000003") && message.contains("free some disk space"), "{message}");
        assert_eq!(store.list().unwrap(), [1, 2]);
        assert_eq!(temporary_files(store.folder()), 0);
        assert_loads(&store, 2, 0);
        let remount = ["-o", "remount,ro"];
        assert!(Command::new("mount").args(remount).arg(store.folder()).status().unwrap().success());
        let message = store.save(3, &stamped(3, 10)).unwrap_err().to_string();
        assert!(message.contains("000000000003") && message.contains("can be written"), "{message}");
        assert_loads(&CheckpointStore::open(store.folder()).unwrap(), 2, 0);
        println!("both disks tried");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A mount that only the child sees, and that goes away with it.
    let mount = "mount -t tmpfs -o size=512k tmpfs \"$0\"";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(folder.path());
        command
    };
    if !unshare(mount).output().is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: no small file system can be mounted here");
        return;
    }
    let mut command = unshare(&format!("{mount} && exec \"$@\""));
    command.arg(std::env::current_exe().unwrap());
    let test = "a_full_or_read_only_disk_spares_what_is_there";
    let output = again(command, test, "JARZ_TEST_SMALL_DISK", folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("both disks tried"), "{output:?}");
}
