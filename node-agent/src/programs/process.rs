//! Which process an agent program is, seen from what it starts: a hook, an MCP server.

use std::fs;

use serde::{Deserialize, Serialize};

/// How many parents are looked at: a program starts what it starts directly or by a shell.
const MAX_PARENTS: usize = 8;
/// Programs that only start others.
const STARTERS: [&str; 10] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "timeout", "nice",
];

/// A process, told from another that got its id later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessId {
    /// Its id.
    pub(super) pid: u32,
    /// When it began, in the words of the system.
    pub(super) started: String,
}

/// What a system says of one process.
struct Seen {
    name: String,
    parent: u32,
    started: String,
}

/// The agent program that started this process: the nearest parent that is no shell. `None`
/// where the system says nothing of it.
pub(super) fn of_program() -> Option<ProcessId> {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..MAX_PARENTS {
        let seen = look(pid)?;
        if !STARTERS.contains(&seen.name.as_str()) {
            return Some(ProcessId {
                pid,
                started: seen.started,
            });
        }
        pid = seen.parent;
    }
    None
}

impl ProcessId {
    /// This process; `None` where the system says nothing of it.
    pub(super) fn own() -> Option<Self> {
        let pid = std::process::id();
        let started = look(pid)?.started;
        Some(Self { pid, started })
    }

    /// False once the process has ended, also where another has its id by now.
    pub(super) fn runs(&self) -> bool {
        look(self.pid).is_some_and(|seen| seen.started == self.started)
    }
}

#[cfg(target_os = "linux")]
fn look(pid: u32) -> Option<Seen> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&stat)
}

/// Reads a line of `/proc/<pid>/stat`: the name stands in parentheses and may hold anything.
#[cfg(target_os = "linux")]
fn parse_stat(stat: &str) -> Option<Seen> {
    let (head, fields) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = fields.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.to_owned();
    Some(Seen {
        name: name.to_owned(),
        parent,
        started,
    })
}

#[cfg(not(target_os = "linux"))]
fn look(pid: u32) -> Option<Seen> {
    let output = std::process::Command::new("ps")
        .args(["-o", "ppid=,lstart=,comm=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    parse_ps(&String::from_utf8(output.stdout).ok()?)
}

/// Reads a line of `ps`: the parent, the start in five words, and the program's path.
#[cfg(any(test, not(target_os = "linux")))]
fn parse_ps(line: &str) -> Option<Seen> {
    let mut words = line.split_whitespace();
    let parent = words.next()?.parse().ok()?;
    let started: Vec<&str> = words.by_ref().take(5).collect();
    let path = words.collect::<Vec<_>>().join(" ");
    let name = path.rsplit('/').next()?.trim_start_matches('-').to_owned();
    (started.len() == 5 && !name.is_empty()).then(|| Seen {
        name,
        parent,
        started: started.join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_nearest_parent_that_is_no_shell() {
        let program = of_program().expect("whoever runs this test");
        assert!(program.runs());
        let later = ProcessId {
            started: "another start".to_owned(),
            ..program
        };
        assert!(!later.runs());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_in_a_process_list_may_hold_anything() {
        let rest = "S 41 5 5 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 777 100";
        for name in ["claude", "a) S 1 (b", ""] {
            let seen = parse_stat(&format!("9 ({name}) {rest}")).expect("a process");
            assert_eq!((seen.parent, seen.started.as_str()), (41, "777"), "{name}");
            assert_eq!(seen.name, name);
        }
        assert!(parse_stat("9 (x").is_none());
    }

    #[test]
    fn a_line_of_ps_gives_parent_start_and_name() {
        let seen = parse_ps("  41 Mon Nov 30 08:00:01 2026 /Applications/My App/claude\n");
        let seen = seen.expect("a process");
        assert_eq!((seen.parent, seen.name.as_str()), (41, "claude"));
        assert_eq!(seen.started, "Mon Nov 30 08:00:01 2026");
        assert_eq!(
            parse_ps("1 Mon Nov 30 08:00:01 2026 -zsh")
                .expect("one")
                .name,
            "zsh"
        );
        assert!(parse_ps("").is_none());
        assert!(parse_ps("41 Mon Nov").is_none());
    }
}
