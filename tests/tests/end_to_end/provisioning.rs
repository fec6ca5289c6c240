//! Nodes by the dozen: the script, with the real programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tidings_tests::{Answer, Gateway, Node, Scratch, binaries, files, run, until};

/// Runs the script beside `gateway`.
fn provision(gateway: &Gateway, options: &[&str], names: &str, out: &Path) -> Answer {
    let list = gateway.scratch().path().join("names.txt");
    fs::write(&list, names).expect("names");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/provision-nodes.sh");
    let mut command = gateway.scratch().command(Path::new(script));
    command
        .env("TIDINGS", &binaries().tidings)
        .env("TIDINGS_STATE_DIR", gateway.state_dir())
        .args(options)
        .arg(&list)
        .arg(out);
    run(&mut command)
}

fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).expect("a file or folder");
    metadata.permissions().mode() & 0o777
}

fn out(gateway: &Gateway) -> PathBuf {
    gateway.scratch().folder("out")
}

#[test]
fn machines_that_made_a_request_get_a_certificate_and_keep_their_keys() {
    let gateway = Gateway::start(&Scratch::new());
    let out = out(&gateway);
    let names = "laptop   # Ada's\n\ndesktop\n";
    let mut machines: Vec<Node> = ["laptop", "desktop"]
        .map(|name| Node::new(gateway.scratch(), name))
        .into();
    let missing = provision(&gateway, &[], names, &out);
    assert_eq!(missing.code, 1, "{missing}");
    assert!(missing.stderr.contains("tidings-node request"), "{missing}");
    for machine in &machines {
        let request = out.join(format!("{}.csr", machine.name()));
        let made = machine.command(&["request", "--out", request.to_str().expect("a path")]);
        let pem = made.done()["request"].clone();
        assert!(pem.as_str().expect("PEM").contains("CERTIFICATE REQUEST"));
    }

    let done = provision(&gateway, &[], names, &out);
    assert_eq!(done.code, 0, "{done}");
    let keys = |folder: &Path| {
        let mut keys = files(folder);
        keys.retain(|file| file.extension().is_some_and(|end| end == "key"));
        keys
    };
    assert_eq!(keys(&out), Vec::<PathBuf>::new(), "no key travels");
    assert_eq!(mode(&out), 0o700);
    for machine in &mut machines {
        let folder = out.join(machine.name());
        assert_eq!(
            (mode(&folder), mode(&folder.join("node.json"))),
            (0o700, 0o600)
        );
        let path = folder.to_str().expect("a path");
        let joined = machine.command(&["join", "--certificate", path]).done();
        assert_eq!(joined["hostName"], machine.name(), "{joined}");
        machine.run();
    }
    let again = provision(&gateway, &[], names, &out);
    assert_eq!(again.code, 0, "{again}");
    assert_eq!(again.stdout, "", "nothing is made twice: {again}");
    // What one machine was given is of no use to another.
    let other = Node::new(gateway.scratch(), "other");
    other.command(&["request"]).done();
    let stolen = out.join("laptop");
    let refused = other.command(&["join", "--certificate", stolen.to_str().expect("a path")]);
    assert_eq!(refused.code, 65, "{refused}");
}

#[test]
fn with_keys_a_folder_is_all_that_a_machine_needs() {
    let gateway = Gateway::start(&Scratch::new());
    let out = out(&gateway);
    let options = ["--with-keys", "--address", gateway.address()];
    let done = provision(&gateway, &options, "laptop\nNo Name!\n", &out);
    assert_eq!(done.code, 1, "one name is none: {done}");
    assert!(done.stderr.contains("no host name"), "{done}");
    let folder = out.join("laptop");
    assert_eq!(mode(&folder), 0o700);
    for file in files(&folder) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let mut machine = Node::new(gateway.scratch(), "laptop");
    let path = folder.to_str().expect("a path");
    machine.command(&["join", "--certificate", path]).done();
    assert_eq!(mode(&machine.state_dir().join("node.key")), 0o600);
    machine.run();
    let shown = gateway.ask(&["nodes", "show", "laptop"]);
    assert_eq!(shown["status"], "connected", "{shown}");
    assert_eq!(shown["audit"][0]["action"], "cert.issue", "{shown}");
}

#[test]
fn a_node_whose_certificate_was_revoked_comes_back_with_the_next_one() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::join(&gateway, "laptop");
    node.run();
    let revoked = gateway.ask(&["cert", "revoke", "laptop"]);
    assert_eq!(revoked["revoked"].as_array().map(Vec::len), Some(1));
    until("the node to be turned away", || {
        let status = node.command(&["status"]).done();
        let error = status["connectionError"].as_str()?;
        error.contains("cert renew").then_some(())
    });
    let folder = out(&gateway).join("laptop");
    let path = folder.to_str().expect("a path");
    let renew = [
        "cert",
        "renew",
        "laptop",
        "--out",
        path,
        "--address",
        gateway.address(),
    ];
    let renewed = gateway.ask(&renew);
    assert_eq!(renewed["hostName"], "laptop", "{renewed}");
    let busy = node.command(&["join", "--certificate", path]);
    assert_eq!(busy.code, 69, "not while its agent runs: {busy}");
    assert_eq!(node.stop(), 0);
    node.command(&["join", "--certificate", path]).done();
    node.run();
    let states = gateway.ask(&["cert", "inspect", "laptop"]);
    assert_eq!(states["certificates"][0]["state"], "valid", "{states}");
    assert_eq!(states["certificates"][1]["state"], "revoked", "{states}");
}

#[test]
fn what_the_script_cannot_do_it_names() {
    let mut gateway = Gateway::start(&Scratch::new());
    let out = out(&gateway);
    let taken = provision(&gateway, &["--with-keys"], "local\n", &out);
    assert_eq!(taken.code, 1, "{taken}");
    assert!(taken.stderr.contains("local: not issued"), "{taken}");
    let usage = provision(&gateway, &["--keys"], "laptop\n", &out);
    assert_eq!(usage.code, 2, "{usage}");
    gateway.kill();
    let down = provision(&gateway, &["--with-keys"], "laptop\n", &out);
    assert_eq!(down.code, 1, "{down}");
    assert!(down.stderr.contains("the gateway is not running"), "{down}");
    assert!(
        !out.join("laptop/node.key").exists(),
        "no key without a node"
    );
}
