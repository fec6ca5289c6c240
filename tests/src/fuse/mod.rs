//! A file system of a test's own, served by the test: it answers, or it does not, as a
//! network file system whose server is gone.

mod answer;
mod tree;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use tree::Tree;

/// Larger than any request of a file system that nobody writes to.
const MAX_REQUEST_BYTES: usize = 256 * 1024;

/// A mounted file system with one file in a folder; dropping it takes it away.
#[derive(Debug)]
pub struct ServedFile {
    mount: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    tree: Mutex<Tree>,
    held: Mutex<bool>,
    let_go: Condvar,
}

impl ServedFile {
    /// Mounts a file system at `mount` in which `folder/name` has this content. None where
    /// this machine does not let us: then the test that wants it says that it is skipped.
    pub fn mount(mount: &Path, folder: &str, name: &str, content: Vec<u8>) -> Option<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.ok()?;
        let status = Command::new("mount")
            .args(["-i", "-t", "fuse", "-o"])
            .arg("fd=0,rootmode=40000,user_id=0,group_id=0,allow_other")
            .arg("tidings-test")
            .arg(mount)
            .stdin(device.try_clone().ok()?)
            .stderr(Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return None;
        }
        let shared = Arc::new(Shared {
            tree: Mutex::new(Tree::new(folder, name, content)),
            held: Mutex::new(false),
            let_go: Condvar::new(),
        });
        let serving = shared.clone();
        thread::spawn(move || serving.serve(device));
        Some(Self {
            mount: mount.to_owned(),
            shared,
        })
    }

    /// Appends to the file. The kernel is not told, so no file event is made.
    pub fn append(&self, bytes: &[u8]) {
        self.shared.tree.lock().expect("a tree").append(bytes);
    }

    /// From here on nothing is answered.
    pub fn hold(&self) {
        *self.shared.held.lock().expect("a gate") = true;
    }

    /// Everything is answered again, and what has been asked meanwhile.
    pub fn let_go(&self) {
        *self.shared.held.lock().expect("a gate") = false;
        self.shared.let_go.notify_all();
    }
}

impl Shared {
    fn serve(&self, mut device: File) {
        let mut request = vec![0; MAX_REQUEST_BYTES];
        // It ends when the file system is unmounted.
        while let Ok(length) = device.read(&mut request) {
            let held = self.held.lock().expect("a gate");
            let held = self.let_go.wait_while(held, |held| *held);
            drop(held.expect("a gate"));
            let tree = self.tree.lock().expect("a tree");
            if let Some(answer) = answer::to(&request[..length], &tree) {
                // Whoever asked may have been killed.
                let _ = device.write_all(&answer);
            }
        }
    }
}

impl Drop for ServedFile {
    fn drop(&mut self) {
        self.let_go();
        let unmounted = Command::new("umount").arg("-l").arg(&self.mount).status();
        drop(unmounted);
    }
}
