//! The operators' commands as whole outputs of the real binary, against a gateway's socket
//! that says what the test wants.

mod backup;
mod catalog;
mod doctor;
mod errors;
mod fake;
mod follow;
mod nodes;
mod notices;
mod run;
mod sessions;
mod signals;
mod status;
mod unknown;
mod usage;
mod values;
mod watch;
