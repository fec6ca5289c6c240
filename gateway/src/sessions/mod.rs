//! The session store beside the database: its readable projection.

pub mod projection;
