//! Telling the service manager that a daemon is ready, and that it stops: systemd's notify
//! protocol, one datagram each.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where the service manager listens.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// What a daemon says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// It has begun to serve.
    Ready,
    /// It has begun to end.
    Stopping,
}

impl ServiceState {
    fn datagram(self) -> &'static [u8] {
        match self {
            Self::Ready => b"READY=1\n",
            Self::Stopping => b"STOPPING=1\n",
        }
    }
}

/// Tells the service manager, where one listens. That it does not hear is no reason to stop.
pub fn notify(state: ServiceState) {
    let Some(socket) = std::env::var_os(VARIABLE) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, ?state, "the service manager was not told");
    }
}

fn send(socket: &OsStr, state: ServiceState) -> io::Result<()> {
    let address = address(socket.as_bytes())?;
    UnixDatagram::unbound()?.send_to_addr(state.datagram(), &address)?;
    Ok(())
}

/// A path, or behind an `@` a name in Linux's abstract namespace.
fn address(socket: &[u8]) -> io::Result<SocketAddr> {
    match socket {
        [b'/', ..] => SocketAddr::from_pathname(OsStr::from_bytes(socket)),
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name)
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "NOTIFY_SOCKET is neither a path nor an abstract name",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(listener: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = listener.recv(&mut buffer).expect("a datagram");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn each_state_is_one_datagram_to_a_path_or_an_abstract_name() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = scratch.path().join("notify");
        let listener = UnixDatagram::bind(&path).expect("bound");
        send(path.as_os_str(), ServiceState::Ready).expect("sent");
        assert_eq!(received(&listener), "READY=1\n");
        send(path.as_os_str(), ServiceState::Stopping).expect("sent");
        assert_eq!(received(&listener), "STOPPING=1\n");
        #[cfg(target_os = "linux")]
        {
            let name = format!("@{}", path.display());
            let address = address(name.as_bytes()).expect("an address");
            let listener = UnixDatagram::bind_addr(&address).expect("bound");
            send(OsStr::new(&name), ServiceState::Ready).expect("sent");
            assert_eq!(received(&listener), "READY=1\n");
        }
        for bad in ["", "relative", "vsock:2:1"] {
            assert!(send(OsStr::new(bad), ServiceState::Ready).is_err(), "{bad}");
        }
    }
}
