//! What users did, second by second, on its way to the parent: frames of a tag byte, a length
//! (u32, little-endian) and a body on standard output. `hotset/tpcc/native.py` reads them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::Sender;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use crate::inputs::Kind;
use crate::options::Begin;

/// Latencies are kept from a microsecond to an hour, to three significant figures.
/// `hotset/load/latency.py` has the same range.
const HIGHEST_US: u64 = 3_600_000_000;
const SIGNIFICANT_FIGURES: u8 = 3;

/// What goes to the parent.
pub enum Message {
    /// A thread's users are all connected.
    Ready,
    /// What a thread's users did since its last report: `Tally` records as JSON.
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

/// How often something happened that is no commit, and what the server said the first time.
#[derive(Default)]
struct Counted {
    count: u64,
    message: String,
}

/// One second of a thread's users.
#[derive(Default)]
struct Tally {
    latencies: [Option<Histogram<u32>>; 5],
    committed: [u64; 5],
    outcomes: BTreeMap<(Kind, &'static str, String), Counted>,
    due: u64,
    late: u64,
    skipped: u64,
}

/// The same as it is written. Seconds count from the window's opening: those of the ramp-up are
/// negative.
#[derive(Serialize)]
struct Written<'t> {
    second: i64,
    /// By kind: an HDR histogram of microseconds, in its own format (V2, deflated, base64), of
    /// what began in this second.
    histograms: [Option<String>; 5],
    /// By kind: commits that ended in this second.
    committed: [u64; 5],
    /// Kind, outcome, cause, the server's words, count of everything but commits.
    outcomes: Vec<(Kind, &'t str, &'t str, &'t str, u64)>,
    due: u64,
    late: u64,
    skipped: u64,
}

/// The tallies of one thread's users since its last report.
pub struct Recorder {
    to: Sender<Message>,
    opens: f64,
    closes: f64,
    tallies: BTreeMap<i64, Tally>,
}

impl Recorder {
    /// Reports go `to` where frames are written.
    pub fn new(to: Sender<Message>) -> Self {
        Self {
            to,
            opens: 0.0,
            closes: f64::INFINITY,
            tallies: BTreeMap::new(),
        }
    }

    /// Says when the window opens and closes.
    pub fn begin(&mut self, begin: Begin) {
        (self.opens, self.closes) = (begin.opens, begin.end);
    }

    /// A committed transaction. It counts in the second in which it ended, none after the window;
    /// its latency in the second in which it began (was sent, or due), so that the slowest, which
    /// end after the window, are not left out.
    pub fn commit(&mut self, kind: Kind, since: f64, end: f64) {
        self.latency(since, end - since, kind);
        if let Some(tally) = self.tally(end) {
            tally.committed[usize::from(kind)] += 1;
        }
    }

    fn latency(&mut self, at: f64, latency_s: f64, kind: Kind) {
        if let Some(tally) = self.tally(at) {
            let latency_us = ((latency_s * 1e6).round() as u64).clamp(1, HIGHEST_US);
            tally.latencies[usize::from(kind)]
                .get_or_insert_with(new_histogram)
                .saturating_record(latency_us);
        }
    }

    /// A rollback or a retry.
    pub fn event(&mut self, at: f64, kind: Kind, outcome: &'static str, cause: &str) {
        self.count(at, kind, outcome, cause, "");
    }

    /// A transaction that was given up, in the server's words. After the window it counts in the
    /// second in which it began.
    pub fn failed(&mut self, since: f64, end: f64, kind: Kind, cause: &str, message: &str) {
        let at = if end < self.closes { end } else { since };
        self.count(at, kind, "failed", cause, message);
    }

    /// A transaction still under way when the users are sent home. Its latency is at least its
    /// age; one of the ramp-up was under way from the window's first second on.
    pub fn unfinished(&mut self, since: f64, now: f64, kind: Kind) {
        self.latency(since.max(self.opens), now - since, kind);
        self.count(since, kind, "unfinished", "", "");
    }

    fn count(&mut self, at: f64, kind: Kind, outcome: &'static str, cause: &str, message: &str) {
        if let Some(tally) = self.tally(at) {
            let counted = tally
                .outcomes
                .entry((kind, outcome, cause.to_owned()))
                .or_default();
            counted.count += 1;
            if counted.message.is_empty() {
                counted.message = message.to_owned();
            }
        }
    }

    /// A transaction was due and starts, late or not.
    pub fn started(&mut self, due: f64, late: bool) {
        if let Some(tally) = self.tally(due) {
            tally.due += 1;
            tally.late += u64::from(late);
        }
    }

    /// A transaction was due and is given up, since no user was free for it.
    pub fn skipped(&mut self, due: f64) {
        if let Some(tally) = self.tally(due) {
            tally.due += 1;
            tally.skipped += 1;
        }
    }

    fn tally(&mut self, at: f64) -> Option<&mut Tally> {
        if at >= self.closes {
            return None;
        }
        let second = (at - self.opens).floor() as i64;
        Some(self.tallies.entry(second).or_default())
    }

    /// Sends what there is.
    pub fn report(&mut self) {
        let tallies = std::mem::take(&mut self.tallies);
        let mut serializer = V2DeflateSerializer::new();
        let written: Vec<Written> = tallies
            .iter()
            .map(|(second, tally)| write_tally(*second, tally, &mut serializer))
            .collect();
        let body = serde_json::to_vec(&written).expect("numbers and texts are JSON");
        self.tell(Message::Samples(body));
    }

