//! Reading and classifying transcripts, through what callers see.

mod corpus;
mod support;
