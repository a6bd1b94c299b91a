use super::*;
use crate::read;
use proptest::prelude::*;

fn written(requests: &[Request], timed: bool) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), timed).unwrap();
    for &request in requests {
        writer.add(request).unwrap();
    }
    writer.finish().unwrap()
}

fn opened(bytes: &[u8]) -> Result<Vec<Request>, TraceError> {
    let input = Box::new(io::Cursor::new(bytes.to_vec()));
    open(Path::new("t"), input, None)?.collect()
}

fn many(count: u64) -> Vec<Request> {
    let request = |number: u64| Request {
        at: number * 50_000,
        write: number % 3 == 0,
        offset: number * 7919 % (1 << 20) * 8192,
        bytes: 8192,
    };
    (0..count).map(request).collect()
}

fn any_requests() -> impl Strategy<Value = Vec<Request>> {
    let strategy = (
        0..1u64 << 40,
        any::<bool>(),
        0..1u64 << 58,
        0..1u64 << 30,
        0..13u32,
    );
    prop::collection::vec(strategy, 0..40).prop_map(|drawn| {
        let mut at = 0;
        let request = |(wait, write, offset, bytes, shift): (u64, bool, u64, u64, u32)| {
            at += wait;
            Request {
                at,
                write,
                offset: offset >> shift << shift,
                bytes: bytes >> shift << shift,
            }
        };
        drawn.into_iter().map(request).collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(requests in any_requests()) {
        prop_assert_eq!(opened(&written(&requests, true)).unwrap(), requests);
    }

    #[test]
    fn no_damage_goes_unnoticed(requests in any_requests(), at in any::<prop::sample::Index>(),
                                bit in 0..8u8) {
        let mut bytes = written(&requests, true);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(opened(&bytes).is_err(), "bit {} of byte {}", bit, at);
    }

    #[test]
    fn a_truncated_trace_is_named_by_position(requests in any_requests(),
                                              at in any::<prop::sample::Index>()) {
        let bytes = written(&requests, true);
        let kept = at.index(bytes.len());
        let error = opened(&bytes[..kept]).unwrap_err();
        prop_assert!(error.is_refusal());
        let named = format!("byte {kept}");
        prop_assert!(error.to_string().contains(&named), "{}", error);
    }
}

#[test]
fn many_chunks_take_some_bytes_a_request() {
    let requests = many(200_000);
    let bytes = written(&requests, true);
    assert!(bytes.len() < 10 * requests.len(), "{}", bytes.len());
    assert_eq!(opened(&bytes).unwrap(), requests);
}

#[test]
fn a_file_tells_its_length_and_a_truncated_one_how_far_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let requests = many(100_000);
    let bytes = written(&requests, false);
    std::fs::write(&path, &bytes).unwrap();
    let trace = crate::open(&path).unwrap();
    let about = About {
        timed: false,
        requests: Some(100_000),
        end: requests.iter().map(Request::end).max(),
        lasts: None,
    };
    assert_eq!(trace.about, about);
    assert_eq!(read(&path).unwrap(), requests);
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = read(&path).unwrap_err().to_string();
    let named = format!("byte {}, after 100000 requests", bytes.len() - 1);
    assert!(error.contains(&named), "{error}");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("after 0 requests"), "{error}");
}

#[test]
fn a_field_that_is_not_known_is_refused() {
    let bytes = written(&many(10), true);
    for (at, value) in [(8, 2), (10, 3), (12, 1), (27, 1)] {
        let mut other = bytes.clone();
        other[at] = value;
        let crc = crc32c::crc32c(&other[..HEADER - 4]);
        other[HEADER - 4..HEADER].copy_from_slice(&crc.to_le_bytes());
        let error = opened(&other).unwrap_err();
        assert!(
            error.is_refusal() && error.to_string().contains("byte 0"),
            "{error}"
        );
    }
}
