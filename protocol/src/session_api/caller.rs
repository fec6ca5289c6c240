//! Who makes a request: a program says which conversation it runs, and the gateway derives
//! the session from that and from the machine it came from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Request;
use crate::wire::frame::{FrameError, FrameMessage, decode, frame_message};
use crate::{Catalog, ThreadId};

/// The conversation that a program runs, on the machine it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Caller {
    /// The family of its transcript.
    pub catalog: Catalog,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
}

/// A request, and who makes it, where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Who makes it.
    pub caller: Option<Caller>,
    /// What is asked.
    pub request: Request,
}

/// What a program may say on a local socket before it asks. There is no answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Introduction {
    /// Who makes the requests that follow on this connection.
    Caller(Caller),
}

frame_message!(Introduction, "caller's introduction", ["caller"]);

/// What a program sends to a local socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Who it is.
    Introduction(Introduction),
    /// What it asks.
    Request(Request),
}

impl Said {
    /// Reads the body of a frame.
    pub fn decode(body: &[u8]) -> Result<Self, FrameError> {
        match decode(body) {
            Ok(request) => Ok(Self::Request(request)),
            Err(FrameError::Unsupported { name })
                if Introduction::NAMES.contains(&name.as_str()) =>
            {
                decode(body).map(Self::Introduction)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::frame::{HEADER_BYTES, encode};

    #[test]
    fn a_frame_of_a_socket_is_an_introduction_or_a_request_or_a_named_error() {
        let caller = Caller {
            catalog: Catalog::Claude,
            thread_id: ThreadId::parse("t-1").expect("an id"),
        };
        let introduction = Introduction::Caller(caller);
        let body =
            |frame: Result<Vec<u8>, FrameError>| frame.expect("a frame").split_off(HEADER_BYTES);
        assert_eq!(
            Said::decode(&body(encode(&introduction))),
            Ok(Said::Introduction(introduction))
        );
        assert_eq!(
            Said::decode(&body(encode(&Request::Status {}))),
            Ok(Said::Request(Request::Status {}))
        );
        for (body, expected) in [
            (
                &b"\x81\xa3abc\xc0"[..],
                "this build does not know the message abc",
            ),
            (
                b"\x81\xa6caller\xc0",
                "a frame of 9 bytes cannot be decoded as a caller's introduction",
            ),
            (b"\xc1", "a frame of 1 bytes cannot be decoded as a request"),
        ] {
            let error = Said::decode(body).expect_err("no such message");
            assert_eq!(error.to_string(), expected);
        }
    }
}
