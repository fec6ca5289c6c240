//! A JSON value in which no object has a member twice: of two, nobody knows which is meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The value. To read one fails with [`serde_json::error::Category::Data`] where a member
/// stands twice, and never with that for another reason.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unique(pub(super) Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Unique(value))) = members.next_entry::<String, Unique>()? {
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::error::Category;

    use super::*;

    #[test]
    fn every_value_is_read_as_it_stands() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,1.5,"x\ny"],"b":{"a":{}}}"#;
        let Unique(value) = serde_json::from_str(text).expect("a value");
        assert_eq!(value, serde_json::from_str::<Value>(text).expect("a value"));
    }

    #[test]
    fn a_member_that_stands_twice_is_told_from_what_is_no_json() {
        for (text, category) in [
            (r#"{"a":1,"a":1}"#, Category::Data),
            (r#"{"x":[{"a":1,"b":2,"\u0061":3}]}"#, Category::Data),
            (r#"{"a":1,"a""#, Category::Eof),
            (r#"{"a":1 "b":2}"#, Category::Syntax),
            ("1e999", Category::Syntax),
        ] {
            let error = serde_json::from_str::<Unique>(text).expect_err(text);
            assert_eq!(error.classify(), category, "{text}");
        }
    }
}
