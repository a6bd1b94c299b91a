//! The little of libpq that a run needs, loaded from the file that the parent names: every way to
//! authenticate, encrypt and find a server is libpq's, and the same as the parent's.

#![allow(non_snake_case, reason = "libpq's own names")]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::RawFd;
use std::ptr;

use crate::inputs::Value;

const CONNECTION_OK: c_int = 0;
const TUPLES_OK: c_int = 2;
const COMMAND_OK: c_int = 1;
const DIAG_SQLSTATE: c_int = b'C' as c_int;
const DIAG_MESSAGE_PRIMARY: c_int = b'M' as c_int;
// Types of arguments (pg_type.dat).
const INT4: u32 = 23;
const INT4_ARRAY: u32 = 1007;
const VARCHAR: u32 = 1043;
const NUMERIC: u32 = 1700;
/// Argument types of the five procedures.
const TYPES: [&[u32]; 5] = [
    &[INT4, INT4, INT4, INT4, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY],
    &[INT4, INT4, INT4, INT4, INT4, VARCHAR, NUMERIC],
    &[INT4, INT4, INT4, VARCHAR],
    &[INT4, INT4],
    &[INT4, INT4, INT4],
];

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// libpq's functions, resolved.
        pub struct Libpq { $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        impl Libpq {
            /// Loads the library; the error names what is missing.
            pub fn load(path: &str) -> Result<Self, String> {
                let name = CString::new(path).map_err(|_| "libpq's path holds a NUL".to_owned())?;
                // SAFETY: a plain dlopen of the library the parent itself has loaded.
                let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
                if library.is_null() {
                    return Err(format!("{path} cannot be loaded"));
                }
                $(
                    let symbol = concat!(stringify!($name), "\0").as_ptr().cast::<c_char>();
                    // SAFETY: the library is open and the name ends with NUL.
                    let $name = unsafe { libc::dlsym(library, symbol) };
                    if $name.is_null() {
                        return Err(format!("{path} lacks {}", stringify!($name)));
                    }
                )*
                // SAFETY: the signatures are those of libpq-fe.h, stable since PostgreSQL 9.
                Ok(Self { $($name: unsafe { std::mem::transmute::<
                    *mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?
                >($name) },)* })
            }
        }
    };
}

type Strings = *const *const c_char;

functions! {
    PQconnectdbParams: fn(Strings, Strings, c_int) -> *mut c_void;
    PQstatus: fn(*const c_void) -> c_int;
    PQerrorMessage: fn(*const c_void) -> *const c_char;
    PQsocket: fn(*const c_void) -> c_int;
    PQsetnonblocking: fn(*mut c_void, c_int) -> c_int;
    PQexec: fn(*mut c_void, *const c_char) -> *mut c_void;
    PQprepare: fn(*mut c_void, *const c_char, *const c_char, c_int, *const u32) -> *mut c_void;
    PQsendQueryPrepared: fn(
        *mut c_void, *const c_char, c_int, Strings, *const c_int, *const c_int, c_int) -> c_int;
    PQflush: fn(*mut c_void) -> c_int;
    PQconsumeInput: fn(*mut c_void) -> c_int;
    PQisBusy: fn(*mut c_void) -> c_int;
    PQgetResult: fn(*mut c_void) -> *mut c_void;
    PQresultStatus: fn(*const c_void) -> c_int;
    PQresultErrorField: fn(*const c_void, c_int) -> *const c_char;
    PQclear: fn(*mut c_void);
    PQfinish: fn(*mut c_void);
}

/// What the server said to a call.
#[derive(Debug)]
pub enum Answer {
    /// It committed.
    Done,
    /// It refused: SQLSTATE (empty where the library itself speaks) and message.
    Refused(String, String),
}

/// One connection with the five procedures prepared; autocommit.
pub struct Connection<'l> {
    library: &'l Libpq,
    raw: *mut c_void,
    names: Vec<CString>,
    buffer: Vec<u8>,
    answer: Option<Answer>,
}

// SAFETY: libpq allows a connection to be used by any thread, one at a time; this type is not Sync.
unsafe impl Send for Connection<'_> {}

