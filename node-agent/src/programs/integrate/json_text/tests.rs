//! JSON edited in place.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parsed(text: &str) -> JsonText {
    JsonText::parse(text).expect("JSON")
}

#[test]
fn what_is_added_looks_like_what_is_there() {
    for (text, path, name, expected) in [
        ("", &[][..], Some("a"), "{\n  \"a\": [\n    1\n  ]\n}\n"),
        ("{}", &[], Some("a"), "{\"a\":[1]}"),
        ("{\"b\":2}", &[], Some("a"), "{\"b\":2,\"a\":[1]}"),
        (
            "{\n\t\"b\": 2\n}\n",
            &[],
            Some("a"),
            "{\n\t\"b\": 2,\n\t\"a\": [\n\t\t1\n\t]\n}\n",
        ),
        (
            "{\n    \"b\": [2, 3]\n}\n",
            &[Step::Member("b")],
            None,
            "{\n    \"b\": [2, 3,[1]]\n}\n",
        ),
        (
            "{\n    \"b\": {}\n}\n",
            &[Step::Member("b")],
            Some("a"),
            "{\n    \"b\": {\n        \"a\": [\n            1\n        ]\n    }\n}\n",
        ),
    ] {
        let added = parsed(text).add(path, name, &json!([1])).expect("JSON");
        assert_eq!(added.as_str(), expected, "{text:?}");
    }
}

#[test]
fn what_is_removed_takes_its_comma_and_its_line_with_it() {
    let text = "{\n  \"a\": 1,\n  \"b\": [\"x\", {\"y\": \"}\"}],\n  \"c\": null\n}\n";
    for (path, expected) in [
        (
            &[Step::Member("a")][..],
            "{\n  \"b\": [\"x\", {\"y\": \"}\"}],\n  \"c\": null\n}\n",
        ),
        (
            &[Step::Member("c")],
            "{\n  \"a\": 1,\n  \"b\": [\"x\", {\"y\": \"}\"}]\n}\n",
        ),
        (
            &[Step::Member("b"), Step::Item(0)],
            "{\n  \"a\": 1,\n  \"b\": [{\"y\": \"}\"}],\n  \"c\": null\n}\n",
        ),
        (
            &[Step::Member("b"), Step::Item(1), Step::Member("y")],
            "{\n  \"a\": 1,\n  \"b\": [\"x\", {}],\n  \"c\": null\n}\n",
        ),
        (&[Step::Member("z")], text),
    ] {
        let removed = parsed(text).remove(path).expect("JSON");
        assert_eq!(removed.as_str(), expected, "{path:?}");
    }
}

#[test]
fn a_broken_text_is_a_named_error_that_repeats_nothing() {
    for (text, error) in [
        ("{\"secret\": ", "it is no JSON: line 1, column 11"),
        ("// comment\n{}", "it is no JSON: line 1, column 1"),
        ("[]", "it is no JSON object"),
        ("null", "it is no JSON object"),
        ("\u{feff}{}", "it is no JSON: line 1, column 1"),
        (
            "{\"secret\": 1,\n \"s\\u0065cret\": 2}",
            "it has a member twice: line 2",
        ),
        (
            "{\"a\": [{\"b\": {}, \"c\": 1, \"b\": 2}]}",
            "it has a member twice: line 1",
        ),
    ] {
        assert_eq!(JsonText::parse(text).expect_err(text).to_string(), error);
    }
    parsed("{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 1}]}");
}

#[test]
fn a_text_may_be_nested_as_deep_as_the_limit_and_no_deeper() {
    let nested = |arrays: usize| {
        let (open, close) = ("[".repeat(arrays), "]".repeat(arrays));
        JsonText::parse(&format!("{{\n\"a\": {open}{close}\n}}"))
    };
    assert!(nested(MAX_DEPTH - 1).is_ok());
    for arrays in [MAX_DEPTH, 200_000] {
        assert_eq!(
            nested(arrays).expect_err("too deep").to_string(),
            "it is nested more than 128 deep: line 2"
        );
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~\\n\"\\\\ö{}\\[\\],:]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c\"\\\\{]{0,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The text means what the edit says, and taking it back gives the same bytes.
    #[test]
    fn an_edit_means_what_it_says_and_can_be_taken_back(
        members in proptest::collection::btree_map("[a-c\"]{1,2}", any_value(), 0..4),
        value in any_value(),
        pretty in any::<bool>(),
    ) {
        let before = Value::Object(members.into_iter().collect());
        let text = if pretty {
            serde_json::to_string_pretty(&before).expect("text")
        } else {
            before.to_string()
        };
        let added = parsed(&text).add(&[], Some("new"), &value).expect("JSON");
        let mut expected = before.clone();
        expected["new"] = value.clone();
        prop_assert_eq!(&serde_json::from_str::<Value>(added.as_str()).expect("JSON"), &expected);
        let replaced = added.replace(&[Step::Member("new")], &json!({"x": [1]})).expect("JSON");
        expected["new"] = json!({"x": [1]});
        prop_assert_eq!(&serde_json::from_str::<Value>(replaced.as_str()).expect("JSON"), &expected);
        let back = replaced.remove(&[Step::Member("new")]).expect("JSON");
        prop_assert_eq!(back.as_str(), text);
    }
}
