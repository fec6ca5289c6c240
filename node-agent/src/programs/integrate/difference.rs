//! What an edit changes, line by line and without the lines around: a program's configuration
//! may hold secrets.

/// The most lines that are compared each with each; more differ as a whole.
const MAX_COMPARED: usize = 2_000;

/// The lines that go, with `-`, and those that come, with `+`.
pub(super) fn difference(before: &str, after: &str) -> Vec<String> {
    let (mut before, mut after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let same = |a: &[&str], b: &[&str]| {
        let pairs = a.iter().zip(b);
        pairs.take_while(|(a, b)| a == b).count()
    };
    let head = same(&before, &after);
    before.drain(..head);
    after.drain(..head);
    while let (Some(a), Some(b)) = (before.last(), after.last()) {
        if a != b {
            break;
        }
        before.pop();
        after.pop();
    }
    let gone = |line: &&str| format!("-{line}");
    let come = |line: &&str| format!("+{line}");
    if before.len() > MAX_COMPARED || after.len() > MAX_COMPARED {
        return before
            .iter()
            .map(gone)
            .chain(after.iter().map(come))
            .collect();
    }
    let common = common(&before, &after);
    let (mut a, mut b) = (0, 0);
    let mut lines = Vec::new();
    while a < before.len() || b < after.len() {
        if a < before.len() && b < after.len() && before[a] == after[b] {
            (a, b) = (a + 1, b + 1);
        } else if b >= after.len() || (a < before.len() && common[a + 1][b] >= common[a][b + 1]) {
            lines.push(gone(&before[a]));
            a += 1;
        } else {
            lines.push(come(&after[b]));
            b += 1;
        }
    }
    lines
}

/// How many lines the rests from each place on have in common at most.
fn common(before: &[&str], after: &[&str]) -> Vec<Vec<u16>> {
    let mut common = vec![vec![0_u16; after.len() + 1]; before.len() + 1];
    for a in (0..before.len()).rev() {
        for b in (0..after.len()).rev() {
            common[a][b] = if before[a] == after[b] {
                common[a + 1][b + 1] + 1
            } else {
                common[a + 1][b].max(common[a][b + 1])
            };
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_and_comes_is_shown() {
        for (before, after, expected) in [
            ("a\nb\nc", "a\nb\nc", &[][..]),
            ("", "a\n", &["+a"]),
            (
                "a\nsecret\nb\nc\n",
                "a\nsecret\nx\nb\ny\n",
                &["+x", "-c", "+y"],
            ),
            ("a\nb\n", "b\n", &["-a"]),
        ] {
            assert_eq!(difference(before, after), expected, "{before:?}");
        }
        let long = "x\n".repeat(3 * MAX_COMPARED);
        assert_eq!(difference(&long, "y\n").len(), 3 * MAX_COMPARED + 1);
    }
}
