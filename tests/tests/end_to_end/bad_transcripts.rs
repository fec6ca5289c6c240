//! What bad transcripts get from the agent as it ships: nothing stops it, no prompt behind a
//! bad line is lost, and a file that is no file holds up nobody.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tidings_tests::transcripts::{Claude, Transcript, Turn};
use tidings_tests::{Adopted, TwoMachines, counted_turns, peak_kib};

/// The length of the longest line of these tests.
const LONG_LINE_BYTES: usize = 300 * 1024 * 1024;
/// What the agent may hold at the most while it reads that line.
const MAX_PEAK_KIB: f64 = 64.0 * 1024.0;
/// How long such a line may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// How something else comes to stand in a file's place.
type Put = fn(&Path);

/// A thread that is followed, and the turns that must be counted on it.
struct Followed {
    what: String,
    claude: Claude,
    session: Adopted,
    turns: Vec<Turn>,
}

impl Followed {
    fn new(machines: &TwoMachines, what: &str) -> Self {
        let claude = Claude::create(&machines.node.claude());
        let session = machines.adopt(&claude);
        Self {
            what: what.to_owned(),
            claude,
            session,
            turns: Vec::new(),
        }
    }

    /// Somebody types: one more turn.
    fn human(&mut self) {
        self.turns.push(self.claude.human("Stop the mill."));
    }

    /// Writes a human's line between these bytes; one more turn.
    fn human_between(&mut self, before: &[u8], line: &[u8], behind: &[u8]) {
        let start = self.claude.len() + before.len() as u64;
        self.turns.push(self.turn(start, line.len()));
        self.claude.append([before, line, behind].concat());
    }

    fn turn(&self, start: u64, length: usize) -> Turn {
        let file = self.claude.path().file_name().expect("a name");
        Turn {
            file: file.to_string_lossy().into_owned(),
            start,
            end: start + length as u64,
        }
    }

    /// Waits until its turns are told, and one more behind them; exactly they are counted.
    #[track_caller]
    fn counted(&mut self, machines: &TwoMachines) {
        self.human();
        let mut follow = machines.gateway.follow(self.session.version);
        follow.wait_for_at_least(&self.session.key, self.turns.len());
        let counted = counted_turns(&machines.gateway, &self.session.key);
        assert_eq!(counted, self.turns, "{}", self.what);
    }
}

#[test]
fn no_bad_line_costs_the_prompt_behind_it() {
    let machines = TwoMachines::start();
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let deep_record = format!(
        "{{\"type\":\"user\",\"x\":{}1{}}}\n",
        "{\"a\":".repeat(5_000),
        "}".repeat(5_000)
    );
    let deep_and_long = format!(
        "{{\"type\":\"assistant\",\"x\":{}{}}}\n",
        "[".repeat(900_000),
        "]".repeat(900_000)
    );
    let long = format!(
        "{{\"type\":\"assistant\",\"x\":\"{}\"}}\n",
        "y".repeat(3_000_000)
    );
    let long_torn = format!("{{\"type\":\"assistant\",\"x\":\"{}", "y".repeat(3_000_000));
    let wide = format!(
        "{{\"type\":\"user\",{}\"z\":1}}\n",
        "\"k\":1,".repeat(300_000)
    );
    let nuls = "\0".repeat(9_000);
    let bad: &[(&str, &[u8])] = &[
        ("not JSON", b"not json\n"),
        ("no bytes of UTF-8", b"\xff\xfe\xfd\n"),
        ("null", b"null\n"),
        ("a number", b"17\n"),
        ("an array", b"[1,2]\n"),
        ("a text", b"\"user\"\n"),
        ("null on the prompt's line", b"null"),
        ("an empty object", b"{}\n"),
        (
            "a record that nobody typed",
            b"{\"type\":\"user\",\"message\":{\"content\":{}}}\n",
        ),
        (
            "a type given twice",
            b"{\"type\":\"user\",\"message\":{\"content\":\"x\"},\"type\":\"progress\"}\n",
        ),
        ("deep nesting", deep.as_bytes()),
        ("a deep record", deep_record.as_bytes()),
        (
            "a deep record longer than a window",
            deep_and_long.as_bytes(),
        ),
        ("a record with many members", wide.as_bytes()),
        (
            "a record glued to the prompt",
            b"{\"type\":\"assistant\",\"a\":1}",
        ),
        (
            "a torn record glued to the prompt",
            b"{\"type\":\"assistant\",\"x\":\"torn ",
        ),
        (
            "a long torn record glued to the prompt",
            long_torn.as_bytes(),
        ),
        ("a torn record", b"{\"type\":\"assistant\",\"x\":\"torn\n"),
        ("a line longer than a window", long.as_bytes()),
        ("blank lines", b"\n\r\n \t\n"),
        ("a byte order mark", b"\xef\xbb\xbf"),
        ("NULs", nuls.as_bytes()),
        ("closing brackets", b"}}}]]]\n"),
        ("opening brackets on the prompt's line", b"{{{{{{"),
    ];
    let mut followed: Vec<Followed> = bad
        .iter()
        .map(|(what, bytes)| {
            let mut followed = Followed::new(&machines, what);
            followed.claude.append(bytes);
            followed.human();
            followed
        })
        .collect();
    for followed in &mut followed {
        followed.counted(&machines);
    }
}

