//! The golden files: hex for people and for `git diff`, sealed per protocol version.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tidings_protocol::digest::{hex, sha256, unhex};
use tidings_protocol::wire::PROTOCOL_VERSION;

use crate::samples;

/// The samples of one file by the name of their case.
pub(crate) type Cases = BTreeMap<String, Vec<u8>>;

/// How many bytes stand on one line of a golden file.
const BYTES_PER_LINE: usize = 32;

/// The golden files of `version` by `<set>/<name>`.
pub(crate) fn of(version: u32) -> BTreeMap<String, Cases> {
    texts(version)
        .into_iter()
        .map(|(file, text)| {
            let cases = parse(&text).unwrap_or_else(|| panic!("v{version}/{file}.hex is no hex"));
            (file, cases)
        })
        .collect()
}

/// The digest that `version` is sealed with, if it is.
pub(crate) fn seal(version: u32) -> Option<String> {
    blessed();
    fs::read_to_string(seal_path(version))
        .ok()
        .map(|text| text.trim().to_owned())
}

/// The digest of the files of `version` as they are now.
pub(crate) fn digest(version: u32) -> String {
    seal_of(&texts(version))
}

/// What to do when the bytes of `version` are not what they were.
pub(crate) fn what_to_do(version: u32) -> String {
    format!(
        "Other bytes are another protocol version: raise PROTOCOL_VERSION in \
         protocol/src/wire/mod.rs and run\n\
         \x20   TIDINGS_BLESS=1 cargo test -p tidings-protocol --test golden\n\
         The new version gets a folder and a seal of its own; the old ones stay, and must \
         decode as long as OLDEST_PROTOCOL_VERSION promises it.\n\
         Only while nothing that was ever released speaks version {version}: delete \
         protocol/tests/golden/v{version}.sha256 first, and bless again."
    )
}

/// The texts of all files of `version`, by `<set>/<name>`.
fn texts(version: u32) -> BTreeMap<String, String> {
    blessed();
    let mut texts = BTreeMap::new();
    let folder = folder(version);
    for set in entries(&folder) {
        for file in entries(&folder.join(&set)) {
            let name = file
                .strip_suffix(".hex")
                .unwrap_or_else(|| panic!("v{version}/{set}/{file} is no golden file"));
            let path = folder.join(&set).join(&file);
            let text =
                fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            texts.insert(format!("{set}/{name}"), text);
        }
    }
    texts
}

/// Writes the files of the current version once per run, where that is asked for and it is
/// not sealed; where it is, the tests show the difference.
fn blessed() {
    static BLESSED: OnceLock<()> = OnceLock::new();
    BLESSED.get_or_init(|| {
        let asked = std::env::var_os("TIDINGS_BLESS").is_some_and(|value| value == "1");
        if asked && !seal_path(PROTOCOL_VERSION).exists() {
            write_current();
        }
    });
}

fn write_current() {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for sample in samples::all() {
        let text = texts.entry(sample.file()).or_default();
        render(sample.case, &sample.bytes, text);
    }
    let folder = folder(PROTOCOL_VERSION);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder goes");
    }
    for (file, text) in &texts {
        let path = folder.join(format!("{file}.hex"));
        fs::create_dir_all(path.parent().expect("a set")).expect("a folder per set");
        fs::write(path, text).expect("a golden file is written");
    }
    let seal = format!("{}\n", seal_of(&texts));
    fs::write(seal_path(PROTOCOL_VERSION), seal).expect("the seal is written");
}

/// One digest over the names and texts of all files.
fn seal_of(texts: &BTreeMap<String, String>) -> String {
    let mut list = String::new();
    for (file, text) in texts {
        let digest = hex(&sha256(text.as_bytes()));
        writeln!(list, "{digest}  {file}").expect("a String takes all");
    }
    hex(&sha256(list.as_bytes()))
}

/// `# <case>`, then lines of hex with their printable characters beside them.
fn render(case: &str, bytes: &[u8], text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
    writeln!(text, "# {case}").expect("a String takes all");
    for line in bytes.chunks(BYTES_PER_LINE) {
        let plain: String = line
            .iter()
            .map(|byte| match byte {
                b' '..=b'~' => char::from(*byte),
                _ => '.',
            })
            .collect();
        let width = 2 * BYTES_PER_LINE;
        writeln!(text, "{:width$}  |{plain}|", hex(line)).expect("a String takes all");
    }
}

/// Reads what [`render`] wrote.
fn parse(text: &str) -> Option<Cases> {
    let mut cases = Cases::new();
    let mut current = None;
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(case) = line.strip_prefix("# ") {
            current = Some(case.to_owned());
            continue;
        }
        let digits = line.split('|').next()?.trim();
        let bytes: &mut Vec<u8> = cases.entry(current.clone()?).or_default();
        bytes.extend(unhex(digits)?);
    }
    Some(cases)
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn folder(version: u32) -> PathBuf {
    golden().join(format!("v{version}"))
}

fn seal_path(version: u32) -> PathBuf {
    golden().join(format!("v{version}.sha256"))
}

/// The names in `folder`; none where it does not exist.
fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .map(|entry| {
            let name = entry.expect("a readable folder").file_name();
            name.into_string().expect("a plain name")
        })
        .collect()
}

#[test]
fn a_golden_file_reads_back_as_written() {
    let mut text = String::new();
    let bytes: Vec<u8> = (0..=255).collect();
    render("all bytes", &bytes, &mut text);
    render("few", b"|#\n", &mut text);
    let expected = Cases::from([
        ("all bytes".to_owned(), bytes),
        ("few".to_owned(), b"|#\n".to_vec()),
    ]);
    assert_eq!(parse(&text), Some(expected));
}

#[test]
fn one_other_byte_or_name_breaks_the_seal() {
    let texts = |file: &str, text: &str| BTreeMap::from([(file.to_owned(), text.to_owned())]);
    let seal = seal_of(&texts("message/hello", "00"));
    assert_eq!(seal, seal_of(&texts("message/hello", "00")));
    assert_ne!(seal, seal_of(&texts("message/hello", "01")));
    assert_ne!(seal, seal_of(&texts("message/hallo", "00")));
}
