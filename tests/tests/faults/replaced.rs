//! Somebody deletes or replaces the database under a gateway that runs.

use std::fs;
use std::path::Path;

use tidings_tests::audit::DATABASE;
use tidings_tests::{DoorClient, Ended, Gateway, Scratch, Setup};

use crate::record;

const SESSION: &str = "agent:a:main";

fn start() -> Gateway {
    Gateway::start_as(&Scratch::new(), Setup::without_local_node().quiet())
}

/// It says which file, and what to do.
fn named(ended: &Ended, file: &Path) {
    assert_eq!(ended.code, 70, "{ended:?}");
    let error = &ended.said.last().expect("an error on stdout")["error"];
    assert_eq!(error["type"], "internal", "{ended:?}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("deleted or replaced"), "{message}");
    assert!(message.contains(&*file.to_string_lossy()), "{message}");
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.contains("restore a backup"), "{hint}");
}

#[test]
fn a_gateway_whose_database_is_deleted_ends_by_name_though_nobody_asks_it_for_anything() {
    for name in [DATABASE, "state.sqlite-wal"] {
        let mut gateway = start();
        let file = gateway.state_dir().join(name);
        fs::remove_file(&file).expect("deleted");
        named(&gateway.wait_for_end(), &file);
    }
}

#[test]
fn nothing_is_acknowledged_that_went_to_a_deleted_or_replaced_database() {
    let happens: [fn(&Path); 2] = [
        |file| fs::remove_file(file).expect("deleted"),
        |file| {
            let copy = file.with_extension("copy");
            fs::copy(file, &copy).expect("a copy");
            fs::rename(copy, file).expect("in its place");
        },
    ];
    for happens in happens {
        let mut gateway = start();
        let mut door = DoorClient::connect(gateway.state_dir());
        record(&mut door, SESSION).expect("an answer").expect("ok");
        let file = gateway.state_dir().join(DATABASE);
        happens(&file);
        // The gateway may be gone before it has said why not.
        if let Some(answer) = record(&mut door, SESSION) {
            let error = answer.expect_err("not acknowledged");
            assert!(error.message.contains("deleted or replaced"), "{error:?}");
        }
        named(&gateway.wait_for_end(), &file);
    }
}
