//! TCP connections carried from one network namespace into another.
//!
//! A listening socket belongs to the namespace it was made in, whoever holds it; a connection
//! belongs to the namespace of the process that makes it. So a process that is started in the inner
//! namespace, with a socket that listens in the outer one, joins the two (network_namespaces(7)).

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;

use anyhow::Context;

use hotset_engine::Refusal;

/// From a listening socket, handed down as an open file descriptor, to an address in here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The number of the open file descriptor.
    pub listener: RawFd,
    /// Where each connection leads.
    pub target: SocketAddr,
}

impl FromStr for Route {
    type Err = String;

    /// `FD=ADDRESS:PORT`, such as `5=10.77.0.2:22`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (listener, target) = text
            .split_once('=')
            .ok_or_else(|| "give FD=ADDRESS:PORT, such as 5=10.77.0.2:22".to_owned())?;
        match (listener.parse(), target.parse()) {
            (Ok(listener), Ok(target)) if listener > 2 => Ok(Route { listener, target }),
            _ => Err("give a descriptor above 2 and an address with its port".to_owned()),
        }
    }
}

/// Serves all routes until the process is ended.
///
/// # Errors
/// A descriptor is not a listening TCP socket.
pub fn relay(routes: &[Route]) -> anyhow::Result<()> {
    let doors = routes
        .iter()
        .map(|route| Ok((open(route.listener)?, route.target)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    thread::scope(|scope| {
        for (listener, target) in &doors {
            scope.spawn(move || serve(listener, *target));
        }
    });
    Ok(())
}

fn open(number: RawFd) -> anyhow::Result<TcpListener> {
    // SAFETY: the descriptor was handed down for this, nothing else in this process has it; one
    // that is not open is refused by the first call below.
    let listener = TcpListener::from(unsafe { OwnedFd::from_raw_fd(number) });
    match listener.local_addr() {
        Ok(_) => Ok(listener),
        Err(error) => {
            std::mem::forget(listener); // closing what is not open would abort the process
            Err(Refusal(format!(
                "descriptor {number} is not a listening TCP socket: {error}"
            )))
            .context("relay")
        }
    }
}

fn serve(listener: &TcpListener, target: SocketAddr) {
    for client in listener.incoming() {
        // A client that is gone again, or too many open files for the moment.
        let Ok(client) = client else { continue };
        thread::spawn(move || {
            if let Err(error) = join(client, target) {
                eprintln!("flashdev: relay to {target}: {error}");
            }
        });
    }
}

/// Carries one connection in both directions until both sides have ended.
fn join(client: TcpStream, target: SocketAddr) -> io::Result<()> {
    let inner = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    inner.set_nodelay(true)?;
    let (client, inner) = (Arc::new(client), Arc::new(inner));
    let back = {
        let (client, inner) = (Arc::clone(&client), Arc::clone(&inner));
        thread::spawn(move || carry(&inner, &client))
    };
    carry(&client, &inner);
    let _ = back.join();
    Ok(())
}

/// `io::copy` between sockets is splice(2): the data does not come into this process.
fn carry(mut from: &TcpStream, mut to: &TcpStream) {
    if io::copy(&mut from, &mut to).is_err() {
        // Broken on one side: the other must not wait for it.
        let _ = from.shutdown(Shutdown::Both);
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::IntoRawFd;

    #[test]
    fn routes_are_a_descriptor_and_an_address() {
        let route = "5=10.77.0.2:22".parse::<Route>().unwrap();
        assert_eq!((route.listener, route.target.port()), (5, 22));
        for bad in [
            "",
            "5",
            "5=",
            "=1.2.3.4:5",
            "1=10.0.0.1:22",
            "5=10.0.0.1",
            "x=1.2.3.4:5",
        ] {
            assert!(bad.parse::<Route>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_goes_in_comes_out_and_the_other_way_round() {
        let outer = TcpListener::bind("127.0.0.1:0").unwrap();
        let inner = TcpListener::bind("127.0.0.1:0").unwrap();
        let route = Route {
            target: inner.local_addr().unwrap(),
            listener: -1,
        };
        let door = outer.local_addr().unwrap();
        let route = Route {
            listener: outer.into_raw_fd(),
            ..route
        };
        thread::spawn(move || relay(&[route]));
        let mut client = TcpStream::connect(door).unwrap();
        let (mut server, _) = inner.accept().unwrap();
        let sent: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
        let received = thread::scope(|scope| {
            scope.spawn(|| {
                client.write_all(&sent).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
            });
            let mut received = Vec::new();
            server.read_to_end(&mut received).unwrap();
            received
        });
        assert!(received == sent);
        server.write_all(b"back").unwrap();
        drop(server);
        let mut back = String::new();
        client.read_to_string(&mut back).unwrap();
        assert_eq!(back, "back");
    }

    #[test]
    fn a_target_that_is_not_there_ends_the_connection() {
        let outer = TcpListener::bind("127.0.0.1:0").unwrap();
        let door = outer.local_addr().unwrap();
        let free = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let route = Route {
            listener: outer.into_raw_fd(),
            target: free,
        };
        thread::spawn(move || relay(&[route]));
        let mut client = TcpStream::connect(door).unwrap();
        assert_eq!(client.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    }

    #[test]
    fn a_descriptor_that_is_no_socket_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let route = Route {
            listener: file.into_raw_fd(),
            target: "127.0.0.1:1".parse().unwrap(),
        };
        let error = relay(&[route]).unwrap_err();
        assert!(format!("{error:#}").contains("is not a listening TCP socket"));
    }
}
