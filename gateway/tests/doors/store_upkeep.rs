//! What is removed from the session store when somebody asks, and runs of cron jobs.

use std::sync::Arc;

use serde_json::{Value, json};
use tidings_gateway::config::{Config, MaintenanceMode};
use tidings_gateway::{Gateway, GatewayOptions};
use tidings_node::clock::SystemClock;
use tidings_protocol::session_api::{CronRunBegin, ErrorType, Request, RunEnd, RunFinished};

use crate::served::{Served, ask, body, connect, options, refused, speaker};
use crate::store::{KEY, read, store, tidings, until};

#[tokio::test]
async fn a_store_is_looked_after_by_the_running_gateway_and_by_its_path_once_that_has_stopped() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let state_dir = scratch.path().join("state");
    let path = store(&state_dir);
    // By itself it removes nothing, whenever it looks: it is asked here.
    let mut config = Config::default();
    config.session.maintenance.mode = MaintenanceMode::Warn;
    let options = GatewayOptions {
        config: tokio::sync::watch::channel(Arc::new(config)).1,
        ..options(Arc::new(SystemClock::new()), &state_dir, None)
    };
    let gateway = Gateway::start(options).await.expect("gateway");
    let mut door = connect(&state_dir).await;
    ask(&mut door, Request::TurnBegin(speaker(KEY))).await;
    ask(&mut door, Request::TurnEnd(speaker(KEY))).await;
    let mut entries = until(&mut door, "a projection", |_| read(&path)).await;
    entries["agent:main:old"] = json!({"sessionId": "old", "updatedAt": 1});
    entries["agent:main:older"] = json!({"sessionId": "older", "updatedAt": 1});
    std::fs::write(path.with_file_name("old.jsonl"), "{}\n").expect("written");
    std::fs::write(&path, entries.to_string()).expect("written");
    until(&mut door, "the edit", |_| {
        let shown = read(&path)?;
        // Written by the gateway once more, one member a line.
        let lines = std::fs::read_to_string(&path).ok()?.lines().count();
        (shown.get("agent:main:old").is_some() && lines > 3).then_some(())
    })
    .await;
    let by_path = async |doing: &str| {
        let store = path.to_str().expect("text");
        tidings(&state_dir, ["sessions", "cleanup", doing, "--store", store]).await
    };
    let (code, said) = by_path("--enforce").await;
    assert_eq!(code, Some(69), "a live one is refused: {said}");
    let (code, said) = tidings(&state_dir, ["sessions", "cleanup", "--dry-run"]).await;
    assert_eq!(
        (code, said["dryRun"].as_bool()),
        (Some(0), Some(true)),
        "{said}"
    );
    assert_eq!(
        (&said["beforeCount"], &said["afterCount"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(said["freedBytes"], 3, "{said}");
    drop(door);
    gateway.stop().await;

    let (code, said) = by_path("--enforce").await;
    assert_eq!((code, &said["pruned"]), (Some(0), &json!(2)), "{said}");
    assert!(!path.with_file_name("old.jsonl").exists());
    let left = read(&path).expect("a store");
    assert_eq!(
        left.as_object().map(serde_json::Map::len),
        Some(1),
        "{left}"
    );
    let (code, said) = by_path("--enforce").await;
    assert_eq!((code, &said["actions"]), (Some(0), &json!([])), "{said}");
}

#[tokio::test]
async fn a_run_of_a_cron_job_has_a_session_and_a_forced_one_archives_the_conversation_before() {
    let served = Served::start();
    let mut door = served.connect().await;
    let begin = |force| {
        Request::CronRunBegin(CronRunBegin {
            job_id: " Nightly ".to_owned(),
            force,
            agent: None,
        })
    };
    let first = body!(ask(&mut door, begin(false)).await, CronRunBegin);
    assert_eq!(
        (first.session_key.as_str(), first.is_new),
        ("cron:nightly", true)
    );
    let dir = served.dir.path().join("agents/main/sessions");
    std::fs::create_dir_all(&dir).expect("directory");
    let transcript = dir.join(format!("{}.jsonl", first.session_id));
    std::fs::write(&transcript, "{}\n").expect("written");
    let second = body!(ask(&mut door, begin(false)).await, CronRunBegin);
    assert_eq!(
        (&second.session_id, second.is_new),
        (&first.session_id, false)
    );
    assert!(transcript.exists());
    let finished = RunFinished {
        session_key: first.session_key.clone(),
        agent: None,
        outcome: RunEnd::Timeout,
        result: None,
        run_id: Some(second.run_id.to_string()),
        caller: None,
    };
    ask(&mut door, Request::RunFinished(finished)).await;
    let third = body!(ask(&mut door, begin(true)).await, CronRunBegin);
    let (code, said) = tidings(served.dir.path(), ["sessions", "runs", "nightly"]).await;
    let outcomes: Vec<_> = (0..3).map(|n| said["runs"][n]["outcome"].clone()).collect();
    assert_eq!(
        (code, outcomes),
        (
            Some(0),
            vec![Value::Null, json!("timeout"), json!("abandoned")]
        ),
        "{said}"
    );
    assert!(third.is_new && third.session_id != first.session_id);
    assert!(!transcript.exists());
    let archived = std::fs::read_dir(&dir)
        .expect("listed")
        .next()
        .expect("one")
        .expect("entry");
    let archived = archived.file_name().into_string().expect("text");
    assert!(archived.starts_with(&format!("{}.jsonl.reset.", first.session_id)));
    for job_id in ["", " ", "a b"] {
        let bad = Request::CronRunBegin(CronRunBegin {
            job_id: job_id.to_owned(),
            force: false,
            agent: None,
        });
        let error = refused(&mut door, bad).await;
        assert_eq!(error.error_type, ErrorType::InvalidRequest, "{error}");
    }
}
