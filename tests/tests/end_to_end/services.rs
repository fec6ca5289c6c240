//! The daemons as services: what they tell a service manager, and the units that run them.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidings_tests::{DEADLINE, Gateway, Node, Scratch, Setup, binaries, run};

/// A service manager that listens at `path`.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("bound");
        socket.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        Self(socket)
    }

    #[track_caller]
    fn hears(&self) -> String {
        let mut buffer = [0; 256];
        let length = self.0.recv(&mut buffer).expect("told in time");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

#[test]
fn both_daemons_tell_their_service_manager_when_they_are_ready_and_when_they_stop() {
    let scratch = Scratch::new();
    let path = scratch.path().join("notify");
    let manager = Manager::at(&path);
    let setup = Setup::without_local_node().with_variable("NOTIFY_SOCKET", &path);
    let mut gateway = Gateway::start_as(&scratch, setup);
    assert_eq!(manager.hears(), "READY=1\n");
    let mut node = Node::join(&gateway, "laptop");
    node.set_variable("NOTIFY_SOCKET", &path);
    node.run();
    assert_eq!(manager.hears(), "READY=1\n");
    assert_eq!(node.stop(), 0);
    assert_eq!(manager.hears(), "STOPPING=1\n");
    assert_eq!(gateway.stop(), 0);
    assert_eq!(manager.hears(), "STOPPING=1\n");
}

#[test]
fn a_service_manager_that_does_not_listen_stops_nobody() {
    let scratch = Scratch::new();
    let nobody = scratch.path().join("nobody");
    let setup = Setup::without_local_node().with_variable("NOTIFY_SOCKET", nobody);
    let mut gateway = Gateway::start_as(&scratch, setup);
    assert_eq!(gateway.stop(), 0);
}

fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/units")
}

#[test]
fn the_units_name_commands_that_the_programs_have() {
    for (unit, program, line) in [
        (
            "tidings-gateway.service",
            &binaries().tidings,
            "gateway run",
        ),
        ("tidings-node.service", &binaries().node, "run"),
        ("org.tidings.node.plist", &binaries().node, "run"),
    ] {
        let text = fs::read_to_string(units().join(unit)).expect("a unit");
        let name = program.file_name().and_then(|name| name.to_str());
        assert!(
            text.contains(&format!("bin/{}", name.expect("a name"))),
            "{unit}"
        );
        assert!(
            text.contains(line.split(' ').next_back().expect("a word")),
            "{unit}"
        );
        let scratch = Scratch::new();
        let mut command = scratch.command(program);
        let answer = run(command.args(line.split(' ')).arg("--help"));
        assert_eq!(answer.code, 0, "{answer}");
    }
    let gateway = fs::read_to_string(units().join("tidings-gateway.service")).expect("a unit");
    for promise in [
        "Type=notify",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "StateDirectoryMode=0700",
        "UMask=0077",
    ] {
        assert!(gateway.contains(promise), "{promise}");
    }
}

#[test]
fn systemd_accepts_the_units_where_it_is_there_to_be_asked() {
    let verify = Command::new("systemd-analyze").arg("--version").output();
    if !verify.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: systemd-analyze is not installed, so the units are not verified");
        return;
    }
    let scratch = Scratch::new();
    for (unit, installed, program, scope) in [
        (
            "tidings-gateway.service",
            "/usr/local/bin/tidings ",
            &binaries().tidings,
            "--system",
        ),
        (
            "tidings-node.service",
            "%h/.local/bin/tidings-node ",
            &binaries().node,
            "--user",
        ),
    ] {
        let text = fs::read_to_string(units().join(unit)).expect("a unit");
        let here = text.replace(installed, &format!("{} ", program.display()));
        assert_ne!(here, text, "{unit} names another program");
        let copy = scratch.path().join(unit);
        fs::write(&copy, here).expect("a copy");
        let mut command = scratch.command(Path::new("systemd-analyze"));
        command
            .env("XDG_RUNTIME_DIR", scratch.tmp())
            .args([scope, "verify"])
            .arg(&copy);
        let answer = run(&mut command);
        assert_eq!(answer.code, 0, "{answer}");
    }
}