    /// Sends a message; without a parent the process is about to end anyway.
    pub fn tell(&self, message: Message) {
        let _ = self.to.send(message);
    }
}

fn new_histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, HIGHEST_US, SIGNIFICANT_FIGURES).expect("the bounds are valid")
}

fn write_tally<'t>(
    second: i64,
    tally: &'t Tally,
    serializer: &mut V2DeflateSerializer,
) -> Written<'t> {
    let mut histograms = [const { None }; 5];
    for (text, histogram) in histograms.iter_mut().zip(&tally.latencies) {
        *text = histogram.as_ref().map(|histogram| {
            let mut bytes = Vec::new();
            serializer
                .serialize(histogram, &mut bytes)
                .expect("memory takes all that is written");
            STANDARD.encode(bytes)
        });
    }
    let outcomes = tally
        .outcomes
        .iter()
        .map(|((kind, outcome, cause), counted)| {
            let (message, count) = (counted.message.as_str(), counted.count);
            (*kind, *outcome, cause.as_str(), message, count)
        })
        .collect();
    Written {
        second,
        histograms,
        committed: tally.committed,
        outcomes,
        due: tally.due,
        late: tally.late,
        skipped: tally.skipped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use serde_json::{Value, json};
    use std::sync::mpsc::{Receiver, channel};

    const BEGIN: Begin = Begin {
        start: 10.0,
        opens: 12.0,
        end: 15.0,
    };

    fn recorder() -> (Recorder, Receiver<Message>) {
        let (sender, messages) = channel();
        let mut recorder = Recorder::new(sender);
        recorder.begin(BEGIN);
        (recorder, messages)
    }

    fn reported(messages: &Receiver<Message>) -> Value {
        let mut frame = Vec::new();
        messages.try_recv().unwrap().write(&mut frame).unwrap();
        assert_eq!(frame[0], b'S');
        let length = u32::from_le_bytes(frame[1..5].try_into().unwrap());
        assert_eq!(length as usize, frame.len() - 5);
        serde_json::from_slice(&frame[5..]).unwrap()
    }

    #[test]
    fn a_report_holds_each_second_once() {
        let (mut recorder, messages) = recorder();
        recorder.commit(3, 11.25, 11.5);
        recorder.commit(3, 12.5, 12.501_5);
        recorder.event(13.0, 0, "retry", "dead\"lock");
        recorder.event(13.9, 0, "retry", "dead\"lock");
        recorder.report();
        recorder.report();
        let first = reported(&messages);
        let seconds: Vec<_> = first.as_array().unwrap().iter().collect();
        assert_eq!(
            seconds
                .iter()
                .map(|second| &second["second"])
                .collect::<Vec<_>>(),
            [&json!(-1), &json!(0), &json!(1)]
        );
        assert_eq!(
            seconds[2]["outcomes"],
            json!([[0, "retry", "dead\"lock", "", 2]])
        );
        assert_eq!(reported(&messages), json!([]));
        let text = seconds[1]["histograms"][3].as_str().unwrap();
        let bytes = STANDARD.decode(text).unwrap();
        let histogram: Histogram<u32> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        assert_eq!((histogram.len(), histogram.max()), (1, 1500));
    }

    #[test]
    fn what_begins_after_the_window_counts_nowhere() {
        let (mut recorder, messages) = recorder();
        recorder.commit(0, 15.0, 15.1);
        recorder.event(15.0, 0, "retry", "late");
        recorder.skipped(15.5);
        recorder.report();
        assert_eq!(reported(&messages), json!([]));
    }

    #[test]
    fn what_ends_after_the_window_leaves_its_latency_where_it_began() {
        let (mut recorder, messages) = recorder();
        recorder.commit(2, 14.5, 16.5);
        recorder.failed(13.5, 15.5, 1, "error 57014", "canceling statement");
        recorder.failed(13.6, 15.5, 1, "error 57014", "in other words");
        recorder.unfinished(12.5, 25.0, 4);
        recorder.report();
        let seconds = reported(&messages);
        assert_eq!(
            seconds[0]["outcomes"],
            json!([[4, "unfinished", "", "", 1]])
        );
        assert!(seconds[0]["histograms"][4].is_string());
        assert_eq!(
            seconds[1]["outcomes"],
            json!([[1, "failed", "error 57014", "canceling statement", 2]])
        );
        assert_eq!(seconds[2]["committed"], json!([0, 0, 0, 0, 0]));
        assert!(seconds[2]["histograms"][2].is_string());
    }

    #[test]
    fn latencies_beyond_the_range_are_kept_at_its_ends() {
        let (mut recorder, messages) = recorder();
        recorder.commit(1, 12.0, 12.0);
        recorder.commit(1, 12.0, 1e6);
        recorder.report();
        let text = reported(&messages)[0]["histograms"][1].clone();
        let bytes = STANDARD.decode(text.as_str().unwrap()).unwrap();
        let histogram: Histogram<u32> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        assert_eq!(histogram.min(), 1);
        assert!(histogram.max() >= HIGHEST_US);
    }
}
