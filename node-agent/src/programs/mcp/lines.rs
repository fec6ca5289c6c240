//! Standard input and output, a line at a time: what is no line of the protocol is answered
//! with an error here, and the server reads and writes the rest.

use serde::de::IgnoredAny;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The longest line that a program may send, in bytes: a message at its largest, and what
/// JSON makes of it.
pub(super) const MAX_LINE_BYTES: usize = 1024 * 1024;
/// What stands between the server and the lines, in bytes.
const PIPE_BYTES: usize = 64 * 1024;
/// How many errors wait to be written; the next line waits for them.
const MAX_REFUSALS: usize = 8;

/// Why a line is not handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    NoJson,
    TooLong,
}

impl Refusal {
    /// Its answer. Nobody knows which call it was.
    fn line(self) -> String {
        let (code, message) = match self {
            Self::NoJson => (-32_700, "the line is no JSON".to_owned()),
            Self::TooLong => (
                -32_600,
                format!("the line has more than {MAX_LINE_BYTES} bytes"),
            ),
        };
        let error = serde_json::json!({"code": code, "message": message});
        let answer = serde_json::json!({"jsonrpc": "2.0", "id": null, "error": error});
        format!("{answer}\n")
    }
}

/// The lines of a program, as the server takes and gives them.
pub(super) struct Lines {
    /// What the program sends.
    pub(super) input: DuplexStream,
    /// What it is sent.
    pub(super) output: DuplexStream,
    /// Ends when all of it is written.
    pub(super) written: JoinHandle<()>,
}

impl Lines {
    /// Between a program's streams and the server.
    pub(super) fn between<R, W>(stdin: R, stdout: W) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (refuse, refused) = mpsc::channel(MAX_REFUSALS);
        let (input, to_server) = duplex(PIPE_BYTES);
        let (output, from_server) = duplex(PIPE_BYTES);
        tokio::spawn(read(stdin, to_server, refuse));
        Self {
            input,
            output,
            written: tokio::spawn(write(from_server, refused, stdout)),
        }
    }
}

/// Hands on whole lines until the program has no more. Of one that is too long nothing is
/// kept.
async fn read(
    stdin: impl AsyncRead + Unpin,
    mut server: DuplexStream,
    refuse: mpsc::Sender<Refusal>,
) {
    let mut stdin = BufReader::new(stdin);
    let mut line = Vec::new();
    let mut skips = false;
    loop {
        let piece = match stdin.fill_buf().await {
            Ok(piece) if !piece.is_empty() => piece,
            // It has closed its end, or its end is broken.
            _ => return,
        };
        let end = memchr::memchr(b'\n', piece);
        let taken = end.map_or(piece.len(), |at| at + 1);
        let mut refusal = None;
        if !skips && line.len() + taken > MAX_LINE_BYTES {
            refusal = Some(Refusal::TooLong);
            skips = true;
            line = Vec::new();
        } else if !skips {
            line.extend_from_slice(&piece[..taken]);
        }
        stdin.consume(taken);
        if end.is_some() {
            if !skips && is_json(&line) {
                if server.write_all(&line).await.is_err() {
                    return;
                }
            } else if !skips {
                refusal = Some(Refusal::NoJson);
            }
            line.clear();
            skips = false;
        }
        if let Some(refusal) = refusal
            && refuse.send(refusal).await.is_err()
        {
            return;
        }
    }
}

/// True for a line of JSON, and for an empty one, which says nothing.
fn is_json(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    line.trim_ascii().is_empty() || serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

/// Writes what the server says, and between its lines what is refused.
async fn write(
    server: DuplexStream,
    mut refused: mpsc::Receiver<Refusal>,
    mut stdout: impl AsyncWrite + Unpin,
) {
    let mut server = BufReader::new(server);
    let mut line = Vec::new();
    loop {
        tokio::select! {
            read = server.read_until(b'\n', &mut line) => {
                if read.is_err() || line.is_empty() {
                    break;
                }
                if put(&mut stdout, &line).await.is_err() {
                    return;
                }
                line.clear();
            }
            Some(refusal) = refused.recv() => {
                if put(&mut stdout, refusal.line().as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
    while let Some(refusal) = refused.recv().await {
        if put(&mut stdout, refusal.line().as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn put(stdout: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> std::io::Result<()> {
    stdout.write_all(line).await?;
    stdout.flush().await
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn each_line_is_handed_on_whole_or_refused_and_the_next_one_is_read() {
        let (program, stdin) = duplex(PIPE_BYTES);
        let (stdout, mut answers) = duplex(PIPE_BYTES);
        let mut lines = Lines::between(stdin, stdout);
        let mut program = program;
        let sent = tokio::spawn(async move {
            let fits = format!("\"{}\"\n", "x".repeat(MAX_LINE_BYTES - 3));
            let long = format!("\"{}\"\n", "x".repeat(MAX_LINE_BYTES - 2));
            for line in ["{\"a\":1}\n", "secret words\n", "\n", &long, &fits, "[2"] {
                program.write_all(line.as_bytes()).await.expect("sent");
            }
        });
        let mut read = String::new();
        lines.input.read_to_string(&mut read).await.expect("text");
        sent.await.expect("sent");
        assert!(read.starts_with("{\"a\":1}\n\n\"x"), "{}", &read[..20]);
        assert_eq!(read.len(), "{\"a\":1}\n\n".len() + MAX_LINE_BYTES);
        lines.output.write_all(b"{\"b\":2}\n").await.expect("sent");
        drop(lines.output);
        lines.written.await.expect("written");
        let mut said = String::new();
        answers.read_to_string(&mut said).await.expect("text");
        let mut said: Vec<&str> = said.lines().collect();
        said.sort_unstable();
        assert_eq!(
            said,
            [
                "{\"b\":2}".to_owned(),
                Refusal::TooLong.line().trim_end().to_owned(),
                Refusal::NoJson.line().trim_end().to_owned(),
            ]
        );
    }
}
