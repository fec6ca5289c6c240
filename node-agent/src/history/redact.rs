//! Leaves secrets out of a text, as far as they look like some.

/// What stands in a secret's place.
const REDACTED: &str = "[redacted]";
/// How tokens begin that are secrets wherever they stand.
const PREFIXES: [&str; 19] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxr-",
    "xoxs-",
    "AKIA",
    "ASIA",
    "AIza",
    "npm_",
    "hf_",
    "ya29.",
];
/// How long such a token is, at least.
const MIN_PREFIXED: usize = 16;
/// How the names end whose values are secrets.
const NAMES: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "private_key",
    "authorization",
];
/// Words between a name and its value that are no value themselves.
const SCHEMES: [&str; 2] = ["bearer", "basic"];
/// A value that is shorter and has no digit may be a word like any other.
const MIN_VALUE: usize = 8;
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";
const KEY_KIND: &str = "PRIVATE KEY-----";

/// The text without what looks like a secret.
pub(super) fn redacted(text: &str) -> String {
    tokens_redacted(&keys_redacted(text))
}

/// Private keys, from their first line to their last.
fn keys_redacted(text: &str) -> String {
    let mut left = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(begin) = left.find(KEY_BEGINS) {
        let (before, key) = left.split_at(begin);
        let line = key.lines().next().unwrap_or_default();
        if !line.contains(KEY_KIND) {
            let (begin, rest) = key.split_at(KEY_BEGINS.len());
            kept.extend([before, begin]);
            left = rest;
            continue;
        }
        kept.extend([before, REDACTED]);
        let end = key.find(KEY_ENDS).and_then(|at| {
            let tail = &key[at + KEY_ENDS.len()..];
            tail.find(KEY_KIND)
                .map(|kind| at + KEY_ENDS.len() + kind + KEY_KIND.len())
        });
        left = end.map_or("", |end| &key[end..]);
    }
    kept.push_str(left);
    kept
}

/// What may follow of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expecting {
    Anything,
    /// The token before is a secret's name: a value follows behind `:` or `=`.
    Separator,
    /// A secret's value.
    Value,
}

fn tokens_redacted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut expecting = Expecting::Anything;
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|c| !is_of_token(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(length);
        if token.is_empty() {
            let length = rest.find(is_of_token).unwrap_or(rest.len());
            let (between, after) = rest.split_at(length);
            kept.push_str(between);
            expecting = behind(expecting, between);
            rest = after;
            continue;
        }
        let lower = token.to_ascii_lowercase();
        let is_scheme = SCHEMES.contains(&lower.as_str());
        let is_value = expecting == Expecting::Value && is_like_a_value(token);
        if !is_scheme && (is_value || is_secret(token)) {
            kept.push_str(REDACTED);
        } else {
            kept.push_str(token);
        }
        expecting = if is_scheme {
            Expecting::Value
        } else if NAMES.iter().any(|name| lower.ends_with(name)) {
            Expecting::Separator
        } else {
            Expecting::Anything
        };
        rest = after;
    }
    kept
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '~' | '!' | '#' | '$')
}

/// What is expected behind what stands between two tokens.
fn behind(expecting: Expecting, between: &str) -> Expecting {
    match expecting {
        Expecting::Separator if between.contains([':', '=']) && !between.contains('\n') => {
            Expecting::Value
        }
        Expecting::Value if !between.contains('\n') => Expecting::Value,
        _ => Expecting::Anything,
    }
}

fn is_like_a_value(token: &str) -> bool {
    token.len() >= MIN_VALUE || token.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_secret(token: &str) -> bool {
    let is_prefixed =
        token.len() >= MIN_PREFIXED && PREFIXES.iter().any(|prefix| token.starts_with(prefix));
    // A signed token has three parts; the code of a join link pairs a machine.
    let is_signed = token.starts_with("eyJ") && token.matches('.').count() == 2;
    is_prefixed || is_signed || token.starts_with("//join/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_left_out_and_nothing_else() {
        let key =
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nbnNz\n-----END OPENSSH PRIVATE KEY-----";
        let open_key = "-----BEGIN PRIVATE KEY-----\nb3Bl";
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
        for (text, expected) in [
            ("use sk-abcdefghijklmnop now", "use [redacted] now"),
            ("sk-short is short", "sk-short is short"),
            ("ghp_0123456789abcdefABCD.", "[redacted]"),
            ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
            ("a eyJhbGci.eyJzdWIi.c2ln b", "a [redacted] b"),
            ("password=hunter2", "password=[redacted]"),
            (
                "\"DB_PASSWORD\": \"correcthorse\"",
                "\"DB_PASSWORD\": \"[redacted]\"",
            ),
            (
                "Authorization: Bearer abc123def",
                "Authorization: Bearer [redacted]",
            ),
            ("api_key: 'x1'", "api_key: '[redacted]'"),
            ("the password is wrong", "the password is wrong"),
            ("token: none", "token: none"),
            ("secret\nagent47", "secret\nagent47"),
            ("max_tokens: 4096", "max_tokens: 4096"),
            (
                "tidings://join/0707@gw:7430?ca=09",
                "tidings:[redacted]@gw:7430?ca=09",
            ),
            (&format!("a {key} b"), "a [redacted] b"),
            (open_key, "[redacted]"),
            (certificate, certificate),
            ("", ""),
            ("täglich öffnen", "täglich öffnen"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }
}
