//! What bad input gets: the right outcome, without waiting for anybody, and nothing lost
//! behind it.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidings_node::tail::{Reading, TailError, open_at_end};
use tidings_protocol::Catalog;
use tidings_protocol::report::Inconclusive;

use crate::support::{Followed, page, prompt, reply, thread_of};

/// Every one of these stands before a prompt, on lines of its own or on the prompt's.
#[test]
fn no_bad_line_costs_the_prompt_behind_it() {
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let deep_record = format!(
        "{{\"type\":\"user\",\"x\":{}{}}}\n",
        "{\"a\":".repeat(5_000) + "1",
        "}".repeat(5_000)
    );
    let long = format!(
        "{{\"type\":\"assistant\",\"x\":\"{}\"}}\n",
        "y".repeat(3_000_000)
    );
    let long_torn = format!(
        "{{\"type\":\"assistant\",\"x\":\"{}\n",
        "y".repeat(3_000_000)
    );
    let long_glued = format!(
        "{{\"type\":\"assistant\",\"x\":\"{}",
        "{\\\"a\\\" ".repeat(400_000)
    );
    let nuls = "\0".repeat(9_000);
    let wide = format!(
        "{{\"type\":\"user\",{}\"z\":1}}\n",
        "\"k\":1,".repeat(300_000)
    );
    let texts: &[&[u8]] = &[
        b"\n",
        b"\r\n",
        b"\n\n\n",
        b"not json\n",
        b"null\n",
        b"null",
        b"17\n",
        b"[1,2]\n",
        b"[1,2]",
        b"\"user\"",
        b"\"user\"\n",
        b"{}\n",
        b"{\"type\":null}\n",
        b"{\"type\":\"user\"}\n",
        b"{\"type\":\"user\",\"message\":7}\n",
        b"{\"type\":\"user\",\"message\":{\"content\":{}}}\n",
        b"\xff\xfe\xfd\n",
        b"{\"type\":\"user\xff\"}\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\n",
        nuls.as_bytes(),
        b"{\"type\":\"assistant\",\"a\":1}",
        b"{\"type\":\"assistant\",\"x\":\"torn ",
        b"{\"type\":\"assistant\",\"x\":",
        b"{\"type\":\"assistant\",\"x\":[1,",
        b"{\"type\":\"assistant\",\"type\":\"progress\"}\n",
        b"{\"a\":\"\\ud83d\"}\n",
        b"}}}}\n",
        b"]\n",
        b"{{{{{{{{",
        deep.as_bytes(),
        deep_record.as_bytes(),
        long.as_bytes(),
        long_torn.as_bytes(),
        long_glued.as_bytes(),
        wide.as_bytes(),
        b"\t\x0b\x0c\n",
        b"\xe2\x80\xa8\n",
    ];
    for text in texts {
        let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        let mut file = Followed::adopted("");
        file.append(text);
        file.append(prompt("a", "hello", 1));
        file.append(prompt("b", "\u{2028}raw separators\u{85}", 2).replace('\n', "\r\n"));
        assert_eq!(file.turns(), ["a", "b"], "behind {shown:?}");
    }
}

#[test]
fn text_that_is_no_utf8_or_half_a_pair_is_still_a_prompt() {
    for (text, replacement) in [
        ("HERE", &b"caf\xe9"[..]),
        ("HERE", b"\\ud83d alone"),
        ("HERE", b"\xf0\x9f\x99"),
        ("HERE", "a\u{2028}b\u{2029}c\u{85}d".as_bytes()),
    ] {
        let line = prompt("a", text, 1).into_bytes();
        let at = line.windows(4).position(|w| w == b"HERE").expect("text");
        let mut bytes = line[..at].to_vec();
        bytes.extend_from_slice(replacement);
        bytes.extend_from_slice(&line[at + 4..]);
        let mut file = Followed::adopted("");
        file.append(bytes);
        assert_eq!(
            file.turns(),
            ["a"],
            "{}",
            String::from_utf8_lossy(replacement)
        );
    }
}

#[test]
fn a_nul_tail_is_pending_and_what_follows_is_read() {
    let mut file = Followed::adopted("");
    file.append(prompt("a", "x", 1));
    file.append("\0".repeat(143_000));
    assert_eq!(file.turns(), ["a"]);
    file.wait(Duration::from_secs(10));
    let page = page(file.look());
    assert!(page.marker.offset < page.size);
    assert_eq!(page.look_again, None, "NULs are nothing to wait for");
    file.append(prompt("b", "y", 2));
    assert_eq!(file.turns(), ["b"]);
}

#[test]
fn a_long_line_keeps_its_place_between_looks() {
    let mut file = Followed::adopted("");
    let image = "QUJD".repeat(250_000);
    let line = prompt("big", "look at this", 1).replacen(
        "\"message\"",
        &format!("\"image\":\"{image}\",\"message\""),
        1,
    );
    let line = line.replace(
        "\"sessionId\"",
        &format!("\"more\":\"{image}\",\"sessionId\""),
    );
    assert!(line.len() > 2_000_000);
    for piece in line.trim_end().as_bytes().chunks(90_000) {
        file.append(piece);
        let page = page(file.look());
        assert_eq!(
            page.marker.offset, 0,
            "a marker stands at the ends of records only"
        );
        assert!(page.turns.is_empty());
    }
    file.append("\n");
    file.append(prompt("next", "x", 2));
    assert_eq!(file.turns(), ["big", "next"]);
}

