//! Tables for people: aligned columns, two spaces apart, no lines.

use std::fmt;

use super::output::printable;

/// What stands in a cell that has nothing to say.
const NOTHING: &str = "-";

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    align: Align,
    presence: Presence,
}

#[derive(Debug, Clone, Copy)]
enum Align {
    Left,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Always,
    WhereFilled,
}

/// A table of `N` columns.
#[derive(Debug, Clone)]
pub struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

impl Column {
    /// A column of texts.
    #[must_use]
    pub const fn left(title: &'static str) -> Self {
        Self {
            title,
            align: Align::Left,
            presence: Presence::Always,
        }
    }

    /// A column of numbers.
    #[must_use]
    pub const fn right(title: &'static str) -> Self {
        Self {
            align: Align::Right,
            ..Self::left(title)
        }
    }

    /// The same column, left out where no row has anything in it.
    #[must_use]
    pub const fn where_filled(self) -> Self {
        Self {
            presence: Presence::WhereFilled,
            ..self
        }
    }
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: [Column; N]) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// The same table with one more row. Each cell stays on one line.
    #[must_use]
    pub fn with_row(mut self, cells: [String; N]) -> Self {
        self.rows
            .push(cells.map(|cell| printable(&cell.replace('\n', " "))));
        self
    }

    /// The same table with one row for each item.
    #[must_use]
    pub fn with_rows<T>(self, items: &[T], cells: impl Fn(&T) -> [String; N]) -> Self {
        items
            .iter()
            .fold(self, |table, item| table.with_row(cells(item)))
    }

    fn is_shown(&self, at: usize) -> bool {
        self.columns[at].presence == Presence::Always
            || self.rows.iter().any(|row| !row[at].is_empty())
    }

    fn width(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| shown(&row[at]).chars().count());
        cells
            .chain([self.columns[at].title.chars().count()])
            .max()
            .unwrap_or_default()
    }
}

fn shown(cell: &str) -> &str {
    if cell.is_empty() { NOTHING } else { cell }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = (0..N)
            .filter(|&at| self.is_shown(at))
            .map(|at| (at, self.columns[at].align, self.width(at)))
            .collect();
        let titles = self.columns.map(|column| column.title.to_owned());
        for row in std::iter::once(&titles).chain(&self.rows) {
            let cells = columns.iter().map(|&(at, align, width)| match align {
                Align::Left => format!("{:<width$}", shown(&row[at])),
                Align::Right => format!("{:>width$}", shown(&row[at])),
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        Table::new([
            Column::left("NAME"),
            Column::right("SIZE"),
            Column::left("TITLE").where_filled(),
        ])
    }

    fn row(cells: [&str; 3]) -> [String; 3] {
        cells.map(str::to_owned)
    }

    #[test]
    fn columns_line_up_and_no_line_ends_in_blanks() {
        let table = table()
            .with_row(row(["a", "1", "x"]))
            .with_row(row(["longer", "12345", ""]));
        assert_eq!(
            table.to_string(),
            "NAME     SIZE  TITLE\na           1  x\nlonger  12345  -\n"
        );
    }

    #[test]
    fn a_column_that_is_empty_throughout_can_be_left_out() {
        let table = table().with_row(row(["ä", "", ""]));
        assert_eq!(table.to_string(), "NAME  SIZE\nä        -\n");
    }

    #[test]
    fn a_cell_cannot_break_its_row() {
        let table = table().with_row(row(["a\nb", "1", "\u{1b}c"]));
        assert_eq!(
            table.to_string(),
            "NAME  SIZE  TITLE\na b      1  \u{fffd}c\n"
        );
    }
}
