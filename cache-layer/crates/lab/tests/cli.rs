//! The command-line contract: what is refused, how, and with which exit code.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

fn flashdev(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flashdev"))
        .args(args)
        .output()
        .unwrap()
}

fn refusal(args: &[&str]) -> String {
    let output = flashdev(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = flashdev(args);
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// How a program ends whose reader read one byte of what it says, as `head -c 1` does, and its words.
fn left_by_its_reader(args: &[&str]) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_flashdev"))
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    drop(stdout);
    let ended = child.wait_with_output().unwrap();
    (
        ended.status.code(),
        String::from_utf8(ended.stderr).unwrap(),
    )
}

/// `flashdev trace print … | head` ended in a panic, or in an error of its own.
#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let (text, binary) = (folder.path().join("t.txt"), folder.path().join("t.bin"));
    // More than a pipe holds, so that some of it finds nobody.
    let lines: String = (0..50_000)
        .map(|at| format!("{at} R {at} 4096\n"))
        .collect();
    std::fs::write(&text, lines).unwrap();
    let (text, binary) = (text.to_str().unwrap(), binary.to_str().unwrap());
    let ended = left_by_its_reader(&["trace", "print", text]);
    assert_eq!(ended, (Some(141), String::new()));
    assert!(stdout(&["trace", "convert", text, "--to", binary]).starts_with('{'));
}

/// Each of them made a line of its own for a pipe that was closed before it was written to.
#[test]
fn whoever_reads_nothing_gets_no_panic() {
    for args in [
        ["models"].as_slice(),
        &["models", "nas-2014"],
        &["expect", "--model", "dc500m", "--size", "1G"],
        &["expect", "--model", "dc500m", "--size", "1G", "--json"],
        &["trace", "info", LOAD],
    ] {
        let (reader, writer) = UnixStream::pair().unwrap();
        drop(reader);
        let ended = Command::new(env!("CARGO_BIN_EXE_flashdev"))
            .args(args)
            .stdout(OwnedFd::from(writer))
            .output()
            .unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(
            (ended.status.code(), said.as_str()),
            (Some(141), ""),
            "{args:?}"
        );
    }
}

#[test]
fn models_are_listed_and_printed() {
    let listed = stdout(&["models"]);
    assert!(listed.starts_with("nas-2014\nhdd-7200\npcie-flash-2014\ndc500m\n"));
    let printed =
        |name| -> serde_json::Value { serde_json::from_str(&stdout(&["models", name])).unwrap() };
    let nas = printed("nas-2014");
    assert_eq!(nas["device"]["linked"]["device"]["raid"]["level"], "0");
    let card = printed("pcie-flash-2014");
    assert_eq!(card["device"]["ssd"]["read_iops"], 90_000);
    assert!(refusal(&["models", "x"]).contains("`flashdev models` lists"));
}

#[test]
fn a_printed_model_can_be_given_as_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let json = |model| stdout(&["expect", "--model", model, "--size", "1G", "--json"]);
    for name in ["hdd-7200", "dc500m"] {
        std::fs::write(path, stdout(&["models", name])).unwrap();
        assert_eq!(json(path), json(name));
    }
}

#[test]
fn expect_prints_json_with_the_promised_fields() {
    let json = stdout(&["expect", "--model", "nas-2014", "--size", "1G", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["random_read_8k"][3]["queue_depth"], 32);
    let rate = json["sequential_read_mb_per_s"].as_f64().unwrap();
    assert!((110.0..120.0).contains(&rate), "{rate}");
}

/// Serving takes something off a flash's latency; a promise must not.
#[test]
fn expect_promises_a_flash_its_whole_latency() {
    let model = ["expect", "--model", "pcie-flash-2014"];
    let json = stdout(&[&model[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["model"], "pcie-flash-2014");
    assert_eq!(json["size_bytes"], 800_000_000_000u64);
    assert_eq!(json["random_read_8k"][0]["latency_ms_mean"], 0.09);
    assert!(stdout(&model).contains("0.090"));
}

#[test]
fn one_load_is_promised_for_its_time() {
    let load = [
        "expect",
        "--model",
        "dc500m",
        "--size",
        "1G",
        "--load",
        "read",
        "--depth",
        "32",
        "--seconds",
        "1",
    ];
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&[&load[..], &["--json"]].concat())).unwrap();
    let iops = json["iops"].as_f64().unwrap();
    assert!((97_800.0..98_200.0).contains(&iops), "{iops}");
    let latency = json["latency_us_mean"].as_f64().unwrap();
    assert!((latency * iops / 1e6 - 32.0).abs() < 0.1, "{latency}");
    assert!(stdout(&load).contains("IOPS"));
    let error = refusal(&["expect", "--model", "dc500m", "--depth", "2"]);
    assert!(error.contains("--load"), "{error}");
    let block = [&load[..], &["--block", "2G"]].concat();
    assert!(refusal(&block).contains("block of 2147483648 bytes"));
}

#[test]
fn a_bad_model_is_one_line_and_code_two() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        r#"{"name": "x", "device": {"hdd": {"rpm": 1}}}"#,
    )
    .unwrap();
    let error = refusal(&["expect", "--model", file.path().to_str().unwrap()]);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.contains("`device.hdd.rpm` is 1: give 1000 to 30000"),
        "{error}"
    );
    assert!(refusal(&["expect", "--model", "/nonexistent"]).contains("nas-2014"));
}