#[test]
fn a_prompt_counts_however_its_line_is_written() {
    let machines = TwoMachines::start();
    let with = |line: &str, bytes: &[u8]| {
        let at = line.find("HERE").expect("a text");
        [&line.as_bytes()[..at], bytes, &line.as_bytes()[at + 4..]].concat()
    };
    let twice = r#"","type":"assistant","type":"user","x":""#;
    let texts: &[(&str, &[u8])] = &[
        ("no UTF-8 in its text", b"caf\xe9"),
        ("half a pair in its text", b"\\ud83d alone"),
        (
            "separators of other formats in its text",
            "a\u{2028}b\u{85}c".as_bytes(),
        ),
        ("a NUL escaped in its text", b"a\\u0000b"),
    ];
    let mut all = Vec::new();
    for (what, bytes) in texts {
        let mut followed = Followed::new(&machines, what);
        let line = followed.claude.line("HERE");
        followed.human_between(b"", &with(&line, bytes), b"\n");
        all.push(followed);
    }
    for (what, before, behind) in [
        ("CRLF", "", "\r\n"),
        ("a byte order mark", "\u{feff}", "\n"),
        ("NULs on both sides", "\0\0\0", "\0\0\n"),
        ("blanks on both sides", " \t", " \t\r\n"),
    ] {
        let mut followed = Followed::new(&machines, what);
        let line = followed.claude.line("Stop the mill.");
        followed.human_between(before.as_bytes(), line.as_bytes(), behind.as_bytes());
        all.push(followed);
    }
    let mut followed = Followed::new(&machines, "keys given twice");
    let line = followed
        .claude
        .line("Stop.")
        .replacen("\"type\":\"user\"", "\"x\":\"HERE\"", 1);
    followed.human_between(b"", &with(&line, twice.as_bytes()), b"\n");
    all.push(followed);
    let mut followed = Followed::new(&machines, "two prompts on one line");
    let (first, second) = (followed.claude.line("One."), followed.claude.line("Two."));
    followed.human_between(b"", first.as_bytes(), b"");
    followed.human_between(b"", second.as_bytes(), b"\n");
    all.push(followed);
    for followed in &mut all {
        followed.counted(&machines);
    }
}

#[test]
fn a_torn_tail_waits_for_its_rest_and_a_whole_one_for_two_seconds() {
    let machines = TwoMachines::start();
    let mut torn = Followed::new(&machines, "a torn tail");
    let line = torn.claude.line("Stop the mill.");
    let (half, rest) = line.split_at(line.len() / 2);
    let start = torn.claude.len();
    torn.claude.append(half);

    let mut whole = Followed::new(&machines, "a whole tail");
    let tail = whole.claude.line("Stop the mill.");
    whole.human_between(b"", tail.as_bytes(), b"");
    let mut follow = machines.gateway.follow(whole.session.version);
    follow.wait_for_at_least(&whole.session.key, 1);
    whole.claude.append("\n");
    whole.counted(&machines);

    assert!(counted_turns(&machines.gateway, &torn.session.key).is_empty());
    torn.turns.push(torn.turn(start, line.len()));
    torn.claude.append(format!("{rest}\n"));
    torn.counted(&machines);
}

