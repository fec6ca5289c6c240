//! Fixed values of everything that travels or is stored, with every field set and every
//! variant shown.

mod chat;
mod given;
mod given_replies;
mod machines;
mod messages;
mod pairing;
mod parts;
mod replies;
mod requests;
mod tokens;

use std::fmt::Debug;

use tidings_protocol::Marker;
use tidings_protocol::session_api::{Introduction, Reply, Request};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::frame::{
    FrameMessage, HEADER_BYTES, MAX_FRAME_BYTES, body_length, decode, encode,
};

use crate::maps::MapAt;

/// What reading gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The sample.
    Same,
    /// Another valid value.
    Different,
    /// An error.
    Refused,
}

/// Reads bytes and compares what they are with a sample.
type Reader = dyn Fn(&[u8]) -> Read;

/// One fixed value and its bytes.
pub(crate) struct Sample {
    /// `message`, `request`, `introduction`, `reply` or `marker`.
    set: &'static str,
    /// The message's name.
    name: String,
    /// What this sample of the message shows.
    pub(crate) case: &'static str,
    /// The frame, length included; for a marker, its stored bytes.
    pub(crate) bytes: Vec<u8>,
    reader: Box<Reader>,
}

impl Sample {
    /// The golden file it belongs to.
    pub(crate) fn file(&self) -> String {
        format!("{}/{}", self.set, self.name)
    }

    /// For messages of tests.
    pub(crate) fn title(&self) -> String {
        format!("{} ({})", self.file(), self.case)
    }

    /// The bytes without the frame's length.
    pub(crate) fn body(&self) -> &[u8] {
        if self.is_framed() {
            &self.bytes[HEADER_BYTES..]
        } else {
            &self.bytes
        }
    }

    /// Reads `body` and compares it with this sample.
    pub(crate) fn read(&self, body: &[u8]) -> Read {
        (self.reader)(body)
    }

    /// True for the map of one entry that names a message: nothing can be added to it.
    pub(crate) fn is_tag(&self, map: &MapAt) -> bool {
        self.is_framed() && (map.depth == 0 || map.depth == 1 && self.holds_a_message())
    }

    /// True for the map that holds a message's own fields.
    pub(crate) fn is_body(&self, map: &MapAt) -> bool {
        map.depth == usize::from(self.is_framed()) && !self.holds_a_message()
    }

    /// False for a marker: it travels inside messages and is stored by itself.
    pub(crate) fn is_framed(&self) -> bool {
        self.set != "marker"
    }

    /// A part of a reply is itself a reply.
    fn holds_a_message(&self) -> bool {
        self.name == "part"
    }
}

/// Every sample.
pub(crate) fn all() -> Vec<Sample> {
    let mut all = Vec::new();
    all.extend(framed("message", messages::all()));
    all.extend(framed("message", pairing::messages()));
    all.extend(framed("request", requests::all()));
    all.extend(framed("introduction", requests::introductions()));
    all.extend(framed("request", pairing::requests()));
    all.extend(framed("reply", pairing::replies()));
    all.extend(framed("request", tokens::requests()));
    all.extend(framed("reply", tokens::replies()));
    all.extend(framed("reply", machines::all()));
    all.extend(framed("reply", replies::all()));
    all.extend(framed("reply", given_replies::all()));
    all.extend(framed("request", chat::requests()));
    all.extend(framed("reply", chat::replies()));
    let markers = [
        ("at the start of a file", Marker::at_start(parts::NOON)),
        ("with all it can carry", parts::full_marker()),
    ];
    all.extend(markers.map(|(case, marker)| Sample {
        set: "marker",
        name: "marker".to_owned(),
        case,
        bytes: marker.encode().expect("a marker within its limits"),
        reader: Box::new(move |body| compare(&marker, Marker::decode(body))),
    }));
    all
}

/// Reads `bytes` as the golden file `file` says they are meant.
pub(crate) fn read_as(file: &str, bytes: &[u8]) -> Result<(), String> {
    fn frame<M: FrameMessage>(bytes: &[u8]) -> Result<(), String> {
        let (header, body) = bytes
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or("no header")?;
        let length = body_length(*header, MAX_FRAME_BYTES).map_err(|e| e.to_string())?;
        if length != body.len() {
            return Err(format!(
                "the header says {length}, the body has {}",
                body.len()
            ));
        }
        decode::<M>(body).map(drop).map_err(|e| e.to_string())
    }
    match file.split('/').next() {
        Some("message") => frame::<Message>(bytes),
        Some("request") => frame::<Request>(bytes),
        Some("introduction") => frame::<Introduction>(bytes),
        Some("reply") => frame::<Reply>(bytes),
        _ => Marker::decode(bytes).map(drop).map_err(|e| e.to_string()),
    }
}

fn framed<M>(set: &'static str, cases: Vec<(&'static str, M)>) -> Vec<Sample>
where
    M: FrameMessage + Debug + PartialEq + 'static,
{
    let sample = |(case, message): (&'static str, M)| {
        let bytes = encode(&message).expect("a message that fits");
        Sample {
            set,
            name: name_on_the_wire(&bytes[HEADER_BYTES..]),
            case,
            bytes,
            reader: Box::new(move |body| compare(&message, decode(body))),
        }
    };
    cases.into_iter().map(sample).collect()
}

fn compare<T: PartialEq, E>(sample: &T, read: Result<T, E>) -> Read {
    match read {
        Ok(value) if value == *sample => Read::Same,
        Ok(_) => Read::Different,
        Err(_) => Read::Refused,
    }
}

/// The text behind the header of a map of one entry.
fn name_on_the_wire(body: &[u8]) -> String {
    assert_eq!(body[0], 0x81, "a message is a map of one entry");
    let length = usize::from(body[1] - 0xa0);
    String::from_utf8(body[2..2 + length].to_vec()).expect("a name")
}
