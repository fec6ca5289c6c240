//! HTTP, as far as a test of a whole process asks it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any answer takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Asks for what takes no token: status and body.
pub(crate) fn get(url: &str, path: &str) -> io::Result<(u16, String)> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let address = url.strip_prefix("http://").ok_or_else(broken)?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(broken)?, body.to_owned()))
}
