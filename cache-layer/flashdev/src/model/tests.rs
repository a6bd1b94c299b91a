use super::*;

fn error_of(json: &str) -> String {
    let error = ModelSpec::parse("test.json", json).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn the_built_in_models_parse_and_render_back() {
    for (name, json) in BUILT_IN {
        let spec = ModelSpec::load(name).unwrap();
        let rendered = serde_json::to_string(&spec).unwrap();
        assert_eq!(ModelSpec::parse(name, &rendered).unwrap(), spec);
        let asked: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_value(&spec).unwrap(), asked, "{name}");
    }
}

#[test]
fn the_defaults_are_the_built_in_disk_and_card() {
    for (name, json) in [
        ("hdd-7200", r#"{"name": "hdd-7200", "disks": 1}"#),
        (
            "pcie-flash-2014",
            r#"{"name": "pcie-flash-2014", "flash": {}}"#,
        ),
    ] {
        let minimal = ModelSpec::parse("m", json).unwrap();
        assert_eq!(minimal, ModelSpec::load(name).unwrap());
    }
}

#[test]
fn errors_name_field_value_and_remedy() {
    for (json, parts) in [
        (r#"{"name": "x"}"#, ["test.json", "neither", "`flash`"]),
        (
            r#"{"name": "x", "disks": 1, "flash": {}}"#,
            ["test.json", "both", "either `disks`"],
        ),
        (r#"{"disks": 1}"#, ["name", "missing field", "example"]),
        (
            r#"{"name": "x", "flash": {}, "stripe_bytes": 65536}"#,
            ["stripe_bytes", "unknown field", "`flash`"],
        ),
        (
            r#"{"name": "x", "flash": {"read_latency_ms": 1}}"#,
            [
                "flash.read_latency_ms",
                "unknown field",
                "`read_latency_us`",
            ],
        ),
        (
            r#"{"name": "x", "flash": {"write_latency_us": -1}}"#,
            ["flash.write_latency_us", "is -1", "such as 90"],
        ),
        (
            r#"{"name": "x", "flash": {"read_iops": 0}}"#,
            ["flash.read_iops", "is 0", "requests per second"],
        ),
        (
            r#"{"name": "x", "flash": {"write_mb_per_s": 0.5}}"#,
            ["flash.write_mb_per_s", "is 0.5", "1 to 100000 MB/s"],
        ),
        (
            r#"{"name": "x", "flash": {"capacity_bytes": 5}}"#,
            ["flash.capacity_bytes", "is 5", "800 GB"],
        ),
        (
            r#"{"name": "x", "flash": {}, "link": {"mb_per_s": 1, "round_trip_ms": -1}}"#,
            ["link.round_trip_ms", "-1", "0.2"],
        ),
        (
            r#"{"name": "x", "disks": 1, "disk": {"rpmm": 1}}"#,
            ["disk.rpmm", "unknown field", "`rpm`"],
        ),
        (
            r#"{"name": "x", "disks": 1, "disk": {"rpm": "fast"}}"#,
            ["disk.rpm", "\"fast\"", "u32"],
        ),
        (
            r#"{"name": "x", "disks": 1, "disk": {"rpm": 0}}"#,
            ["disk.rpm", "is 0", "such as 7200"],
        ),
        (r#"{"name": "x", "disks": 0}"#, ["disks", "is 0", "1 to 64"]),
        (
            r#"{"name": "x", "disks": 1, "stripe_bytes": 1000}"#,
            ["stripe_bytes", "1000", "multiple"],
        ),
        (
            r#"{"name": "x", "disks": 1, "disk": {"seek_ms_average": 0.5}}"#,
            ["disk.seek_ms_average", "0.5", "not less than"],
        ),
        (
            r#"{"name": "x", "disks": 1, "disk": {"seek_ms_full": 7}}"#,
            ["disk.seek_ms_full", "7", "twice the average"],
        ),
        (
            r#"{"name": "x", "disks": 1, "link": {"mb_per_s": -1, "round_trip_ms": 0}}"#,
            ["link.mb_per_s", "-1", "117.5"],
        ),
        (
            r#"{"name": "x", "disks": 1, "span_bytes": 2000000000000}"#,
            ["span_bytes", "2000000000000", "leave it out"],
        ),
        (
            r#"{"name": "x", "disks": 1, "placement": "middle"}"#,
            ["placement", "middle", "short_stroke"],
        ),
        (
            r#"{"name": "x", "disks": 1} x"#,
            ["test.json", "trailing", "example"],
        ),
    ] {
        let error = error_of(json);
        for part in parts {
            assert!(error.contains(part), "`{part}` not in: {error}");
        }
    }
}

#[test]
fn an_unknown_name_lists_those_there_are() {
    let error = ModelSpec::load("nas-2015").unwrap_err().to_string();
    let names = "nas-2014, hdd-7200, pcie-flash-2014, dc500m";
    assert!(error.contains(names), "{error}");
}
