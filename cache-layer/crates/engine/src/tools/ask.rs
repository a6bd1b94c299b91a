//! A question to a running tier over its control socket, for shells and for hotset.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::path::Path;

use anyhow::{Context, anyhow, bail};

use crate::control_socket;

/// Sends one line and hands out the lines that come back, until the tier has said all.
///
/// # Errors
/// Nobody listens at the socket, it breaks off, or the answer is a complaint of the tier's (which
/// has been handed out as well).
pub fn ask(socket: &Path, question: &str, out: &mut impl Write) -> anyhow::Result<()> {
    let shown = socket.display();
    let mut stream = control_socket::connect(socket).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            anyhow!("{shown} belongs to another user: ask as that user, or as root (sudo)")
        }
        _ => anyhow!(error).context(format!("no tier answers at {shown}: does it run?")),
    })?;
    stream
        .write_all(format!("{question}\n").as_bytes())
        .and_then(|()| stream.shutdown(Shutdown::Write))
        .with_context(|| format!("asking at {shown}"))?;
    let mut last = String::new();
    for line in BufReader::new(stream).lines() {
        last = line.with_context(|| format!("the tier at {shown} broke off"))?;
        tell(out, &last)?;
    }
    if last.is_empty() {
        bail!("the tier at {shown} hung up without an answer");
    }
    if last.starts_with(r#"{"error""#) {
        bail!("the tier refused: {last}");
    }
    Ok(())
}

fn tell(out: &mut impl Write, line: &str) -> io::Result<()> {
    writeln!(out, "{line}")?;
    // Progress is read as it comes.
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn answered(reply: &'static str) -> (anyhow::Result<()>, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let tier = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).unwrap();
            stream.write_all(reply.as_bytes()).unwrap();
            question
        });
        let mut out = Vec::new();
        let result = ask(&path, r#"{"flush": {}}"#, &mut out);
        (
            result,
            tier.join().unwrap(),
            String::from_utf8(out).unwrap(),
        )
    }

    #[test]
    fn every_line_of_the_answer_is_handed_out() {
        let (result, question, out) = answered("{\"left\":3}\n{\"flushed\":7}\n");
        result.unwrap();
        assert_eq!(question, "{\"flush\": {}}\n");
        assert_eq!(out, "{\"left\":3}\n{\"flushed\":7}\n");
    }

    #[test]
    fn a_complaint_is_an_error() {
        let (result, _, out) = answered("{\"error\":\"no\"}\n");
        assert!(result.unwrap_err().to_string().contains("refused"));
        assert_eq!(out, "{\"error\":\"no\"}\n");
    }

    #[test]
    fn silence_is_an_error() {
        let (result, _, _) = answered("");
        assert!(result.unwrap_err().to_string().contains("hung up"));
    }

    #[test]
    fn nobody_there_is_an_error_that_names_the_socket() {
        let error = ask(Path::new("/nowhere/tier.sock"), "{}", &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/tier.sock"), "{error}");
    }
}
