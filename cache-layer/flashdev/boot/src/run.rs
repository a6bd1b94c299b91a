//! The system's own programs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Run a program to its end; its standard output.
pub fn run(words: &[&str]) -> Result<String> {
    fed(words, "")
}

/// As [`run`], with a text for its standard input.
pub fn fed(words: &[&str], input: &str) -> Result<String> {
    let shown = words.join(" ");
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} cannot be run", words[0]))?;
    if let Some(mut pipe) = child.stdin.take() {
        // One that does not read may end before.
        let _ = pipe.write_all(input.as_bytes());
    }
    let said = child.wait_with_output()?;
    if !said.status.success() {
        let words =
            [&said.stderr, &said.stdout].map(|one| String::from_utf8_lossy(one).into_owned());
        let why = words
            .iter()
            .map(|one| one.trim())
            .find(|one| !one.is_empty())
            .unwrap_or("");
        bail!("`{}` failed: {}", cut(&shown, 200), cut(why, 600));
    }
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// What a program answers that says yes with 0 and no with 1; anything else is no answer.
pub fn asks(words: &[&str]) -> Result<bool> {
    match Command::new(words[0]).args(&words[1..]).output() {
        Ok(said) if said.status.success() => Ok(true),
        Ok(said) if said.status.code() == Some(1) => Ok(false),
        Ok(said) => bail!(
            "`{}` ended with {}",
            cut(&words.join(" "), 200),
            said.status
        ),
        Err(error) => bail!("{} cannot be run: {error}", words[0]),
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
