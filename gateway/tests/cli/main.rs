//! The operators' commands as whole outputs of the real binary, against a gateway's socket
//! that says what the test wants.

mod backup;
mod catalog;
mod cert;
mod chat;
mod cleanup;
mod doctor;
mod endings;
mod errors;
mod fake;
mod follow;
mod gateway_run;
mod history;
mod logs;
mod manual;
mod nodes;
mod notices;
mod pairing;
mod run;
mod runs;
mod sending;
mod sessions;
mod signals;
mod status;
mod token;
mod unknown;
mod usage;
mod values;
mod watch;
