//! Starting a process.

use std::io::ErrorKind;
use std::process::{Child, Command};
use std::time::Instant;

use crate::clock::DEADLINE;

/// Starts a process. While another cargo puts a program in its place, which takes the old one
/// away before, it is waited for.
#[track_caller]
pub(crate) fn spawn(command: &mut Command) -> Child {
    let began = Instant::now();
    loop {
        let error = match command.spawn() {
            Ok(child) => return child,
            Err(error) => error,
        };
        let is_in_the_making = matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::ExecutableFileBusy
        );
        assert!(
            is_in_the_making && began.elapsed() < DEADLINE,
            "{command:?} does not start: {error}"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    use super::*;
    use crate::answer::end;
    use crate::scratch::Scratch;

    #[test]
    fn a_program_that_is_just_being_put_in_place_is_waited_for() {
        let scratch = Scratch::new();
        let program = scratch.path().join("program");
        let place = program.clone();
        let putting = thread::spawn(move || {
            let new = place.with_extension("new");
            let mut file = File::create(&new).expect("a file");
            file.write_all(b"#!/bin/sh\n").expect("a program");
            file.set_permissions(Permissions::from_mode(0o700))
                .expect("it may be run");
            // Still being written when it stands in its place.
            fs::rename(&new, &place).expect("in place");
            drop(file);
        });
        let mut child = spawn(&mut scratch.command(&program));
        putting.join().expect("in place");
        end(&mut child);
    }
}
