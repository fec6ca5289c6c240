//! Small libraries that stand between a process and the C library: see `shim/`.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/shim");

/// Compiles the library of this name into a folder, as SQLite is compiled.
pub(crate) fn compile(name: &str, folder: &Path) -> PathBuf {
    let source = Path::new(SOURCES).join(name).with_extension("c");
    let library = folder.join(name).with_extension("so");
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let status = Command::new(cc)
        .args([
            "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
        ])
        .args([library.as_os_str(), source.as_os_str(), "-ldl".as_ref()])
        .status();
    let status = status.expect("a C compiler, which SQLite needs too");
    assert!(status.success(), "{} does not compile", source.display());
    library
}
