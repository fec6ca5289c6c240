//! The session interface over real sockets, with a real database behind it.

mod gaps;
mod nodes;
mod renewal;
mod served;
mod turns;
mod upkeep;
mod wakes;
