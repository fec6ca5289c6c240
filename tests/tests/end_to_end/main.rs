//! Tidings from outside: the real binaries, as processes, over real sockets and files.

mod adopting;
mod audited;
mod crashed;
mod joining;
mod killed;
mod one_gateway;
mod privacy;
mod quickstart;
mod scripts;
mod told;
mod transcripts;
mod watching;
