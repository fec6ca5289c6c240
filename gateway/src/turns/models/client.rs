//! Asks a model: again where that may help, and read as it answers.

use super::draft::{Draft, Step};
use super::endpoint::{Address, Endpoint, Protocol};
use super::http::{self, Coming, Letter};
use super::patience::Shown;
use super::sse::{Event, Events};
use super::{Answer, ModelError, OnText, Patience, Prompt, anthropic, openai};
use crate::sessions::hygiene::{self, mend};

/// Asks models.
#[derive(Debug, Clone, Copy, Default)]
pub struct Models {
    patience: Patience,
}

impl Models {
    /// Asks with this patience.
    #[must_use]
    pub fn new(patience: Patience) -> Self {
        Self { patience }
    }

    /// Asks a model; each piece of its text is given to `on_text` as it comes. The
    /// conversation is mended into what its provider accepts; where one attempt fails in a way
    /// that passes, and nothing of it was shown, it is asked again.
    pub async fn ask(
        &self,
        endpoint: &Endpoint,
        prompt: &Prompt<'_>,
        on_text: OnText<'_>,
    ) -> Result<Answer, ModelError> {
        let body = body(endpoint, prompt);
        let mut shown = Shown::Nothing;
        let mut failures = 0;
        loop {
            let error = match self.attempt(endpoint, &body, on_text, &mut shown).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let pause = self.patience.pause_after(&error, failures, shown, jitter());
            let Some(pause) = pause else {
                return Err(error);
            };
            tracing::info!(%error, failures, ?pause, "the model is asked again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        body: &[u8],
        on_text: OnText<'_>,
        shown: &mut Shown,
    ) -> Result<Answer, ModelError> {
        let letter = Letter {
            address: &endpoint.address,
            headers: headers(endpoint)?,
            body: body.to_vec(),
            ca_file: endpoint.ca_file.as_deref(),
        };
        let mut coming = http::post(letter, self.patience).await?;
        let mut draft = Draft::default();
        let mut on_text = |text: &str| {
            *shown = Shown::Something;
            on_text(text);
        };
        let limit = self.patience.whole;
        let reading = read(endpoint.protocol, &mut coming, &mut draft, &mut on_text);
        tokio::time::timeout(limit, reading)
            .await
            .map_err(|_| ModelError::Endless(limit))??;
        Ok(draft.finish())
    }
}

/// Sends JSON to an address, and gives what it answers, of at most `limit` bytes.
pub async fn post_json(
    url: &str,
    body: Vec<u8>,
    limit: usize,
    patience: Patience,
) -> Result<Vec<u8>, ModelError> {
    let address = Address::parse(url).map_err(|_| ModelError::Strange("no address"))?;
    let letter = Letter {
        address: &address,
        headers: vec![("accept", "application/json, text/plain".to_owned())],
        body,
        ca_file: None,
    };
    let mut coming = http::post(letter, patience).await?;
    let mut answer = Vec::new();
    while let Some(bytes) = coming.next().await? {
        answer.extend_from_slice(&bytes);
        if answer.len() > limit {
            return Err(ModelError::TooMuch("what is taken of such an endpoint"));
        }
    }
    Ok(answer)
}

fn headers(endpoint: &Endpoint) -> Result<Vec<(&'static str, String)>, ModelError> {
    let mut headers = vec![("accept", "text/event-stream".to_owned())];
    let key = key_of(endpoint)?;
    match endpoint.protocol {
        Protocol::OpenAi => {
            headers.extend(key.map(|key| ("authorization", format!("Bearer {key}"))));
        }
        Protocol::Anthropic => {
            headers.push(("anthropic-version", anthropic::VERSION.to_owned()));
            headers.extend(key.map(|key| ("x-api-key", key)));
        }
    }
    Ok(headers)
}

/// The key, read now: it may change while the gateway runs, and nothing keeps it.
fn key_of(endpoint: &Endpoint) -> Result<Option<String>, ModelError> {
    let Some(variable) = &endpoint.api_key_env else {
        return Ok(None);
    };
    let key = std::env::var(variable).unwrap_or_default();
    let key = key.trim();
    if key.is_empty() || key.chars().any(char::is_control) {
        return Err(ModelError::NoKey {
            variable: variable.clone(),
        });
    }
    Ok(Some(key.to_owned()))
}

/// Reads an answer to its end.
async fn read(
    protocol: Protocol,
    coming: &mut Coming,
    draft: &mut Draft,
    on_text: OnText<'_>,
) -> Result<(), ModelError> {
    let mut events = Events::default();
    while let Some(bytes) = coming.next().await? {
        for event in events.push(&bytes)? {
            match take(protocol, draft, &event)? {
                Step::Quiet => {}
                Step::Text(text) => on_text(&text),
                Step::End => return Ok(()),
            }
        }
    }
    match protocol {
        Protocol::OpenAi if openai::is_whole(draft) => Ok(()),
        _ => Err(ModelError::Cut),
    }
}

fn take(protocol: Protocol, draft: &mut Draft, event: &Event) -> Result<Step, ModelError> {
    match protocol {
        Protocol::OpenAi => openai::take(draft, event),
        Protocol::Anthropic => anthropic::take(draft, event),
    }
}

fn body(endpoint: &Endpoint, prompt: &Prompt<'_>) -> Vec<u8> {
    let rules = match endpoint.protocol {
        Protocol::OpenAi => hygiene::OPENAI,
        Protocol::Anthropic => hygiene::ANTHROPIC,
    };
    let (messages, mended) = mend(prompt.messages, &rules);
    if mended != hygiene::Mended::default() {
        tracing::debug!(?mended, "the copy for the provider was mended");
    }
    let prompt = Prompt {
        messages: &messages,
        ..*prompt
    };
    let body = match endpoint.protocol {
        Protocol::OpenAi => openai::body(&endpoint.model, &prompt),
        Protocol::Anthropic => anthropic::body(&endpoint.model, &prompt),
    };
    body.to_string().into_bytes()
}

/// Keeps many who were turned away at once from coming back at once.
fn jitter() -> u8 {
    let mut byte = [0];
    // Without random numbers nothing else would work either.
    let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut byte);
    byte[0]
}
