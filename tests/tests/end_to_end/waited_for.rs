//! A gateway that answers late: whoever waits for it says so.

use std::io::{BufRead, BufReader, Read};

use tidings_tests::{Gateway, Scratch, binaries};

#[test]
fn a_command_says_that_it_waits_for_its_gateway_unless_a_script_reads_it() {
    let gateway = Gateway::start(&Scratch::new());
    gateway.suspend();
    let start = |more: &[&str]| {
        let mut command = gateway.scratch().command(&binaries().tidings);
        command.args(["sessions", "list", "--state-dir"]);
        let child = command.arg(gateway.state_dir()).args(more).spawn();
        child.expect("a command")
    };
    let (mut read_by_a_script, mut read) = (start(&["--json"]), start(&[]));
    let mut stderr = BufReader::new(read.stderr.take().expect("a pipe"));
    let mut said = String::new();
    stderr.read_line(&mut said).expect("a line");
    assert_eq!(
        said,
        "the gateway has not answered for 2s: waiting for it, 60s in all\n"
    );
    gateway.resume();
    for child in [&mut read, &mut read_by_a_script] {
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
    let mut stderr = read_by_a_script.stderr.take().expect("a pipe");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("a text");
    assert_eq!(said, "");
}
