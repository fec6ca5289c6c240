//! The bytes of every message, of every version that this build still speaks.
//!
//! `golden/v<version>/<set>/<name>.hex` holds the encoded samples of `golden/samples/`, one
//! file per message; `golden/v<version>.sha256` seals the folder. A sealed version never
//! changes: other bytes are another protocol version.
//!
//! `TIDINGS_BLESS=1` writes the files and the seal of a version that has no seal yet.

#[path = "golden/files.rs"]
mod files;
#[path = "golden/maps.rs"]
mod maps;
#[path = "golden/samples/mod.rs"]
mod samples;

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidings_protocol::session_api::{
    CatalogList, Introduction, NodesInvite, Reply, Request, SessionsList, SignalsQuery, WatchFilter,
};
use tidings_protocol::wire::frame::{FrameMessage, decode};
use tidings_protocol::wire::messages::RefusalCode;
use tidings_protocol::wire::{FrameError, Message, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION};
use tidings_protocol::{Marker, marker::MarkerError};

use samples::{Read, Sample};

#[test]
fn every_message_has_its_golden_file_and_every_golden_file_its_message() {
    let named = |set: &str, names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| format!("{set}/{name}")).collect()
    };
    let mut expected = named("message", Message::NAMES);
    expected.extend(named("request", Request::NAMES));
    expected.extend(named("introduction", Introduction::NAMES));
    expected.extend(named("reply", Reply::NAMES));
    expected.extend(named("marker", &["marker"]));

    let sampled: BTreeSet<String> = samples::all().iter().map(Sample::file).collect();
    assert_eq!(sampled, expected, "left: the samples; right: the messages");
    let stored: BTreeSet<String> = files::of(PROTOCOL_VERSION).keys().cloned().collect();
    assert_eq!(stored, expected, "left: the files; right: the messages");
}

#[test]
fn every_sample_has_the_bytes_of_its_golden_file() {
    let stored = files::of(PROTOCOL_VERSION);
    let mut changed = Vec::new();
    for sample in samples::all() {
        let golden = stored.get(&sample.file()).and_then(|f| f.get(sample.case));
        if golden != Some(&sample.bytes) {
            changed.push(format!("{} ({})", sample.file(), sample.case));
        }
    }
    let cases: usize = stored.values().map(std::collections::BTreeMap::len).sum();
    assert!(
        changed.is_empty() && cases == samples::all().len(),
        "{} of {cases} golden samples have other bytes now: {changed:#?}\n{}",
        changed.len(),
        files::what_to_do(PROTOCOL_VERSION)
    );
}

#[test]
fn a_sealed_version_never_changes() {
    for version in 1..=PROTOCOL_VERSION {
        assert_eq!(
            files::seal(version).as_deref(),
            Some(&*files::digest(version)),
            "left: the seal of version {version}; right: its files.\n{}",
            files::what_to_do(version)
        );
    }
}

#[test]
fn what_an_older_version_wrote_still_decodes() {
    for version in OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION {
        for (file, cases) in files::of(version) {
            for (case, bytes) in cases {
                let read = samples::read_as(&file, &bytes);
                assert!(read.is_ok(), "v{version}/{file} ({case}): {read:?}");
            }
        }
    }
}

#[test]
fn a_golden_message_comes_back_as_the_sample_it_was() {
    for sample in samples::all() {
        assert_eq!(sample.read(sample.body()), Read::Same, "{}", sample.title());
    }
}

#[test]
fn a_field_of_a_later_version_is_ignored_wherever_it_stands() {
    let mut spliced = 0;
    for sample in samples::all() {
        for map in maps::in_body(sample.body()) {
            let read = sample.read(&map.with_one_more_field(sample.body()));
            let title = format!("{}, map at byte {}", sample.title(), map.header_at);
            if sample.is_tag(&map) {
                assert_eq!(read, Read::Refused, "{title}: a message has one name");
            } else if map.entries >= 2 || sample.is_body(&map) {
                assert_eq!(read, Read::Same, "{title}");
                spliced += 1;
            } else {
                // One entry deep inside: a struct of one field, or the name of a variant.
                assert_ne!(read, Read::Different, "{title}");
            }
        }
    }
    assert!(spliced > samples::all().len(), "only {spliced} splices");
}

#[test]
fn a_message_of_a_later_version_is_unsupported_by_its_name() {
    fn check<M: FrameMessage + std::fmt::Debug>(name: &str, expected: &str) {
        // nil, a number, a text, bytes, a list, a map, an extension value.
        let values: [&[u8]; 7] = [
            b"\xc0",
            b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xa1x",
            b"\xc4\x01\x00",
            b"\x92\x01\x02",
            b"\x81\xa1k\x80",
            b"\xd4\x05\x00",
        ];
        let length = u8::try_from(name.len()).expect("a short name");
        for value in values {
            let body = [&[0x81, 0xd9, length], name.as_bytes(), value].concat();
            assert_eq!(
                decode::<M>(&body).expect_err("not known"),
                FrameError::Unsupported {
                    name: expected.to_owned()
                },
                "{name} with {value:x?}"
            );
        }
    }
    let long = "m".repeat(200);
    for (name, expected) in [
        ("tomorrow", "tomorrow"),
        ("Hello", "Hello"),
        ("", ""),
        ("line\nend\u{7}", "lineend"),
        (&*long, &long[..64]),
    ] {
        check::<Message>(name, expected);
        check::<Request>(name, expected);
        check::<Reply>(name, expected);
    }
}

