//! The system's own programs.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

/// A failure of a kind that callers go by: it is what this program ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A program ended with an error of its own.
    Failed = 4,
    InUse,
    /// The metadata of a cache cannot be used.
    Damaged,
    /// The kernel, or a program, is not there.
    Missing,
    /// The engine does not take what it is given; nothing is damaged.
    Refused,
    /// Nobody can tell who uses it.
    Unknown,
}

/// A failure with its cause; `why` in words, of a program after the command that failed.
#[derive(Debug)]
pub struct Failure {
    pub cause: Cause,
    command: String,
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}{}", self.command, self.why)
    }
}

impl std::error::Error for Failure {}

pub fn failure(cause: Cause, why: String) -> anyhow::Error {
    let command = String::new();
    Failure {
        cause,
        command,
        why,
    }
    .into()
}

pub fn cause(error: &anyhow::Error) -> Option<Cause> {
    error.downcast_ref::<Failure>().map(|failure| failure.cause)
}

/// That of a program which failed; any other is an error of its own.
pub fn failed(error: anyhow::Error) -> Result<Failure> {
    let failure = error.downcast::<Failure>()?;
    if failure.cause == Cause::Failed {
        return Ok(failure);
    }
    Err(failure.into())
}

/// Run a program to its end; its standard output.
///
/// # Errors
/// [`Cause::Failed`], unless a signal ended it; [`Cause::Missing`]: there is no such program.
pub fn run(words: &[&str]) -> Result<String> {
    feed(words, "")
}

/// As [`run`], with a text for its standard input.
pub fn feed(words: &[&str], input: &str) -> Result<String> {
    let shown = cut(&words.join(" "), 200);
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_run(words[0], error))?;
    if let Some(mut pipe) = child.stdin.take() {
        // One that does not read may end before.
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    if output.status.code().is_none() {
        bail!("`{shown}` ended with {}", output.status);
    }
    let texts =
        [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let why = texts
        .iter()
        .map(|text| text.trim())
        .find(|text| !text.is_empty());
    let why = cut(why.unwrap_or(""), 600);
    let command = format!("`{shown}` failed: ");
    let cause = Cause::Failed;
    Err(Failure {
        cause,
        command,
        why,
    }
    .into())
}

fn not_run(program: &str, error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return failure(Cause::Missing, format!("{program} is not installed"));
    }
    anyhow!("{program} cannot be run: {error}")
}

/// What a program answers that says yes with 0 and no with 1; anything else is no answer.
pub fn asks(words: &[&str]) -> Result<bool> {
    match Command::new(words[0]).args(&words[1..]).output() {
        Ok(output) if output.status.success() => Ok(true),
        Ok(output) if output.status.code() == Some(1) => Ok(false),
        Ok(output) => bail!(
            "`{}` ended with {}",
            cut(&words.join(" "), 200),
            output.status
        ),
        Err(error) => Err(not_run(words[0], error)),
    }
}

/// Whether a program ends well.
pub fn succeeds(words: &[&str]) -> bool {
    run(words).is_ok()
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// A path as an argument; hotset's are UTF-8.
pub fn text(path: &Path) -> Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}
