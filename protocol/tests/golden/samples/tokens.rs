//! Requests and replies about tokens.

use tidings_protocol::session_api::{
    Reply, Request, TokenCreate, TokenCreated, TokenRef, TokenRow, TokenScope, TokenState, Tokens,
};

use super::parts::NOON;

/// Samples of these requests.
pub(super) fn requests() -> Vec<(&'static str, Request)> {
    let create = |scope, expires_in_ms| {
        Request::TokenCreate(TokenCreate {
            name: "dashboard".to_owned(),
            scope,
            expires_in_ms,
        })
    };
    vec![
        ("for a month", create(TokenScope::Read, Some(2_592_000_000))),
        ("for good", create(TokenScope::Admin, None)),
        ("token_list", Request::TokenList {}),
        (
            "by its name",
            Request::TokenRevoke(TokenRef {
                name: "dashboard".to_owned(),
            }),
        ),
    ]
}

/// Samples of these replies.
pub(super) fn replies() -> Vec<(&'static str, Reply)> {
    let created = |expires_at| {
        Reply::TokenCreate(TokenCreated {
            name: "dashboard".to_owned(),
            scope: TokenScope::Read,
            expires_at,
            token: "tidings_0…".into(),
        })
    };
    let row = |scope, state| TokenRow {
        name: "dashboard".to_owned(),
        scope,
        state,
        created_at: NOON,
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    };
    let revoked = TokenRow {
        expires_at: Some(NOON + 2_592_000_000),
        last_used_at: Some(NOON + 60_000),
        revoked_at: Some(NOON + 120_000),
        ..row(TokenScope::Read, TokenState::Revoked)
    };
    vec![
        ("for a month", created(Some(NOON + 2_592_000_000))),
        ("for good", created(None)),
        ("no token", Reply::TokenList(Tokens::default())),
        (
            "tokens",
            Reply::TokenList(Tokens {
                tokens: vec![
                    row(TokenScope::Admin, TokenState::Active),
                    row(TokenScope::Write, TokenState::Expired),
                    revoked.clone(),
                ],
            }),
        ),
        ("token_revoke", Reply::TokenRevoke(revoked)),
    ]
}
