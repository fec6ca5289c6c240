//! `tidings chat` in a terminal: what a person sees.

use tidings_tests::model::{Asked, Play, Say};
use tidings_tests::{CTRL_C, CTRL_D, WATCHER};

use super::{Running, said};

fn answer(asked: &Asked) -> Play {
    let last = asked.last();
    if !asked.has_tools() {
        return Say::text("They greeted each other.").into();
    }
    if last.contains("a long story") {
        return Play::Stall(Say::text("Once upon a time, there"), 4);
    }
    Say::text("Hello.").using(100, 2).into()
}

#[test]
fn a_conversation_in_a_terminal_is_shown_as_it_goes() {
    let running = Running::answering(answer);
    let mut terminal = running.gateway.terminal(&["chat"]);
    for (typed, last) in [
        ("Good morning.\n", "Hello.\n"),
        ("\n", ""),
        ("/status\n", "Tokens in all: 102\n"),
        ("/compact\n", "now.\n"),
        ("/grind the corn\n", "Hello.\n"),
    ] {
        terminal.wait_for("> ");
        terminal.type_in(typed);
        terminal.wait_for(last);
    }
    terminal.wait_for("> ");
    terminal.type_in("Tell me a long story.\n");
    terminal.wait_for("me, the");
    terminal.type_in(CTRL_C);
    running.model.wait_until_left(1);
    terminal.wait_for("> ");
    terminal.type_in("never mi");
    terminal.wait_for("never mi");
    terminal.type_in(CTRL_C);
    for typed in ["/new\n", "/reset Good evening.\n"] {
        terminal.wait_for("> ");
        terminal.type_in(typed);
    }
    terminal.wait_for("Hello.\n");
    terminal.wait_for("> ");
    terminal.type_in(CTRL_D);
    let (code, shown) = terminal.wait_for_end();
    assert_eq!(code, 0, "{shown}");
    let conversation = shown
        .lines()
        .find_map(|line| line.strip_prefix("Conversation: "))
        .expect("a conversation");
    let shown = shown.replace(conversation, "<id>");
    assert_eq!(
        shown,
        "> Good morning.\n\
         Hello.\n\
         > \n\
         > /status\n\
         Session: agent:main:main\n\
         Conversation: <id>\n\
         Model: m\n\
         Context: 102 tokens of 200000; compacted above 180000\n\
         Compactions: 0\n\
         Tokens in all: 102\n\
         > /compact\n\
         Compacted: 102 tokens before, about 33 now.\n\
         > /grind the corn\n\
         Hello.\n\
         > Tell me a long story.\n\
         Once upon a time, the^C\n\
         the turn is cancelled; Ctrl-D ends the conversation\n\
         > never mi^C\n\
         > /new\n\
         Another conversation has begun.\n\
         > /reset Good evening.\n\
         Hello.\n\
         > "
    );
    assert_eq!(
        said(&running.transcript(WATCHER)),
        ["user: Good evening.", "assistant: Hello."]
    );
}

#[test]
fn a_turn_that_fails_in_a_terminal_says_what_to_do_and_the_conversation_goes_on() {
    let mut refusals = 1;
    let running = Running::answering(move |asked| {
        if asked.last().contains("Stop the mill.") && refusals > 0 {
            refusals -= 1;
            return Play::refuse(401, "authentication_error");
        }
        Say::text("Hello.").into()
    });
    let mut terminal = running.gateway.terminal(&["chat"]);
    terminal.wait_for("> ");
    terminal.type_in("Stop the mill.\n");
    terminal.wait_for("warning: the model's provider refuses: status 401, authentication_error\n");
    terminal.wait_for("hint: check [models.<name>] in config.toml: address, model and key\n");
    terminal.wait_for("> ");
    terminal.type_in("Stop the mill.\n");
    terminal.wait_for("Hello.\n> ");
    terminal.type_in(CTRL_D);
    assert_eq!(terminal.wait_for_end().0, 0);
}
