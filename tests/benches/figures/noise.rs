//! What the machine itself takes at that moment, with nothing of ours: how long the shortest
//! of questions and the shortest of writes would have to wait whatever the gateway did.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use tidings_tests::Scratch;

use crate::table::{Figures, percentiles};

const QUESTIONS: usize = 10_000;
const WRITES: u64 = 1_000;
/// What a commit of one signal writes.
const WRITE_BYTES: usize = 40 * 1024;
/// The file is written over and over again, as a log is.
const FILE_BYTES: u64 = 8 * 1024 * 1024;

/// What the machine took.
pub(crate) struct Noise {
    /// A byte to another thread and back.
    pub(crate) echoes: Vec<Duration>,
    /// What a commit writes, written and synced.
    pub(crate) synced: Vec<Duration>,
}

pub(crate) fn noise(figures: &mut Figures) -> Noise {
    let noise = Noise {
        echoes: echoes(),
        synced: synced(),
    };
    let add = |name, times: &[Duration]| (name, percentiles(times), "-");
    for (name, value, target) in [
        add("noise: a byte to another thread and back", &noise.echoes),
        add("noise: 40 KB written and synced", &noise.synced),
    ] {
        figures.add(name, value, target);
    }
    noise
}

fn echoes() -> Vec<Duration> {
    let (mut here, mut there) = UnixStream::pair().expect("a pair of sockets");
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() {
            there.write_all(&byte).expect("an echo");
        }
    });
    let one = |_| {
        let began = Instant::now();
        let mut byte = [1];
        here.write_all(&byte).expect("a byte");
        here.read_exact(&mut byte).expect("its echo");
        began.elapsed()
    };
    let times: Vec<Duration> = (0..QUESTIONS).map(one).collect();
    drop(here);
    echo.join().expect("the echo ends");
    times
}

fn synced() -> Vec<Duration> {
    let scratch = Scratch::new();
    let file = File::create(scratch.path().join("noise")).expect("a file");
    let bytes = vec![7; WRITE_BYTES];
    let places = FILE_BYTES / WRITE_BYTES as u64;
    for place in 0..places {
        file.write_all_at(&bytes, place * WRITE_BYTES as u64)
            .expect("written");
    }
    file.sync_all().expect("synced");
    let one = |number: u64| {
        let began = Instant::now();
        file.write_all_at(&bytes, number % places * WRITE_BYTES as u64)
            .expect("written");
        file.sync_all().expect("synced");
        began.elapsed()
    };
    (0..WRITES).map(one).collect()
}