#[test]
fn a_file_that_is_cut_replaced_or_moved_counts_what_is_new_and_nothing_twice() {
    let machines = TwoMachines::start();
    let mut all = Vec::new();

    let mut cut = told(&machines, "cut by its last record");
    let last = cut.turns.pop().expect("a turn");
    let file = fs::OpenOptions::new().write(true).open(cut.claude.path());
    file.expect("open").set_len(last.start).expect("cut");
    cut.claude.reopen();
    // What was counted stays counted; the new line stands in the place of the one cut off.
    let new = cut.claude.human("Start it again.");
    cut.turns.extend([last, new]);
    all.push(cut);

    let mut emptied = told(&machines, "emptied");
    let file = fs::OpenOptions::new()
        .write(true)
        .open(emptied.claude.path());
    file.expect("open").set_len(0).expect("cut");
    emptied.claude.reopen();
    let new = emptied.claude.human("Start it again.");
    emptied.turns.insert(0, new);
    all.push(emptied);

    let mut replaced = told(&machines, "replaced by a longer copy");
    let copy = fs::read(replaced.claude.path()).expect("a transcript");
    put(replaced.claude.path(), &copy);
    replaced.claude.reopen();
    replaced.human();
    all.push(replaced);

    let mut rewritten = told(&machines, "rewritten with other bytes in front");
    let copy = fs::read(rewritten.claude.path()).expect("a transcript");
    let before = b"{\"type\":\"mode\",\"mode\":\"normal\"}\n";
    put(rewritten.claude.path(), &[before, &*copy].concat());
    rewritten.claude.reopen();
    rewritten.human();
    all.push(rewritten);

    let mut moved = told(&machines, "moved to another project");
    moved
        .claude
        .move_to(&machines.node.claude().join("-home-ada-mill"));
    moved.human();
    all.push(moved);

    let mut deleted = told(&machines, "deleted and back");
    let copy = fs::read(deleted.claude.path()).expect("a transcript");
    fs::remove_file(deleted.claude.path()).expect("remove");
    put(deleted.claude.path(), &copy);
    deleted.claude.reopen();
    deleted.human();
    all.push(deleted);

    for followed in &mut all {
        followed.human();
        let mut follow = machines.gateway.follow(followed.session.version);
        follow.wait_for_at_least(&followed.session.key, followed.turns.len());
        let counted = counted_turns(&machines.gateway, &followed.session.key);
        followed.turns.sort();
        assert_eq!(counted, followed.turns, "{}", followed.what);
    }
}

#[test]
fn what_is_no_regular_file_holds_up_nobody_and_the_file_counts_when_it_is_back() {
    let machines = TwoMachines::start();
    let mut healthy = Followed::new(&machines, "a file beside them");
    let mut kept = Vec::new();
    let puts: [(&str, Put); 5] = [
        ("a directory", |path| {
            fs::create_dir(path).expect("a directory");
        }),
        ("a FIFO", |path| {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        }),
        ("a dangling link", |path| {
            symlink("nowhere", path).expect("a link");
        }),
        ("a link to itself", |path| {
            symlink(path, path).expect("a link");
        }),
        ("a socket", |path| {
            drop(UnixListener::bind(path).expect("a socket"));
        }),
    ];
    for (what, put) in puts {
        let followed = told(&machines, what);
        let path = followed.claude.path();
        let aside = path.with_extension("aside");
        fs::rename(path, &aside).expect("aside");
        put(path);
        kept.push((followed, aside));
        healthy.human();
        let mut follow = machines.gateway.follow(healthy.session.version);
        follow.wait_for_turns(&healthy.session.key, healthy.turns.len());
    }
    for (followed, aside) in &mut kept {
        let path = followed.claude.path();
        let removed = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        removed.expect("remove");
        fs::rename(aside, path).expect("back");
        followed.human();
        followed.counted(&machines);
    }
}

#[test]
fn a_line_of_300_mb_is_a_prompt_in_bounded_memory_and_holds_up_nobody() {
    let machines = TwoMachines::start();
    let mut beside = Followed::new(&machines, "a file beside it");
    let mut long = Followed::new(&machines, "a long line");
    let mut beside_follow = machines.gateway.follow(beside.session.version);
    let prompt = long.claude.line("Look at this.");
    let image = r#"[{"type":"text","text":"Look at this."},{"type":"image","source":{"data":""#;
    let (front, back) = prompt.split_once(r#""Look at this.""#).expect("a content");
    let (front, back) = (format!("{front}{image}"), format!("\"}}}}]{back}"));

    let start = long.claude.len();
    long.claude.append(&front);
    let chunk = "QUJD".repeat(1024 * 1024 / 4);
    let mut length = front.len() + back.len();
    while length < LONG_LINE_BYTES {
        long.claude.append(&chunk);
        length += chunk.len();
        if length % (50 * 1024 * 1024) < chunk.len() {
            beside.human();
            beside_follow.wait_for_turns(&beside.session.key, beside.turns.len());
        }
    }
    long.claude.append(format!("{back}\n"));
    long.turns.push(long.turn(start, length));
    let told = machines
        .gateway
        .follow(long.session.version)
        .signal_within(PATIENCE);
    assert!(told.is_some(), "the long line is never told");
    long.counted(&machines);
    let peak = peak_kib(machines.node.id());
    assert!(peak < MAX_PEAK_KIB, "{peak} KiB at the most");
}

/// A thread with a turn that has been told.
fn told(machines: &TwoMachines, what: &str) -> Followed {
    let mut followed = Followed::new(machines, what);
    followed.human();
    let mut follow = machines.gateway.follow(followed.session.version);
    follow.wait_for_turns(&followed.session.key, 1);
    followed
}

/// Another file in its place, at once.
fn put(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).expect("write");
    fs::rename(&new, path).expect("rename");
}
