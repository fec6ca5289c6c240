//! `wake.command`: the program that this gateway starts for each wake.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidings_node::wake_command::{CommandFigures, WakeCommand};
use tokio::sync::{mpsc, watch};

use crate::config::{Config, Switch};
use crate::doors::{Whose, send_wakes};
use crate::state::State;

/// What the commands are started by.
pub(crate) struct WakeCommands {
    pub(crate) state: State,
    pub(crate) state_dir: PathBuf,
    pub(crate) config: watch::Receiver<Arc<Config>>,
    pub(crate) figures: Arc<CommandFigures>,
}

impl WakeCommands {
    /// Starts the command of the configuration for each wake, whichever it is at the time;
    /// first for each notice that is available already.
    pub(crate) async fn run(mut self) {
        loop {
            let command = self.config.borrow_and_update().wake.command.clone();
            match command {
                Switch::Off => {
                    if self.config.changed().await.is_err() {
                        return;
                    }
                }
                Switch::On(program) => {
                    let (wakes, mut received) = mpsc::channel(1);
                    let (dir, figures) = (self.state_dir.clone(), self.figures.clone());
                    let mut command = WakeCommand::new(program.clone(), dir, figures);
                    tokio::select! {
                        told = send_wakes(&self.state, &Whose::Everybodys, &wakes) => {
                            if let Err(error) = told {
                                tracing::warn!(%error, "the wakes cannot be read any more");
                            }
                            return;
                        }
                        _ = command.run_for(&mut received) => {}
                        () = another(&mut self.config, &program) => {}
                    }
                }
            }
        }
    }
}

/// Completes once the configuration names another command, or none.
async fn another(config: &mut watch::Receiver<Arc<Config>>, program: &Path) {
    let differs = |config: &Arc<Config>| config.wake.command != Switch::On(program.to_owned());
    if config.wait_for(differs).await.is_err() {
        // Nobody changes it any more.
        std::future::pending::<()>().await;
    }
}
