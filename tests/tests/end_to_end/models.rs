//! Models over real sockets: both protocols, and what providers do when they go wrong.

use std::time::{Duration, Instant};

use serde_json::json;
use tidings_gateway::sessions::hygiene::{Block, Message, Role};
use tidings_gateway::turns::models::{
    Answer, Endpoint, ModelError, Models, Patience, Prompt, Protocol, Tool, Usage,
};
use tidings_tests::DEADLINE;
use tidings_tests::model::{ModelServer, Play, Say};

const BOTH: [Protocol; 2] = [Protocol::OpenAi, Protocol::Anthropic];

/// Waits long, and not at all between two attempts.
pub(crate) fn patience() -> Patience {
    Patience {
        connect: DEADLINE,
        first_piece: DEADLINE,
        next_piece: DEADLINE,
        first_pause: Duration::ZERO,
        ..Patience::default()
    }
}

/// Asks; what was shown on the way, and what came of it.
fn ask_with(
    server: &ModelServer,
    protocol: Protocol,
    patience: Patience,
) -> (String, Result<Answer, ModelError>) {
    let endpoint = Endpoint::new(protocol, &server.base_url(), "m".to_owned(), None);
    ask_at(&endpoint.expect("an endpoint"), patience)
}

pub(crate) fn ask_at(
    endpoint: &Endpoint,
    patience: Patience,
) -> (String, Result<Answer, ModelError>) {
    let messages = [Message {
        role: Role::User,
        content: vec![Block::Text {
            text: "Is the mill running?".to_owned(),
        }],
        stop_reason: None,
    }];
    let tools = [Tool {
        name: "look",
        description: "Looks.",
        parameters: json!({"type": "object"}),
    }];
    let prompt = Prompt {
        system: "You watch a mill.",
        messages: &messages,
        tools: &tools,
        max_tokens: 100,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut shown = String::new();
    let mut show = |text: &str| shown.push_str(text);
    let asking = Models::new(patience);
    let answer = runtime.block_on(asking.ask(endpoint, &prompt, &mut show));
    (shown, answer)
}

#[test]
fn an_answer_is_shown_as_it_comes_and_put_together_in_both_protocols() {
    for protocol in BOTH {
        let say = Say::text("It is, since the morning.")
            .and_call("look", json!({"where": "at the mill"}))
            .using(1_234, 56);
        let server = ModelServer::playing([say.into()]);
        let (shown, answer) = ask_with(&server, protocol, patience());
        let answer = answer.expect("an answer");
        assert_eq!(shown, "It is, since the morning.");
        let usage = Usage {
            input: 1_234,
            output: 56,
        };
        assert_eq!(answer.usage, Some(usage), "{protocol:?}");
        let [
            Block::Text { text },
            Block::ToolCall {
                name, arguments, ..
            },
        ] = answer.message.content.as_slice()
        else {
            panic!("{protocol:?}: {:?}", answer.message.content);
        };
        assert_eq!(text, "It is, since the morning.");
        assert_eq!(name, "look");
        assert_eq!(*arguments, json!({"where": "at the mill"}));
        assert_eq!(answer.message.stop_reason.as_deref(), Some("toolUse"));
        let asked = server.asked();
        assert!(asked[0].offers("look"), "{asked:?}");
        assert_eq!(asked[0].header("authorization"), None);
    }
}

#[test]
fn an_answer_without_a_word_of_tokens_is_an_answer() {
    for protocol in BOTH {
        let server = ModelServer::playing([Say::text("Yes.").without_usage().into()]);
        let (_, answer) = ask_with(&server, protocol, patience());
        assert_eq!(answer.expect("an answer").usage, None, "{protocol:?}");
    }
}

#[test]
fn a_provider_that_is_busy_is_asked_again_and_not_for_ever() {
    for protocol in BOTH {
        let busy = || Play::refuse(429, "rate_limit_error");
        let script = [busy(), Play::refuse(503, "busy"), Say::text("Yes.").into()];
        let server = ModelServer::playing(script);
        let (shown, answer) = ask_with(&server, protocol, patience());
        answer.expect("an answer");
        assert_eq!((shown.as_str(), server.asked().len()), ("Yes.", 3));

        let server = ModelServer::answering(move |_| busy());
        let (_, answer) = ask_with(&server, protocol, patience());
        let error = answer.expect_err("a refusal");
        assert_eq!(
            error.to_string(),
            "the model's provider refuses: status 429, rate_limit_error"
        );
        assert_eq!(server.asked().len(), 4);
    }
}

#[test]
fn a_provider_that_says_no_is_not_asked_again() {
    for protocol in BOTH {
        let server = ModelServer::playing([Play::refuse(401, "authentication_error")]);
        let (_, answer) = ask_with(&server, protocol, patience());
        let error = answer.expect_err("a refusal");
        assert!(error.refusal().is_some(), "{error}");
        assert!(
            !format!("{error} {error:?}").contains("as was said"),
            "{error:?}"
        );
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn an_answer_that_is_cut_is_asked_for_again_only_while_nobody_has_seen_any_of_it() {
    for protocol in BOTH {
        let whole = || Say::text("It is running.");
        let server = ModelServer::playing([Play::Cut(whole(), 1), whole().into()]);
        let (shown, answer) = ask_with(&server, protocol, patience());
        answer.expect("an answer");
        assert_eq!(
            (shown.as_str(), server.asked().len()),
            ("It is running.", 2)
        );

        let server = ModelServer::playing([Play::Cut(whole(), 4), whole().into()]);
        let (shown, answer) = ask_with(&server, protocol, patience());
        assert!(matches!(answer, Err(ModelError::Cut)), "{answer:?}");
        assert!("It is running.".starts_with(&shown) && !shown.is_empty());
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn an_error_in_the_middle_of_an_answer_is_an_error() {
    for protocol in BOTH {
        let server = ModelServer::answering(|_| Play::Break(Say::text("It is.")));
        let (_, answer) = ask_with(&server, protocol, patience());
        let error = answer.expect_err("an error");
        assert!(error.to_string().ends_with("overloaded_error"), "{error}");
    }
}

#[test]
fn a_model_that_does_not_begin_or_stands_still_is_given_up() {
    let impatient = Patience {
        first_piece: Duration::from_millis(200),
        attempts: 1,
        ..patience()
    };
    for protocol in BOTH {
        let server = ModelServer::answering(|_| Play::Silence);
        let (_, answer) = ask_with(&server, protocol, impatient);
        assert!(
            matches!(answer, Err(ModelError::SlowStart(_))),
            "{answer:?}"
        );

        let stalls = Patience {
            next_piece: Duration::from_millis(200),
            ..patience()
        };
        let server = ModelServer::answering(|_| Play::Stall(Say::text("It is running."), 4));
        let (shown, answer) = ask_with(&server, protocol, stalls);
        assert!(matches!(answer, Err(ModelError::Stalled(_))), "{answer:?}");
        assert!(!shown.is_empty());
    }
}

#[test]
fn an_answer_that_comes_and_comes_and_does_not_end_is_given_up() {
    let hurried = Patience {
        whole: Duration::from_millis(200),
        ..patience()
    };
    for (protocol, piece) in [
        (Protocol::OpenAi, ": keep-alive\n\n"),
        (
            Protocol::Anthropic,
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        ),
    ] {
        let server = ModelServer::answering(move |_| Play::Endless(piece));
        let (_, answer) = ask_with(&server, protocol, hurried);
        assert!(matches!(answer, Err(ModelError::Endless(_))), "{answer:?}");
        server.wait_until_left(1);
        assert_eq!(server.asked().len(), 1, "{protocol:?}");
    }
}

#[test]
fn a_provider_that_says_when_to_come_back_is_asked_then() {
    for protocol in BOTH {
        let busy = Play::Refuse {
            status: 429,
            body: String::new(),
            retry_after: Some(1),
        };
        let server = ModelServer::playing([busy, Say::text("Yes.").into()]);
        let began = Instant::now();
        let (shown, answer) = ask_with(&server, protocol, patience());
        answer.expect("an answer");
        assert_eq!(shown, "Yes.");
        assert!(began.elapsed() >= Duration::from_secs(1), "{protocol:?}");
    }
}

#[test]
fn a_key_is_read_when_it_is_needed_and_named_where_it_is_missing() {
    // The path of the test's program is in its environment, whatever that is.
    let set = "PATH";
    let value = std::env::var(set).expect("a path");
    for (protocol, header, expected) in [
        (Protocol::OpenAi, "authorization", format!("Bearer {value}")),
        (Protocol::Anthropic, "x-api-key", value.clone()),
    ] {
        let server = ModelServer::playing([Say::text("Yes.").into()]);
        let endpoint = |variable: &str| {
            let variable = Some(variable.to_owned());
            Endpoint::new(protocol, &server.base_url(), "m".to_owned(), variable)
        };
        let (_, answer) = ask_at(&endpoint(set).expect("an endpoint"), patience());
        answer.expect("an answer");
        assert_eq!(server.asked()[0].header(header), Some(expected.as_str()));

        let unset = endpoint("TIDINGS_NO_SUCH_KEY").expect("an endpoint");
        let (_, answer) = ask_at(&unset, patience());
        let error = answer.expect_err("no key");
        assert!(error.to_string().contains("TIDINGS_NO_SUCH_KEY"), "{error}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn nobody_there_is_an_error_that_says_where() {
    let gone = {
        let server = ModelServer::start();
        server.base_url()
    };
    let endpoint = Endpoint::new(Protocol::OpenAi, &gone, "m".to_owned(), None);
    let once = Patience {
        attempts: 1,
        ..patience()
    };
    // The port may still be open for the moment in which its owner ends.
    let (_, answer) = ask_at(&endpoint.expect("an endpoint"), once);
    let error = answer.expect_err("nobody");
    assert!(error.is_passing(), "{error}");
}
