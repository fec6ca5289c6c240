//! What was perhaps meant by a name that does not exist, and what exists.

/// Names longer than this are compared by their beginnings: the work is bounded.
const MAX_COMPARED_CHARS: usize = 200;
/// How many names a hint lists; the list command shows them all.
const MAX_LISTED: usize = 8;

/// The name most like `given`; `None` where none is like it. A name that holds `given`
/// whole, and is the only one to, is meant before any that is merely spelled alike.
pub fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    let given = given.trim().to_lowercase();
    if given.is_empty() {
        return None;
    }
    let mut holding = names
        .iter()
        .filter(|name| name.to_lowercase().contains(&given));
    if let (Some(name), None) = (holding.next(), holding.next()) {
        return Some(name);
    }
    let given: Vec<char> = given.chars().take(MAX_COMPARED_CHARS).collect();
    // A third of the letters may be wrong, and two always may.
    let limit = (given.len() / 3).max(2);
    names
        .iter()
        .map(|name| (distance(&given, name, limit), *name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// The hint for an unknown name: the nearest one, what there is, and the command that
/// lists them all. `total` counts those too that are not in `names`.
pub fn hint(given: &str, what: &str, names: &[&str], total: usize, list: &str) -> String {
    if names.is_empty() {
        return format!("there are no {what} (`{list}`)");
    }
    let meant = nearest(given, names)
        .map(|name| format!("did you mean {name}? "))
        .unwrap_or_default();
    let listed = &names[..names.len().min(MAX_LISTED)];
    let more = match total.max(names.len()) - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{meant}the {what} are {}{more} (`{list}`)",
        listed.join(", ")
    )
}

/// How many letters to change, add, drop or swap with their neighbour to make one of the
/// other; more than `limit` is not counted out.
fn distance(given: &[char], name: &str, limit: usize) -> usize {
    let name: Vec<char> = name
        .to_lowercase()
        .chars()
        .take(MAX_COMPARED_CHARS)
        .collect();
    if given.len().abs_diff(name.len()) > limit {
        return limit + 1;
    }
    let mut two_above: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=name.len()).collect();
    for (i, &a) in given.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in name.iter().enumerate() {
            let change = above[j] + usize::from(a != b);
            let mut least = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == name[j - 1] && given[i - 1] == b {
                least = least.min(two_above[j - 1] + 1);
            }
            row.push(least);
        }
        two_above = std::mem::replace(&mut above, row);
    }
    above[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_spelled_most_alike() {
        let names = ["laptop", "desktop", "local", "agent:main:main"];
        for (given, expected) in [
            ("latpop", Some("laptop")),
            ("Laptop", Some("laptop")),
            ("dektop", Some("desktop")),
            ("agent:mian:main", Some("agent:main:main")),
            ("main:main", Some("agent:main:main")),
            ("lcal", Some("local")),
            ("server", None),
            ("", None),
            ("l", None),
        ] {
            assert_eq!(nearest(given, &names), expected, "{given}");
        }
    }

    #[test]
    fn a_hint_names_the_nearest_and_what_there_is() {
        assert_eq!(
            hint(
                "lapto",
                "nodes",
                &["laptop", "local"],
                2,
                "tidings nodes list"
            ),
            "did you mean laptop? the nodes are laptop, local (`tidings nodes list`)"
        );
        assert_eq!(
            hint("x", "nodes", &[], 0, "tidings nodes list"),
            "there are no nodes (`tidings nodes list`)"
        );
        let many: Vec<String> = (100..120).map(|n| format!("node-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let hint = hint("zzz", "nodes", &many, 300, "tidings nodes list");
        assert!(hint.starts_with("the nodes are node-100, "), "{hint}");
        assert!(hint.contains("node-107 and 292 more (`tidings"), "{hint}");
    }
}
