//! The session interface over real sockets, with a real database behind it.

mod nodes;
mod served;
mod turns;
mod upkeep;
mod wakes;
