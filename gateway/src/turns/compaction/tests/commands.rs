//! Commands that summarise: real processes.

use std::time::Duration;

use super::super::command::{Call, CommandError, CommandSummariser, run};
use super::super::request::{MAX_SUMMARY_BYTES, Summariser, SummaryError, SummaryRequest};

const LONG: Duration = Duration::from_mins(2);

fn request() -> SummaryRequest {
    SummaryRequest {
        schema_version: 1,
        trigger: "threshold",
        instructions: "how".to_owned(),
        identifier_policy: "exactly",
        previous_summary: Some("earlier".to_owned()),
        messages: Vec::new(),
        prompt_tokens: 1,
    }
}

async fn printed(line: &str, limit: Duration) -> Result<String, SummaryError> {
    let command = CommandSummariser::new(line.to_owned(), limit);
    command.summarise(&request()).await
}

#[tokio::test]
async fn a_command_reads_the_request_as_json_and_prints_the_summary() {
    let echoed = printed("cat", LONG).await.expect("a summary");
    let json: serde_json::Value = serde_json::from_str(&echoed).expect("JSON");
    assert_eq!(
        (&json["instructions"], &json["previousSummary"]),
        (&"how".into(), &"earlier".into())
    );
    let trigger = printed("echo \" $TIDINGS_COMPACTION_TRIGGER \"", LONG).await;
    assert_eq!(trigger.as_deref(), Ok("threshold"));
}

#[tokio::test]
async fn a_command_that_fails_says_nothing_or_says_too_much_gives_no_summary() {
    let failed = |message: &str| Err(SummaryError::Failed(message.to_owned()));
    for (line, expected) in [
        (
            "echo x; exit 3",
            failed("the command failed: exit status: 3"),
        ),
        ("true", Err(SummaryError::Empty)),
        (
            "printf '\\377'",
            failed("what the command printed is not UTF-8"),
        ),
    ] {
        assert_eq!(printed(line, LONG).await, expected, "{line}");
    }
    let too_much = printed("yes", LONG).await;
    let message = format!("the command printed more than {MAX_SUMMARY_BYTES} bytes");
    assert_eq!(too_much, failed(&message));
}

#[tokio::test]
async fn a_command_that_takes_too_long_ends_with_all_it_started() {
    let dir = tempfile::tempdir().expect("directory");
    let pid = dir.path().join("pid");
    let line = format!("sleep 600 & echo $! > {}; wait", pid.display());
    let limit = Duration::from_millis(1);
    // Until it has begun before its end.
    let child: i32 = loop {
        let ended = run(Call {
            line: line.clone(),
            environment: Vec::new(),
            input: vec![b'x'; 1 << 20],
            limit: limit * 300,
        });
        assert!(matches!(ended.await, Err(CommandError::TimedOut(_))));
        let written = std::fs::read_to_string(&pid).unwrap_or_default();
        if let Ok(child) = written.trim().parse() {
            break child;
        }
    };
    let child = rustix::process::Pid::from_raw(child).expect("a process");
    let deadline = tokio::time::Instant::now() + LONG;
    // It is gone, or ended and waited for by nobody.
    let ended = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero()));
        rustix::process::test_kill_process(child).is_err()
            || stat.is_ok_and(|stat| stat.contains(") Z"))
    };
    while !ended() {
        assert!(tokio::time::Instant::now() < deadline, "it still runs");
        tokio::task::yield_now().await;
    }
}
