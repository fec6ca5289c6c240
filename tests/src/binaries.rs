//! Builds the two programs once, as the running test was built.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Where the programs are.
#[derive(Debug)]
pub struct Binaries {
    /// `tidings`.
    pub tidings: PathBuf,
    /// `tidings-node`.
    pub node: PathBuf,
}

/// The programs, built with the profile and into the target directory of the running test.
/// Several test processes may ask at once: cargo itself lets one build at a time.
pub fn binaries() -> &'static Binaries {
    static BINARIES: OnceLock<Binaries> = OnceLock::new();
    BINARIES.get_or_init(build)
}

/// A cargo that works in the workspace, with the profile and into the target directory of
/// the running test.
pub fn cargo(command: &str) -> Command {
    let test = std::env::current_exe().expect("the path of the running test");
    // <target directory>/<profile>/deps/<test>
    let profile_dir = test.ancestors().nth(2).expect("a profile's folder");
    let target_dir = profile_dir.parent().expect("a target directory");
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => panic!("no profile in {}", test.display()),
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_this_package(name)) {
        cargo.env_remove(name);
    }
    cargo
        .current_dir(workspace)
        .args([command, "--profile", profile, "--target-dir"])
        .arg(target_dir)
        .stdin(Stdio::null());
    cargo
}

fn build() -> Binaries {
    let output = cargo("build")
        .args(["--bin", "tidings", "--bin", "tidings-node"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "cargo cannot build the programs");
    let messages = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
    Binaries {
        tidings: executable(&messages, "tidings"),
        node: executable(&messages, "tidings-node"),
    }
}

/// What cargo tells a test about its own package: build scripts would see it, take it for a
/// change, and have half of the workspace built anew.
fn is_of_this_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_CRATE_",
        "CARGO_BIN_",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

/// Where cargo says that it put the program `name`.
fn executable(messages: &str, name: &str) -> PathBuf {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .unwrap_or_else(|| panic!("cargo built no {name}"))
}
