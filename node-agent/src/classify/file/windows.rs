//! The same file through windows of every size shows the same records: a line in memory and
//! one read as a stream are judged alike.

use proptest::prelude::*;

use super::*;

fn prompt(id: u8, text: &str) -> String {
    format!(r#"{{"type":"user","uuid":"{id}","message":{{"role":"user","content":"{text}"}}}}"#)
}

/// Lines of every kind, the last one without its end.
fn every_kind_of_line() -> Vec<u8> {
    let result = r#"{"type":"user","uuid":"r","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"}{"}]}]},"toolUseResult":[1,-2.5e+3,null,true]}"#;
    let torn = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"\"{ \\"#;
    let twice = r#"{"type":"assistant","uuid":"t","type":"\u0075ser","message":{"content":"one"},"message":{"content":"two"}}"#;
    let lines = [
        prompt(1, "plain").into_bytes(),
        format!("{}\r", prompt(2, "caf\u{e9} \u{2028}")).into_bytes(),
        [
            b"\xef\xbb\xbf\0\0 ",
            prompt(3, "\\ud83d\\ude00 \\ud83d").as_bytes(),
            b"\0\0",
        ]
        .concat(),
        Vec::new(),
        b"null".to_vec(),
        [b"17[1,{}]\"user\"", prompt(4, "behind").as_bytes()].concat(),
        b"garbage \xff\xfe".to_vec(),
        format!("{}{}", prompt(5, "glued"), prompt(6, "twice")).into_bytes(),
        format!("{torn}{}", prompt(7, "behind a torn one")).into_bytes(),
        torn.as_bytes().to_vec(),
        result.as_bytes().to_vec(),
        twice.as_bytes().to_vec(),
        [
            &b"{\"type\":\"user\",\"uuid\":\"8\",\"message\":{\"content\":\"a\xffb\"}}"[..],
            b",",
        ]
        .concat(),
        b"{}".to_vec(),
        b"{\"a\":[".to_vec(),
        b"]}}".to_vec(),
        br#"{"type":"queue-operation","operation":"enqueue","content":"later"}"#.to_vec(),
        br#"{"type":"queue-operation","operation":"remove","reason":"absorbed_mid_turn"}"#.to_vec(),
        prompt(9, "the end").into_bytes(),
    ];
    lines.join(&b'\n')
}

/// The records of a file, read through windows of so many bytes, so many at once.
struct Through<'f> {
    path: &'f Path,
    open: OpenFile,
    catalog: Option<Catalog>,
}

impl<'f> Through<'f> {
    fn new(path: &'f Path, catalog: Option<Catalog>, content: &[u8]) -> Self {
        std::fs::write(path, content).expect("write");
        let open = open_regular(path).expect("open");
        Self {
            path,
            open,
            catalog,
        }
    }

    fn records(&self, window: usize, read: usize) -> Vec<ClassifiedRecord> {
        let source = self.catalog.map(|catalog| Source::of(catalog, self.path));
        let mut reader = Reader::new(source);
        let lines = Lines::from(&self.open, self.catalog, 0, u64::MAX).expect("lines");
        let lines = lines.through(window, read);
        assert!(matches!(reader.read(lines).expect("read"), Read::Whole));
        reader.records
    }
}

#[test]
fn windows_of_every_size_show_the_same_records() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("t.jsonl");
    let content = every_kind_of_line();
    let file = Through::new(&path, Some(Catalog::Claude), &content);
    let expected = file.records(content.len(), content.len());
    let humans = expected.iter().filter(|r| r.verdict == Verdict::Human);
    assert_eq!(humans.count(), 11, "{expected:#?}");
    for window in 1..=200 {
        for read in [1, 3, window] {
            let found = file.records(window, read);
            assert_eq!(found, expected, "{window} bytes, {read} at once");
        }
    }
    for read in 1..=content.len() {
        let found = file.records(content.len(), read);
        assert_eq!(found, expected, "{read} at once");
    }
}

/// What lines of any kind are made of.
const PARTS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"\\",
    b" ",
    b"\t",
    b"\r",
    b"\0",
    b"\n",
    b"\n",
    b"a",
    b"\xff",
    b"\xef",
    b"\xbb\xbf",
    b"\xef\xbb\xbf",
    b"null",
    b"tru",
    b"17",
    b"-",
    b"1e5",
    b"\x01",
    b"\\u00",
    b"\"a\":",
    br#"{"type":"user","uuid":"1","message":{"content":"hello"}}"#,
    br#"{"type":"user","uuid":"2","message":{"content":[{"type":"text","text":"a"}]}}"#,
    br#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#,
    br#"{"type":"assistant","message":{"content":"{ \"{\" "#,
    br#"{"type":"assistant","x":[1,"#,
    br#"{"a":{"b":[]}}"#,
    br#"{"type":"event_msg","payload":{"type":"user_message","message":"hi"}}"#,
    br#"{"type":"message","id":"3","message":{"role":"user","content":"hi"}}"#,
];

proptest! {
#[test]
fn windows_of_any_size_show_the_same_records_of_any_lines(
    parts in prop::collection::vec(prop::sample::select(PARTS), 0..40),
    catalog in prop::option::of(prop::sample::select(&Catalog::ALL[..])),
    window in 1..200_usize,
    read in 1..100_usize,
) {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("t.jsonl");
    let content = parts.concat();
    let file = Through::new(&path, catalog, &content);
    let expected = file.records(content.len() + 1, content.len() + 1);
    let shown = String::from_utf8_lossy(&content);
    let found = file.records(window, read);
    prop_assert_eq!(&found, &expected, "{} {:#?} {:#?}", shown, &found, &expected);
}
}
