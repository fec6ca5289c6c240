//! What a compaction writes: its entry, and where wanted a smaller transcript to go on in. All
//! of it happens under the lock of the transcript that the conversation was read from.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tidings_node::private_files::FileError;

use super::plan::Plan;
use super::run::{CompactionError, Compactor, Order, Outcome, Read};
use super::successor::{self, Checkpoint};
use crate::sessions::names;
use crate::sessions::transcript::entry::{Display, Stem};
use crate::sessions::transcript::index::Index;
use crate::sessions::transcript::lock::WriteLock;
use crate::state::{Compacted as Left, Compaction};
use crate::turns::message;
use crate::turns::tokens;
use crate::turns::view::{Item, View};

/// The type of the message with the sections of AGENTS.md.
const SECTIONS_TYPE: &str = "post_compaction_sections";

/// What is written.
pub(super) struct Written<'a> {
    pub(super) order: &'a Order,
    pub(super) plan: &'a Plan,
    pub(super) read: &'a Read,
    pub(super) summary: &'a str,
    pub(super) tokens_before: u64,
    pub(super) sections: Option<String>,
}

/// Lines that were appended.
struct Appended {
    compaction_id: String,
    tokens_after: u64,
    kept: usize,
}

impl Compactor<'_> {
    /// Writes and records a compaction.
    pub(super) async fn write(&self, written: &Written<'_>) -> Result<Outcome, CompactionError> {
        let Written { order, read, .. } = written;
        let lock = self.locker.acquire(&read.path).await?;
        let appended = self.append(&lock, written).await?;
        let successor = if self.summarisers.settings.truncate_after_compaction {
            Some(self.put_successor(written, &appended).await?)
        } else {
            None
        };
        let session_file = successor.as_ref().map(|put| put.name.clone());
        self.stores
            .state
            .record_compaction(Compaction {
                session: order.session.clone(),
                automatic: order.trigger.is_automatic(),
                dedupe_key: Some(format!("compaction:{}", appended.compaction_id)),
                left: Some(Left {
                    context_tokens: appended.tokens_after,
                    session_file,
                }),
            })
            .await?;
        let transcript = match successor {
            None => read.path.clone(),
            Some(put) => self.archive(&read.path, put).await?,
        };
        drop(lock);
        let entry = self.stores.entry(&order.session).await?;
        Ok(Outcome {
            tokens_before: written.tokens_before,
            tokens_after: appended.tokens_after,
            summarised: written.plan.cut,
            kept: appended.kept,
            compaction_count: entry.and_then(|entry| entry.compaction_count).unwrap_or(0),
            transcript,
        })
    }

    /// Appends the summary behind what is the last entry now.
    async fn append(
        &self,
        lock: &WriteLock,
        written: &Written<'_>,
    ) -> Result<Appended, CompactionError> {
        let Written {
            order, plan, read, ..
        } = written;
        let moved = || CompactionError::Moved(order.session.clone());
        let now = self.view(&read.path).await?.ok_or_else(moved)?;
        let kept = kept_now(read, plan, &now.1).ok_or_else(moved)?;
        let at = self.stores.clock.now();
        let stem = Stem::following(now.0, at)?;
        let first_kept = kept.first().and_then(|item| item.id.as_deref());
        let mut lines = vec![stem.compaction(written.summary, first_kept, written.tokens_before)];
        let mut after = tokens::of_message(&message::of_summary(written.summary));
        after += tokens::sum(kept.iter().map(|item| item.tokens));
        if let Some(sections) = &written.sections {
            let below = Stem::following(Some(stem.id.clone()), at)?;
            let content = Value::from(sections.as_str());
            lines.push(below.custom_message(SECTIONS_TYPE, &content, Display::Hidden));
            after += tokens::of_text(sections);
        }
        lock.append(&lines).await?;
        Ok(Appended {
            compaction_id: stem.id,
            tokens_after: after,
            kept: kept.len(),
        })
    }

    /// Writes the transcript in which the conversation goes on; nobody knows of it yet.
    async fn put_successor(
        &self,
        written: &Written<'_>,
        appended: &Appended,
    ) -> Result<Successor, CompactionError> {
        let path = written.read.path.clone();
        let at = self.stores.clock.now();
        let mut archive = path.clone().into_os_string();
        archive.push(format!(".reset.{}", names::stamp(at)));
        let archive = PathBuf::from(archive);
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = successor::name(&file_name, &appended.compaction_id);
        let put = Successor {
            path: path.with_file_name(&name),
            name,
            archive,
        };
        let (to, before) = (put.path.clone(), put.archive.display().to_string());
        let (compaction_id, session_id) = (
            appended.compaction_id.clone(),
            written.read.entry.session_id.clone(),
        );
        let (trigger, tokens_before) = (written.order.trigger.name(), written.tokens_before);
        self.stores
            .blocking(move |files| {
                let Some(mut file) = files.open(&path)? else {
                    let gone = io::Error::from(io::ErrorKind::NotFound);
                    return Err(FileError::at("read", &path)(gone));
                };
                let checkpoint = Checkpoint {
                    session_id: &session_id,
                    before: &before,
                    trigger,
                    tokens_before,
                    compaction_id: &compaction_id,
                    at,
                };
                let content = Index::read(&mut file)
                    .and_then(|index| successor::content(&file, &index, &checkpoint))
                    .map_err(FileError::at("read", &path))?;
                files.write(&to, &content)?;
                files.sync_dir(to.parent().unwrap_or(&to))
            })
            .await?;
        Ok(put)
    }

    /// The transcript before becomes an archive; answers where the conversation goes on.
    async fn archive(&self, before: &Path, put: Successor) -> Result<PathBuf, FileError> {
        let (from, to) = (before.to_owned(), put.archive);
        self.stores
            .blocking(move |files| {
                files.rename(&from, &to)?;
                files.sync_dir(to.parent().unwrap_or(&to))
            })
            .await?;
        Ok(put.path)
    }
}

/// A transcript's successor, and the archive that it will become.
struct Successor {
    name: String,
    path: PathBuf,
    archive: PathBuf,
}

/// What is kept of a conversation as it is now: what was to be kept, and what came since;
/// `None` where it does not go on from what was read.
fn kept_now<'a>(read: &Read, plan: &Plan, now: &'a View) -> Option<&'a [Item]> {
    let is_same = |(before, now): (&Item, &Item)| before.id == now.id && before.kind == now.kind;
    let goes_on = now.items.len() >= read.view.items.len()
        && read.view.items.iter().zip(&now.items).all(is_same)
        && read.view.summary == now.summary;
    let kept = now.items.get(plan.cut..)?;
    let is_named = kept.first().is_none_or(|item| item.id.is_some());
    (goes_on && is_named).then_some(kept)
}
