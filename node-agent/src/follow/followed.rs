//! One link with its tailer.

use std::path::PathBuf;

use tidings_protocol::report::{Echo, Link};
use tidings_protocol::{Catalog, ThreadId};

use super::slots::{ReadId, RootIndex};
use crate::link::LinkLife;
use crate::tail::Tailer;

/// One followed link.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) life: LinkLife,
    pub(super) thread: (Catalog, ThreadId),
    /// Where the file was last seen.
    pub(super) path: PathBuf,
    pub(super) root: RootIndex,
    /// What was delivered, in this machine's time.
    echo: Echo,
    /// The tailer has not been told the echo.
    echo_is_new: bool,
    /// At home, unless it is out reading.
    pub(super) tailer: Option<Box<Tailer>>,
    pub(super) reading: Option<ReadId>,
    /// The connection on which the gateway last named the link.
    pub(super) session: u64,
}

impl Followed {
    /// A link that was named on connection `session`.
    pub(super) fn new(
        mut link: Link,
        thread: (Catalog, ThreadId),
        path: PathBuf,
        root: RootIndex,
        session: u64,
    ) -> Self {
        let mut followed = Self {
            echo: std::mem::take(&mut link.echo),
            echo_is_new: false,
            life: LinkLife::new(link),
            thread,
            path,
            root,
            tailer: None,
            reading: None,
            session,
        };
        followed.renew_tailer();
        followed
    }

    /// What the gateway has delivered to the thread, in this machine's time. A delivery that
    /// is known already keeps the time that it had when it was first heard of.
    pub(super) fn hear_echo(&mut self, mut echo: Echo) {
        for delivery in &mut echo.deliveries {
            let mut known = self.echo.deliveries.iter();
            if let Some(known) = known.find(|known| known.id == delivery.id) {
                delivery.at = known.at;
            }
        }
        if self.echo != echo {
            self.echo = echo;
            self.echo_is_new = true;
            self.life.echo_changed();
        }
    }

    /// A tailer that goes on from what is recorded.
    pub(super) fn renew_tailer(&mut self) {
        let (catalog, thread) = self.thread.clone();
        let marker = self.life.acknowledged().clone();
        let echo = self.echo.clone();
        let tailer = Tailer::new(catalog, thread, self.path.clone(), marker, echo);
        self.tailer = Some(Box::new(tailer));
        self.echo_is_new = false;
    }

    /// The tailer, told everything it must know for its next reading.
    pub(super) fn send_out(&mut self) -> Option<Box<Tailer>> {
        let mut tailer = self.tailer.take()?;
        if std::mem::take(&mut self.echo_is_new) {
            tailer.set_echo(self.echo.clone());
        }
        Some(tailer)
    }
}
