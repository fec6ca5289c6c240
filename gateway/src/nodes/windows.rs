//! How much of the nodes' bytes the gateway keeps: one budget over all of them.

/// Unread bytes of all nodes together, and as many that wait for slow readers.
const BUDGET: u64 = 256 * 1024 * 1024;
/// Of one node, while there are few: a frame on each of its long-lived streams.
const MOST: u64 = 1024 * 1024;
/// Of one node, however many there are: what a stranger has too.
const LEAST: u64 = 64 * 1024;

/// A node's share of the budget while `connected` nodes are there. It goes by powers of two, so
/// that it changes rarely.
pub(super) fn share(connected: usize) -> u32 {
    let connected = (connected.max(1) as u64).next_power_of_two();
    let share = (BUDGET / connected).clamp(LEAST, MOST);
    u32::try_from(share).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_large_while_nodes_are_few_and_never_nothing() {
        const KIB: u32 = 1024;
        for (connected, window) in [
            (0, 1024 * KIB),
            (1, 1024 * KIB),
            (256, 1024 * KIB),
            (257, 512 * KIB),
            (512, 512 * KIB),
            (1_000, 256 * KIB),
            (2_000, 128 * KIB),
            (4_000, 64 * KIB),
            (usize::MAX >> 1, 64 * KIB),
        ] {
            assert_eq!(share(connected), window, "{connected}");
        }
    }
}
