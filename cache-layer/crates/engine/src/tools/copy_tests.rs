use super::*;

fn whole() -> CopyOptions {
    CopyOptions {
        from: PathBuf::new(),
        to: None,
        runs: None,
        bytes_per_s: None,
        piece_bytes: None,
        exclusive: false,
    }
}

fn patterned(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 4096 * 31 + at) as u8).collect()
}

#[test]
fn the_target_holds_what_the_source_held() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let data = patterned(9 << 20);
    std::fs::write(&from, &data).unwrap();
    std::fs::write(&to, vec![0; 10 << 20]).unwrap();
    let options = CopyOptions {
        from,
        to: Some(to.clone()),
        ..whole()
    };
    assert_eq!(copy(&options, |_| ()).unwrap().bytes, 9 << 20);
    let copied = std::fs::read(to).unwrap();
    assert!(copied[..9 << 20] == data[..]);
    assert!(copied[9 << 20..].iter().all(|byte| *byte == 0));
}

#[test]
fn runs_are_laid_one_behind_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let list = folder.path().join("runs");
    let data = patterned(9 << 20);
    std::fs::write(&from, &data).unwrap();
    std::fs::write(&to, []).unwrap();
    std::fs::write(&list, "4096 8192\n1048576 5242880\n").unwrap();
    let options = CopyOptions {
        from,
        to: Some(to.clone()),
        runs: Some(read_runs(&list).unwrap()),
        ..whole()
    };
    assert_eq!(copy(&options, |_| ()).unwrap().bytes, 5_251_072);
    let expected = [&data[4096..12288], &data[1 << 20..6 << 20]].concat();
    assert!(std::fs::read(to).unwrap() == expected);
}

#[test]
fn pieces_make_up_the_runs() {
    let runs = [(4096, 20480, None), (65536, 8192, Some(4096))].map(|(offset, bytes, to)| Run {
        offset,
        bytes,
        to,
    });
    let pieces: Vec<_> = pieces_of(&runs, 8192)
        .map(|piece| (piece.offset, piece.bytes, piece.to, piece.before))
        .collect();
    let expected = [
        (4096, 8192, 0, 0),
        (12288, 8192, 8192, 8192),
        (20480, 4096, 16384, 16384),
        (65536, 8192, 4096, 20480),
    ];
    assert_eq!(pieces, expected);
}

#[test]
fn what_comes_out_of_order_counts_once_it_makes_a_whole() {
    let (sender, receiver) = channel();
    let piece = |number: u64| Piece {
        offset: 0,
        bytes: 10,
        to: 0,
        before: number * 10,
    };
    for number in [1, 0, 4, 2] {
        sender.send((piece(number), Ok(()))).unwrap();
    }
    sender
        .send((piece(5), Err(anyhow::anyhow!("later"))))
        .unwrap();
    sender
        .send((piece(3), Err(anyhow::anyhow!("first"))))
        .unwrap();
    drop(sender);
    let (done, outcome) = in_order(&receiver, &mut |_| ());
    assert_eq!(done, 30);
    assert_eq!(outcome.unwrap_err().to_string(), "first");
}

#[test]
fn a_source_is_read_in_pieces_without_a_target() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    std::fs::write(&from, patterned((5 << 20) + 8192)).unwrap();
    let options = CopyOptions {
        from: from.clone(),
        piece_bytes: NonZeroU64::new(256 << 10),
        ..whole()
    };
    let mut last = 0;
    assert_eq!(copy(&options, |bytes| last = bytes).unwrap().bytes, last);
    assert_eq!(last, (5 << 20) + 8192);
    let short = CopyOptions {
        runs: Some(vec![Run {
            offset: 0,
            bytes: 6 << 20,
            to: None,
        }]),
        ..options
    };
    let error = format!("{:#}", copy(&short, |_| ()).err().unwrap());
    assert!(error.contains("from at byte 5242880"), "{error}");
}

#[test]
fn a_line_that_is_no_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("runs");
    for bad in [
        "",
        "4096",
        "4096 x",
        "4096 100",
        "4096 8192 1",
        "0 4096 0 0",
    ] {
        std::fs::write(&list, format!("0 4096\n{bad}\n")).unwrap();
        let error = read_runs(&list).unwrap_err();
        assert!(error.is::<Refusal>(), "{bad}");
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}

#[test]
fn a_source_that_ends_early_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("short");
    std::fs::write(&from, vec![1; 8192]).unwrap();
    let options = CopyOptions {
        from,
        runs: Some(vec![Run {
            offset: 0,
            bytes: 1 << 20,
            to: None,
        }]),
        ..whole()
    };
    let error = format!("{:#}", copy(&options, |_| ()).err().unwrap());
    assert!(error.contains("short at byte 0"), "{error}");
}

#[test]
fn a_target_that_is_missing_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    std::fs::write(&from, vec![1; 8192]).unwrap();
    let options = CopyOptions {
        from,
        to: Some(folder.path().join("nowhere/to")),
        ..whole()
    };
    let error = format!("{:#}", copy(&options, |_| ()).err().unwrap());
    assert!(error.contains("nowhere/to"), "{error}");
}

#[test]
fn a_run_goes_where_the_list_says() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let list = folder.path().join("runs");
    let data = patterned(64 << 10);
    std::fs::write(&from, &data).unwrap();
    std::fs::write(&to, vec![7; 64 << 10]).unwrap();
    std::fs::write(&list, "0 8192 40960\n12288 4096\n16384 4096 0\n").unwrap();
    let options = CopyOptions {
        from,
        to: Some(to.clone()),
        runs: Some(read_runs(&list).unwrap()),
        ..whole()
    };
    assert_eq!(copy(&options, |_| ()).unwrap().bytes, 16384);
    let copied = std::fs::read(to).unwrap();
    assert!(copied[40960..49152] == data[..8192]);
    assert!(copied[49152..53248] == data[12288..16384]);
    assert!(copied[..4096] == data[16384..20480]);
    assert!(copied[4096..40960].iter().all(|byte| *byte == 7));
}

#[test]
fn a_rate_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    std::fs::write(&from, vec![1; 4 << 20]).unwrap();
    let options = CopyOptions {
        from,
        bytes_per_s: NonZeroU64::new(8 << 20),
        ..whole()
    };
    let seconds = copy(&options, |_| ()).unwrap().seconds;
    assert!((0.5..1.0).contains(&seconds), "{seconds}");
}

#[test]
fn a_copy_that_breaks_off_says_how_far_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let data = patterned(9 << 20);
    std::fs::write(&from, &data).unwrap();
    std::fs::write(&to, []).unwrap();
    let options = CopyOptions {
        from,
        to: Some(to.clone()),
        runs: Some(vec![Run {
            offset: 0,
            bytes: 16 << 20,
            to: None,
        }]),
        ..whole()
    };
    let mut reported = 0;
    assert!(copy(&options, |bytes| reported = bytes).is_err());
    assert_eq!(reported, 8 << 20);
    assert!(std::fs::read(to).unwrap()[..8 << 20] == data[..8 << 20]);
}