impl<'l> Connection<'l> {
    /// Connects and prepares; the error is one line and holds no secret.
    pub fn open(
        library: &'l Libpq,
        parameters: &HashMap<String, String>,
        setup: &str,
        procedures: &[String],
    ) -> Result<Self, String> {
        let text = |text: &String| CString::new(text.as_str()).map_err(|_| "a NUL in a parameter");
        let keys = parameters.keys().map(text).collect::<Result<Vec<_>, _>>()?;
        let values = parameters
            .values()
            .map(text)
            .collect::<Result<Vec<_>, _>>()?;
        let (keys, values) = (pointers(&keys), pointers(&values));
        // SAFETY: both arrays end with a null pointer and outlive the call.
        let raw = unsafe { (library.PQconnectdbParams)(keys.as_ptr(), values.as_ptr(), 0) };
        let names = procedures.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let mut this = Self {
            library,
            raw,
            names,
            buffer: Vec::new(),
            answer: None,
        };
        // SAFETY: `raw` is what PQconnectdbParams returned; null is allowed here.
        if unsafe { (library.PQstatus)(raw) } != CONNECTION_OK {
            return Err(format!("cannot connect to PostgreSQL: {}", this.message()));
        }
        this.set_up(setup)?;
        for (procedure, types) in procedures.iter().zip(TYPES) {
            this.prepare(procedure, types)?;
        }
        // SAFETY: the connection is open.
        unsafe { (library.PQsetnonblocking)(raw, 1) };
        Ok(this)
    }

    /// Settings of the session: set once it is there, they come on top of what a service, the
    /// environment, the database and the role say.
    fn set_up(&mut self, statements: &str) -> Result<(), String> {
        let statements = CString::new(statements).map_err(|_| "a NUL in a statement")?;
        // SAFETY: the text outlives the call; the result is cleared in `meaning`.
        let result = unsafe { (self.library.PQexec)(self.raw, statements.as_ptr()) };
        match self.meaning(result, COMMAND_OK) {
            Answer::Done => Ok(()),
            Answer::Refused(state, message) => Err(format!("{message} ({state})")),
        }
    }

    fn prepare(&mut self, procedure: &str, types: &[u32]) -> Result<(), String> {
        let marks: Vec<String> = (1..=types.len()).map(|mark| format!("${mark}")).collect();
        let sql = format!("SELECT * FROM {procedure}({})", marks.join(", "));
        let sql = CString::new(sql).map_err(|_| "a NUL in a name")?;
        let name = CString::new(procedure).map_err(|_| "a NUL in a name")?;
        // SAFETY: strings and types outlive the call; the result is cleared in `meaning`.
        let result = unsafe {
            (self.library.PQprepare)(
                self.raw,
                name.as_ptr(),
                sql.as_ptr(),
                types.len() as c_int,
                types.as_ptr(),
            )
        };
        match self.meaning(result, COMMAND_OK) {
            Answer::Done => Ok(()),
            Answer::Refused(state, message) => Err(format!("{procedure}: {message} ({state})")),
        }
    }

    /// The socket to wait on.
    pub fn socket(&self) -> RawFd {
        // SAFETY: the connection is open.
        unsafe { (self.library.PQsocket)(self.raw) }
    }

    /// Sends one call; the answer comes by `receive`. The error is the library's message.
    pub fn send(&mut self, kind: u8, arguments: &[Value]) -> Result<(), String> {
        self.buffer.clear();
        let mut places = [None; 8];
        let (mut lengths, mut formats) = ([0; 8], [1; 8]);
        for (index, value) in arguments.iter().enumerate() {
            let start = self.buffer.len();
            formats[index] = c_int::from(!matches!(value, Value::Cents(_)));
            if encode(value, &mut self.buffer) {
                places[index] = Some(start);
                lengths[index] = (self.buffer.len() - start) as c_int;
            }
            self.buffer.push(0); // texts end with NUL
        }
        let base = self.buffer.as_ptr();
        // SAFETY: each place lies within the buffer, which no longer moves.
        let values = places.map(|place| place.map_or(ptr::null(), |at| unsafe { base.add(at) }));
        let name = self.names[usize::from(kind)].as_ptr();
        // SAFETY: the arrays have at least as many entries as there are arguments.
        let sent = unsafe {
            (self.library.PQsendQueryPrepared)(
                self.raw,
                name,
                arguments.len() as c_int,
                values.as_ptr().cast(),
                lengths.as_ptr(),
                formats.as_ptr(),
                1,
            )
        };
        if sent == 0 {
            Err(self.message())
        } else {
            self.flush()
        }
    }

    /// Has everything out. A call is a few hundred bytes into an empty socket: it never waits.
    fn flush(&mut self) -> Result<(), String> {
        loop {
            // SAFETY: the connection is open.
            match unsafe { (self.library.PQflush)(self.raw) } {
                0 => return Ok(()),
                1 => std::thread::yield_now(),
                _ => return Err(self.message()),
            }
        }
    }

