//! Standard output, whose reader may leave at any time, as `| head` does.

use std::fmt::Display;
use std::io::{self, Stdout, Write, stdout};

/// The code of a program that ends since nobody reads it any more: what a shell sees of one that
/// SIGPIPE has ended, as it ends other tools. A Rust program ignores that signal.
pub const READER_GONE: u8 = 141;

/// Nobody reads standard output any more. No fault: whoever read has seen enough.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads standard output any more")]
struct ReaderGone;

/// Whether an error is that nobody reads standard output any more, wherever it came up.
#[must_use]
pub fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let inner = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        inner.is_some_and(|inner| inner.is::<ReaderGone>())
    })
}

/// Standard output; [`is_reader_gone`] knows its errors from those of other pipes and sockets.
pub struct Output(Stdout);

impl Output {
    /// That of this process.
    #[must_use]
    pub fn new() -> Output {
        Output(stdout())
    }
}

impl Default for Output {
    fn default() -> Self {
        Output::new()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}

fn of_stdout(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::BrokenPipe, ReaderGone),
        _ => error,
    }
}

/// Prints a line at once.
///
/// # Errors
/// Nobody reads it any more, or it cannot be written.
pub fn say(line: impl Display) -> io::Result<()> {
    let mut out = Output::new();
    writeln!(out, "{line}")?;
    out.flush()
}
