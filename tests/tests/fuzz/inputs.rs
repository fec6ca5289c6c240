//! What mutation begins with: the committed corpus, and every golden message.

use std::fs;
use std::path::{Path, PathBuf};

use tidings_protocol::wire::PROTOCOL_VERSION;
use tidings_protocol::wire::frame::HEADER_BYTES;

/// The golden bodies of this set, and the nasty ones of the corpus.
pub(crate) fn bodies(set: &str) -> Vec<Vec<u8>> {
    let golden = format!("../protocol/tests/golden/v{PROTOCOL_VERSION}/{set}");
    let mut bodies = contents("tests/fuzz/corpus/bodies");
    for file in contents(&golden) {
        let text = String::from_utf8(file).expect("a golden file is text");
        for sample in samples(&text) {
            // A marker is stored by itself, everything else in a frame.
            let header = if set == "marker" { 0 } else { HEADER_BYTES };
            bodies.push(sample[header..].to_vec());
        }
    }
    bodies
}

/// The join links of the corpus.
pub(crate) fn links() -> Vec<Vec<u8>> {
    contents("tests/fuzz/corpus/links")
}

/// The bytes of each sample of a golden file: lines of hex digits below a line with `#`.
fn samples(text: &str) -> Vec<Vec<u8>> {
    let mut samples: Vec<Vec<u8>> = Vec::new();
    for line in text.lines() {
        if line.starts_with('#') {
            samples.push(Vec::new());
        } else if let Some(sample) = samples.last_mut() {
            let hex = line.split_whitespace().next().unwrap_or_default();
            let digits = (0..hex.len() / 2).map(|at| &hex[2 * at..2 * at + 2]);
            sample.extend(digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")));
        }
    }
    samples
}

fn contents(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    // In one order everywhere: a seed gives the same inputs again.
    files.sort();
    files
        .iter()
        .map(|file| fs::read(file).expect("a readable file"))
        .collect()
}
