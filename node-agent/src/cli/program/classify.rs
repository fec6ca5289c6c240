//! `tidings-node classify`: which records of a transcript are a human speaking, and why.
//! It reads a file and needs no gateway.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use tidings_protocol::Catalog;
use tidings_protocol::session_api::{ApiError, ErrorType};

use crate::classify::{ClassifyFileError, FileClassification, Verdict, classify_file};
use crate::cli::common::catalog_parser;
use crate::cli::error::file_error;
use crate::cli::{Column, CommandError, Note, Output, Page, Table};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tidings-node classify ~/.claude/projects/x/0a1b2c3d.jsonl --json")]
pub(super) struct ClassifyArgs {
    /// The transcript
    file: PathBuf,
    /// The family of the agent program; else it is recognised from the records
    #[arg(long, value_parser = catalog_parser())]
    catalog: Option<Catalog>,
}

pub(super) fn run(args: &ClassifyArgs, output: Output) -> Result<(), CommandError> {
    let classified = classify_file(&args.file, args.catalog).map_err(to_api_error)?;
    output.answer(&classified, page)
}

fn to_api_error(error: ClassifyFileError) -> ApiError {
    let hint = match &error {
        ClassifyFileError::Changed { .. } => "run it again when nobody writes it anew",
        ClassifyFileError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            "run it as the user whose transcript it is"
        }
        _ => "name one transcript, a .jsonl file: tidings catalog list shows where they are",
    };
    let error = match error {
        ClassifyFileError::Io { path, source } => file_error(&path, &source),
        error => ApiError::new(ErrorType::InvalidData, error.to_string()),
    };
    error.with_hint(hint)
}

fn page(classified: &FileClassification) -> Page {
    let records = &classified.records;
    let humans = records.iter().filter(|r| r.verdict == Verdict::Human);
    let read_as = match classified.catalog {
        Some(catalog) => format!("read as {catalog}"),
        None => "of no known program".to_owned(),
    };
    let summary = Note::Info(format!(
        "records {}, human {}; {read_as}",
        records.len(),
        humans.count()
    ));
    if records.is_empty() {
        return Page::default().with(summary);
    }
    let table = Table::new([
        Column::right("LINE"),
        Column::right("FROM BYTE"),
        Column::right("TO BYTE"),
        Column::left("VERDICT"),
        Column::left("RULE"),
        Column::left("RECORD").where_filled(),
    ])
    .with_rows(records, |record| {
        [
            record.line.to_string(),
            record.byte_start.to_string(),
            record.byte_end.to_string(),
            verdict_name(record.verdict).to_owned(),
            record.rule.to_owned(),
            record.record_id.clone().unwrap_or_default(),
        ]
    });
    Page::of(table).with(summary)
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Human => "human",
        Verdict::NotHuman => "not_human",
        Verdict::Unclassified => "unclassified",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::ClassifiedRecord;

    fn record(line: u64, verdict: Verdict, record_id: Option<&str>) -> ClassifiedRecord {
        ClassifiedRecord {
            line,
            byte_start: line * 100,
            byte_end: line * 100 + 99,
            verdict,
            rule: "typed-prompt",
            record_id: record_id.map(str::to_owned),
        }
    }

    #[test]
    fn people_see_a_table_and_the_sum() {
        let page = page(&FileClassification {
            catalog: Some(Catalog::Claude),
            records: vec![
                record(1, Verdict::NotHuman, None),
                record(12, Verdict::Human, Some("c0ffee")),
                record(13, Verdict::Unclassified, None),
            ],
        });
        assert_eq!(
            page.text,
            "LINE  FROM BYTE  TO BYTE  VERDICT       RULE          RECORD\n\
             \u{20}  1        100      199  not_human     typed-prompt  -\n\
             \u{20} 12       1200     1299  human         typed-prompt  c0ffee\n\
             \u{20} 13       1300     1399  unclassified  typed-prompt  -\n"
        );
        let sum = Note::Info("records 3, human 1; read as claude".to_owned());
        assert_eq!(page.notes, [sum]);
    }
}