    /// Takes in what has arrived; the answer once it is complete.
    pub fn receive(&mut self) -> Option<Answer> {
        // SAFETY: the connection is open; results are cleared in `meaning`.
        unsafe {
            if (self.library.PQconsumeInput)(self.raw) == 0 {
                // What the server said before it hung up tells more than "connection lost".
                let result = (self.library.PQgetResult)(self.raw);
                let lost = Answer::Refused(String::new(), self.message());
                return Some(if result.is_null() {
                    lost
                } else {
                    self.meaning(result, TUPLES_OK)
                });
            }
            while (self.library.PQisBusy)(self.raw) == 0 {
                let result = (self.library.PQgetResult)(self.raw);
                if result.is_null() {
                    return self.answer.take();
                }
                let answer = self.meaning(result, TUPLES_OK);
                // The first result is the call's; a broken connection may add its own.
                self.answer.get_or_insert(answer);
            }
        }
        None
    }

    /// Is the connection beyond use?
    pub fn broken(&self) -> bool {
        // SAFETY: the connection is open or broken, not finished.
        unsafe { (self.library.PQstatus)(self.raw) != CONNECTION_OK }
    }

    fn meaning(&self, result: *mut c_void, wanted: c_int) -> Answer {
        // SAFETY: `result` is a result of this library or null, and is used no more afterwards.
        unsafe {
            if (self.library.PQresultStatus)(result) == wanted {
                (self.library.PQclear)(result);
                return Answer::Done;
            }
            let state = text_of((self.library.PQresultErrorField)(result, DIAG_SQLSTATE));
            let text = text_of((self.library.PQresultErrorField)(
                result,
                DIAG_MESSAGE_PRIMARY,
            ));
            (self.library.PQclear)(result);
            Answer::Refused(
                state,
                if text.is_empty() {
                    self.message()
                } else {
                    text
                },
            )
        }
    }

    fn message(&self) -> String {
        // SAFETY: libpq returns a string for every connection, null ones included.
        let message = unsafe { text_of((self.library.PQerrorMessage)(self.raw)) };
        if message.is_empty() {
            "connection lost".to_owned()
        } else {
            message
        }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing uses the connection afterwards.
        unsafe { (self.library.PQfinish)(self.raw) }
    }
}

/// A null-terminated array of strings.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts
        .iter()
        .map(|text| text.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// A C string, or nothing, as one line.
unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller hands in a string of libpq's, which ends with NUL.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}

/// A value as PostgreSQL's binary format has it (an amount: its text); false for a null.
fn encode(value: &Value, buffer: &mut Vec<u8>) -> bool {
    let mut put = |number: i32| buffer.extend_from_slice(&number.to_be_bytes());
    match value {
        Value::Null => return false,
        Value::Number(number) => put(*number),
        Value::Numbers(numbers) => {
            // One dimension, no nulls, elements int4, so many, numbered from 1.
            for number in [1, 0, INT4 as i32, numbers.len() as i32, 1] {
                put(number);
            }
            for number in numbers {
                put(4);
                put(*number);
            }
        }
        Value::Name(name) => buffer.extend_from_slice(name.as_bytes()),
        Value::Cents(cents) => {
            buffer.extend_from_slice(format!("{}.{:02}", cents / 100, cents % 100).as_bytes());
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &Value) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        encode(value, &mut buffer).then_some(buffer)
    }

    #[test]
    fn values_are_in_postgres_formats() {
        assert_eq!(encoded(&Value::Null), None);
        assert_eq!(encoded(&Value::Number(-2)), Some(vec![255, 255, 255, 254]));
        assert_eq!(
            encoded(&Value::Name("BARBARBAR")),
            Some(b"BARBARBAR".to_vec())
        );
        assert_eq!(encoded(&Value::Cents(100_005)), Some(b"1000.05".to_vec()));
        let array = encoded(&Value::Numbers(vec![7, 8])).unwrap();
        let words: Vec<i32> = array
            .chunks(4)
            .map(|word| i32::from_be_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [1, 0, 23, 2, 1, 4, 7, 4, 8]);
    }

    #[test]
    fn a_library_that_lacks_functions_is_refused() {
        assert_eq!(
            Libpq::load("/nowhere.so").err().unwrap(),
            "/nowhere.so cannot be loaded"
        );
        let other = Libpq::load("libc.so.6").err().unwrap();
        assert_eq!(other, "libc.so.6 lacks PQconnectdbParams");
    }
}
