//! Text that is erased is erased: from the database and from its log.

use std::fs;
use std::path::PathBuf;

use super::*;

const SECRET: &str = "Quetzal7marmalade";

impl Fixture {
    /// The files of the database in which the secret can be read.
    fn readable_in(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path()).expect("a folder");
        let files = entries.map(|entry| entry.expect("a file").path());
        files
            .filter(|file| {
                let bytes = fs::read(file).expect("bytes");
                let secret = SECRET.as_bytes();
                bytes.windows(secret.len()).any(|part| part == secret)
            })
            .collect()
    }

    /// Waits until it can be read nowhere.
    async fn until_erased(&self) {
        let erased = async {
            while !self.readable_in().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_mins(2), erased).await;
        assert!(waited.is_ok(), "{:?}", self.readable_in());
    }

    async fn deliver(&self, target: &str) {
        let begun = self.state.turn_begin(address(target)).await;
        let token = begun.expect("a turn").token.expect("a lease");
        self.state.turn_confirm(token).await.expect("confirmed");
    }
}

#[tokio::test]
async fn a_delivered_text_leaves_the_log_too_while_the_database_is_open() {
    let fixture = Fixture::new();
    let target = "agent:main:t";
    // In a page with others, and over pages of its own.
    for text in ["before", SECRET, "between", &SECRET.repeat(3_000), "behind"] {
        fixture.queue(target, None, text).await;
    }
    assert!(
        !fixture.readable_in().is_empty(),
        "it waits to be delivered"
    );
    fixture.deliver(target).await;
    fixture.until_erased().await;
    assert_eq!(fixture.state.check_integrity().await, Ok(Vec::new()));
}

#[tokio::test]
async fn what_a_deleted_session_was_told_leaves_the_log_too() {
    let fixture = Fixture::new();
    fixture.queue("agent:main:t", None, SECRET).await;
    let deleted = fixture.state.delete_session(address("agent:main:t")).await;
    deleted.expect("deleted");
    fixture.until_erased().await;
}

#[tokio::test]
async fn a_reader_that_holds_on_to_an_old_state_delays_it_and_nobody_waits_for_him() {
    let fixture = Fixture::new();
    fixture.queue("agent:main:t", None, SECRET).await;
    let outside = fixture.outside();
    let count = "BEGIN; SELECT count(*) FROM messages;";
    outside.execute_batch(count).expect("an old state");
    fixture.deliver("agent:main:t").await;
    // Tried, and in vain: the reader needs it. Commits go on.
    for _ in 0..20 {
        fixture.change("agent:main:t").await;
    }
    assert!(!fixture.readable_in().is_empty());
    outside.execute_batch("COMMIT").expect("let go");
    fixture.until_erased().await;
}
