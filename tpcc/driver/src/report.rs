//! Samples on their way to the parent: frames of a tag byte, a length (u32, little-endian) and a
//! body on standard output. `hotset/tpcc/native.py` reads them.

use std::io::{self, Write};
use std::sync::mpsc::Sender;

use serde::Serialize;

use crate::inputs::Kind;

/// Anything but a commit: (end in monotonic seconds, kind, outcome, cause).
type Event = (f64, Kind, &'static str, String);

/// What goes to the parent.
pub enum Message {
    /// A thread's users are all connected.
    Ready,
    /// What a thread's users did since its last report.
    Samples(Vec<u8>),
    /// The run is over, because of this.
    Gone(String),
    /// The window is over and so are a thread's users.
    Finished,
}

impl Message {
    /// Writes the frame.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (tag, body): (u8, &[u8]) = match self {
            Self::Ready => (b'R', b""),
            Self::Samples(body) => (b'S', body),
            Self::Gone(cause) => (b'G', cause.as_bytes()),
            Self::Finished => (b'F', b""),
        };
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        out.write_all(&[tag])?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(body)?;
        out.flush()
    }
}

/// The samples of one thread's users since its last report.
pub struct Recorder {
    to: Sender<Message>,
    ends: Vec<f64>,
    kinds: Vec<Kind>,
    latencies: Vec<f32>,
    events: Vec<Event>,
}

impl Recorder {
    /// Reports go `to` where frames are written.
    pub fn new(to: Sender<Message>) -> Self {
        Self {
            to,
            ends: vec![],
            kinds: vec![],
            latencies: vec![],
            events: vec![],
        }
    }

    /// A committed transaction.
    pub fn commit(&mut self, kind: Kind, end: f64, latency_s: f64) {
        self.ends.push(end);
        self.kinds.push(kind);
        self.latencies.push(latency_s as f32);
    }

    /// A rollback, a retry or a failure.
    pub fn event(&mut self, end: f64, kind: Kind, outcome: &'static str, cause: &str) {
        self.events.push((end, kind, outcome, cause.to_owned()));
    }

    /// Sends what there is: the number of commits (u32), their columns, the events as JSON.
    pub fn report(&mut self) {
        let mut body = Vec::with_capacity(4 + self.ends.len() * 13 + 2);
        body.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        body.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        body.extend_from_slice(&self.kinds);
        body.extend(
            self.latencies
                .iter()
                .flat_map(|latency| latency.to_le_bytes()),
        );
        append_json(&self.events, &mut body);
        self.tell(Message::Samples(body));
        self.ends.clear();
        self.kinds.clear();
        self.latencies.clear();
        self.events.clear();
    }

    /// Sends a message; without a parent the process is about to end anyway.
    pub fn tell(&self, message: Message) {
        let _ = self.to.send(message);
    }
}

fn append_json(events: &[impl Serialize], body: &mut Vec<u8>) {
    serde_json::to_writer(body, events).expect("numbers and texts are JSON");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_report_holds_columns_and_events_once() {
        let (sender, messages) = channel();
        let mut recorder = Recorder::new(sender);
        recorder.commit(3, 12.5, 0.25);
        recorder.event(13.0, 0, "retry", "dead\"lock");
        recorder.report();
        recorder.report();
        let mut frames = Vec::new();
        for message in messages.try_iter() {
            message.write(&mut frames).unwrap();
        }
        let mut wanted = vec![b'S', 45, 0, 0, 0, 1, 0, 0, 0];
        wanted.extend(12.5f64.to_le_bytes());
        wanted.push(3);
        wanted.extend(0.25f32.to_le_bytes());
        wanted.extend(br#"[[13.0,0,"retry","dead\"lock"]]"#);
        wanted[1] = (wanted.len() - 5) as u8;
        wanted.extend([b'S', 6, 0, 0, 0, 0, 0, 0, 0, b'[', b']']);
        assert_eq!(frames, wanted);
    }
}
