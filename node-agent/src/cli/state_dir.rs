//! Which directory holds a program's state, and which socket in it is its door.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tidings_protocol::session_api::{ApiError, ErrorType};

use crate::local::socket::MAX_SOCKET_PATH_BYTES;

/// The environment variable that names the state directory.
pub const STATE_DIR_VARIABLE: &str = "TIDINGS_STATE_DIR";
/// The state directory: the one given, else `TIDINGS_STATE_DIR`, else `~/.tidings`.
pub fn state_dir(given: Option<&Path>) -> Result<PathBuf, ApiError> {
    choose(
        given,
        std::env::var_os(STATE_DIR_VARIABLE),
        std::env::var_os("HOME"),
    )
}

/// Refuses a socket path that no process could bind.
pub fn check_socket_path(path: &Path) -> Result<(), ApiError> {
    let bytes = path.as_os_str().len();
    if bytes <= MAX_SOCKET_PATH_BYTES {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorType::Configuration,
        format!(
            "the socket path {} has {bytes} bytes; the system allows {MAX_SOCKET_PATH_BYTES}",
            path.display()
        ),
    )
    .with_hint("choose a shorter --state-dir"))
}

/// The rule, over plain data. An empty variable counts as none.
fn choose(
    given: Option<&Path>,
    variable: Option<OsString>,
    home: Option<OsString>,
) -> Result<PathBuf, ApiError> {
    let filled = |value: Option<OsString>| value.filter(|value| !value.is_empty());
    if let Some(dir) = given {
        return Ok(dir.to_owned());
    }
    if let Some(dir) = filled(variable) {
        return Ok(dir.into());
    }
    filled(home)
        .map(|home| Path::new(&home).join(".tidings"))
        .ok_or_else(|| {
            ApiError::new(
                ErrorType::Configuration,
                "there is no home directory to keep the state in: HOME is not set",
            )
            .with_hint(format!("give --state-dir, or set {STATE_DIR_VARIABLE}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_variable_and_that_before_home() {
        let os = |text: &str| Some(OsString::from(text));
        let flag = Path::new("/flag");
        for (given, variable, home, chosen) in [
            (Some(flag), os("/var"), os("/home/a"), Some("/flag")),
            (None, os("/var"), os("/home/a"), Some("/var")),
            (None, os(""), os("/home/a"), Some("/home/a/.tidings")),
            (None, None, os("/home/a"), Some("/home/a/.tidings")),
            (None, None, os(""), None),
            (None, None, None, None),
        ] {
            let dir = choose(given, variable, home);
            assert_eq!(dir.ok(), chosen.map(PathBuf::from));
        }
    }

    #[test]
    fn a_socket_path_has_a_limit_and_the_error_names_it() {
        let path = |bytes: usize| PathBuf::from("s".repeat(bytes));
        assert_eq!(check_socket_path(&path(MAX_SOCKET_PATH_BYTES)), Ok(()));
        let error = check_socket_path(&path(MAX_SOCKET_PATH_BYTES + 1)).expect_err("too long");
        assert_eq!(error.error_type, ErrorType::Configuration);
        assert!(error.message.contains(&MAX_SOCKET_PATH_BYTES.to_string()));
    }
}
