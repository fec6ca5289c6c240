//! Random bytes: tokens, session ids, keys of links.

use ring::rand::{SecureRandom, SystemRandom};
use tidings_protocol::digest::hex;

use super::error::StateError;

/// Random bytes from the operating system.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], StateError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| StateError::NoRandomness)?;
    Ok(bytes)
}

/// A fresh name that nobody guesses.
pub(crate) fn fresh_token() -> Result<String, StateError> {
    bytes::<16>().map(|bytes| hex(&bytes))
}

/// A fresh session id: a random UUID.
pub(crate) fn session_id() -> Result<String, StateError> {
    let mut bytes: [u8; 16] = bytes()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex(&bytes);
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
    Ok(format!("{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_a_random_uuid() {
        let id = session_id().expect("random");
        let parts: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&id[14..15], "4", "the version");
        assert!("89ab".contains(&id[19..20]), "the variant");
        assert_ne!(session_id(), Ok(id));
    }
}