#[test]
fn bad_arguments_are_refused_with_a_remedy() {
    let span = refusal(&[
        "expect", "--model", "nas-2014", "--size", "1G", "--span", "2G",
    ]);
    assert!(span.contains("not exceed the size"), "{span}");
}

#[test]
fn serve_refuses_what_it_cannot_mount_on_or_serve() {
    let dir = tempfile::tempdir().unwrap();
    let backing = dir.path().join("backing");
    std::fs::write(&backing, [0; 8192]).unwrap();
    let mount = dir.path().join("mount");
    std::fs::create_dir(&mount).unwrap();
    let (backing, mount) = (backing.to_str().unwrap(), mount.to_str().unwrap());
    let full = dir.path().to_str().unwrap();
    for (backing, mount, name, part) in [
        (backing, full, "disk", "not empty"),
        (backing, "/nonexistent", "disk", "mkdir -p"),
        ("/nonexistent", mount, "disk", "truncate -s"),
        (mount, mount, "disk", "backing file"),
        (backing, mount, "a/b", "plain file name"),
    ] {
        let error = refusal(&[
            "serve",
            "--model",
            "nas-2014",
            "--backing",
            backing,
            "--mount",
            mount,
            "--name",
            name,
        ]);
        assert!(error.contains(part), "`{part}` not in: {error}");
    }
    for (model, volume, part) in [
        ("nas-2014", "4096", "only a flash model"),
        ("dc500m", "8192", "less than the device's 8192"),
        ("dc500m", "100", "multiple of 4096"),
    ] {
        let error = refusal(&[
            "serve",
            "--model",
            model,
            "--backing",
            backing,
            "--mount",
            mount,
            "--volume",
            volume,
        ]);
        assert!(error.contains(part), "`{part}` not in: {error}");
    }
}

const LOAD: &str = "tpcc:warehouses=2,buffer=16MiB,tpm=6000,seconds=3,seed=7";

/// What is made as it is read is what would have been written.
#[test]
fn a_load_is_a_trace_without_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let words = "trace tpcc --warehouses 2 --buffer 16M --tpm 6000 --seconds 3 --seed 7 --to";
    let words: Vec<&str> = words.split(' ').chain([path]).collect();
    let made = stdout(&words);
    assert_eq!(stdout(&["trace", "info", LOAD]), made);
    for args in [
        &["mrc", "--block", "8K", "--trace"][..],
        &[
            "simulate",
            "--policy",
            "smq",
            "--cache-blocks",
            "300",
            "--json",
            "--trace",
        ],
    ] {
        let of = |trace| stdout(&[args, &[trace]].concat());
        assert_eq!(of(LOAD), of(path), "{args:?}");
    }
    let scans = "tpch:scale=0.01,buffer=1M,rate=50M";
    assert!(stdout(&["trace", "info", scans]).contains(r#""writes":0"#));
}

#[test]
fn a_printed_trace_is_the_same_trace() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    std::fs::write(path, stdout(&["trace", "print", LOAD])).unwrap();
    assert_eq!(
        stdout(&["trace", "info", path]),
        stdout(&["trace", "info", LOAD])
    );
    assert_eq!(
        stdout(&["trace", "print", path]),
        stdout(&["trace", "print", LOAD])
    );
}

#[test]
fn a_load_that_is_none_is_refused_in_its_own_words() {
    for (load, reason) in [
        ("tpcc:warehouses=0", "0 is not in 1..=100000"),
        ("tpcc:", "warehouses <WAREHOUSES>"),
        ("tpch:scale=1,disks=3", "unexpected argument 'disks'"),
        ("tpcc:warehouses=2,buffer=much", "give bytes"),
    ] {
        let said = refusal(&["mrc", "--trace", load]);
        assert!(said.contains(&format!("trace `{load}`: ")), "{said}");
        assert!(said.contains(reason), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