#[test]
fn a_known_message_with_a_body_that_is_none_is_undecodable() {
    for (name, value) in [
        ("hello", &b"\xc0"[..]),
        ("goaway", b"\x81\xa6reason\x01"),
        ("report_answer", b"\x82\xa4link\x01\xa7verdict\xa7pending"),
        ("links_end", b"\x81\xa5count\xff"),
        // Not by name: a list of its fields, their numbers, their names as bytes.
        ("goaway", b"\x91\xa1r"),
        ("goaway", b"\x81\x00\xa1r"),
        ("goaway", b"\x81\xc4\x06reason\xa1r"),
    ] {
        let length = u8::try_from(name.len()).expect("a short name");
        let body = [&[0x81, 0xd9, length], name.as_bytes(), value].concat();
        assert_eq!(
            decode::<Message>(&body),
            Err(FrameError::Undecodable {
                bytes: body.len(),
                expected: "node protocol message"
            }),
            "{name}"
        );
    }
}

#[test]
fn a_refusal_for_a_reason_of_a_later_version_is_still_a_refusal() {
    let body = b"\x81\xa7refused\x83\xa4code\xabtoo_cloudy_\xa6reason\xa1r\xa4hint\xa1h";
    let Ok(Message::Refused(refused)) = decode::<Message>(body) else {
        panic!("{:?}", decode::<Message>(body));
    };
    assert_eq!(refused.code, RefusalCode::Other);
    assert_eq!((&*refused.reason, &*refused.hint), ("r", "h"));
}

#[test]
fn a_request_may_leave_out_what_it_does_not_say() {
    for (body, expected) in [
        (
            &b"\x81\xacnodes_invite\x80"[..],
            Request::NodesInvite(NodesInvite::default()),
        ),
        (
            b"\x81\xaccatalog_list\x80",
            Request::CatalogList(CatalogList::default()),
        ),
        (
            b"\x81\xadsessions_list\x80",
            Request::SessionsList(SessionsList::default()),
        ),
        (
            b"\x81\xaawatch_list\x80",
            Request::WatchList(WatchFilter::default()),
        ),
        (
            b"\x81\xacsignals_list\x80",
            Request::SignalsList(SignalsQuery::default()),
        ),
        (
            b"\x81\xaesignals_follow\x80",
            Request::SignalsFollow(SignalsQuery::default()),
        ),
    ] {
        assert_eq!(decode::<Request>(body), Ok(expected));
    }
}

#[test]
fn a_golden_message_cut_short_or_too_long_is_refused() {
    for sample in samples::all() {
        let body = sample.body();
        for cut in 0..body.len() {
            let read = sample.read(&body[..cut]);
            assert_eq!(read, Read::Refused, "{} at {cut}", sample.title());
        }
        if sample.is_framed() {
            let longer = [body, b"\xc0"].concat();
            assert_eq!(sample.read(&longer), Read::Refused, "{}", sample.title());
        }
    }
}

#[test]
fn nesting_and_lengths_that_lie_cost_neither_stack_nor_memory() {
    let deep = |unit: &[u8]| unit.repeat(tidings_protocol::wire::MAX_FRAME_BYTES / unit.len());
    for body in [
        deep(b"\x91"),
        deep(b"\x81\xc0"),
        deep(b"\x81\xa4part"),
        [&b"\x81\xa4soon"[..], &deep(b"\x91")[..200_000]].concat(),
        [&b"\x81\xa5hello\x81\xa1x"[..], &deep(b"\x91")[..200_000]].concat(),
        b"\x81\xa5hello\xdf\xff\xff\xff\xff".to_vec(),
        b"\x81\xa8presence\x81\xa5roots\xdd\xff\xff\xff\xff".to_vec(),
        b"\x81\xa4join\x81\xaesigningRequest\xc6\xff\xff\xff\xff".to_vec(),
        b"\x81\xdb\xff\xff\xff\xff".to_vec(),
    ] {
        assert!(decode::<Message>(&body).is_err());
        assert!(decode::<Request>(&body).is_err());
        assert!(decode::<Reply>(&body).is_err());
        assert!(Marker::decode(&body).is_err());
    }
}

#[test]
fn a_marker_says_what_is_wrong_with_it() {
    let too_large = vec![0xc0; tidings_protocol::marker::MAX_MARKER_BYTES + 1];
    assert_eq!(
        Marker::decode(&too_large),
        Err(MarkerError::TooLarge(too_large.len()))
    );
    assert!(matches!(
        Marker::decode(b"\x80"),
        Err(MarkerError::Undecodable { bytes: 1 })
    ));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = decode::<Message>(&bytes);
        let _ = decode::<Request>(&bytes);
        let _ = decode::<Reply>(&bytes);
        let _ = Marker::decode(&bytes);
    }

    #[test]
    fn a_golden_message_with_bytes_changed_never_panics(
        pick in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let all = samples::all();
        let sample = pick.get(&all);
        let mut body = sample.body().to_vec();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let _ = sample.read(&body);
    }
}