#[test]
fn a_long_last_line_without_its_end_counts_when_the_file_is_still() {
    let mut file = Followed::adopted("");
    let line = prompt("big", &"word ".repeat(400_000), 1);
    file.append(line.trim_end());
    assert!(file.turns().is_empty());
    file.wait(Duration::from_secs(2));
    let turns = file.evidence();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].byte_end, line.len() as u64 - 1);
    file.append("\n");
    file.append(prompt("next", "x", 2));
    assert_eq!(file.turns(), ["next"]);
}

#[test]
fn a_long_line_that_is_replaced_half_read_is_read_anew() {
    let mut file = Followed::adopted(&reply("r", 0));
    let filler = format!("{{\"type\":\"assistant\",\"x\":\"{}", "y".repeat(2_000_000));
    file.append(&filler);
    assert!(file.turns().is_empty());
    let other = filler.replace('y', "z") + &prompt("glued", "x", 1) + &prompt("next", "x", 2);
    fs::write(&file.path, reply("r", 0) + &other).expect("write");
    assert_eq!(file.turns(), ["glued", "next"]);
}

#[test]
fn what_is_no_regular_file_is_gone_and_nobody_waits_for_it() {
    type Put = fn(&std::path::Path);
    let puts: [(&str, Put); 5] = [
        ("a directory", |path| {
            fs::create_dir(path).expect("directory");
        }),
        ("a FIFO", |path| {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).expect("fifo");
        }),
        ("a dangling link", |path| {
            symlink("nowhere", path).expect("link");
        }),
        ("a link to itself", |path| {
            symlink(path, path).expect("link");
        }),
        ("a socket", |path| {
            drop(std::os::unix::net::UnixListener::bind(path).expect("socket"));
        }),
    ];
    for (what, put) in puts {
        let mut file = Followed::adopted(&prompt("a", "x", 0));
        assert!(file.turns().is_empty());
        fs::remove_file(&file.path).expect("remove");
        put(&file.path);
        assert_eq!(file.look(), Reading::Missing, "{what}");
        let thread = thread_of(&file.path);
        let error = open_at_end(Catalog::Claude, &thread, &file.path, &file.root, 0);
        let is_named = matches!(
            error,
            Err(TailError::NotRegular { .. } | TailError::Missing { .. })
        );
        assert!(is_named, "{what}");
    }
}

#[test]
fn a_deleted_file_is_missing_only_if_everything_else_speaks_for_it() {
    let deleted = || {
        let mut file = Followed::adopted(&prompt("a", "x", 0));
        assert!(file.turns().is_empty());
        fs::remove_file(&file.path).expect("remove");
        file
    };
    assert_eq!(deleted().look(), Reading::Missing);

    let mut file = deleted();
    file.root.is_as_last_seen.store(false, Ordering::Relaxed);
    assert_eq!(
        file.look(),
        Reading::Inconclusive(Inconclusive::RootUnavailable)
    );

    let mut file = deleted();
    file.root.stored_otherwise.store(true, Ordering::Relaxed);
    let page = page(file.look());
    assert!(
        page.turns.is_empty() && !page.more,
        "a compressed sibling counts as present"
    );

    let mut file = deleted();
    file.replace(prompt("a", "x", 0) + &prompt("b", "y", 1));
    assert_eq!(file.turns(), ["b"], "it came back");
}

#[test]
fn a_file_never_seen_by_anybody_is_inconclusive() {
    let mut file = Followed::adopted(&prompt("a", "x", 0));
    fs::remove_file(&file.path).expect("remove");
    let mut marker = file.tailer.marker().clone();
    marker.file = tidings_protocol::marker::FileHint::default();
    file.tailer.rewind(marker, file.path.clone());
    assert_eq!(file.look(), Reading::Inconclusive(Inconclusive::NeverSeen));
}

#[test]
fn a_file_outside_the_roots_is_not_read_even_through_a_link() {
    let mut file = Followed::adopted("");
    let outside = tempfile::tempdir().expect("directory");
    let target = outside.path().join("secret.jsonl");
    fs::write(&target, prompt("secret", "x", 0)).expect("write");
    fs::remove_file(&file.path).expect("remove");
    symlink(&target, &file.path).expect("link");
    assert_eq!(
        file.look(),
        Reading::Inconclusive(Inconclusive::PermissionDenied)
    );
    let thread = thread_of(&file.path);
    let error = open_at_end(Catalog::Claude, &thread, &file.path, &file.root, 0);
    assert!(matches!(error, Err(TailError::OutsideRoots { .. })));

    // A link to a file inside is as good as the file.
    fs::remove_file(&file.path).expect("remove");
    let inside = file.root.dir.join("kept.jsonl");
    fs::write(&inside, prompt("fine", "x", 0)).expect("write");
    symlink(&inside, &file.path).expect("link");
    assert_eq!(file.turns(), ["fine"]);
}

#[test]
fn an_unreadable_file_is_inconclusive() {
    use std::os::unix::fs::PermissionsExt;
    let mut file = Followed::adopted(&prompt("a", "x", 0));
    fs::set_permissions(&file.path, fs::Permissions::from_mode(0o000)).expect("chmod");
    if fs::read(&file.path).is_ok() {
        crate::support::skipped("nothing is unreadable for this user");
        return;
    }
    assert_eq!(
        file.look(),
        Reading::Inconclusive(Inconclusive::PermissionDenied)
    );
}
