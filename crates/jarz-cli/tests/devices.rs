//! Devices in a program that was built without them.

mod common;

use common::Jarz;

const NETWORK: &str = r#"
precision = "f32"
[data]
kind = "images"
set = "digits"
noise = 0.1
[model]
kind = "network"
layers = [{ type = "flatten" }, { type = "linear", features = 1 }]
[walkers]
count = 10
[run]
iterations = 2
"#;

#[test]
fn are_listed_with_how_to_get_them() {
    let text = Jarz::new().ok(&["devices"]);
    assert!(text.contains("processor"), "{text}");
    for (name, built_in) in [
        ("cuda", cfg!(feature = "cuda")),
        ("rocm", cfg!(feature = "rocm")),
        ("metal", cfg!(feature = "metal")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("wgpu", cfg!(feature = "wgpu")),
    ] {
        assert!(text.contains(name), "{text}");
        assert_ne!(text.contains(&format!("--features {name}")), built_in, "{text}");
    }
    let listed: serde_json::Value = serde_json::from_str(&Jarz::new().ok(&["devices", "--json"])).unwrap();
    assert!(listed.as_array().unwrap().len() >= 5);
}

#[test]
fn that_are_not_there_are_refused() {
    let j = Jarz::new();
    j.write("net.toml", NETWORK);
    let train = ["train", "net.toml", "--out", "run", "--device"];
    j.fails(&[&train[..], &["gpu"]].concat(), &["'gpu'", "cuda:1", "jarz devices"]);
    if !cfg!(feature = "wgpu") {
        j.fails(
            &[&train[..], &["wgpu:discrete:3"]].concat(),
            &["--features wgpu", "processor", "jarz devices"],
        );
    }
    assert!(!j.path("run").exists());
    j.ok(&["train", "net.toml", "--out", "run", "--quiet"]);
    j.fails(&["resume", "run", "--device", "gpu"], &["'gpu'"]);
}
