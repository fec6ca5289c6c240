//! Text that a caller gave: a message, a task, a result, a goal.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Text for whom it is addressed to and nobody else: no log, error or `Debug` shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PrivateText(pub String);

impl fmt::Debug for PrivateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateText({} bytes)", self.0.len())
    }
}

impl From<String> for PrivateText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for PrivateText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_text_is_written_as_it_is_and_shown_by_its_length() {
        let text = PrivateText::from("as it was typed");
        assert_eq!(format!("{text:?}"), "PrivateText(15 bytes)");
        let bytes = rmp_serde::to_vec(&text).expect("bytes");
        let read: String = rmp_serde::from_slice(&bytes).expect("a text");
        assert_eq!(read, text.0);
    }
}
