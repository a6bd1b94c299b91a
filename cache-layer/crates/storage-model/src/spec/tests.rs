use super::*;

fn error_of(json: &str) -> String {
    let error = ModelSpec::parse("test.json", json).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn the_library_parses_and_renders_back() {
    for (name, _) in LIBRARY {
        let spec = ModelSpec::load(name).unwrap();
        assert!(!spec.title.is_empty(), "{name} has no title");
        let rendered = serde_json::to_string(&spec).unwrap();
        assert_eq!(ModelSpec::parse(name, &rendered).unwrap(), spec);
    }
    assert!(library::links().unwrap().contains_key("10gbe"));
}

/// Names of the values that a model gives, kinds and those of named devices left out.
fn parameters(value: &serde_json::Value, names: &mut Vec<String>) {
    let structure = [
        "device",
        "hdd",
        "ssd",
        "raid",
        "linked",
        "members",
        "alike",
        "nand",
        "controller",
        "hybrid",
        "disk",
        "flash",
    ];
    for (name, value) in value.as_object().into_iter().flatten() {
        let holds_others = structure.contains(&name.as_str());
        if holds_others || (name == "link" && value.is_object()) {
            parameters(value, names);
        } else {
            names.push(name.clone());
        }
    }
}

#[test]
fn every_value_in_the_library_has_a_source() {
    for (name, json) in LIBRARY {
        let spec = ModelSpec::load(name).unwrap();
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let mut names = Vec::new();
        parameters(&json["device"], &mut names);
        for parameter in names {
            let members = parameter == "count" && spec.sources.contains_key("members");
            let known = spec.sources.contains_key(&parameter);
            assert!(known || members, "{name}: no source for {parameter}");
        }
    }
}

#[test]
fn the_defaults_are_the_librarys_disk_and_card() {
    for (name, json) in [
        ("hdd-7200", r#"{"hdd": {}}"#),
        ("pcie-flash-2014", r#"{"ssd": {}}"#),
    ] {
        let minimal: DeviceSpec = serde_json::from_str(json).unwrap();
        assert_eq!(minimal, ModelSpec::load(name).unwrap().device);
    }
}

#[test]
fn a_name_stands_for_a_device_or_a_link() {
    let json = r#"{"name": "x", "device": {"linked": {"link": "10gbe", "device": "dc500m"}}}"#;
    let spec = ModelSpec::parse("m", json).unwrap();
    assert_eq!(spec.capacity_bytes(), 960_000_000_000);
    assert!(serde_json::to_string(&spec).unwrap().contains("1175.0"));
}

/// A model whose device is this.
fn of(device: &str) -> String {
    format!(r#"{{"name": "x", "device": {device}}}"#)
}

fn of_array(level: &str, members: &str) -> String {
    of(&format!(
        r#"{{"raid": {{"level": "{level}", "members": {members}}}}}"#
    ))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn errors_name_field_value_and_remedy() {
    let alike = r#"{"alike": {"count": 1, "device": "hdd-7200"}}"#;
    let five = r#"{"alike": {"count": 5, "device": "dc500m"}}"#;
    let unlike = r#"{"each": ["hdd-7200", "hdd-7200", "dc500m"]}"#;
    for (json, parts) in [
        (
            r#"{"name": "x"}"#.to_owned(),
            ["test.json", "missing field", "`device`"],
        ),
        (
            r#"{"name": "x", "disks": 6}"#.to_owned(),
            ["disks", "unknown field", "`device`"],
        ),
        (of("{}"), ["device", "empty", "`hdd`"]),
        (of(r#"{"tape": {}}"#), ["device", "tape", "`hdd`"]),
        (
            of(r#""hdd-7201""#),
            ["device", "hdd-7201", "hdd-7200, pcie-flash-2014"],
        ),
        (
            of(r#"{"hdd": {}, "ssd": {}}"#),
            ["device", "`ssd` beside", "one kind"],
        ),
        (
            of(r#"{"hdd": {"rpmm": 1}}"#),
            ["device.hdd.rpmm", "unknown field", "`rpm`"],
        ),
        (
            of(r#"{"hdd": {"rpm": "fast"}}"#),
            ["device.hdd.rpm", "\"fast\"", "u32"],
        ),
        (
            of(r#"{"hdd": {"rpm": 0}}"#),
            ["device.hdd.rpm", "is 0", "such as 7200"],
        ),
        (
            of(r#"{"hdd": {"seek_ms_average": 0.5}}"#),
            ["device.hdd.seek_ms_average", "0.5", "not less than"],
        ),
        (
            of(r#"{"hdd": {"seek_ms_full": 7}}"#),
            ["device.hdd.seek_ms_full", "7", "twice the average"],
        ),
        (
            of(r#"{"hdd": {"inner_mb_per_s": 200}}"#),
            ["device.hdd.inner_mb_per_s", "200", "the rate outside"],
        ),
        (
            of(r#"{"hdd": {"media_mb_per_s": 0, "inner_mb_per_s": 90}}"#),
            ["device.hdd.media_mb_per_s", "is 0", "1 to 2000"],
        ),
        (
            of(r#"{"ssd": {"read_latency_us": -1, "nand": {}}}"#),
            ["device.ssd.read_latency_us", "is -1", "such as 90"],
        ),
        (
            of(r#"{"hdd": {"inner_mb_per_s": 90}}"#),
            ["device.hdd.zones", "is 1", "at least two"],
        ),
        (
            of(r#"{"ssd": {"read_latency_ms": 1}}"#),
            [
                "device.ssd.read_latency_ms",
                "unknown field",
                "`read_latency_us`",
            ],
        ),
        (
            of(r#"{"ssd": {"write_latency_us": -1}}"#),
            ["device.ssd.write_latency_us", "is -1", "such as 90"],
        ),
        (
            of(r#"{"ssd": {"read_iops": 0}}"#),
            ["device.ssd.read_iops", "is 0", "requests per second"],
        ),
        (
            of(r#"{"ssd": {"nand": {"over_provisioning": 0}}}"#),
            ["device.ssd.nand.over_provisioning", "is 0", "never ends"],
        ),
        (
            of(r#"{"ssd": {"nand": {"read_us": 500}}}"#),
            ["device.ssd.nand.read_us", "is 500", "read_latency_us"],
        ),
        (
            of(r#"{"linked": {"link": "2gbe", "device": "dc500m"}}"#),
            ["device.linked.link", "2gbe", "10gbe, 1gbe"],
        ),
        (
            of(r#"{"linked": {"link": {"mb_per_s": -1, "round_trip_ms": 0}, "device": "dc500m"}}"#),
            ["device.linked.link.mb_per_s", "-1", "117.5"],
        ),
        (
            of_array("5", alike),
            [
                "device.raid.members",
                "has 1 members",
                "RAID 5 takes 3 to 64",
            ],
        ),
        (
            of_array("10", five),
            ["members", "5 members", "an even number"],
        ),
        (
            of_array("5", unlike),
            ["members[2]", "ssd, 960000000000", "hdd of 7200 rpm"],
        ),
        (
            of(r#"{"hybrid": {"disk": "hdd-7200", "flash": "hdd-7200", "cache_bytes": 1000000}}"#),
            ["device.hybrid.flash", "no flash", "`ssd`"],
        ),
        (
            of(r#"{"hybrid": {"disk": "hdd-7200", "flash": "dc500m", "cache_bytes": 1000}}"#),
            ["device.hybrid.cache_bytes", "is 1000", "at least a block"],
        ),
        (
            of(
                r#"{"hybrid": {"disk": "hdd-7200", "flash": "dc500m", "cache_bytes": 1000000, "block_kb": 48}}"#,
            ),
            ["device.hybrid.block_kb", "48", "power of two"],
        ),
        (
            of(r#"{"hybrid": {"disk": "hdd-7200", "flash": "dc500m"}}"#),
            ["device.hybrid", "missing field", "`cache_bytes`"],
        ),
        (of_array("7", five), ["device.raid.level", "`7`", "`F1`"]),
        (
            of(&format!(
                r#"{{"raid": {{"level": "5", "members": {five}, "chunk_bytes": 1000}}}}"#
            )),
            ["device.raid.chunk_bytes", "1000", "multiple"],
        ),
        (
            of(&format!(
                r#"{{"raid": {{"level": "0", "members": {five}, "spares": 1}}}}"#
            )),
            ["device.raid.spares", "is 1", "nothing to rebuild"],
        ),
        (
            r#"{"name": "x", "device": "hdd-7200", "span_bytes": 2000000000000}"#.to_owned(),
            ["span_bytes", "2000000000000", "leave it out"],
        ),
        (
            r#"{"name": "x", "device": "hdd-7200", "placement": "middle"}"#.to_owned(),
            ["placement", "middle", "short_stroke"],
        ),
        (
            format!("{} x", of("\"dc500m\"")),
            ["test.json", "trailing", "example"],
        ),
    ] {
        let error = error_of(&json);
        for part in parts {
            assert!(error.contains(part), "`{part}` not in: {error}");
        }
    }
}

/// Each copy of the value has one of its numbers replaced.
fn with_number(value: &serde_json::Value, number: u64) -> Vec<serde_json::Value> {
    let mut copies = Vec::new();
    for (name, below) in value.as_object().into_iter().flatten() {
        for replaced in with_number(below, number) {
            let mut copy = value.clone();
            copy[name] = replaced;
            copies.push(copy);
        }
    }
    if value.is_number() {
        copies.push(number.into());
    }
    copies
}

/// All fields are checked, so a rule meets fields that others refuse.
#[test]
fn no_number_makes_a_check_panic() {
    let hybrid = r#"{"name": "x", "span_bytes": 1, "device": {"hybrid": {"disk": "hdd-7200", "cache_bytes": 1000000,
        "flash": {"raid": {"level": "5", "chunk_bytes": 512, "members": {"alike": {"count": 3, "device": "dc500m"}}}}}}}"#;
    for json in LIBRARY.iter().map(|&(_, json)| json).chain([hybrid]) {
        let model: serde_json::Value = serde_json::from_str(json).unwrap();
        for number in [0, 1, u64::MAX] {
            for changed in with_number(&model, number) {
                // Most are refused; some are models.
                let _ = ModelSpec::parse("test.json", &changed.to_string());
            }
        }
    }
}

#[test]
fn an_unknown_name_lists_those_there_are() {
    let error = ModelSpec::load("nas-2015").unwrap_err().to_string();
    let names = "nas-2014, hdd-7200, pcie-flash-2014, dc500m";
    assert!(error.contains(names), "{error}");
}
