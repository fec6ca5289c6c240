//! What of a value is not as a schema wants it, said by the member's name and never by what
//! stands there: it may be somebody's text.

use serde_json::{Map, Value};
use tidings_node::cli::nearest;

use super::shapes::DEFINITIONS;

/// The longest name of a member that an error repeats, in characters.
const MAX_NAME_CHARS: usize = 64;

/// What is wrong, and what was perhaps meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) what: String,
    pub(super) hint: Option<String>,
}

/// The first thing of `value` that is not as `schema` wants it.
pub(super) fn fault(
    definitions: &Map<String, Value>,
    schema: &Value,
    value: &Value,
) -> Option<Fault> {
    Looking { definitions }.fault(schema, value, "")
}

struct Looking<'a> {
    definitions: &'a Map<String, Value>,
}

impl Looking<'_> {
    fn fault(&self, schema: &Value, value: &Value, place: &str) -> Option<Fault> {
        if let Some(named) = schema["$ref"].as_str().and_then(|name| self.named(name)) {
            return self.fault(named, value, place);
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(branches) = schema[choice].as_array() {
                return self.fault_of_all(branches, value, place);
            }
        }
        if let Some(constant) = schema.get("const") {
            return (constant != value).then(|| not(place, &wanted(schema)));
        }
        if let Some(values) = schema["enum"].as_array() {
            return (!values.contains(value)).then(|| not(place, &wanted(schema)));
        }
        if !types(schema).is_empty() && !types(schema).iter().any(|name| is(name, value)) {
            return Some(not(place, &wanted(schema)));
        }
        match value {
            Value::Object(members) => self.fault_of_members(schema, members, place),
            Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| {
                self.fault(schema.get("items")?, item, &format!("{place}[{at}]"))
            }),
            Value::Number(_) => out_of_range(schema, value, place),
            _ => None,
        }
    }

    fn named(&self, reference: &str) -> Option<&Value> {
        let name = reference.strip_prefix('#')?.strip_prefix(DEFINITIONS)?;
        self.definitions.get(name.strip_prefix('/')?)
    }

    /// A value that is none of several things. Where one of them is meant, as its type says,
    /// what that one wants is told.
    fn fault_of_all(&self, branches: &[Value], value: &Value, place: &str) -> Option<Fault> {
        let faults: Option<Vec<Fault>> = branches
            .iter()
            .map(|branch| self.fault(branch, value, place))
            .collect();
        let faults = faults?;
        let meant = branches
            .iter()
            .zip(&faults)
            .find(|(branch, _)| value.is_object() && self.has_one_member_of(branch, value));
        if let Some((_, fault)) = meant {
            return Some(fault.clone());
        }
        let wanted: Vec<String> = branches.iter().map(|branch| self.wanted(branch)).collect();
        let constants = branches.iter().all(|branch| branch.get("const").is_some());
        Some(not(
            place,
            &if constants {
                format!("one of {}", wanted.join(", "))
            } else {
                wanted.join(" or ")
            },
        ))
    }

    fn has_one_member_of(&self, branch: &Value, value: &Value) -> bool {
        let named = branch["$ref"].as_str().and_then(|name| self.named(name));
        let known = named.unwrap_or(branch)["properties"].as_object();
        known
            .zip(value.as_object())
            .is_some_and(|(known, members)| members.keys().any(|member| known.contains_key(member)))
    }

    fn fault_of_members(
        &self,
        schema: &Value,
        members: &Map<String, Value>,
        place: &str,
    ) -> Option<Fault> {
        let none = Map::new();
        let known = schema["properties"].as_object().unwrap_or(&none);
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        if let Some(unknown) = members.keys().find(|name| !known.contains_key(*name)) {
            let shown: String = unknown.chars().take(MAX_NAME_CHARS).collect();
            return Some(Fault {
                what: format!("there is no member {}", inside(place, &shown)),
                hint: Some(match nearest::nearest(&shown, &names) {
                    Some(name) => format!("did you mean {name}?"),
                    None if names.is_empty() => "it has no members".to_owned(),
                    None => format!("the members are {}", names.join(", ")),
                }),
            });
        }
        let required = schema["required"].as_array().into_iter().flatten();
        let mut required = required.filter_map(Value::as_str);
        if let Some(missing) = required.find(|name| !members.contains_key(*name)) {
            return Some(Fault {
                what: format!("{} is missing", inside(place, missing)),
                hint: None,
            });
        }
        members
            .iter()
            .find_map(|(name, value)| self.fault(known.get(name)?, value, &inside(place, name)))
    }

    /// What a branch wants, in a word or two.
    fn wanted(&self, schema: &Value) -> String {
        let named = schema["$ref"].as_str().and_then(|name| self.named(name));
        let Some(schema) = named else {
            return wanted(schema);
        };
        match schema["oneOf"].as_array() {
            Some(branches) => {
                let each: Vec<_> = branches.iter().map(|branch| self.wanted(branch)).collect();
                format!("one of {}", each.join(", "))
            }
            None => self.wanted(schema),
        }
    }
}

/// What a schema wants, in a word or two.
fn wanted(schema: &Value) -> String {
    if let Some(constant) = schema["const"].as_str() {
        return constant.to_owned();
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", values.join(", "));
    }
    if let Some(members) = schema["properties"].as_object() {
        let names: Vec<_> = members.keys().map(String::as_str).collect();
        return format!("an object with {}", names.join(", "));
    }
    let types: Vec<_> = types(schema).into_iter().map(in_words).collect();
    types.join(" or ")
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn in_words(name: &str) -> &str {
    match name {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "object" => "an object",
        "array" => "a list",
        other => other,
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// A number that is too small or too large for what it says.
fn out_of_range(schema: &Value, value: &Value, place: &str) -> Option<Fault> {
    let number = whole(value)?;
    let largest = match schema["format"].as_str() {
        Some("uint8") => i128::from(u8::MAX),
        Some("uint32") => i128::from(u32::MAX),
        Some("int64") => i128::from(i64::MAX),
        _ => i128::from(u64::MAX),
    };
    let smallest = whole(&schema["minimum"]).unwrap_or(i128::from(i64::MIN));
    if number < smallest {
        Some(not(place, &format!("at least {smallest}")))
    } else if number > largest {
        Some(not(place, &format!("at most {largest}")))
    } else {
        None
    }
}

fn whole(value: &Value) -> Option<i128> {
    let signed = value.as_i64().map(i128::from);
    signed.or_else(|| value.as_u64().map(i128::from))
}

fn not(place: &str, wanted: &str) -> Fault {
    let place = if place.is_empty() { "the body" } else { place };
    Fault {
        what: format!("{place} is to be {wanted}"),
        hint: None,
    }
}

fn inside(place: &str, member: &str) -> String {
    if place.is_empty() {
        member.to_owned()
    } else {
        format!("{place}.{member}")
    }
}
