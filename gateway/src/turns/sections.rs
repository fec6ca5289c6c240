//! Sections of an agent's AGENTS.md, by name: what of its standing instructions stands in the
//! prompt again after a compaction. Pure.

/// The file.
pub const FILE: &str = "AGENTS.md";
/// A larger one is not read.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// More than this is not put into a prompt beside a summary.
const MAX_BYTES: usize = 16 * 1024;

/// The named sections as they stand in the file, in the order of the names; `None` where there
/// is none of them. A section goes from its heading to the next of the same rank or a higher.
#[must_use]
pub fn pick(file: &str, names: &[String]) -> Option<String> {
    let lines: Vec<&str> = file.lines().collect();
    let headings = headings(&lines);
    let mut picked = String::new();
    for name in names {
        let name = name.trim();
        let found = headings
            .iter()
            .position(|heading| !name.is_empty() && heading.name.eq_ignore_ascii_case(name));
        let Some(at) = found else { continue };
        let ends = headings[at + 1..]
            .iter()
            .find(|heading| heading.rank <= headings[at].rank)
            .map_or(lines.len(), |heading| heading.line);
        let section = lines[headings[at].line..ends].join("\n");
        if !picked.is_empty() {
            picked.push_str("\n\n");
        }
        picked.push_str(section.trim_end());
    }
    picked.truncate(picked.floor_char_boundary(MAX_BYTES));
    (!picked.is_empty()).then_some(picked)
}

struct Heading<'a> {
    line: usize,
    rank: usize,
    name: &'a str,
}

/// The headings of a Markdown file; what stands in a fenced block is none.
fn headings<'a>(lines: &[&'a str]) -> Vec<Heading<'a>> {
    let mut headings = Vec::new();
    let mut fence: Option<&str> = None;
    for (at, line) in lines.iter().enumerate() {
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => headings.extend(heading(at, line)),
            (Some(_), _) => {}
        }
    }
    headings
}

fn heading(line: usize, text: &str) -> Option<Heading<'_>> {
    let name = text.trim_start_matches('#');
    let rank = text.len() - name.len();
    let is_heading = (1..=6).contains(&rank) && name.starts_with([' ', '\t']);
    is_heading.then(|| Heading {
        line,
        rank,
        name: name.trim().trim_end_matches('#').trim_end(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Agent\nhello\n\n## Session Startup\nread memory\n\n### Always\n- ports\n\
                        ```\n## Red Lines\n```\n\n## Red Lines ##\nnever push\n\n# Other\nend\n";

    fn picked(names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        pick(FILE, &names)
    }

    #[test]
    fn a_section_goes_from_its_heading_to_the_next_of_its_rank() {
        let startup =
            "## Session Startup\nread memory\n\n### Always\n- ports\n```\n## Red Lines\n```";
        let lines = "## Red Lines ##\nnever push";
        let both = format!("{lines}\n\n{startup}");
        for (names, expected) in [
            (&["session startup"][..], Some(startup)),
            (
                &["Always"],
                Some("### Always\n- ports\n```\n## Red Lines\n```"),
            ),
            (&["Red Lines", "Session Startup"], Some(both.as_str())),
            (&["Other", "nowhere"], Some("# Other\nend")),
            (&[" "], None),
            (&["nowhere"], None),
            (&[], None),
        ] {
            assert_eq!(picked(names).as_deref(), expected, "{names:?}");
        }
    }

    #[test]
    fn a_long_section_is_cut() {
        let file = format!("# A\n{}", "é".repeat(MAX_BYTES));
        let found = pick(&file, &["a".to_owned()]).expect("a section");
        assert!(found.len() <= MAX_BYTES && found.len() > MAX_BYTES - 4);
    }
}
