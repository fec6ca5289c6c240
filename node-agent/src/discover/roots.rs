//! The directories in which transcripts are looked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tidings_protocol::Catalog;
use tidings_protocol::wire::messages::MAX_PRESENCE_ITEMS;

use super::files::Layout;

/// How many roots a node has, at most: each has a thread of its own, and all of them stand
/// in every presence.
pub const MAX_ROOTS: usize = 32;
const _: () = assert!(MAX_ROOTS <= MAX_PRESENCE_ITEMS);

/// The longest path of a root, in bytes: what stands below it must fit the wire's limit of
/// four times that.
pub const MAX_ROOT_BYTES: usize = 1024;

/// One directory in which transcripts of one catalog are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The family of its transcripts.
    pub catalog: Catalog,
    /// The directory; absolute, links not resolved.
    pub path: PathBuf,
    /// Where below it transcripts stand.
    pub layout: Layout,
    /// Who chose it.
    pub origin: Origin,
}

/// Who chose a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it is where the program keeps its files. Absent where the program is not
    /// installed, which is no fault.
    Default,
    /// The operator: it should be there.
    Given,
}

/// What decides the default roots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex_home: Option<PathBuf>,
    /// What relative directories are relative to.
    pub current_dir: Option<PathBuf>,
}

/// A root as it is given on the command line: `<catalog>=<directory>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootArgument {
    /// The family of its transcripts.
    pub catalog: Catalog,
    /// The directory.
    pub directory: PathBuf,
}

/// Why a root cannot be used: the operator's fault, and the same again on retrying.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// No `=`, or nothing on one side of it.
    #[error("a root is given as <catalog>=<directory>, for example claude=/srv/claude/projects")]
    Shape,
    /// No such catalog.
    #[error("no catalog is called {0:?}; there are claude, codex and openclaw")]
    UnknownCatalog(String),
    /// The path cannot travel.
    #[error(
        "the path of a root is UTF-8 without control characters, at most {MAX_ROOT_BYTES} bytes: {0:?}"
    )]
    Path(PathBuf),
    /// Relative, and nothing is known that it could be relative to.
    #[error("the current directory is not known, so give the whole path of {}", .0.display())]
    Relative(PathBuf),
    /// Too many.
    #[error("at most {MAX_ROOTS} roots can be given, these are {0}")]
    TooMany(usize),
}

/// All roots of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootSet {
    roots: Vec<Root>,
}

impl Surroundings {
    /// The surroundings of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let directory = |name| {
            std::env::var_os(name)
                .filter(|value: &OsString| !value.is_empty())
                .map(PathBuf::from)
        };
        Self {
            home: directory("HOME"),
            claude_config_dir: directory("CLAUDE_CONFIG_DIR"),
            codex_home: directory("CODEX_HOME"),
            current_dir: std::env::current_dir().ok(),
        }
    }

    /// The roots that nobody has to name.
    fn default_roots(&self, catalog: Catalog) -> Vec<(PathBuf, Layout)> {
        let at_home = |path: &str| self.home.as_ref().map(|home| home.join(path));
        let (claude, codex) = (&self.claude_config_dir, &self.codex_home);
        let found = match catalog {
            Catalog::Claude => vec![(
                claude
                    .as_ref()
                    .map(|directory| directory.join("projects"))
                    .or_else(|| at_home(".claude/projects")),
                Layout::Projects,
            )],
            Catalog::Codex => {
                let codex = codex.clone().or_else(|| at_home(".codex"));
                let below = |name: &str| codex.as_ref().map(|codex| codex.join(name));
                vec![
                    (below("sessions"), Layout::Dated),
                    (below("archived_sessions"), Layout::Dated),
                ]
            }
            Catalog::Openclaw => vec![
                (at_home(".openclaw/agents"), Layout::Agents),
                (at_home(".pi/agent/sessions"), Layout::Loose),
            ],
        };
        found
            .into_iter()
            .filter_map(|(path, layout)| Some((path?, layout)))
            .collect()
    }
}

impl Root {
    /// How the root is shown: OpenClaw's is one directory of each agent.
    pub fn shown(&self) -> String {
        match self.layout {
            Layout::Agents => format!("{}/*/sessions", self.path.display()),
            _ => self.path.display().to_string(),
        }
    }
}

impl RootSet {
    /// The defaults, but for the catalogs for which roots are given: these have only those.
    pub fn new(surroundings: &Surroundings, given: &[RootArgument]) -> Result<Self, RootError> {
        let mut roots: Vec<Root> = Vec::new();
        let mut add = |catalog, path: &Path, layout, origin| {
            let path = settled_path(path, surroundings.current_dir.as_deref())?;
            let known = roots
                .iter()
                .any(|root| root.catalog == catalog && root.path == path);
            if !known {
                roots.push(Root {
                    catalog,
                    path,
                    layout,
                    origin,
                });
            }
            Ok(())
        };
        for catalog in Catalog::ALL {
            let mut named = given
                .iter()
                .filter(|root| root.catalog == catalog)
                .peekable();
            if named.peek().is_none() {
                for (path, layout) in surroundings.default_roots(catalog) {
                    add(catalog, &path, layout, Origin::Default)?;
                }
            }
            for root in named {
                let layout = Layout::of_given_root(catalog);
                add(catalog, &root.directory, layout, Origin::Given)?;
            }
        }
        if roots.len() > MAX_ROOTS {
            return Err(RootError::TooMany(roots.len()));
        }
        Ok(Self { roots })
    }

    /// All roots, in a fixed order: a root is known by its place in it.
    pub fn all(&self) -> &[Root] {
        &self.roots
    }

