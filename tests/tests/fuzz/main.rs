//! Whatever comes over a wire or from a clipboard: it is read, or refused by a named error,
//! and nothing panics. What is read is written and read again as the same.
//!
//! Fuzzing on the stable toolchain: inputs are mutated from `corpus/` and from the golden
//! messages. `TIDINGS_FUZZ_SECONDS` says how long (default 2 per target), `TIDINGS_SEED`
//! repeats a run, and a failure prints its input; put that into `corpus/`. `scripts/fuzz`
//! runs it for longer.

mod inputs;
mod mutate;

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tidings_protocol::session_api::{Introduction, Reply, Request, Said};
use tidings_protocol::wire::frame::{
    FrameMessage, HEADER_BYTES, MAX_FRAME_BYTES, body_length, decode, encode,
};
use tidings_protocol::wire::{FrameError, Message};
use tidings_protocol::{HostName, JoinLink, Marker, SessionKey};
use tidings_tests::{Dice, seed};

use crate::mutate::mutated;

/// The longest of an error's texts: whatever the input was, it is not in there.
const MAX_ERROR_CHARS: usize = 300;

/// Feeds `check` with the corpus, and then with what mutation makes of it, for its time.
fn fuzz(corpus: &[Vec<u8>], check: impl Fn(&[u8])) {
    assert!(!corpus.is_empty());
    let time = Duration::from_secs(seconds());
    let mut dice = Dice::new(seed());
    let began = Instant::now();
    for input in corpus {
        try_one(input, &check);
    }
    let mut tried = 0_u64;
    while began.elapsed() < time {
        try_one(&mutated(corpus, &mut dice), &check);
        tried += 1;
    }
    println_tried(tried);
}

#[expect(
    clippy::print_stdout,
    reason = "how much was tried is a part of the result"
)]
fn println_tried(tried: u64) {
    println!("{tried} mutated inputs");
}

fn seconds() -> u64 {
    match std::env::var("TIDINGS_FUZZ_SECONDS") {
        Ok(text) => text.parse().expect("TIDINGS_FUZZ_SECONDS is a number"),
        Err(_) => 2,
    }
}

fn try_one(input: &[u8], check: &impl Fn(&[u8])) {
    let holds = catch_unwind(AssertUnwindSafe(|| check(input))).is_ok();
    assert!(
        holds,
        "this input fails, as an escaped string: {}",
        input.escape_ascii()
    );
}

/// A message that can be read can be written, and is the same then.
fn check_body<M: FrameMessage + PartialEq + Debug>(body: &[u8]) {
    match decode::<M>(body) {
        Ok(message) => match encode(&message) {
            Ok(frame) => {
                let (header, again) = frame.split_first_chunk::<HEADER_BYTES>().expect("a header");
                assert_eq!(body_length(*header, MAX_FRAME_BYTES), Ok(again.len()));
                assert_eq!(decode::<M>(again).as_ref(), Ok(&message));
            }
            // Names of fields may be written longer than they came.
            Err(FrameError::Oversized { .. }) => {}
            Err(error) => panic!("read and not written: {error}"),
        },
        Err(error) => check_error(&error),
    }
}

fn check_error(error: &impl ToString) {
    let text = error.to_string();
    assert!(text.chars().count() <= MAX_ERROR_CHARS, "{text}");
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

#[test]
fn node_messages() {
    fuzz(&inputs::bodies("message"), check_body::<Message>);
}

#[test]
fn requests_and_introductions() {
    let corpus = [inputs::bodies("request"), inputs::bodies("introduction")].concat();
    fuzz(&corpus, |body| {
        check_body::<Request>(body);
        check_body::<Introduction>(body);
        // On a socket it is the one or the other.
        match Said::decode(body) {
            Ok(Said::Request(request)) => assert_eq!(decode(body), Ok(request)),
            Ok(Said::Introduction(introduction)) => assert_eq!(decode(body), Ok(introduction)),
            Err(error) => check_error(&error),
        }
        if let Ok(mut request) = decode::<Request>(body) {
            // Every request has its place in the table.
            let _ = (
                request.privilege(),
                request.scope(),
                request.is_stream(),
                request.adopts_caller(),
            );
            let _ = request.speaker();
        }
    });
}

#[test]
fn replies_and_their_parts() {
    fuzz(&inputs::bodies("reply"), |body| {
        check_body::<Reply>(body);
        if let Ok(reply) = decode::<Reply>(body) {
            let merged = reply.clone().merge(reply.clone());
            let _ = merged.into_frames();
            if let Ok(frames) = reply.into_frames() {
                assert!(
                    frames
                        .iter()
                        .all(|f| f.len() <= HEADER_BYTES + MAX_FRAME_BYTES)
                );
            }
        }
    });
}

#[test]
fn markers() {
    fuzz(&inputs::bodies("marker"), |bytes| {
        match Marker::decode(bytes) {
            Ok(marker) => {
                if let Ok(again) = marker.encode() {
                    assert_eq!(Marker::decode(&again).ok(), Some(marker));
                }
            }
            Err(error) => check_error(&error),
        }
    });
}

#[test]
fn join_links_and_names() {
    fuzz(&inputs::links(), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        match JoinLink::parse(&text) {
            Ok(link) => assert_eq!(JoinLink::parse(&link.to_string()), Ok(link)),
            Err(error) => check_error(&error),
        }
        let slug = HostName::slug(&text);
        assert_eq!(HostName::parse(slug.as_str()).ok(), Some(slug));
        match SessionKey::parse(&text) {
            Ok(key) => assert_eq!(SessionKey::parse(key.as_str()), Ok(key)),
            Err(error) => check_error(&error),
        }
    });
}
