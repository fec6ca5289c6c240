//! Command lines that cannot be meant, and help.

use insta::assert_snapshot;

use crate::run::alone;

#[test]
fn tidings_alone_prints_help() {
    assert_snapshot!(alone(""), @"
    exit 0
    --- stdout
    Tells an agent session, once and in time, that somebody else changed a session it depends on

    Usage: tidings [OPTIONS] [COMMAND]

    Commands:
      quickstart   Shows the main job on this machine in one go
      gateway      The gateway process
      config       What is configured, and where it comes from
      logs         What the gateway wrote into its log
      status       The gateway, its nodes and its links at a glance
      doctor       What is wrong, and the command that mends it
      backup       Copies the state database to a new file
      nodes        The machines whose transcripts are followed
      cert         Certificates for machines that are set up by the dozen, or out of reach
      token        Tokens for programs that ask over HTTP
      catalog      The threads that agent programs wrote on all machines
      agents       Agents, and all that is theirs
      sessions     Sessions: threads taken into the gateway under a session key
      chat         Talks to a session that the gateway runs against a model
      watch        Who is told of changes to which session
      notices      The lines that tell a watcher of a change
      signals      The durable log of what happened to sessions
      integrate    Has an agent program on this machine call the hooks and the session tools
      hook         A hook of an agent program on this machine
      mcp          The session tools of an agent program, by MCP on standard input and output
      completions  Prints a script by which a shell completes commands and options
      man          Prints the man page, or writes the pages of all commands
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Options of every command:
          --state-dir <DIR>  The state directory; else $TIDINGS_STATE_DIR, else ~/.tidings
          --json             One JSON document on stdout (for a stream, one object a line)

    Begin with:
      tidings quickstart

    Exit codes:
      0 done, 1 there is no such thing or something was found, 2 the command line cannot be meant,
      65 bad data, 66 no such file, 69 not reachable, 70 a fault of ours, 73 cannot create,
      74 cannot write to stdout, 75 try later, 77 not permitted, 78 configuration
    --- stderr
    ");
    assert_eq!(alone(""), alone("--help"));
}

#[test]
fn tidings_alone_with_json_is_an_error_document() {
    assert_snapshot!(alone("--json"), @r#"
    exit 2
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"usage","message":"tidings needs a command","hint":"the commands are quickstart, gateway, config, logs, status, doctor, backup, nodes, cert, token, catalog, agents, sessions, chat, watch, notices, signals, integrate, hook, mcp, completions, man; see tidings --help"}}
    --- stderr
    "#);
}

