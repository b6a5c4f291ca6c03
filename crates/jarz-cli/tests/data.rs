//! `jarz data`.

mod common;

use common::Jarz;

#[test]
fn sets_are_listed_and_bad_input_is_named() {
    let j = Jarz::new();
    let list = j.ok(&["data", "list", "--cache", "cache"]);
    for word in ["digits", "embedded", "mnist", "fashion-mnist", "cifar10", "not cached"] {
        assert!(list.contains(word), "{list}");
    }
    assert!(!j.path("cache").exists());
    j.fails(&["data", "get", "imagenet"], &["imagenet", "mnist", "cifar10"]);
    // Files that are not what they should be: named, and nothing left behind.
    std::fs::create_dir(j.path("own")).unwrap();
    let get = ["data", "get", "mnist", "--from", "own", "--cache", "cache"];
    j.fails(&get, &["own", "train-images-idx3-ubyte", "--from"]);
    j.write("own/train-images-idx3-ubyte", b"\0\0\x08\x03 not MNIST");
    j.fails(&get, &["own/train-images-idx3-ubyte", "SHA-256", "ba891046"]);
    assert_eq!(std::fs::read_dir(j.path("cache/mnist")).unwrap().count(), 0);
    // A mirror that cannot be reached.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mirror = format!("http://127.0.0.1:{port}/");
    j.fails(
        &["data", "get", "cifar10", "--mirror", &mirror, "--cache", "cache"],
        &[&mirror, "cifar-10-binary.tar.gz", "--from"],
    );
}

#[test]
fn the_state_of_the_cache_is_told() {
    let j = Jarz::new();
    let state = || {
        let out = j.command(&["data", "list", "--json"]).env("JARZ_CACHE", j.path("cache")).output().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        value["sets"][0]["state"].as_str().unwrap().to_string()
    };
    assert_eq!(state(), "not cached");
    std::fs::create_dir_all(j.path("cache/mnist")).unwrap();
    assert_eq!(state(), "not cached");
    j.write("cache/mnist/train-images-idx3-ubyte.gz.part", "some");
    assert_eq!(state(), "incomplete");
    j.write("cache/mnist/train-images-idx3-ubyte", "some");
    assert_eq!(state(), "damaged");
}
