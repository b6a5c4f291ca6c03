//! Files of a run that may be looked at.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Larger files are not sent.
const LARGEST: u64 = 1 << 30;

/// A file's bytes and their type.
pub(super) type Served = (Vec<u8>, &'static str);

/// What is sent under a (decoded) path relative to `root`, which is canonical. Nothing but files of a run, by their names'
/// endings; nothing hidden; nothing outside of the folder, not through `..` and not through links.
pub(super) fn find(root: &Path, path: &str) -> Option<Served> {
    let relative = Path::new(path);
    let plain = |c: Component<'_>| match c {
        Component::Normal(name) => {
            name.to_str().is_some_and(|n| !n.starts_with('.') && !n.contains(['\\', '\0']))
        }
        _ => false,
    };
    if path.is_empty() || !relative.components().all(plain) {
        return None;
    }
    let kind = kind(relative.extension()?.to_str()?)?;
    let file: PathBuf = root.join(relative).canonicalize().ok()?;
    let meta = fs::metadata(&file).ok()?;
    let allowed = file.starts_with(root) && meta.is_file() && meta.len() <= LARGEST;
    allowed.then(|| fs::read(&file).ok())?.map(|bytes| (bytes, kind))
}

fn kind(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "json" | "jsonl" => "application/json",
        "toml" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        _ => return None,
    })
}

/// Undoes percent-encoding; none if it is wrong or does not give text.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let digit = |b: Option<u8>| char::from(b?).to_digit(16);
        out.push((16 * digit(bytes.next())? + digit(bytes.next())?) as u8);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs() {
        assert_eq!(decoded("a%20b/%c3%A9").as_deref(), Some("a b/é"));
        assert_eq!(decoded("%2e%2E%2f").as_deref(), Some("../"));
        for wrong in ["%", "%1", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_outside_of_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("run");
        fs::create_dir_all(root.join("figures")).unwrap();
        fs::write(outer.path().join("secret.json"), "secret").unwrap();
        for name in ["summary.json", "figures/a.svg", ".hidden.json", "notes.txt", "noending"] {
            fs::write(root.join(name), name).unwrap();
        }
        let root = root.canonicalize().unwrap();
        assert_eq!(find(&root, "summary.json"), Some((b"summary.json".to_vec(), "application/json")));
        assert_eq!(find(&root, "figures/a.svg").map(|f| f.1), Some("image/svg+xml"));
        let absolute = outer.path().join("secret.json");
        let wrong = [
            "",
            ".",
            "..",
            "figures",
            "figures/",
            "none.json",
            ".hidden.json",
            "notes.txt",
            "noending",
            "../secret.json",
            "figures/../../secret.json",
            "./summary.json",
            "/etc/hosts.json",
            "a\0.json",
            "..\\secret.json",
            absolute.to_str().unwrap(),
        ];
        for path in wrong {
            assert_eq!(find(&root, path), None, "{path}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(outer.path().join("secret.json"), root.join("link.json")).unwrap();
            symlink(outer.path(), root.join("up")).unwrap();
            symlink("summary.json", root.join("inside.json")).unwrap();
            assert_eq!(find(&root, "link.json"), None);
            assert_eq!(find(&root, "up/secret.json"), None);
            assert!(find(&root, "inside.json").is_some(), "links within the folder are no way out");
        }
    }
}
