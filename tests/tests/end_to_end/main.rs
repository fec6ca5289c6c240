//! Tidings from outside: the real binaries, as processes, over real sockets and files.

mod adopting;
mod approving;
mod audited;
mod bad_transcripts;
mod burst;
mod crashed;
mod delivered;
mod diagnosed;
mod file_events;
mod gone;
mod history;
mod hung;
mod joining;
mod killed;
mod listing;
mod one_gateway;
mod privacy;
mod provisioning;
mod quickstart;
mod scripts;
mod services;
mod told;
mod transcripts;
mod watching;
