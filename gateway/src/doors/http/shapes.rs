//! What requests and replies look like: JSON schemas, made from the types themselves.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};
use tidings_protocol::session_api::{ApiError, Reply, Request, SignalRow, Wake};

use super::faults::{Fault, fault};

/// Where the schemas of named types stand in the document.
pub(super) const DEFINITIONS: &str = "/components/schemas";

/// The schemas of everything that is asked and answered.
pub(super) struct Shapes {
    requests: BTreeMap<String, Variant>,
    replies: BTreeMap<String, Variant>,
    definitions: Map<String, Value>,
}

/// One request or reply.
struct Variant {
    /// What it does, in a sentence.
    summary: String,
    /// The schema of its members.
    body: Value,
}

impl Shapes {
    /// The schemas, made once.
    pub(super) fn get() -> &'static Self {
        static SHAPES: OnceLock<Shapes> = OnceLock::new();
        SHAPES.get_or_init(Self::of_the_types)
    }

    fn of_the_types() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = DEFINITIONS.into();
            })
        };
        let (requests, asked) = variants::<Request>(settings().for_deserialize().into_generator());
        let (replies, answered) = {
            let mut generator = settings().for_serialize().into_generator();
            generator.subschema_for::<ApiError>();
            generator.subschema_for::<SignalRow>();
            generator.subschema_for::<Wake>();
            variants::<Reply>(generator)
        };
        let mut definitions = answered;
        definitions.extend(asked);
        Self {
            requests,
            replies,
            definitions,
        }
    }

    /// What a request does, and the schema of its body.
    pub(super) fn request(&self, name: &str) -> Option<(&str, &Value)> {
        let variant = self.requests.get(name)?;
        Some((&variant.summary, &variant.body))
    }

    /// The schema of a reply's body.
    pub(super) fn reply(&self, name: &str) -> Option<&Value> {
        self.replies.get(name).map(|variant| &variant.body)
    }

    /// The schemas of named types.
    pub(super) fn definitions(&self) -> &Map<String, Value> {
        &self.definitions
    }

    /// True where a body has to have some member.
    pub(super) fn has_required(&self, body: &Value) -> bool {
        let name = body["$ref"]
            .as_str()
            .and_then(|name| name.rsplit('/').next());
        let named = name.and_then(|name| self.definitions.get(name));
        let required = named.unwrap_or(body)["required"].as_array();
        required.is_some_and(|members| !members.is_empty())
    }

    /// What of a body is not as its request wants it.
    pub(super) fn fault(&self, request: &str, body: &Value) -> Option<Fault> {
        fault(&self.definitions, self.request(request)?.1, body)
    }
}

/// The variants of an enum of messages by name, and the types that they use.
fn variants<T: JsonSchema>(
    mut generator: SchemaGenerator,
) -> (BTreeMap<String, Variant>, Map<String, Value>) {
    generator.subschema_for::<T>();
    let mut definitions: Map<String, Value> = generator.take_definitions(true);
    definitions.values_mut().for_each(plain_descriptions);
    let messages = definitions.remove(&*T::schema_name()).unwrap_or_default();
    let listed = messages["oneOf"].as_array().cloned().unwrap_or_default();
    let variant = |schema: Value| {
        let summary = schema["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let (name, body) = schema["properties"].as_object()?.iter().next()?;
        let body = body.clone();
        Some((name.clone(), Variant { summary, body }))
    };
    (
        listed.into_iter().filter_map(variant).collect(),
        definitions,
    )
}

/// Takes the brackets of links in the source out of every description.
fn plain_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace("[`", "`").replace("`]", "`");
            }
            members.values_mut().for_each(plain_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(plain_descriptions),
        _ => {}
    }
}
