//! `tidings token`

use insta::assert_snapshot;
use tidings_protocol::session_api::{
    Reply, Request, TokenCreated, TokenRow, TokenScope, TokenState, Tokens,
};

use crate::fake::{Does, Fake, frame};
use crate::run::with;
use crate::values::{DAY, TIME, not_found};

fn row(name: &str, state: TokenState) -> TokenRow {
    TokenRow {
        name: name.to_owned(),
        scope: TokenScope::Read,
        state,
        created_at: TIME,
        expires_at: Some(TIME + 30 * DAY),
        last_used_at: None,
        revoked_at: None,
    }
}

#[test]
fn create_prints_the_token_alone_and_says_beside_it_that_it_is_not_shown_again() {
    let fake = Fake::answering(Reply::TokenCreate(TokenCreated {
        name: "dashboard".to_owned(),
        scope: TokenScope::Read,
        expires_at: Some(TIME + DAY),
        token: "tidings_00".into(),
    }));
    let line = "token create dashboard --scope read --expires 24h";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    tidings_00
    --- stderr
    dashboard: permits read, until 2026-12-01 21:05:03 UTC; it is not shown again
    hint: show it as `Authorization: Bearer TOKEN`; tidings status says where
    --- asked
    TokenCreate(TokenCreate { name: "dashboard", scope: Read, expires_in_ms: Some(86400000) })
    "#);
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"name":"dashboard","scope":"read","expiresAt":1796159103123,"token":"tidings_00"}
    --- stderr
    --- asked
    TokenCreate(TokenCreate { name: "dashboard", scope: Read, expires_in_ms: Some(86400000) })
    "#);
}

#[test]
fn list_shows_how_each_token_stands_and_never_the_token() {
    let fake = Fake::answering(Reply::TokenList(Tokens {
        tokens: vec![
            TokenRow {
                scope: TokenScope::Admin,
                last_used_at: Some(TIME + 60_000),
                expires_at: None,
                ..row("ops", TokenState::Active)
            },
            TokenRow {
                revoked_at: Some(TIME + DAY),
                ..row("dashboard", TokenState::Revoked)
            },
        ],
    }));
    assert_snapshot!(with(&fake, "token list"), @"
    exit 0
    --- stdout
    NAME       SCOPE  STATE    MADE (UTC)           LAST USED (UTC)      ENDS (UTC)
    ops        admin  active   2026-11-30 21:05:03  2026-11-30 21:06:03  -
    dashboard  read   revoked  2026-11-30 21:05:03  -                    2026-12-01 21:05:03
    --- stderr
    --- asked
    TokenList
    ");
    let none = Fake::answering(Reply::TokenList(Tokens::default()));
    assert_snapshot!(with(&none, "token list"), @"
    exit 0
    --- stdout
    --- stderr
    no tokens
    hint: tidings token create NAME --scope read
    --- asked
    TokenList
    ");
}

#[test]
fn revoke_says_so_and_a_name_that_no_token_has_is_answered_with_the_nearest() {
    let fake = Fake::answering(Reply::TokenRevoke(row("dashboard", TokenState::Revoked)));
    assert_snapshot!(with(&fake, "token revoke dashboard"), @r#"
    exit 0
    --- stdout
    dashboard is revoked
    --- stderr
    --- asked
    TokenRevoke(TokenRef { name: "dashboard" })
    "#);
    let fake = Fake::that(|request| {
        let reply = match request {
            Request::TokenRevoke(_) => not_found("there is no token dashbord in use"),
            _ => Reply::TokenList(Tokens {
                tokens: vec![
                    row("dashboard", TokenState::Active),
                    row("old", TokenState::Expired),
                ],
            }),
        };
        Does::Sends(vec![frame(&reply)])
    });
    assert_snapshot!(with(&fake, "token revoke dashbord"), @r#"
    exit 1
    --- stdout
    --- stderr
    error: there is no token dashbord in use
    hint: did you mean dashboard? the tokens are dashboard (`tidings token list`)
    --- asked
    TokenRevoke(TokenRef { name: "dashbord" })
    TokenList
    "#);
}
