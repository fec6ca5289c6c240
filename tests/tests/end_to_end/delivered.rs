//! What the gateway itself hands out comes back in a transcript and is nobody's words.

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{LeaseRef, Reply, Request, SpeakerRef, TurnMessage};
use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{
    Adopted, Clocks, DoorClient, Gateway, Node, Scratch, Setup, TwoMachines, WATCHER,
    counted_turns, notice,
};

/// As an agent program that takes its messages and prompts itself with them.
struct Program {
    door: DoorClient,
    session: SessionKey,
}

impl Program {
    fn of(gateway: &Gateway, session: &Adopted) -> Self {
        Self {
            door: DoorClient::connect(gateway.state_dir()),
            session: SessionKey::parse(&session.key).expect("a key"),
        }
    }

    /// Takes what waits, has `write` write each text at once, and confirms.
    fn take(&mut self, mut write: impl FnMut(&str)) -> Vec<TurnMessage> {
        let request = Request::TurnBegin(SpeakerRef {
            session_key: Some(self.session.clone()),
            agent: None,
        });
        let Reply::TurnBegin(begun) = self.door.ask(&request) else {
            panic!("no turn");
        };
        for message in &begun.messages {
            write(&message.body);
        }
        if let Some(token) = begun.token {
            self.door.ask(&Request::TurnConfirm(LeaseRef { token }));
        }
        begun.messages
    }
}

fn send(gateway: &Gateway, session: &Adopted, text: &str) {
    let sent = gateway.ask(&["sessions", "send", &session.key, text, "--from", WATCHER]);
    assert_eq!(sent["queued"], true, "{sent}");
}

#[test]
fn a_delivered_message_is_no_humans_and_the_same_words_typed_later_are() {
    let machines = TwoMachines::start();
    suppresses_one(&machines, &mut Claude::create(&machines.node.claude()));
    suppresses_one(&machines, &mut Codex::create(&machines.node.codex()));
}

fn suppresses_one(machines: &TwoMachines, transcript: &mut dyn Transcript) {
    let gateway = &machines.gateway;
    let session = machines.adopt(transcript);
    let mut follow = gateway.follow(session.version);
    let mut program = Program::of(gateway, &session);

    send(gateway, &session, "Stop the mill,\n  please.");
    // White space is the program's affair.
    let taken = program.take(|_| {
        transcript.human("  Stop the   mill, please.\n");
    });
    assert_eq!(taken.len(), 1);
    let typed = transcript.human("Stop the mill, please.");
    follow.wait_for_turns(&session.key, 1);
    assert_eq!(counted_turns(gateway, &session.key), [typed]);

    let pending = gateway.ask(&["notices", "drain", WATCHER]);
    let text = notice(&session.key, session.version);
    assert_eq!(pending["notices"][0]["text"], text, "{pending}");
}

#[test]
fn however_soon_a_program_writes_what_it_was_given_it_is_never_a_human() {
    let scratch = Scratch::new();
    let (claude_root, codex_root) = (scratch.path().join("claude"), scratch.path().join("codex"));
    std::fs::create_dir_all(&claude_root).expect("a root");
    std::fs::create_dir_all(&codex_root).expect("a root");
    let gateway = Gateway::start_with_local_node(&scratch, &claude_root, &codex_root);
    let mut claude = Claude::create(&claude_root);
    let session = gateway.adopt_local(&claude);
    let mut follow = gateway.follow(session.version);
    let mut program = Program::of(&gateway, &session);
    for round in 0..30 {
        send(&gateway, &session, &format!("Message {round}."));
        let taken = program.take(|text| {
            claude.human(text);
        });
        assert_eq!(taken.len(), 1, "round {round}");
    }
    let typed = claude.human("Message 29.");
    follow.wait_for_turns(&session.key, 1);
    assert_eq!(counted_turns(&gateway, &session.key), [typed]);
}

#[test]
fn what_was_delivered_while_the_node_was_away_is_known_when_it_is_back() {
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let mut follow = machines.gateway.follow(session.version);
    machines.node.kill();
    send(&machines.gateway, &session, "Stop the mill.");
    Program::of(&machines.gateway, &session).take(|text| {
        claude.human(text);
    });
    let typed = claude.human("And start it again.");
    machines.node.run();
    follow.wait_for_turns(&session.key, 1);
    assert_eq!(counted_turns(&machines.gateway, &session.key), [typed]);
}

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Two machines; the gateway's clock is ahead by this much.
fn two_machines_apart(ahead_ms: i64) -> TwoMachines {
    let scratch = Scratch::new();
    let mut clocks = Clocks::new(&scratch);
    clocks.set_wall_ahead(ahead_ms);
    let setup = clocks.under(Setup::without_local_node());
    let gateway = Gateway::start_as(&scratch, setup);
    let mut node = Node::join(&gateway, "laptop");
    node.run();
    TwoMachines { gateway, node }
}

#[test]
fn clocks_that_differ_make_no_echo_a_humans_words_and_no_humans_words_an_echo() {
    for ahead_ms in [HOUR_MS, -HOUR_MS] {
        let mut machines = two_machines_apart(ahead_ms);
        let mut claude = Claude::create(&machines.node.claude());
        let session = machines.adopt(&claude);
        let mut follow = machines.gateway.follow(session.version);
        let mut program = Program::of(&machines.gateway, &session);
        let write = |claude: &mut Claude, text: &str| {
            claude.human(text);
        };

        // While its node listens.
        send(&machines.gateway, &session, "Stop the mill.");
        program.take(|text| write(&mut claude, text));
        let first = claude.human("Stop the mill.");
        follow.wait_for_turns(&session.key, 1);

        // While it is away: a person has typed the same ten minutes before.
        machines.node.kill();
        let at = claude.written_at() - HOUR_MS / 6;
        let before = claude.human_at("Go on.", at);
        send(&machines.gateway, &session, "Go on.");
        program.take(|text| write(&mut claude, text));
        machines.node.run();
        follow.wait_for_turns(&session.key, 2);
        let last = claude.human("Go on.");
        follow.wait_for_turns(&session.key, 3);
        let counted = counted_turns(&machines.gateway, &session.key);
        assert_eq!(counted, [first, before, last], "{ahead_ms} ms");
    }
}

#[test]
fn an_operators_message_is_one_signal_however_often_it_is_seen() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let mut follow = gateway.follow(session.version);
    gateway.ask(&["sessions", "send", &session.key, "Stop the mill."]);
    follow.wait_for_turns(&session.key, 1);
    Program::of(gateway, &session).take(|text| {
        claude.human(text);
    });
    claude.human("And start it again.");
    follow.wait_for_turns(&session.key, 2);
    let list = gateway.ask(&["signals", "list", "--session", &session.key]);
    let lines: Vec<_> = list["signals"]
        .as_array()
        .expect("signals")
        .iter()
        .map(|signal| signal["summary"].as_str().expect("a line"))
        .collect();
    assert_eq!(
        lines,
        [
            "adopted from claude",
            "human message via cli",
            "human message via claude"
        ]
    );
}
