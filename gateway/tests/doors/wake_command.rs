//! `wake.command`, with real programs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidings_gateway::config::{Config, Switch};
use tidings_gateway::{Gateway, GatewayOptions};
use tidings_node::clock::SystemClock;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::served::{self, PATIENCE, connect, speak, watch};

const WATCHER: &str = "agent:main:main";
const OTHER: &str = "agent:main:other";
const TARGET: &str = "agent:ops:main";

fn config(program: Option<&Path>) -> Arc<Config> {
    let mut config = Config::default();
    if let Some(program) = program {
        config.wake.command = Switch::On(program.to_owned());
    }
    Arc::new(config)
}

/// A program that writes its arguments down, line by line.
fn program(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (program, told) = (dir.join(name), dir.join(format!("{name}.told")));
    let script = format!("#!/bin/sh\necho \"$#\" \"$@\" >> {}\n", told.display());
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).expect("mode");
    (program, told)
}

async fn start(dir: &Path, config: watch::Receiver<Arc<Config>>) -> Gateway {
    let options = GatewayOptions {
        config,
        ..served::options(Arc::new(SystemClock::new()), dir, None)
    };
    Gateway::start(options).await.expect("gateway")
}

/// Waits until the program has been told this, in any order.
async fn until_told(told: &Path, expected: &[&str]) {
    let mut expected: Vec<_> = expected.iter().map(|key| format!("1 {key}")).collect();
    expected.sort();
    let waiting = async {
        loop {
            let text = std::fs::read_to_string(told).unwrap_or_default();
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            if lines == expected {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE * 3, waiting).await.expect("it is told");
}

#[tokio::test]
async fn the_command_runs_for_each_wake_and_at_a_start_for_each_notice_that_is_there() {
    let scratch = tempfile::tempdir().expect("scratch");
    let dir = scratch.path().join("state");
    let (first, told_first) = program(scratch.path(), "first");
    let (change, configured) = watch::channel(config(Some(&first)));
    let gateway = start(&dir, configured).await;
    let mut operator = connect(gateway.state_dir()).await;
    watch(&mut operator, WATCHER, TARGET).await;
    for _ in 0..5 {
        speak(&mut operator, TARGET).await;
    }
    until_told(&told_first, &[WATCHER]).await;
    watch(&mut operator, OTHER, TARGET).await;
    speak(&mut operator, TARGET).await;
    until_told(&told_first, &[WATCHER, OTHER]).await;

    // Another command begins with what is there.
    let (second, told_second) = program(scratch.path(), "second");
    change.send_replace(config(Some(&second)));
    until_told(&told_second, &[WATCHER, OTHER]).await;
    drop(operator);
    gateway.stop().await;

    let (third, told_third) = program(scratch.path(), "third");
    let (change, configured) = watch::channel(config(None));
    let gateway = start(&dir, configured).await;
    change.send_replace(config(Some(&third)));
    until_told(&told_third, &[WATCHER, OTHER]).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_command_that_cannot_be_started_or_fails_leaves_the_notice_and_is_counted() {
    let scratch = tempfile::tempdir().expect("scratch");
    let dir = scratch.path().join("state");
    let (change, configured) = watch::channel(config(Some(&scratch.path().join("none"))));
    let options = GatewayOptions {
        config: configured,
        http: Some(tidings_gateway::doors::http::HttpOptions::at(
            "127.0.0.1:0".parse().expect("address"),
        )),
        ..served::options(Arc::new(SystemClock::new()), &dir, None)
    };
    let gateway = Gateway::start(options).await.expect("gateway");
    let web = crate::web::Web::of(&gateway, "");
    let mut operator = connect(gateway.state_dir()).await;
    watch(&mut operator, WATCHER, TARGET).await;
    speak(&mut operator, TARGET).await;
    let counted = |outcome: &'static str| {
        let web = web.clone();
        let name = format!("tidings_wake_commands_total{{outcome=\"{outcome}\"}}");
        async move { while web.figure(&name).await < 1.0 {} }
    };
    let waited = timeout(PATIENCE * 3, counted("not_started")).await;
    waited.expect("it is counted");
    change.send_replace(config(Some(Path::new("/bin/false"))));
    let waited = timeout(PATIENCE * 3, counted("failed")).await;
    waited.expect("it is counted");
    assert!((web.figure("tidings_notices_pending").await - 1.0).abs() < f64::EPSILON);
    gateway.stop().await;
}
