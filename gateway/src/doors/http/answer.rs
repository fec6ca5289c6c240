//! Answers: JSON with a status.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tidings_protocol::session_api::{ApiError, ErrorType};

/// What is said instead of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    status: StatusCode,
    error: ApiError,
}

#[derive(Serialize)]
struct Envelope<'a> {
    ok: bool,
    error: &'a ApiError,
}

impl Refusal {
    /// A refusal with a status of its own.
    pub(super) fn with(status: StatusCode, error: ApiError) -> Self {
        Self { status, error }
    }

    /// Its status.
    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// What it says.
    #[cfg(test)]
    pub(super) fn message(&self) -> &str {
        &self.error.message
    }

    /// A refusal of what cannot be meant.
    pub(super) fn invalid(status: StatusCode, message: impl Into<String>) -> Self {
        Self::with(status, ApiError::new(ErrorType::InvalidRequest, message))
    }

    /// The same, with what to do about it.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.error = self.error.with_hint(hint);
        self
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self {
            status: status_of(error.error_type),
            error,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let envelope = Envelope {
            ok: false,
            error: &self.error,
        };
        let mut response = json(
            self.status,
            serde_json::to_vec(&envelope).unwrap_or_default(),
        );
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.error.error_type == ErrorType::TryLater {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

/// The status of each kind of error.
pub(super) fn status_of(error: ErrorType) -> StatusCode {
    match error {
        ErrorType::InvalidRequest => StatusCode::BAD_REQUEST,
        ErrorType::NotPermitted => StatusCode::FORBIDDEN,
        ErrorType::NotFound => StatusCode::NOT_FOUND,
        ErrorType::Conflict => StatusCode::CONFLICT,
        ErrorType::InvalidData => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorType::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorType::Unavailable | ErrorType::TryLater => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A JSON document. It is nobody's to keep: what it says may be another thing a moment later.
pub(super) fn json(status: StatusCode, document: impl Into<Body>) -> Response {
    of_type(status, "application/json", document)
}

/// A document of another type.
pub(super) fn of_type(
    status: StatusCode,
    content_type: &'static str,
    document: impl Into<Body>,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
    ];
    (status, headers, document.into()).into_response()
}
