//! Hostile sizes must not make a reader ask for memory that the input does not justify.
//!
//! This binary holds a single test, so that the counting allocator sees nothing else.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{dict, npy, npy_raw, zip};
use jarz_data::{ReadOptions, read_csv, read_npy, read_npz, read_table};

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn grow(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::SeqCst) + bytes;
    PEAK.fetch_max(now, Ordering::SeqCst);
}

// SAFETY: every call is passed on to the system allocator unchanged; only counters are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new block may exist side by side.
        grow(size);
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were held at once while `work` ran, beyond those held before.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::SeqCst);
    PEAK.store(before, Ordering::SeqCst);
    work();
    PEAK.load(Ordering::SeqCst).saturating_sub(before)
}

/// The allowance of every reader: 64 times the input and 1 MiB.
fn allowed(input: usize) -> usize {
    64 * input + (1 << 20)
}

fn check(what: &str, input: usize, allowed: usize, work: impl FnOnce()) {
    let peak = peak_of(work);
    println!("{what}: input {input}, peak {peak}, allowed {allowed}");
    assert!(peak <= allowed, "{what}: {peak} bytes, allowed {allowed}");
}

/// A zip archive of 60 kB whose end record claims 60000 entries and a directory of 4 GiB.
fn crowded_zip() -> Vec<u8> {
    let mut bytes = zip(&[("a.npy", &npy("|u1", "(60000,)", &[7; 60_000]))], false);
    let end = bytes.len() - 22;
    assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
    for at in [8, 10] {
        bytes[end + at..end + at + 2].copy_from_slice(&60_000u16.to_le_bytes());
    }
    bytes[end + 12..end + 16].copy_from_slice(&u32::MAX.to_le_bytes());
    bytes
}

/// Overwrites both records of the uncompressed size of the only entry of an archive.
fn claim_size(bytes: &mut [u8], size: u32) {
    for (magic, offset) in [(b"PK\x01\x02", 24), (b"PK\x03\x04", 22)] {
        let at = bytes.windows(4).position(|w| w == magic).unwrap() + offset;
        bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
    }
}

#[test]
fn memory_follows_the_input() {
    let options = ReadOptions::default();
    let folder = tempfile::tempdir().unwrap();

    for (descr, shape) in [
        ("<f8", "(4611686018427387904, 8)"),
        ("<f8", "(18446744073709551615,)"),
        ("|u1", "(2147483647,)"),
        ("<f8", "(2147483647,)"),
        ("<f8", "(40000, 50000)"),
        ("|b1", "(1000, 1000, 2000)"),
    ] {
        for fortran in [false, true] {
            let bytes = npy_raw(1, &dict(descr, fortran, shape), &[0; 100]);
            let bound = allowed(bytes.len());
            check(shape, bytes.len(), bound, || {
                assert!(read_npy(&bytes[..], &options).is_err());
            });
            let path = folder.path().join("x.npy");
            std::fs::write(&path, &bytes).unwrap();
            check(shape, bytes.len(), bound, || {
                assert!(read_table(&path, &options).is_err());
            });
            for compressed in [false, true] {
                let mut archive = zip(&[("a.npy", &bytes)], compressed);
                check(shape, archive.len(), allowed(archive.len()), || {
                    assert!(read_npz(Cursor::new(&archive), &options).is_err());
                });
                // The archive agrees with the forged header about the size.
                for size in [u32::MAX - 1, 2_000_000_000 + (bytes.len() as u32 - 100)] {
                    claim_size(&mut archive, size);
                    check("claimed size", archive.len(), allowed(archive.len()), || {
                        assert!(read_npz(Cursor::new(&archive), &options).is_err());
                    });
                }
            }
        }
    }

    for length in [u32::MAX, 1 << 30, 1 << 20] {
        let mut bytes = b"\x93NUMPY\x03\x00".to_vec();
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(b"{'descr': '<f8'");
        check("header length", bytes.len(), allowed(bytes.len()), || {
            assert!(read_npy(&bytes[..], &options).is_err());
        });
    }

    // Text whose every byte costs as much as it can.
    for (what, text) in [
        ("fields", "1,".repeat(200_000)),
        ("empty fields", format!("x{}", ",".repeat(400_000))),
        ("short lines", "1\n".repeat(200_000)),
        ("gaps", "1\n\n".repeat(150_000)),
        ("old line ends", "1\r".repeat(200_000)),
        ("one quote", format!("1\n\"{}", "1\n".repeat(200_000))),
        ("blanks", " 1".repeat(200_000)),
    ] {
        check(what, text.len(), allowed(text.len()), || {
            let _ = read_csv(text.as_bytes(), &options);
        });
    }

    // The zip crate sets aside room for as many entries as the end record claims, though for no
    // more than 65535 and no more than the archive has bytes: 16 MiB hold them.
    let crowded = crowded_zip();
    let bound = allowed(crowded.len()) + (16 << 20);
    check("claimed entries", crowded.len(), bound, || {
        assert!(read_npz(Cursor::new(&crowded), &options).is_err());
    });

    // A bomb: the limit is on what comes out, not on what went in.
    let bomb = zip(&[("a.npy", &npy("<f8", "(2000000,)", &[0; 16_000_000]))], true);
    let tight = ReadOptions { max_bytes: Some(1 << 20), ..ReadOptions::default() };
    check("bomb", bomb.len(), allowed(bomb.len()), || {
        assert!(read_npz(Cursor::new(&bomb), &tight).is_err());
    });
    // One that lies about its length is stopped where its header says that it ends.
    let liar = zip(&[("a.npy", &npy("<f8", "(2,)", &[0; 16_000_000]))], true);
    check("liar", liar.len(), allowed(liar.len()), || {
        assert!(read_npz(Cursor::new(&liar), &options).is_err());
    });
}
