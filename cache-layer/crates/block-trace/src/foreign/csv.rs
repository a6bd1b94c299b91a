//! Lists of requests with commas, as SNIA's IOTTA repository has them.

use super::super::Request;
use super::super::text::{number, seconds};
use super::Disk;

/// MSR Cambridge (Narayanan, Donnelly, Rowstron, "Write off-loading", FAST 2008): a time in steps of
/// 100 ns, host, disk, type, offset and size in bytes, response time.
pub(super) fn msr(line: &str, disk: &mut Disk) -> Result<Option<Request>, String> {
    let words: Vec<&str> = line.split(',').map(str::trim).collect();
    let [ticks, _host, number_of_disk, kind, offset, bytes, _response] = words[..] else {
        return Err("give TIME,HOST,DISK,TYPE,OFFSET,SIZE,RESPONSE".to_owned());
    };
    if !disk.is(number_of_disk)? {
        return Ok(None);
    }
    let ticks: u64 = ticks
        .parse()
        .ok()
        .filter(|&ticks| ticks < u64::MAX / 100)
        .ok_or_else(|| format!("give a time in steps of 100 ns, not `{ticks}`"))?;
    Ok(Some(Request {
        at: ticks * 100,
        write: is_write(kind, "Read", "Write")?,
        offset: number(offset, "an offset")?,
        bytes: number(bytes, "a size")?,
    }))
}

/// Systor '17 (Lee and others, "Understanding storage traffic characteristics on enterprise virtual
/// desktop infrastructure", SYSTOR 2017): seconds, response time, type, LUN, offset, size.
pub(super) fn systor(line: &str, disk: &mut Disk) -> Result<Option<Request>, String> {
    if line.starts_with("Timestamp,") {
        return Ok(None);
    }
    let words: Vec<&str> = line.split(',').map(str::trim).collect();
    let [at, _response, kind, lun, offset, bytes] = words[..] else {
        return Err("give TIME,RESPONSE,TYPE,LUN,OFFSET,SIZE".to_owned());
    };
    if kind.is_empty() || !disk.is(lun)? {
        return Ok(None);
    }
    Ok(Some(Request {
        at: seconds(at)?,
        write: is_write(kind, "R", "W")?,
        offset: number(offset, "an offset")?,
        bytes: number(bytes, "a size")?,
    }))
}

fn is_write(kind: &str, read: &str, write: &str) -> Result<bool, String> {
    match kind {
        _ if kind == read => Ok(false),
        _ if kind == write => Ok(true),
        _ => Err(format!("give {read} or {write}, not `{kind}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{from_text, tried};

    #[test]
    fn both_kinds_of_list_are_read() {
        let msr = "128166372003061629,hm,1,Read,383496192,32768,113736
128166372016382155,hm,1,Write,2822144,4096,67177
128166372026382245,hm,0,Write,512,512,1
";
        let error = tried(msr, Format::Msr, None).unwrap_err().to_string();
        assert!(
            error.contains("line 3") && error.contains("--of-disk"),
            "{error}"
        );
        let requests = from_text(msr, Format::Msr, Some("1"));
        let shapes: Vec<_> = requests
            .iter()
            .map(|r| (r.at, r.write, r.offset, r.bytes))
            .collect();
        let expected = [
            (0, false, 383_496_192, 32768),
            (1_332_052_600, true, 2_822_144, 4096),
        ];
        assert_eq!(shapes, expected);
        let systor = "Timestamp,Response,IOType,LUN,Offset,Size
1455592557.065979000,0.000329000,R,4,228331520,8192
1455592557.066979000,0.000329000,W,4,8192,512
";
        let requests = from_text(systor, Format::Systor, None);
        let shapes: Vec<_> = requests
            .iter()
            .map(|r| (r.write, r.offset, r.bytes))
            .collect();
        assert_eq!(shapes, [(false, 228_331_520, 8192), (true, 8192, 512)]);
        assert!(
            (900_000..1_100_000).contains(&requests[1].at),
            "{}",
            requests[1].at
        );
    }

    #[test]
    fn what_is_no_request_is_named() {
        for bad in [
            "1,h,0,Read,0,512",
            "x,h,0,Read,0,512,1",
            "1,h,0,read,0,512,1",
            "1,h,0,Read,-1,5,1",
        ] {
            let text = format!("1,h,0,Read,0,512,1\n{bad}\n");
            let error = tried(&text, Format::Msr, None).unwrap_err();
            assert!(
                error.is_refusal() && error.to_string().contains("line 2"),
                "{error}"
            );
        }
    }
}
