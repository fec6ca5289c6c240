//! Indexes of transcripts, shared by all who read them: one is made once for each state of a
//! file, however many ask at once, and continued where the file has only grown.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tidings_node::private_files::FileError;
use tokio::sync::Mutex as AsyncMutex;

use super::index::Index;
use crate::sessions::files::{Files, Seen};

/// How many indexes are kept: of the sessions that are read now.
const MAX_KEPT: usize = 32;

/// Indexes of transcripts, by path and by what the file looks like.
#[derive(Debug, Clone, Default)]
pub struct Indexes {
    files: Files,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    by_path: HashMap<PathBuf, Place>,
    uses: u64,
}

/// Where the index of one file is, or will be.
#[derive(Debug, Default)]
struct Place {
    last_use: u64,
    indexed: Arc<AsyncMutex<Option<Indexed>>>,
}

#[derive(Debug, Clone)]
struct Indexed {
    seen: Seen,
    index: Arc<Index>,
}

impl Indexes {
    /// Indexes of files that are read by these operations.
    #[must_use]
    pub fn new(files: Files) -> Self {
        Self {
            files,
            kept: Arc::default(),
        }
    }

    /// The index of a transcript as it is now; `None` where there is no such file.
    pub async fn of(&self, path: &Path) -> Result<Option<Arc<Index>>, FileError> {
        let shared = self.shared(path);
        // Who comes while it is made waits for it, and makes none of its own.
        let mut indexed = shared.lock_owned().await;
        let (files, owned) = (self.files.clone(), path.to_owned());
        let reading = tokio::task::spawn_blocking(move || {
            let read = read(&files, &owned, indexed.take());
            *indexed = read.as_ref().ok().cloned().flatten();
            read
        });
        match reading.await {
            Ok(read) => Ok(read?.map(|indexed| indexed.index)),
            Err(error) => Err(FileError::at("read", path)(error.into())),
        }
    }

    fn shared(&self, path: &Path) -> Arc<AsyncMutex<Option<Indexed>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let last_use = kept.uses;
        let place = kept.by_path.entry(path.to_owned()).or_default();
        place.last_use = last_use;
        let shared = Arc::clone(&place.indexed);
        if kept.by_path.len() > MAX_KEPT {
            let oldest = kept.by_path.iter().min_by_key(|(_, place)| place.last_use);
            if let Some(path) = oldest.map(|(path, _)| path.clone()) {
                kept.by_path.remove(&path);
            }
        }
        shared
    }
}

fn read(files: &Files, path: &Path, before: Option<Indexed>) -> Result<Option<Indexed>, FileError> {
    let Some(mut file) = files.open(path)? else {
        return Ok(None);
    };
    let seen = files.seen(&file, path)?;
    let before = match before {
        Some(before) if before.seen == seen => return Ok(Some(before)),
        Some(before) if before.seen.mark.1 == seen.mark.1 => Some(before.index),
        _ => None,
    };
    let index = continued(&mut file, before).map_err(FileError::at("read", path))?;
    let broken = index.counts().broken;
    if broken > 0 {
        tracing::warn!(path = %path.display(), broken, "lines of a transcript are no records");
    }
    Ok(Some(Indexed {
        seen,
        index: Arc::new(index),
    }))
}

/// The index of a file, continued from an older one where the file has only grown.
fn continued(file: &mut File, before: Option<Arc<Index>>) -> io::Result<Index> {
    if let Some(before) = before
        && has_grown(file, &before)?
    {
        let mut index = Arc::unwrap_or_clone(before);
        file.seek(SeekFrom::Start(index.end()))?;
        index.read_on(file)?;
        return Ok(index);
    }
    file.seek(SeekFrom::Start(0))?;
    Index::read(file)
}

fn has_grown(file: &File, index: &Index) -> io::Result<bool> {
    let mut before = vec![0; index.tail_bytes()];
    let begins = index.end() - before.len() as u64;
    match file.read_exact_at(&mut before, begins) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let mut next = [0];
    let length = file.read_at(&mut next, index.end())?;
    Ok(index.is_continued_by(&before, next[..length].first().copied()))
}
