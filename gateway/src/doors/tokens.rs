//! Requests about API tokens.

use tidings_protocol::EpochMs;
use tidings_protocol::digest::{hex, sha256};
use tidings_protocol::session_api::{
    ApiError, ErrorType, MAX_TOKEN_NAME_CHARS, TokenCreate, TokenCreated, TokenRef, TokenRow,
    Tokens,
};

use super::Service;
use crate::state::{NewToken, random_bytes};

/// What every token begins with, so that it is known for one wherever it turns up.
const PREFIX: &str = "tidings_";

impl Service {
    pub(super) async fn token_create(&self, create: TokenCreate) -> Result<TokenCreated, ApiError> {
        let name = checked_name(&create.name)?;
        let expires_at = expiry(self.nodes.clock.now(), create.expires_in_ms)?;
        let secret: [u8; 32] = random_bytes()?;
        let token = format!("{PREFIX}{}", hex(&secret));
        let kept = NewToken {
            name: name.clone(),
            digest: digest(&token),
            scope: create.scope,
            expires_at,
        };
        self.nodes.state.create_token(kept).await?;
        tracing::info!(name, scope = %create.scope, "an API token was made");
        Ok(TokenCreated {
            name,
            scope: create.scope,
            expires_at,
            token: token.into(),
        })
    }

    pub(super) async fn token_list(&self) -> Result<Tokens, ApiError> {
        Ok(Tokens {
            tokens: self.nodes.state.tokens().await?,
        })
    }

    pub(super) async fn token_revoke(&self, named: TokenRef) -> Result<TokenRow, ApiError> {
        let revoked = self.nodes.state.revoke_token(named.name.clone()).await?;
        let revoked = revoked.ok_or_else(|| {
            let shown: String = named.name.chars().take(MAX_TOKEN_NAME_CHARS).collect();
            ApiError::new(
                ErrorType::NotFound,
                format!("there is no token {shown} in use"),
            )
            .with_hint("tidings token list shows the tokens")
        })?;
        tracing::info!(name = revoked.name, "an API token was revoked");
        Ok(revoked)
    }
}

/// What is kept of a token, and what it is looked up by.
pub(super) fn digest(token: &str) -> [u8; 32] {
    sha256(token.as_bytes())
}

fn checked_name(given: &str) -> Result<String, ApiError> {
    let name = given.trim();
    let fits = (1..=MAX_TOKEN_NAME_CHARS).contains(&name.chars().count());
    if fits && !name.chars().any(char::is_control) {
        return Ok(name.to_owned());
    }
    Err(ApiError::new(
        ErrorType::InvalidRequest,
        format!("a token's name is 1 to {MAX_TOKEN_NAME_CHARS} characters, on one line"),
    ))
}

fn expiry(now: EpochMs, expires_in_ms: Option<u64>) -> Result<Option<EpochMs>, ApiError> {
    let Some(millis) = expires_in_ms else {
        return Ok(None);
    };
    let end = EpochMs::try_from(millis)
        .ok()
        .filter(|millis| *millis > 0)
        .and_then(|millis| now.checked_add(millis));
    match end {
        Some(end) => Ok(Some(end)),
        None => Err(ApiError::new(
            ErrorType::InvalidRequest,
            "a token ends after at least a millisecond, and before the end of time",
        )
        .with_hint("--expires 30d, or leave it out for a token that ends when it is revoked")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line_and_an_end_lies_ahead() {
        assert_eq!(checked_name(" a b ").as_deref(), Ok("a b"));
        let long = "x".repeat(MAX_TOKEN_NAME_CHARS + 1);
        for wrong in ["", "  ", "a\nb", long.as_str()] {
            assert!(checked_name(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(expiry(5, None), Ok(None));
        assert_eq!(expiry(5, Some(10)), Ok(Some(15)));
        for wrong in [0, u64::MAX, i64::MAX.unsigned_abs()] {
            assert!(expiry(5, Some(wrong)).is_err(), "{wrong}");
        }
    }
}
