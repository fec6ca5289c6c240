//! Server-sent events out of bytes, in whatever pieces those come.

use super::ModelError;

/// The longest line, and the longest event. A call's arguments come in pieces far smaller.
const MAX_BYTES: usize = 1024 * 1024;
const TOO_LONG: ModelError = ModelError::TooMuch("1 MiB in one event");

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its name; empty where it has none.
    pub(super) name: String,
    /// Its data, lines joined by line ends.
    pub(super) data: String,
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct Events {
    // The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    // The last byte was a carriage return: a line feed behind it is part of the same end.
    after_return: bool,
    event: Event,
    has_data: bool,
    any_line: bool,
}

impl Events {
    /// The events that are complete with these bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, ModelError> {
        let mut complete = Vec::new();
        for byte in bytes {
            let was_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' => complete.extend(self.end_line()?),
                byte => {
                    if self.line.len() == MAX_BYTES {
                        return Err(TOO_LONG);
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(complete)
    }

    fn end_line(&mut self) -> Result<Option<Event>, ModelError> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if std::mem::replace(&mut self.any_line, true) {
            &line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(&line)
        };
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let has_data = std::mem::take(&mut self.has_data);
            return Ok(has_data.then_some(event));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if self.event.data.len() + 1 + value.len() > MAX_BYTES {
                    return Err(TOO_LONG);
                }
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            // A comment, an id, a time to come back after: nothing for us.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event {
            name: name.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        for (bytes, events) in [
            ("", vec![]),
            ("data: a", vec![]),
            ("data: a\n", vec![]),
            ("data: a\n\n", vec![event("", "a")]),
            (
                "data:a\r\n\r\ndata:  b\r\r",
                vec![event("", "a"), event("", " b")],
            ),
            (
                "event: e\ndata: a\ndata:\ndata: b\n\n",
                vec![event("e", "a\n\nb")],
            ),
            (": comment\nid: 1\nretry: 5\n\n", vec![]),
            ("event: e\n\ndata: a\n\n", vec![event("", "a")]),
            ("\u{feff}data: a\n\n\n\n", vec![event("", "a")]),
            ("data\n\n", vec![event("", "")]),
        ] {
            let read = Events::default().push(bytes.as_bytes()).expect("events");
            assert_eq!(read, events, "{bytes:?}");
        }
    }

    #[test]
    fn a_line_or_an_event_without_an_end_is_given_up() {
        let mut events = Events::default();
        events
            .push(&vec![b'x'; MAX_BYTES])
            .expect("so long a line is taken");
        assert!(matches!(events.push(b"x"), Err(ModelError::TooMuch(_))));

        let mut events = Events::default();
        let line = format!("data: {}\n", "x".repeat(MAX_BYTES / 2));
        events.push(line.as_bytes()).expect("half of it");
        events
            .push(line.as_bytes())
            .expect_err("with the line end it is more");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_in_which_pieces_bytes_come(
            text in "(event: e|data: [a-ü]{0,4}|:|\r|\n|\r\n|\n\n){0,24}",
            cuts in prop::collection::vec(0_usize..200, 0..6),
        ) {
            let bytes = text.as_bytes();
            let whole = Events::default().push(bytes).expect("events");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let (mut events, mut read, mut from) = (Events::default(), Vec::new(), 0);
            for at in cuts {
                read.extend(events.push(&bytes[from..at]).expect("events"));
                from = at;
            }
            prop_assert_eq!(read, whole);
        }
    }
}
