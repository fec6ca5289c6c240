//! Reading and classifying transcripts, through what callers see.

mod adopting;
mod agreement;
mod bad_input;
mod command;
mod corpus;
mod echoes;
mod fixtures;
mod following;
mod generate;
mod reference;
mod rewriting;
mod rules;
mod support;
