//! Completions and man pages.

use std::fs;
use std::process::Command;

use crate::run::alone;

/// What a command prints on stdout, if it ended well and said nothing else.
fn printed(line: &str) -> String {
    let whole = alone(line);
    let body = whole.strip_prefix("exit 0\n--- stdout\n");
    let body = body.and_then(|body| body.strip_suffix("--- stderr\n"));
    body.unwrap_or_else(|| panic!("{whole}")).to_owned()
}

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&format!("completions {shell}"));
        for word in ["quickstart", "adopt", "changes-since", "state-dir"] {
            assert!(script.contains(word), "{shell} is not told of {word}");
        }
    }
}

#[test]
fn bash_takes_the_script_and_completes_with_it() {
    let script = printed("completions bash");
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("tidings.bash");
    fs::write(&path, script).expect("script");
    let ask = "source \"$0\"; COMP_WORDS=(tidings sessions ad); COMP_CWORD=2; \
               _tidings tidings ad sessions; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let asked = Command::new("bash").args(["-c", ask]).arg(&path).output();
    let asked = asked.expect("bash");
    assert_eq!(String::from_utf8_lossy(&asked.stdout), "adopt\n");
}

#[test]
fn each_command_has_a_man_page() {
    let dir = tempfile::tempdir().expect("directory");
    let man = dir.path().join("new/man1");
    let whole = alone(&format!("man --dir {}", man.display()));
    assert!(whole.contains("man pages in"), "{whole}");
    for (name, says) in [
        ("tidings.1", "SUBCOMMANDS"),
        ("tidings-sessions-adopt.1", "watch\\-by"),
        ("tidings-signals-follow.1", "tidings\\-signals\\-follow"),
    ] {
        let page = fs::read_to_string(man.join(name)).expect(name);
        assert!(page.contains(says), "{name}: {page}");
    }
    assert!(printed("man").contains(".TH tidings 1"));
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let whole = alone("man --dir /dev/null/man1");
    assert!(whole.starts_with("exit 73\n"), "{whole}");
    assert!(whole.contains("/dev/null/man1: "), "{whole}");
    assert!(whole.contains("hint: name a directory"), "{whole}");
}
