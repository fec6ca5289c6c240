//! Transcripts as files: read from the end, indexed, shared, forked.

use std::fs::{File, OpenOptions};
use std::io::Write;

use serde_json::json;

use super::*;
use crate::sessions::transcript::cache::Indexes;
use crate::sessions::transcript::fork::{self, Fork};
use crate::sessions::transcript::index::{EntryRef, Index};
use crate::sessions::transcript::line::Kind;
use crate::sessions::transcript::tail::{self, Wanted};

/// A line: `<id> <parent> <what>`, where a parent of `-` is none and `?` is not said.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let [id, parent, what] = words.as_slice() else {
        panic!("{text}");
    };
    let mut value = match *what {
        "session" => json!({"type": "session", "id": id}),
        "compaction" | "custom" | "label" | "branch_summary" => json!({"type": what, "id": id}),
        what if what.starts_with("keeping:") => {
            json!({"type": "compaction", "id": id, "firstKeptEntryId": &what[8..]})
        }
        role => json!({"type": "message", "id": id, "message": {"role": role}}),
    };
    match *parent {
        "?" => {}
        "-" => value["parentId"] = Value::Null,
        parent => value["parentId"] = parent.into(),
    }
    value.to_string()
}

fn transcript(lines: &[&str]) -> String {
    let lines = lines.iter().map(|text| line(text) + "\n");
    lines.collect()
}

const BRANCHED: [&str; 6] = [
    "s ? session",
    "u1 - user",
    "a1 u1 assistant",
    "u2left a1 user",
    "u2right a1 user",
    "a2right u2right assistant",
];

fn index(content: &str) -> Index {
    Index::read(&mut content.as_bytes()).expect("read")
}

/// The ids of entries, as their lines have them.
fn ids(content: &str, index: &Index, entries: &[EntryRef]) -> Vec<String> {
    let id = |entry: &EntryRef| {
        let place = index.place(*entry).expect("a place");
        let at = |offset| usize::try_from(offset).expect("in memory");
        let line = &content.as_bytes()[at(place.offset)..at(place.offset + place.length)];
        let value: Value = serde_json::from_slice(line).expect("the whole line");
        value["id"].as_str().unwrap_or("none").to_owned()
    };
    entries.iter().map(id).collect()
}

#[test]
fn the_active_branch_ends_in_the_last_entry_and_leaves_the_other_branch_out() {
    let content = transcript(&BRANCHED);
    let index = index(&content);
    let branch = index.active_branch();
    assert_eq!(
        ids(&content, &index, &branch),
        ["u1", "a1", "u2right", "a2right"]
    );
    let left = index.find("u2left").expect("there");
    assert_eq!(
        ids(&content, &index, &index.branch(left)),
        ["u1", "a1", "u2left"]
    );
    let children = index.children(index.find("a1"));
    assert_eq!(ids(&content, &index, &children), ["u2left", "u2right"]);
    assert_eq!(index.counts().entries, 5);
    assert!(index.header().is_some());
    // Naming an earlier entry as the parent goes back to it.
    let content = content + &line("u3 a1 user") + "\n";
    let index = self::index(&content);
    assert_eq!(
        ids(&content, &index, &index.active_branch()),
        ["u1", "a1", "u3"]
    );
}

#[test]
fn entries_without_a_parent_or_with_one_that_is_gone_follow_the_line_before() {
    for lines in [
        ["s ? session", "u1 ? user", "a1 ? assistant", "u2 ? user"],
        [
            "s ? session",
            "u1 s user",
            "a1 gone assistant",
            "u2 u2 user",
        ],
    ] {
        let content = transcript(&lines);
        let index = index(&content);
        let branch = index.active_branch();
        assert_eq!(
            ids(&content, &index, &branch),
            ["u1", "a1", "u2"],
            "{lines:?}"
        );
    }
}