#[test]
fn the_version_is_printed() {
    assert_snapshot!(alone("--version"), @"
    exit 0
    --- stdout
    tidings 0.1.0
    --- stderr
    ");
}

#[test]
fn an_unknown_verb_names_the_nearest_and_all_the_others() {
    assert_snapshot!(alone("stauts"), @"
    exit 2
    --- stdout
    --- stderr
    error: there is no command 'stauts'
    hint: did you mean 'status'? the commands are quickstart, gateway, config, logs, status, doctor, backup, nodes, cert, token, catalog, agents, sessions, chat, watch, notices, signals, integrate, hook, mcp, completions, man; see tidings --help
    usage: tidings [OPTIONS] [COMMAND]
    ");
    assert_snapshot!(alone("sessions --state-dir nodes lisst"), @"
    exit 2
    --- stdout
    --- stderr
    error: there is no command 'lisst'
    hint: did you mean 'list'? the commands are adopt, list, show, status, history, send, spawn, reset, compact, delete, archive, unarchive, pin, unpin, cleanup, import, runs; see tidings sessions --help
    usage: tidings sessions [OPTIONS] <COMMAND>
    ");
    assert_snapshot!(alone("sessions lisst --json"), @r#"
    exit 2
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"usage","message":"there is no command 'lisst'","hint":"did you mean 'list'? the commands are adopt, list, show, status, history, send, spawn, reset, compact, delete, archive, unarchive, pin, unpin, cleanup, import, runs; see tidings sessions --help"}}
    --- stderr
    "#);
}

#[test]
fn a_verb_without_its_command_names_the_commands() {
    assert_snapshot!(alone("watch"), @"
    exit 2
    --- stdout
    --- stderr
    error: tidings watch needs a command
    hint: the commands are add, remove, list; see tidings watch --help
    usage: tidings watch [OPTIONS] <COMMAND>
    ");
}

#[test]
fn what_is_missing_is_named() {
    assert_snapshot!(alone("watch add agent:main:main"), @"
    exit 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided: <TARGET>
    hint: see tidings watch add --help
    usage: tidings watch add <WATCHER> <TARGET>
    ");
    assert_snapshot!(alone("sessions adopt --json"), @r#"
    exit 2
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"usage","message":"the following required arguments were not provided: <CATALOG> <HOST> <THREAD>","hint":"see tidings sessions adopt --help"}}
    --- stderr
    "#);
}

#[test]
fn a_bad_value_ends_in_exit_code_2_and_a_document_where_asked() {
    for line in [
        "sessions show agent:main",
        "catalog list --catalog clade",
        "signals why first",
        "signals list --limit 10001",
        "sessions status global --changes-since -1",
        "signals record --session global --kind compacted --actor agent:x",
        "signals record --session global --kind compact --actor human",
        "gateway run --root /srv",
        "gateway run --root pi=/srv",
        "gateway run --listen localhost",
        "gateway run --http on",
        "token create x",
        "token create x --scope root",
        "token create x --scope read --expires soon",
        "nodes invite --nmae x",
        "nodes show",
        "nodes rename laptop",
        "backup",
        "doctor --fixx",
    ] {
        let output = alone(line);
        let begins = "exit 2\n--- stdout\n--- stderr\nerror: ";
        assert!(output.starts_with(begins), "{line}: {output}");
        let json = alone(&format!("{line} --json"));
        let begins = "exit 2\n--- stdout\n{\"schemaVersion\":1,\"ok\":false";
        assert!(json.starts_with(begins), "{line}: {json}");
        assert!(json.ends_with("}}\n--- stderr\n"), "{line}: {json}");
    }
}

#[test]
fn a_bad_value_is_named_with_what_would_do() {
    assert_snapshot!(alone("sessions show agent:main"), @"
    exit 2
    --- stdout
    --- stderr
    error: invalid value 'agent:main' for '<KEY>': an agent-qualified key is agent:<agentId>:<rest>, both parts non-empty
    hint: see tidings sessions show --help
    ");
    assert_snapshot!(alone("catalog list --catalog clade"), @"
    exit 2
    --- stdout
    --- stderr
    error: invalid value 'clade' for '--catalog <CATALOG>' [possible values: claude, codex, openclaw]
    hint: did you mean 'claude'? see tidings catalog list --help
    ");
    assert_snapshot!(alone("sessions status global --changes-since -1 --json"), @r#"
    exit 2
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"usage","message":"invalid value '-1' for '--changes-since <VERSION>': -1 is not in 0..9223372036854775807","hint":"see tidings sessions status --help"}}
    --- stderr
    "#);
    assert_snapshot!(alone("gateway run --root pi=/srv"), @r#"
    exit 2
    --- stdout
    --- stderr
    error: invalid value 'pi=/srv' for '--root <CATALOG=DIR>': no catalog is called "pi"; there are claude, codex and openclaw
    hint: see tidings gateway run --help
    "#);
    assert_snapshot!(alone("nodes invite --nmae x"), @"
    exit 2
    --- stdout
    --- stderr
    error: unexpected argument '--nmae' found
    hint: did you mean '--name'? see tidings nodes invite --help
    usage: tidings nodes invite --name <NAME>
    ");
}

#[test]
fn help_of_a_command_ends_in_an_example() {
    for line in [
        "status",
        "nodes invite",
        "nodes list",
        "nodes show",
        "nodes rename",
        "nodes revoke",
        "nodes remove",
        "doctor",
        "backup",
        "logs",
        "token create",
        "token list",
        "token revoke",
        "config show",
        "catalog list",
        "sessions adopt",
        "sessions list",
        "sessions show",
        "sessions status",
        "sessions archive",
        "sessions unarchive",
        "sessions pin",
        "sessions unpin",
        "sessions cleanup",
        "sessions import",
        "sessions compact",
        "watch add",
        "watch remove",
        "watch list",
        "notices list",
        "notices drain",
        "signals list",
        "signals follow",
        "signals why",
        "signals record",
        "gateway run",
        "quickstart",
    ] {
        let help = alone(&format!("{line} --help"));
        assert!(help.starts_with("exit 0\n"), "{help}");
        assert!(
            help.contains(&format!("Example:\n  tidings {line}")),
            "{help}"
        );
    }
}

#[test]
fn json_and_the_state_directory_are_accepted_anywhere_after_the_verb() {
    for line in [
        "status --json --state-dir /nonexistent",
        "--json status --state-dir /nonexistent",
        "--state-dir /nonexistent nodes --json list",
        "signals follow --state-dir=/nonexistent --json",
    ] {
        let output = alone(line);
        assert!(
            output.starts_with("exit 69\n--- stdout\n{"),
            "{line}: {output}"
        );
        assert!(
            output.contains("/nonexistent/gateway.sock"),
            "{line}: {output}"
        );
    }
}
