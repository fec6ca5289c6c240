//! What a process of ours costs, as the kernel counts it.

use std::fs;
use std::time::Duration;

/// How much memory it holds, in KiB.
pub fn resident_kib(process: u32) -> f64 {
    status_kib(process, "VmRSS:")
}

/// How much memory it held at the most since it began, in KiB.
pub fn peak_kib(process: u32) -> f64 {
    status_kib(process, "VmHWM:")
}

/// How long it has used a processor, in the kernel's ticks of a hundredth of a second.
pub fn cpu_ticks(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let behind_name = stat.rsplit_once(')').expect("a name in parentheses").1;
    let field = |at: usize| -> f64 {
        let field = behind_name.split_whitespace().nth(at).expect("a field");
        field.parse().expect("a number")
    };
    // utime and stime are fields 14 and 15, counted from 1 with the name as the second.
    field(11) + field(12)
}

/// How long this thread has been on a processor, exact to a tick of some milliseconds.
pub fn time_on_cpu() -> Duration {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").expect("a thread");
    let nanoseconds = schedstat.split_whitespace().next().expect("a field");
    Duration::from_nanos(nanoseconds.parse().expect("a number"))
}

fn status_kib(process: u32, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line
        .expect("a line of the status")
        .trim()
        .trim_end_matches(" kB");
    number.parse().expect("a number")
}
