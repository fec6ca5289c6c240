//! A hook as its program sees it: a whole process, beside the spawn of one that does nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{DoorClient, Gateway, Hooks};

use crate::restart::adopt;
use crate::spec::{Comparison, Figure};
use crate::table::{Figures, millis};

/// Processes of each kind, in turn.
const PROCESSES: usize = 500;

pub(crate) fn hook(gateway: &Gateway, claude: &Path, figures: &mut Figures) {
    let empty = empty_program(gateway);
    let transcript = Claude::create(claude);
    adopt(&mut DoorClient::connect(gateway.state_dir()), &transcript);
    let hooks = Hooks::on_gateway(gateway, &transcript);
    // The slowest kind of hook counts.
    let (mut ratio, mut slowest, mut beside) = (0.0_f64, 0.0_f64, 0.0_f64);
    let stranger = Hooks::on_gateway(gateway, &Claude::create(claude));
    for (name, hooks, event) in [
        ("a prompt", &hooks, "UserPromptSubmit"),
        ("a tool", &hooks, "PreToolUse"),
        ("the end of a turn", &hooks, "Stop"),
        ("a prompt, not adopted", &stranger, "UserPromptSubmit"),
    ] {
        let input = gateway.scratch().path().join("hook-input.json");
        let payload = format!(
            r#"{{"session_id":"{}","hook_event_name":"{event}","transcript_path":"{}"}}"#,
            hooks.session(),
            transcript.path().display()
        );
        fs::write(&input, payload).expect("an input");
        let mut nothing = Vec::with_capacity(PROCESSES);
        let mut whole = Vec::with_capacity(PROCESSES);
        for _ in 0..PROCESSES {
            nothing.push(spawn(gateway.scratch().command(&empty), &input));
            whole.push(spawn(hooks.command(), &input));
        }
        let (nothing, whole) = (sorted(nothing), sorted(whole));
        let middle = |times: &[Duration]| millis(times[times.len() / 2]);
        let (one, other) = (middle(&whole), middle(&nothing));
        let slow = millis(whole[whole.len() * 99 / 100]);
        figures.add(
            &format!("hook, whole process: {name}"),
            format!("{:.2} x {other:.2}, p99 {slow:.2} ms", one / other),
            "<= 2 x an empty binary, p99 <= 15 ms",
        );
        if one / other > ratio {
            (ratio, beside) = (one / other, other);
        }
        slowest = slowest.max(slow);
    }
    let empty = || Comparison::with("the spawn of an empty binary, p50", beside, "ms");
    figures.result(Figure::HookRatio, ratio, empty());
    figures.result(Figure::HookSlow, slowest, empty());
}

/// From the start of a process to its end.
fn spawn(mut command: Command, input: &Path) -> Duration {
    command
        .stdin(File::open(input).expect("an input"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let began = Instant::now();
    let output = command.output().expect("a process");
    let took = began.elapsed();
    assert!(output.status.success(), "{command:?}");
    took
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort_unstable();
    times
}

/// A program that does nothing, built as ours are.
fn empty_program(gateway: &Gateway) -> PathBuf {
    let folder = gateway.scratch().folder("empty");
    let (source, program) = (folder.join("empty.rs"), folder.join("empty"));
    fs::write(&source, "fn main() {}\n").expect("a source");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .args(["-O", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    assert!(
        built.is_ok_and(|built| built.success()),
        "rustc builds no empty program"
    );
    program
}
