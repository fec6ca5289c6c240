//! A JSON text that is edited in place: what is not changed keeps its bytes, its order and
//! its white space.

use std::collections::HashSet;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::ser::{PrettyFormatter, Serializer};

/// How deep arrays and objects may lie in each other.
const MAX_DEPTH: usize = 128;

/// A text that is not what it should be. Nothing of its content is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(pub(super) String);

/// A value, and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Object(Vec<(String, Entry)>),
    Array(Vec<Entry>),
    Scalar,
}

/// A member or an item: from its key, where it has one, to the end of its value.
#[derive(Debug)]
struct Entry {
    start: usize,
    value: Node,
}

/// One step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// The member of this name.
    Member(&'a str),
    /// The item at this place.
    Item(usize),
}

/// A JSON text under edit.
#[derive(Debug)]
pub(super) struct JsonText {
    text: String,
    root: Node,
}

impl Node {
    /// The names of an object's members; `None` for anything else.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        match &self.kind {
            Kind::Object(members) => Some(members.iter().map(|(name, _)| name.clone()).collect()),
            Kind::Array(_) | Kind::Scalar => None,
        }
    }

    /// How many items an array has; `None` for anything else.
    pub(super) fn len(&self) -> Option<usize> {
        match &self.kind {
            Kind::Array(items) => Some(items.len()),
            Kind::Object(_) | Kind::Scalar => None,
        }
    }

    fn entries(&self) -> Vec<&Entry> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|(_, entry)| entry).collect(),
            Kind::Array(items) => items.iter().collect(),
            Kind::Scalar => Vec::new(),
        }
    }

    fn place(&self, step: Step<'_>) -> Option<usize> {
        match (&self.kind, step) {
            (Kind::Object(members), Step::Member(wanted)) => {
                members.iter().position(|(name, _)| name == wanted)
            }
            (Kind::Array(items), Step::Item(at)) => (at < items.len()).then_some(at),
            _ => None,
        }
    }
}

impl JsonText {
    /// Reads a text, which must be a JSON object; an empty one counts as an empty object.
    pub(super) fn parse(text: &str) -> Result<Self, Broken> {
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        // Reading its values does not recurse; making nodes of them does.
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| {
            Broken(format!(
                "it is no JSON: line {}, column {}",
                error.line(),
                error.column()
            ))
        })?;
        let mut reader = Reader {
            text: text.as_bytes(),
            at: 0,
            depth: 0,
        };
        let root = reader.value()?;
        if !matches!(root.kind, Kind::Object(_)) {
            return Err(Broken("it is no JSON object".to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            root,
        })
    }