#[test]
fn the_model_sees_the_newest_summary_what_is_kept_and_what_followed() {
    let content = transcript(&[
        "s ? session",
        "u1 - user",
        "a1 u1 assistant",
        "x a1 custom",
        "u2 x user",
        "c u2 keeping:u2",
        "l c label",
        "u3 l user",
    ]);
    let index = index(&content);
    let visible = index.visible(&index.active_branch());
    assert_eq!(visible.summary, index.find("c"));
    assert_eq!(ids(&content, &index, &visible.entries), ["u2", "u3"]);
    let before = index.visible(&index.branch(index.find("u2").expect("there")));
    assert_eq!(before.summary, None);
    assert_eq!(ids(&content, &index, &before.entries), ["u1", "a1", "u2"]);
    let hard = transcript(&["s ? session", "u1 - user", "c u1 compaction", "u2 c user"]);
    let index = self::index(&hard);
    let visible = index.visible(&index.active_branch());
    assert_eq!(ids(&hard, &index, &visible.entries), ["u2"]);
}

#[test]
fn broken_lines_are_skipped_and_counted_and_long_ones_are_found() {
    let long = format!(
        r#"{{"type":"message","id":"long","parentId":"u1","message":{{"role":"user","content":"{}"}}}}"#,
        "x".repeat(3 << 20)
    );
    let torn_long = format!(
        r#"{{"type":"message","id":"t","content":"{}"#,
        "x".repeat(2 << 20)
    );
    let content = [
        "\u{feff}".to_owned() + &line("s ? session"),
        "null".to_owned(),
        line("u1 - user") + "\r",
        String::new(),
        "{\"type\":\"mess".to_owned(),
        long,
        torn_long,
        line("a1 long assistant"),
        "{\"type\":\"message\",\"id\":\"torn".to_owned(),
    ]
    .join("\n");
    let index = index(&content);
    assert_eq!(
        ids(&content, &index, &index.active_branch()),
        ["u1", "long", "a1"]
    );
    assert_eq!((index.counts().broken, index.counts().user), (3, 2));
    assert!(index.header().is_some());
    assert!(
        index.end() < content.len() as u64,
        "the torn end is left alone"
    );
}

/// A transcript on disk.
struct OnDisk {
    scratch: TempDir,
    indexes: Indexes,
}

impl OnDisk {
    fn new(content: &str) -> Self {
        let on_disk = Self {
            scratch: tempfile::tempdir().expect("scratch"),
            indexes: Indexes::default(),
        };
        std::fs::write(on_disk.path(), content).expect("written");
        on_disk
    }

    fn path(&self) -> PathBuf {
        self.scratch.path().join("t.jsonl")
    }

    fn append(&self, text: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .open(self.path())
            .expect("open");
        file.write_all(text.as_bytes()).expect("appended");
    }

    /// The index from the cache, after a check that it is the one of the whole file.
    async fn index(&self) -> Arc<Index> {
        let index = self
            .indexes
            .of(&self.path())
            .await
            .expect("read")
            .expect("there");
        let mut file = File::open(self.path()).expect("open");
        let fresh = Index::read(&mut file).expect("read");
        assert!(*index == fresh, "another index than of the whole file");
        index
    }

    fn tail(&self, wanted: Wanted) -> (Vec<String>, tail::Tail) {
        let file = File::open(self.path()).expect("open");
        let size = file.metadata().expect("metadata").len();
        let tail = tail::read(&file, size, wanted).expect("read");
        let id = |entry: &tail::TailEntry| entry.value["id"].as_str().expect("an id").to_owned();
        (tail.entries.iter().map(id).collect(), tail)
    }
}