    /// The catalogs that have a root.
    pub fn catalogs(&self) -> Vec<Catalog> {
        Catalog::ALL
            .into_iter()
            .filter(|catalog| self.roots.iter().any(|root| root.catalog == *catalog))
            .collect()
    }

    /// The place of the innermost root of the catalog that holds `path`, as it is spelled.
    pub fn holding(&self, catalog: Catalog, path: &Path) -> Option<usize> {
        let holds =
            |root: &&(usize, &Root)| root.1.catalog == catalog && path.starts_with(&root.1.path);
        let roots: Vec<(usize, &Root)> = self.roots.iter().enumerate().collect();
        roots
            .iter()
            .filter(holds)
            .max_by_key(|(_, root)| root.path.as_os_str().len())
            .map(|(index, _)| *index)
    }
}

impl FromStr for RootArgument {
    type Err = RootError;

    fn from_str(text: &str) -> Result<Self, RootError> {
        let (catalog, directory) = text.split_once('=').ok_or(RootError::Shape)?;
        if catalog.is_empty() || directory.is_empty() {
            return Err(RootError::Shape);
        }
        let catalog = Catalog::parse(catalog)
            .ok_or_else(|| RootError::UnknownCatalog(catalog.chars().take(64).collect()))?;
        Ok(Self {
            catalog,
            directory: PathBuf::from(directory),
        })
    }
}

/// The path as it is used from now on: absolute, without `.` and trailing slashes.
fn settled_path(path: &Path, current_dir: Option<&Path>) -> Result<PathBuf, RootError> {
    let path = match (path.is_absolute(), current_dir) {
        (true, _) => path.to_owned(),
        (false, Some(current)) => current.join(path),
        (false, None) => return Err(RootError::Relative(path.to_owned())),
    };
    let path: PathBuf = path.components().collect();
    let travels = path
        .to_str()
        .is_some_and(|text| text.len() <= MAX_ROOT_BYTES && !text.chars().any(char::is_control));
    if travels {
        Ok(path)
    } else {
        Err(RootError::Path(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_home() -> Surroundings {
        Surroundings {
            home: Some("/home/ada".into()),
            current_dir: Some("/work".into()),
            ..Surroundings::default()
        }
    }

    fn paths(surroundings: &Surroundings, given: &[&str]) -> Vec<String> {
        let given: Vec<RootArgument> = given
            .iter()
            .map(|text| text.parse().expect("a root"))
            .collect();
        let roots = RootSet::new(surroundings, &given).expect("roots");
        roots
            .all()
            .iter()
            .map(|root| format!("{}={}", root.catalog, root.path.display()))
            .collect()
    }

    #[test]
    fn defaults_are_where_the_programs_keep_their_files() {
        let everywhere = [
            "claude=/home/ada/.claude/projects",
            "codex=/home/ada/.codex/sessions",
            "codex=/home/ada/.codex/archived_sessions",
            "openclaw=/home/ada/.openclaw/agents",
            "openclaw=/home/ada/.pi/agent/sessions",
        ];
        assert_eq!(paths(&at_home(), &[]), everywhere);
        assert!(paths(&Surroundings::default(), &[]).is_empty());
    }

    #[test]
    fn the_programs_own_variables_move_their_defaults() {
        let moved = Surroundings {
            claude_config_dir: Some("/c".into()),
            codex_home: Some("/x".into()),
            ..Surroundings::default()
        };
        assert_eq!(
            paths(&moved, &[]),
            [
                "claude=/c/projects",
                "codex=/x/sessions",
                "codex=/x/archived_sessions"
            ]
        );
    }

    #[test]
    fn given_roots_replace_the_defaults_of_their_catalog_only() {
        assert_eq!(
            paths(&at_home(), &["codex=/a/", "codex=b/./c", "codex=/a"])[..3],
            [
                "claude=/home/ada/.claude/projects",
                "codex=/a",
                "codex=/work/b/c"
            ]
        );
    }

    #[test]
    fn a_bad_root_is_named() {
        for (text, error) in [
            ("", RootError::Shape),
            ("claude", RootError::Shape),
            ("claude=", RootError::Shape),
            ("=/x", RootError::Shape),
            ("cluade=/x", RootError::UnknownCatalog("cluade".to_owned())),
        ] {
            assert_eq!(text.parse::<RootArgument>(), Err(error), "{text}");
        }
        let nowhere = Surroundings::default();
        for (directory, error) in [
            ("x", RootError::Relative("x".into())),
            ("/a\nb", RootError::Path("/a\nb".into())),
        ] {
            let given = [RootArgument {
                catalog: Catalog::Claude,
                directory: directory.into(),
            }];
            assert_eq!(RootSet::new(&nowhere, &given), Err(error));
        }
        let many: Vec<RootArgument> = (0..=MAX_ROOTS)
            .map(|n| format!("claude=/r{n}").parse().expect("a root"))
            .collect();
        assert_eq!(
            RootSet::new(&nowhere, &many),
            Err(RootError::TooMany(MAX_ROOTS + 1))
        );
    }

    #[test]
    fn the_innermost_root_holds_a_path() {
        let given = [
            "claude=/a".parse(),
            "claude=/a/b".parse(),
            "codex=/a/b/c".parse(),
        ]
        .map(|root| root.expect("a root"));
        let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
        for (path, holder) in [
            ("/a/x/s.jsonl", Some(0)),
            ("/a/b/x/s.jsonl", Some(1)),
            ("/a/b/c/s.jsonl", Some(1)),
            ("/ab/s.jsonl", None),
        ] {
            assert_eq!(roots.holding(Catalog::Claude, Path::new(path)), holder);
        }
    }
}