    /// The text as it is now.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The value at this place.
    pub(super) fn at(&self, path: &[Step<'_>]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, step| {
            let place = node.place(*step)?;
            node.entries().get(place).map(|entry| &entry.value)
        })
    }

    /// The value at this place, read.
    pub(super) fn value(&self, path: &[Step<'_>]) -> Option<serde_json::Value> {
        let node = self.at(path)?;
        serde_json::from_str(&self.text[node.start..node.end]).ok()
    }

    /// Adds a member behind the others of an object, or an item behind those of an array.
    pub(super) fn add(
        self,
        path: &[Step<'_>],
        name: Option<&str>,
        value: &impl Serialize,
    ) -> Result<Self, Broken> {
        let Some(node) = self.at(path) else {
            return Ok(self);
        };
        let entries = node.entries();
        let is_spread = self.text[node.start..].contains('\n')
            && match entries.last() {
                Some(last) => self.text[node.start..last.start].contains('\n'),
                None => true,
            };
        let base = self.indent_at(node.start);
        let own = match entries.last() {
            Some(last) if is_spread => self.indent_at(last.start),
            _ => format!("{base}{}", self.unit()),
        };
        let entry = self.render(name, value, is_spread.then_some(own.as_str()));
        let (at, insertion) = match (entries.last(), is_spread) {
            (Some(last), true) => (last.value.end, format!(",\n{own}{entry}")),
            (Some(last), false) => (last.value.end, format!(",{entry}")),
            (None, true) => {
                let whole = format!("\n{own}{entry}\n{base}");
                return self.splice(node.start + 1, node.end - 1, &whole);
            }
            (None, false) => (node.start + 1, entry),
        };
        self.splice(at, at, &insertion)
    }

    /// Puts a value in the place of another.
    pub(super) fn replace(self, path: &[Step<'_>], value: &impl Serialize) -> Result<Self, Broken> {
        let Some(node) = self.at(path) else {
            return Ok(self);
        };
        let is_spread = self.text[node.start..node.end].contains('\n');
        let own = self.indent_at(node.start);
        let entry = self.render(None, value, is_spread.then_some(own.as_str()));
        let (start, end) = (node.start, node.end);
        self.splice(start, end, &entry)
    }

    /// Takes a member or an item out of what holds it.
    pub(super) fn remove(self, path: &[Step<'_>]) -> Result<Self, Broken> {
        let Some((step, holder)) = path.split_last() else {
            return Ok(self);
        };
        let Some(node) = self.at(holder) else {
            return Ok(self);
        };
        let Some(place) = node.place(*step) else {
            return Ok(self);
        };
        let entries = node.entries();
        let (start, end) = match (place.checked_sub(1), entries.get(place + 1)) {
            (None, None) => (node.start + 1, node.end - 1),
            (Some(before), None) => (entries[before].value.end, entries[place].value.end),
            (_, Some(next)) => (entries[place].start, next.start),
        };
        self.splice(start, end, "")
    }

    fn splice(&self, start: usize, end: usize, with: &str) -> Result<Self, Broken> {
        let text = [&self.text[..start], with, &self.text[end..]].concat();
        Self::parse(&text)
    }

    /// The white space that the line of this place begins with.
    fn indent_at(&self, at: usize) -> String {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let rest = &self.text[line..];
        let width = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        rest[..width].to_owned()
    }

    /// By how much the text indents.
    fn unit(&self) -> String {
        let first = self.root.entries().first().map(|entry| entry.start);
        let unit = first.map(|at| self.indent_at(at)).unwrap_or_default();
        if unit.is_empty() {
            "  ".to_owned()
        } else {
            unit
        }
    }

    /// An entry as text: on lines indented by `indent`, or on one where there is none.
    fn render(&self, name: Option<&str>, value: &impl Serialize, indent: Option<&str>) -> String {
        let mut bytes = Vec::new();
        let unit = self.unit();
        let rendered = if indent.is_some() {
            let formatter = PrettyFormatter::with_indent(unit.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter))
        } else {
            value.serialize(&mut Serializer::new(&mut bytes))
        };
        // What is written here are texts and lists of texts: they always can be.
        debug_assert!(rendered.is_ok());
        let value = String::from_utf8(bytes).unwrap_or_default();
        let value = match indent {
            Some(indent) => value.replace('\n', &format!("\n{indent}")),
            None => value,
        };
        match (name, indent) {
            (Some(name), Some(_)) => format!("{}: {value}", serde_json::Value::from(name)),
            (Some(name), None) => format!("{}:{value}", serde_json::Value::from(name)),
            (None, _) => value,
        }
    }
}

/// Reads spans of a text that is JSON.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Node, Broken> {
        self.blank();
        let start = self.at;
        let kind = match self.peek() {
            b'{' => Kind::Object(self.members()?),
            b'[' => {
                let items = self.list(b']', |_| Ok(String::new()))?;
                Kind::Array(items.into_iter().map(|(_, item)| item).collect())
            }
            b'"' => {
                self.string();
                Kind::Scalar
            }
            _ => {
                while !matches!(
                    self.peek(),
                    b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' | 0
                ) {
                    self.at += 1;
                }
                Kind::Scalar
            }
        };
        Ok(Node {
            start,
            end: self.at,
            kind,
        })
    }

    /// The members of an object. Of two that have one name, each program means another: such
    /// a text is nobody's to edit.
    fn members(&mut self) -> Result<Vec<(String, Entry)>, Broken> {
        let mut names = HashSet::new();
        self.list(b'}', |reader| {
            let start = reader.at;
            let name = reader.name();
            if !names.insert(name.clone()) {
                let line = reader.line(start);
                return Err(Broken(format!("it has a member twice: line {line}")));
            }
            reader.blank();
            // The colon.
            reader.at += 1;
            Ok(name)
        })
    }

    /// The entries up to `end`; `head` reads what stands before each value.
    fn list(
        &mut self,
        end: u8,
        mut head: impl FnMut(&mut Self) -> Result<String, Broken>,
    ) -> Result<Vec<(String, Entry)>, Broken> {
        if self.depth == MAX_DEPTH {
            let line = self.line(self.at);
            let message = format!("it is nested more than {MAX_DEPTH} deep: line {line}");
            return Err(Broken(message));
        }
        self.depth += 1;
        let mut entries = Vec::new();
        self.at += 1;
        loop {
            self.blank();
            match self.peek() {
                b',' => self.at += 1,
                byte if byte == end || byte == 0 => {
                    self.at += usize::from(byte == end);
                    self.depth -= 1;
                    return Ok(entries);
                }
                _ => {
                    let start = self.at;
                    let name = head(self)?;
                    let value = self.value()?;
                    entries.push((name, Entry { start, value }));
                }
            }
        }
    }

    /// The line of this place, counted from one.
    fn line(&self, at: usize) -> usize {
        self.text[..at].split(|byte| *byte == b'\n').count()
    }

    fn name(&mut self) -> String {
        let start = self.at;
        self.string();
        serde_json::from_slice(&self.text[start..self.at]).unwrap_or_default()
    }

    fn string(&mut self) {
        self.at += 1;
        loop {
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => self.at += 2,
                0 => return,
                _ => self.at += 1,
            }
        }
    }

    fn blank(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// The byte here; 0, which no JSON has outside, at the end.
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