#[tokio::test]
async fn an_index_is_shared_while_the_file_stays_and_continued_where_it_grows() {
    let on_disk = OnDisk::new(&transcript(&BRANCHED));
    let first = on_disk.index().await;
    assert!(Arc::ptr_eq(&first, &on_disk.index().await), "shared");
    on_disk.append(&line("u3 a1 user"));
    let open = on_disk.index().await;
    assert_eq!(
        open.counts().entries,
        6,
        "a whole last line without its end"
    );
    on_disk.append(&format!("\n{}\n{{\"torn", line("a3 u3 assistant")));
    assert_eq!(on_disk.index().await.counts().entries, 7);
    on_disk.append("\":1}\n");
    let index = on_disk.index().await;
    assert_eq!((index.counts().entries, index.counts().broken), (7, 1));
    std::fs::write(on_disk.path(), transcript(&BRANCHED[..3])).expect("rewritten");
    assert_eq!(on_disk.index().await.counts().entries, 2, "another file");
    std::fs::remove_file(on_disk.path()).expect("removed");
    let none = on_disk.indexes.of(&on_disk.path()).await.expect("looked");
    assert!(none.is_none());
}

#[tokio::test]
async fn who_asks_at_once_gets_the_same_index() {
    let on_disk = OnDisk::new(&transcript(&BRANCHED));
    let ask = || {
        let (indexes, path) = (on_disk.indexes.clone(), on_disk.path());
        tokio::spawn(async move { indexes.of(&path).await.expect("read").expect("there") })
    };
    let asked: Vec<_> = (0..8).map(|_| ask()).collect();
    let mut indexes = Vec::new();
    for one in asked {
        indexes.push(one.await.expect("an index"));
    }
    assert!(indexes.iter().all(|index| Arc::ptr_eq(index, &indexes[0])));
}

#[test]
fn the_end_of_a_transcript_is_read_without_the_rest_and_along_the_active_branch() {
    let mut lines = transcript(&BRANCHED);
    let mut parent = "a2right".to_owned();
    for number in 0..2_000 {
        let id = format!("n{number}");
        lines += &(line(&format!("{id} {parent} user")) + "\n");
        parent = id;
    }
    let on_disk = OnDisk::new(&lines);
    let wanted = Wanted {
        entries: 3,
        bytes: 1 << 20,
    };
    let (ids, tail) = on_disk.tail(wanted);
    assert_eq!(
        (ids, tail.has_more),
        (vec!["n1997".into(), "n1998".into(), "n1999".into()], true)
    );
    let all = Wanted {
        entries: 10_000,
        ..wanted
    };
    let (ids, tail) = on_disk.tail(all);
    assert_eq!((ids.len(), tail.has_more), (2_004, false));
    assert!(!ids.contains(&"u2left".to_owned()));
    let (ids, tail) = on_disk.tail(Wanted { bytes: 200, ..all });
    assert!((1..4).contains(&ids.len()) && tail.has_more, "{ids:?}");
    on_disk.append("broken\n{\"torn");
    let (ids, tail) = on_disk.tail(wanted);
    assert_eq!((ids[2].as_str(), tail.broken), ("n1999", 1));
}

#[test]
fn a_fork_begins_with_what_the_model_sees_or_with_nothing_where_that_is_too_much() {
    let content = transcript(&[
        "s ? session",
        "u1 - user",
        "a1 u1 assistant",
        "u2 a1 user",
        "c u2 keeping:u2",
        "u3 c user",
    ]);
    let on_disk = OnDisk::new(&content);
    let parent = index(&content);
    let Fork::Branch(entries) = fork::plan(&parent, 1_000) else {
        panic!("it fits");
    };
    let file = File::open(on_disk.path()).expect("open");
    let lines = fork::lines(&file, &parent, &entries).expect("read");
    let child = line("child ? session") + "\n" + std::str::from_utf8(&lines).expect("text");
    let index = index(&child);
    assert_eq!(
        ids(&child, &index, &index.active_branch()),
        ["u2", "c", "u3"]
    );
    let visible = index.visible(&index.active_branch());
    assert_eq!(visible.summary, index.find("c"));
    assert_eq!(ids(&child, &index, &visible.entries), ["u2", "u3"]);
    assert!(matches!(fork::plan(&parent, 10), Fork::Isolated { bytes } if bytes > 40));
    assert_eq!(
        index.place(entries[0]).map(|place| place.kind),
        Some(Kind::User)
    );
}
