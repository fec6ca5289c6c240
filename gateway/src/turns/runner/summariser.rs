//! Who summarises: the session's model, or an endpoint.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::sessions::hygiene::{Block, Message, Role};
use crate::turns::compaction::request::{
    MAX_SUMMARY_BYTES, Summariser, Summarising, SummaryError, SummaryRequest,
};
use crate::turns::models::{Endpoint, ModelError, Models, Patience, Prompt, post_json};
use crate::turns::tokens;

use super::cost::Cost;
use super::prompt::text_of;

/// An endpoint's answer is the summary, or JSON around it.
const MAX_ANSWER_BYTES: usize = 4 * MAX_SUMMARY_BYTES;

/// The model, as somebody who summarises. It is offered no tools.
pub(super) struct ModelSummariser<'a> {
    pub(super) models: &'a Models,
    pub(super) endpoint: &'a Endpoint,
    pub(super) max_tokens: u32,
    /// What it cost so far.
    pub(super) cost: Mutex<Cost>,
}

impl Summariser for ModelSummariser<'_> {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest) -> Summarising<'a> {
        Box::pin(async move {
            let messages = [Message {
                role: Role::User,
                content: vec![Block::Text {
                    text: request.prompt(),
                }],
                stop_reason: None,
            }];
            let prompt = Prompt {
                system: &request.instructions,
                messages: &messages,
                tools: &[],
                max_tokens: self.max_tokens,
            };
            let answer = self.models.ask(self.endpoint, &prompt, &mut |_| {}).await;
            let answer = answer.map_err(|error| summary_error(&error))?;
            let estimate = tokens::of_text(prompt.system) + tokens::of_messages(&messages);
            let mut cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
            cost.add(Cost::of(&answer, estimate));
            drop(cost);
            said(text_of(&answer.message))
        })
    }
}

/// An HTTP endpoint: it gets the request as JSON, and answers with the summary as text, or as
/// JSON with a member `summary`.
pub(super) struct HttpSummariser {
    pub(super) url: String,
    pub(super) limit: Duration,
}

impl Summariser for HttpSummariser {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest) -> Summarising<'a> {
        Box::pin(async move {
            let body = serde_json::to_vec(request)
                .map_err(|error| SummaryError::Failed(error.to_string()))?;
            let patience = Patience {
                first_piece: self.limit,
                next_piece: self.limit,
                ..Patience::default()
            };
            let asking = post_json(&self.url, body, MAX_ANSWER_BYTES, patience);
            let answer = tokio::time::timeout(self.limit, asking)
                .await
                .map_err(|_| SummaryError::TimedOut(self.limit))?
                .map_err(|error| summary_error(&error))?;
            said(summary_of(&answer))
        })
    }
}

fn summary_of(answer: &[u8]) -> String {
    let value: Value = serde_json::from_slice(answer).unwrap_or_default();
    match value["summary"].as_str() {
        Some(summary) => summary.to_owned(),
        None => String::from_utf8_lossy(answer).into_owned(),
    }
}

fn said(text: String) -> Result<String, SummaryError> {
    if text.trim().is_empty() {
        return Err(SummaryError::Empty);
    }
    Ok(text)
}

fn summary_error(error: &ModelError) -> SummaryError {
    match error {
        ModelError::SlowStart(limit) | ModelError::Stalled(limit) | ModelError::Endless(limit) => {
            SummaryError::TimedOut(*limit)
        }
        ModelError::Unwanted => SummaryError::Aborted,
        error if error.overflow().is_some() => SummaryError::TooLong,
        error => SummaryError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_answers_with_text_or_with_json_around_it() {
        for (answer, summary) in [
            ("a summary", "a summary"),
            (r#"{"summary":"a summary"}"#, "a summary"),
            (r#"{"other":1}"#, r#"{"other":1}"#),
            (r#""quoted""#, r#""quoted""#),
        ] {
            assert_eq!(summary_of(answer.as_bytes()), summary);
        }
        assert_eq!(said(" \n".to_owned()), Err(SummaryError::Empty));
    }
}
