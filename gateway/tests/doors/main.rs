//! The session interface over real sockets, with a real database behind it.

mod approval;
mod certificates;
mod clock;
mod connections;
mod ended;
mod flood;
mod gaps;
mod given;
mod history;
mod hostile;
mod joining;
mod nodes;
mod quic;
mod raw;
mod relay;
mod relayed;
mod renewal;
mod served;
mod store;
mod turns;
mod upkeep;
mod visible;
mod wakes;
