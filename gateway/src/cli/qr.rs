//! QR codes as text, for a join link to be read by a camera.

use qrcode::{Color, EcLevel, QrCode};

/// The light margin that the standard asks for around a code, in modules.
const QUIET: usize = 4;

/// The code of `text` as lines of half blocks, light on dark as most terminals are; `None`
/// where the text is too long for any code.
pub(super) fn draw(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let end = code.width() + 2 * QUIET;
    // What lies outside the code is light.
    let is_dark = |x: usize, y: usize| {
        let within = |at: usize| at.checked_sub(QUIET).filter(|&at| at < code.width());
        matches!((within(x), within(y)), (Some(x), Some(y)) if code[(x, y)] == Color::Dark)
    };
    let mut lines = String::new();
    for y in (0..end).step_by(2) {
        for x in 0..end {
            // The row below the last is the terminal's own: dark.
            let below = y + 1 >= end || is_dark(x, y + 1);
            lines.push(match (is_dark(x, y), below) {
                (false, false) => '█',
                (false, true) => '▀',
                (true, false) => '▄',
                (true, true) => ' ',
            });
        }
        lines.push('\n');
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_the_code_of_the_link_and_its_margin() {
        let link = format!(
            "tidings://join/{}@[2001:db8::1]:7430?ca={}",
            "07".repeat(16),
            "9a".repeat(32)
        );
        let code = QrCode::with_error_correction_level(&link, EcLevel::L).expect("fits");
        let side = code.width() + 2 * QUIET;

        let drawn = draw(&link).expect("fits");

        let mut rows: Vec<Vec<bool>> = Vec::new();
        for line in drawn.lines() {
            rows.push(line.chars().map(|c| matches!(c, '▄' | ' ')).collect());
            rows.push(line.chars().map(|c| matches!(c, '▀' | ' ')).collect());
        }
        assert_eq!(rows.len(), side + 1, "a side is odd, a line has two rows");
        rows.truncate(side);
        let margin = rows.iter().enumerate().flat_map(|(y, row)| {
            let inside = QUIET..side - QUIET;
            let outside =
                move |&(x, _): &(usize, &bool)| !(inside.contains(&x) && inside.contains(&y));
            row.iter().enumerate().filter(outside)
        });
        assert!(margin.into_iter().all(|(_, dark)| !dark));
        let modules = rows[QUIET..side - QUIET]
            .iter()
            .flat_map(|row| &row[QUIET..side - QUIET]);
        let modules: Vec<Color> = modules
            .map(|&dark| if dark { Color::Dark } else { Color::Light })
            .collect();
        assert_eq!(modules, code.to_colors());
    }

    #[test]
    fn a_text_too_long_for_any_code_is_not_drawn() {
        assert_eq!(draw(&"x".repeat(3_000)), None);
    }
}
