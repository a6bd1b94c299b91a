//! `hotset-tpcc`: the users of a TPC-C run on PostgreSQL.
//!
//! Started by `hotset.tpcc.native`, which says on standard input what to run (one line of JSON,
//! the password in it) and when (a second line), and reads frames of samples from standard output.
//! When standard input ends, this process ends: it never outlives its parent.
//!
//! `hotset-tpcc inputs COUNT` prints the first inputs of each user instead, for a test that
//! compares them with Python's; `hotset-tpcc arrivals COUNT` when each thread's first
//! transactions are due.

mod arrivals;
mod clock;
mod inputs;
mod libpq;
mod mersenne;
mod options;
mod poll;
mod report;
mod users;

use std::io::{BufRead, Read, Write};
use std::process::{ExitCode, exit};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use inputs::Terminal;
use libpq::Libpq;
use options::{Begin, Options};
use report::{Message, Recorder};
use users::Users;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["run"] => read_options().and_then(|options| run(&options)),
        ["inputs", count] => read_options().and_then(|options| print_inputs(&options, count)),
        ["arrivals", count] => read_options().and_then(|options| print_arrivals(&options, count)),
        _ => Err(
            "usage: hotset-tpcc run | inputs COUNT | arrivals COUNT, options as JSON on standard \
             input"
                .into(),
        ),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hotset-tpcc: {error}");
            ExitCode::from(2)
        }
    }
}

fn read_options() -> Result<Options, String> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| error.to_string())?;
    // Kind and place of an error, never the value: there is a password among them.
    serde_json::from_str(&line).map_err(|error| {
        format!(
            "options: {:?} error at column {}",
            error.classify(),
            error.column()
        )
    })
}

/// Starts the threads, passes their messages on, and stays until the parent lets go.
fn run(options: &Options) -> Result<(), String> {
    // Ctrl-C reaches every process of a terminal; the parent decides what it means.
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let library = Libpq::load(&options.libpq)?;
    let (starters, starts): (Vec<_>, Vec<_>) = (0..options.threads).map(|_| channel()).unzip();
    thread::spawn(move || listen(&starters));
    let (sender, messages) = channel();
    thread::scope(|scope| {
        for (thread, start) in starts.into_iter().enumerate() {
            let (library, sender) = (&library, sender.clone());
            scope.spawn(move || drive(library, options, thread, &start, sender));
        }
        drop(sender);
        let mut out = std::io::stdout().lock();
        for message in messages {
            if message.write(&mut out).is_err() {
                exit(1); // nobody reads: the parent is gone
            }
        }
    });
    loop {
        thread::park(); // `listen` ends the process once the parent has read everything
    }
}

/// The parent's words: when to begin; then nothing, until it goes.
fn listen(starters: &[Sender<Begin>]) {
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    let _ = input.read_line(&mut line);
    if let Ok(begin) = serde_json::from_str::<Begin>(&line) {
        for starter in starters {
            let _ = starter.send(begin);
        }
    }
    let _ = input.read_to_string(&mut line);
    exit(0);
}

/// One thread: its share of the users, from connecting to the end.
fn drive(
    library: &Libpq,
    options: &Options,
    thread: usize,
    start: &Receiver<Begin>,
    sender: Sender<Message>,
) {
    let tell = |message| drop(sender.send(message));
    let worked = Users::connect(library, options, thread, Recorder::new(sender.clone())).and_then(
        |mut users| {
            tell(Message::Ready);
            // Without a start the parent is gone, and this process about to end.
            start.recv().map_or(Ok(()), |begin| users.work(begin))
        },
    );
    tell(worked.map_or_else(Message::Gone, |()| Message::Finished));
}

fn number(count: &str) -> Result<usize, String> {
    count
        .parse()
        .map_err(|_| format!("COUNT is a number, not {count:?}"))
}

/// A line for each thread: seconds from the start of the run.
fn print_arrivals(options: &Options, count: &str) -> Result<(), String> {
    let count = number(count)?;
    for thread in 0..options.threads {
        let mut arrivals = options
            .arrivals_of(thread)
            .ok_or("these options have no rate")?;
        arrivals.begin(0.0, f64::INFINITY);
        let dues: Vec<f64> = (0..count).filter_map(|_| arrivals.take(0.0).due).collect();
        println!("{dues:?}");
    }
    Ok(())
}

fn print_inputs(options: &Options, count: &str) -> Result<(), String> {
    let count = number(count)?;
    let mut out = std::io::stdout().lock();
    for user in &options.users {
        let mut terminal = Terminal::new(options, user);
        for _ in 0..count {
            let (kind, inputs) = terminal.next();
            let think_s = if options.think_time {
                Some(terminal.think_s(kind))
            } else {
                None
            };
            let line =
                serde_json::to_string(&(kind, inputs, think_s)).map_err(|e| e.to_string())?;
            writeln!(out, "{line}").map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
