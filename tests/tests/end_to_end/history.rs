//! What was said in a conversation on another machine, for who asks for text.

use tidings_tests::TwoMachines;
use tidings_tests::transcripts::{Claude, Codex, Transcript};

#[test]
fn the_newest_of_a_conversation_on_another_machine_is_read_page_by_page() {
    let mut machines = TwoMachines::start();
    for transcript in [
        Box::new(Claude::create(&machines.node.claude())) as Box<dyn Transcript>,
        Box::new(Codex::create(&machines.node.codex())),
    ] {
        let mut transcript = transcript;
        let session = machines.adopt_unwatched(&*transcript);
        for n in 0..5 {
            transcript.human(&format!("Question {n}, with sk-0123456789abcdefghij."));
        }
        let ask = |more: &[&str]| {
            let first = ["sessions", "history", &session.key, "--limit", "3"];
            machines.gateway.ask(&[&first, more].concat())
        };
        let newest = ask(&[]);
        let before = newest["before"].as_u64().expect("more before it");
        let older = ask(&["--before", &before.to_string()]);
        let texts: Vec<String> = [&older, &newest]
            .iter()
            .flat_map(|page| page["items"].as_array().expect("items"))
            .map(|item| format!("{}: {}", item["role"], item["text"]))
            .collect();
        let expected: Vec<String> = (0..5)
            .map(|n| format!("\"user\": \"Question {n}, with [redacted]\""))
            .collect();
        assert_eq!(texts[texts.len() - 5..], expected, "{texts:?}");
    }

    let claude = Claude::create(&machines.node.claude());
    let session = machines.adopt_unwatched(&claude);
    machines.node.kill();
    let answer = machines.gateway.run(&["sessions", "history", &session.key]);
    assert_eq!(answer.code, 69, "{answer}");
    assert_eq!(answer.refused()["type"], "unavailable");
}
