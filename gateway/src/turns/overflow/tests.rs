//! What providers say, and what it means.

use super::*;
use crate::config::Compaction;

/// Answers that mean an overflow, with the count that they give.
const OVERFLOWS: &[(u16, &str, Option<u64>)] = &[
    // The wordings that were asked for.
    (
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        None,
    ),
    (400, "context length exceeded", None),
    (400, "input exceeds the maximum number of tokens", None),
    (
        400,
        "The input token count (1196265) exceeds the maximum number of input tokens allowed (1048575).",
        Some(1_196_265),
    ),
    (
        400,
        "input token count exceeds the maximum number of input tokens",
        None,
    ),
    (
        400,
        "ValidationException: Input is too long for requested model.",
        None,
    ),
    (400, "input is too long for the model", None),
    (500, "ollama error: context length exceeded", None),
    // And what providers make of them.
    (
        400,
        r#"{"error":{"message":"prompt is too long: 213,462 tokens > 200000 maximum"}}"#,
        Some(213_462),
    ),
    (
        400,
        "input length and `max_tokens` exceed context limit: 190000 + 21333 > 204798, decrease input length",
        Some(190_000),
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 150001 tokens. Please reduce the length of the messages.","code":"context_length_exceeded"}}"#,
        Some(150_001),
    ),
    (
        400,
        "This model's maximum context length is 4097 tokens, however you requested 4927 tokens (3927 in the messages, 1000 in the completion).",
        Some(3_927),
    ),
    (
        400,
        "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10341 in your prompt; 5 for the completion).",
        Some(10_341),
    ),
    (
        400,
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens",
        Some(140_000),
    ),
    (
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        None,
    ),
    (
        400,
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        Some(537_812),
    ),
    (
        400,
        "Please reduce the length of the messages or completion.",
        None,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5021,"n_ctx":4096}}"#,
        Some(5_021),
    ),
    (
        400,
        "request (5021 tokens) exceeds the available context size (4096 tokens)",
        Some(5_021),
    ),
    (
        400,
        "The number of tokens to keep from the initial prompt is greater than the context length",
        None,
    ),
    (
        400,
        "prompt token count of 70000 exceeds the limit of 64000",
        Some(70_000),
    ),
    (
        400,
        "invalid params, context window exceeds limit (2013)",
        None,
    ),
    (
        400,
        "Your request exceeded model token limit: 262144 (requested: 300000)",
        Some(300_000),
    ),
    (
        400,
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        Some(40_000),
    ),
    (400, "Range of input length should be [1, 30720]", None),
    (
        500,
        "prompt too long; exceeded max context length by 12 tokens",
        None,
    ),
    (400, "PROMPT\n IS  TOO\tLONG", None),
    (400, "Input is too long.", None),
    (400, "Context size has been exceeded.", None),
    (
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 280000 tokens.",
        Some(280_000),
    ),
    (
        400,
        "Total tokens of image and text exceed max message tokens",
        None,
    ),
    (400, "错误：上下文过长，请缩短", None),
    (413, "", None),
    (413, "Payload Too Large", None),
];

#[test]
fn every_wording_is_recognised_with_the_count_that_it_gives() {
    for (status, body, observed) in OVERFLOWS {
        let (status, observed) = (*status, *observed);
        let found = recognise(Some(status), body);
        assert_eq!(found, Some(Overflow { observed }), "{status} {body}");
    }
    let by_no_http = recognise(None, "stream error: context_length_exceeded");
    assert_eq!(by_no_http, Some(Overflow { observed: None }));
}

#[test]
fn a_limit_that_no_shorter_prompt_mends_is_no_overflow() {
    for (status, body) in [
        (429, "prompt is too long"),
        (
            429,
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000",
        ),
        (
            400,
            "Request too large for model on tokens per min (TPM): Limit 6000, Requested 7000",
        ),
        (
            400,
            "rate_limit_error: your prompt token count of 9 exceeds the limit of 5",
        ),
        (
            400,
            "ThrottlingException: Too many tokens, please wait before trying again.",
        ),
        (
            413,
            "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 7000",
        ),
        (529, "Overloaded"),
        (
            400,
            "max_tokens: 300000 > 8192, which is the maximum allowed number of output tokens",
        ),
        (400, "max_tokens must be at least 1"),
        (
            402,
            "You exceeded your current quota, please check your plan and billing details",
        ),
        (401, "context length exceeded"),
        (404, "model not found: context-length"),
        (400, "messages: text content blocks must be non-empty"),
        (400, "the context of this error is long"),
        (500, "internal error"),
        (504, ""),
        (400, ""),
    ] {
        assert_eq!(recognise(Some(status), body), None, "{status} {body}");
    }
}

#[test]
fn a_prompt_of_unknown_length_was_a_little_longer_than_what_fits() {
    let budget = Budget::new(1_000, &Compaction::default());
    for (observed, attempted) in [(None, 1_001), (Some(5_000), 5_000), (Some(900), 900)] {
        assert_eq!(Overflow { observed }.attempted(budget), attempted);
    }
}

#[test]
fn an_endless_answer_is_looked_at_in_its_beginning_and_numbers_have_an_end() {
    let long = "é".repeat(MAX_LOOKED_AT_BYTES) + "prompt is too long";
    assert_eq!(recognise(Some(400), &long), None);
    let body = "prompt is too long: 99999999999999999999999 tokens";
    assert_eq!(
        recognise(Some(400), body),
        Some(Overflow { observed: None })
    );
}

#[test]
fn what_is_said_to_the_user_names_every_way_on() {
    for way in ["again", "/compact", "/new", "same session"] {
        assert!(GUIDANCE.contains(way), "{way}");
    }
}
