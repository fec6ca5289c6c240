//! API tokens.

use tidings_protocol::digest::sha256;
use tidings_protocol::session_api::{TokenRow, TokenScope, TokenState};

use super::*;
use crate::state::tokens::MAX_ACTIVE_TOKENS;
use crate::state::{NewToken, StateError};

const DAY: EpochMs = 24 * 60 * 60 * 1_000;

fn token(name: &str, expires_at: Option<EpochMs>) -> NewToken {
    NewToken {
        name: name.to_owned(),
        digest: sha256(name.as_bytes()),
        scope: TokenScope::Write,
        expires_at,
    }
}

impl Fixture {
    async fn found(&self, name: &str) -> TokenRow {
        let found = self.state.token(sha256(name.as_bytes())).await;
        found.expect("read").expect("a token").row
    }
}

#[tokio::test]
async fn a_token_is_found_by_its_digest_until_it_ends_and_then_with_the_reason() {
    let fixture = Fixture::new();
    let state = &fixture.state;
    assert_eq!(state.token(sha256(b"a")).await, Ok(None));
    let created = state.create_token(token("a", Some(START + DAY))).await;
    assert_eq!(created, Ok(()));
    let found = fixture.found("a").await;
    assert_eq!(
        (found.scope, found.state),
        (TokenScope::Write, TokenState::Active)
    );
    fixture.clock.pass(DAY);
    assert_eq!(fixture.found("a").await.state, TokenState::Expired);
    assert_eq!(
        state.revoke_token("a".to_owned()).await,
        Ok(None),
        "it has ended"
    );

    // Its name is free again; the digest is another's.
    let again = NewToken {
        digest: sha256(b"b"),
        ..token("a", None)
    };
    assert_eq!(state.create_token(again).await, Ok(()));
    let revoked = state.revoke_token("a".to_owned()).await.expect("written");
    let revoked = revoked.expect("a token");
    assert_eq!(revoked.state, TokenState::Revoked);
    assert_eq!(fixture.found("b").await, revoked);
    assert_eq!(state.revoke_token("a".to_owned()).await, Ok(None));
    assert_eq!(fixture.number("SELECT count(*) FROM audit_log"), 3);
}

#[tokio::test]
async fn a_use_is_noted_once_a_minute() {
    let fixture = Fixture::new();
    let created = fixture.state.create_token(token("a", None)).await;
    assert_eq!(created, Ok(()));
    let mut noted = Vec::new();
    for (pass, back) in [(0, 0), (59_999, 0), (1, 0), (0, 120_000)] {
        fixture.clock.pass(pass);
        fixture.clock.turn_back(back);
        let found = fixture.state.token(sha256(b"a")).await.expect("read");
        let used = fixture.state.token_used(&found.expect("a token")).await;
        assert_eq!(used, Ok(()));
        noted.push(fixture.found("a").await.last_used_at);
    }
    // A clock that was set back is believed.
    let at = |ms| Some(START + ms);
    assert_eq!(noted, [at(0), at(0), at(60_000), at(-60_000)]);
}

#[tokio::test]
async fn a_name_in_use_and_one_token_too_many_are_refused_and_ended_ones_are_forgotten_in_time() {
    let fixture = Fixture::new();
    let state = &fixture.state;
    for number in 0..MAX_ACTIVE_TOKENS {
        let created = state
            .create_token(token(&number.to_string(), Some(START + 1)))
            .await;
        assert_eq!(created, Ok(()));
    }
    let full = state.create_token(token("full", None)).await;
    assert_eq!(full, Err(StateError::TooManyTokens));
    fixture.clock.pass(1);
    let seventh = |digest| {
        state.create_token(NewToken {
            digest,
            ..token("7", None)
        })
    };
    assert_eq!(
        seventh(sha256(b"other")).await,
        Ok(()),
        "the other has ended"
    );
    let taken = Err(StateError::TokenTaken("7".to_owned()));
    assert_eq!(seventh(sha256(b"again")).await, taken);
    let tokens = state.tokens().await.expect("read");
    assert_eq!(tokens[0].state, TokenState::Active, "those in use first");
    for number in 0..10 {
        let name = format!("late {number}");
        assert_eq!(
            state.create_token(token(&name, Some(START + 2))).await,
            Ok(())
        );
    }
    fixture.clock.pass(1);
    assert_eq!(state.create_token(token("last", None)).await, Ok(()));
    let tokens = state.tokens().await.expect("read");
    assert_eq!(
        tokens.len(),
        202,
        "two in use, and two hundred that have ended"
    );
    assert_eq!(tokens[0].name, "last");
}
